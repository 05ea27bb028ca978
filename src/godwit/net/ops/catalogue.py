"""What each figure of a broker means to Prometheus: its help and the name of its label."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Figure(msgspec.Struct, frozen=True):
    help: str
    label: str = ""
    """What tells its numbers apart; nothing where it is one number."""


def figure_of(table: Mapping[str, Figure], name: str) -> Figure:
    """A figure that nobody has described is told all the same; `tests/net/ops/test_catalogue.py` finds it."""
    return table.get(name) or Figure(name.replace("_", " "), "kind")


COUNTERS = {
    "published": Figure("Publications taken from clients of this broker.", "qos"),
    "delivered": Figure("Publications delivered to clients of this broker, repetitions not counted.", "qos"),
    "dropped": Figure(
        "Deliveries that were not made: bounds of a backlog, expiry, clients that do not read.", "reason"
    ),
    "refused": Figure("Publications, subscriptions and new sessions that were not taken.", "reason"),
    "forwarded": Figure("Publications sent to other brokers, each counted once."),
    "taken": Figure("Publications that came from other brokers."),
    "moved": Figure("Sessions that came from another broker, or went to one.", "direction"),
    "copies": Figure("Copies of resting sessions: made for others, used by clients that came, refused here.", "event"),
    "handoffs": Figure(
        "Sessions that left: found a copy where they went, found none, copies that nobody used.", "result"
    ),
    "handoffs_missed": Figure("Clients that came here from another broker and found no copy that was good."),
    "late_duplicates": Figure("Deliveries that an old session kept and the new one had taken already; dropped."),
    "taken_over": Figure("Connections that ended since another program connected under the same client id."),
    "redirected": Figure("Clients that were sent to another broker."),
    "clients": Figure("Clients that knocked: let in, refused, or not understood.", "result"),
    "client_bytes": Figure("Bytes from and to clients.", "direction"),
    "client_packets": Figure("MQTT packets from and to clients.", "direction"),
    "streams": Figure("What happened in the streams between brokers.", "event"),
    "link_messages": Figure("Messages over links to other brokers.", "direction"),
    "link_drops": Figure(
        "Messages between brokers that were dropped; malformed: one that nobody could read ended its link.", "reason"
    ),
    "store": Figure("Transactions of the disk, and rows that they changed.", "kind"),
    "failures": Figure("Failures inside of the broker: lies of peers, wrong calls, bugs. It went on.", "kind"),
    "air_events": Figure("Events in the air, by what became of them.", "event"),
    "air_frames_sent": Figure("Frames that this node put on the air.", "kind"),
    "air_frames_received": Figure("Frames that this node heard.", "kind"),
    "air_bytes": Figure("Bytes on the air.", "direction"),
    "air_dropped": Figure("Frames that were not believed or not understood.", "reason"),
    "air_failures": Figure("Failures of the node in the air.", "kind"),
    "uplink_wire_out_bytes": Figure("Bytes sent to gateways of other sites, as they travel.", "peer"),
    "uplink_wire_in_bytes": Figure("Bytes that came from gateways of other sites.", "peer"),
    "uplink_plain_out_bytes": Figure("The same before they were compressed.", "peer"),
    "uplink_plain_in_bytes": Figure("The same after they were unpacked.", "peer"),
    "uplink_events_out": Figure("Events sent to other sites.", "peer"),
    "uplink_events_in": Figure("Events that came from other sites.", "peer"),
    "uplink_outlooks_out": Figure("Statements of what this site offers and wants.", "peer"),
    "uplink_outlooks_in": Figure("Statements of what other sites offer and want.", "peer"),
    "uplink_filters_out": Figure("Filters that began or ended in statements to other sites.", "peer"),
    "uplink_filters_in": Figure("Filters that began or ended in statements of other sites.", "peer"),
    "uplink_repeated": Figure("Events from other sites that had come another way; dropped.", "peer"),
    "uplink_refused": Figure("What came over an uplink and has no business there.", "peer"),
    "uplink_dropped": Figure("What waited for another site beyond the bounds of its queue.", "peer"),
}
"""What only grows; Prometheus calls each `godwit_NAME_total`."""

GAUGES = {
    "sessions": Figure("Sessions that this broker keeps, of clients that are connected or away."),
    "connected": Figure("Sessions whose client is connected."),
    "subscriptions": Figure("Subscriptions of all sessions."),
    "waiting": Figure("Deliveries above QoS 0 that wait for clients or are under way to them."),
    "shadows": Figure("Sessions that went to another broker and still pass on what comes for them here."),
    "copies_held": Figure("Copies of other brokers' sessions that are held here."),
    "copies_bytes": Figure("Memory of the copies that are held here, in bytes."),
    "neighbors": Figure("Share of the clients that leave who go to this broker.", "broker"),
    "handoff_hit_rate": Figure("Share of the sessions that left in the last hour which found a copy where they went."),
    "neighbors_false_negatives": Figure("Share of the moves of the last hour that were not foreseen."),
    "neighbors_false_positives": Figure("Share of the copies of the last hour that nobody came for."),
    "retained": Figure("Topics with a retained publication."),
    "connections": Figure("Network connections of clients that are open."),
    "links": Figure("Links to other brokers that are up."),
    "brokers": Figure("Other brokers that this one knows."),
    "unconfirmed": Figure("Items sent to a broker that it has not confirmed; they are kept until it does.", "broker"),
    "store_pending": Figure("Changes that wait to be written to the disk."),
    "healthy": Figure("1 where /ready answers 200, else 0."),
    "uptime_seconds": Figure("Seconds since the broker began to serve."),
    "air_nodes": Figure("Nodes in the air that this one hears, or is told of.", "kind"),
    "air_carried": Figure("What is carried for nodes that may still be met.", "kind"),
    "air_waiting_bytes": Figure("Bytes that wait for their turn on the air."),
    "ring_cells": Figure("Cells of the map that this broker owns."),
    "ring_cells_known": Figure("Cells of the map whose owner this broker knows."),
    "ring_book": Figure("Filters of other brokers in the books of this one."),
    "ring_homes": Figure("Sessions whose place this broker keeps for others."),
    "ring_holders": Figure("Brokers that keep the book of this one: two, where there are three brokers or more."),
    "ring_replicas": Figure("Brokers whose book this one keeps."),
    "ring_custody": Figure("Items on their way through the ring that this broker answers for."),
    "uplink_up": Figure("Whether the link to a gateway of another site is up.", "peer"),
    "uplink_waiting": Figure("What waits for another site.", "peer"),
    "uplink_waiting_bytes": Figure("Bytes of what waits for another site.", "peer"),
}
"""What goes up and down; each is `godwit_NAME`."""

HISTOGRAMS = {
    "delivery": Figure(
        "From the publisher's broker to the connection of a subscriber, its absence included; one in 16."
    ),
    "handoff": Figure("From when a client that came from another broker was known until it was let in."),
    "commit": Figure("One transaction of the disk."),
    "match": Figure("Finding who wants publications for their content, for those that came together."),
}
"""How long something takes; each is `godwit_NAME_seconds`."""
