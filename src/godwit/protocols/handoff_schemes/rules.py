"""The published rules of pro-active handoff and those that harden them (spec proactive-handoff 2.7 to 2.10), by name.

`LITERAL` is the text, `HARDENED` the product's. Names of the race rules follow the spec's numbers Z1 to Z15.
"""

from __future__ import annotations

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker does where the text is silent or loses something; everything off is the text."""

    spare_attached: bool = False
    """Nobody else's message touches the record of a subscriber that is, or was last, attached here."""

    epochs: bool = False
    """An ACTIVATE with a lower epoch than the record's cannot take control back (2.9)."""

    ack_high_water: bool = False
    """Catch-up goes on to what the neighbor had seen when it woke, not only to its acknowledgement (2.7)."""

    gap_safe: bool = False
    """A catch-up has an end, and what is above its first possible gap is held back until then (2.10)."""

    live_mark_check: bool = False
    """Z2: a live event at or below the mark is dropped, not only a cached one."""

    attach_no: bool = False
    """Z1: the client counts its attachments, and this number is the epoch everywhere. The rules below need it."""

    numbered_hits: bool = False
    """Z3: only a copy woken by the attachment before this one is a hit; all else is fetched."""

    numbered_orders: bool = False
    """Z4: DEACTIVATE and DELETE apply by their number, not by the controller."""

    newer_copies: bool = False
    """Z5: a newer STORE_SUB puts an older copy to sleep."""

    tombstones: bool = False
    """Z6: a DELETE is remembered, so that what is older and late recreates nothing."""

    stale_moves: bool = False
    """Z7: a MOVED older than the own record leaves it alone."""

    patient_answers: bool = False
    """Z8: a context is handed out only when it is whole and as far as the asker."""

    whole_backlogs: bool = False
    """Z9: nobody is woken with half a backlog, nor after the subscriber has appeared elsewhere."""

    stale_records: bool = False
    """Z10: what is newer than a record of an attached subscriber waits for that record's demotion."""

    own_catchups: bool = False
    """Z12: a catch-up belongs to one attachment and lives by itself. Z11, all are answered, has no switch."""

    needed_contexts: bool = False
    """Z13: a missing copy is replaced only while it is still of use."""

    chase: bool = False
    """Ours: a client may vanish before it hears that it was let in, and that several times in a row. It names all whom
    it has called since; they are asked one after the other, and requests for it are passed on to where it went."""

    spread: bool = False
    """Ours: an unsubscription that meets a record which does not know yet that it is history goes on to its copies."""

    client_marks: bool = False
    """Ours: what the client says it has had counts, not only what was acknowledged."""

    own_memory: bool = False
    """Ours: who has the latest events needs nobody to send them after, be it for a stand-in that wakes or for a client
    that was gone so shortly that nobody was woken. Needs `latest_b` and the client's own marks."""

    edges_take_copies: bool = True
    """Z14: with an edge go the copies of all whose record is here."""

    pre_propagate: bool = True
    """A new neighbor gets copies of those who are connected already (2.5)."""

    refresh_on_moved: bool = True
    """A MOVED keeps its edge in use, also where all motion is one-way (2.5)."""

    def without(self, *names: str) -> Rules:
        return msgspec.structs.replace(self, **dict.fromkeys(names, False))


RACES = (
    *("numbered_hits", "numbered_orders", "newer_copies", "tombstones", "stale_moves"),
    *("patient_answers", "whole_backlogs", "stale_records", "own_catchups", "needed_contexts"),
)

LITERAL = Rules()
SPARING = Rules(spare_attached=True)
OPTIONS = Rules(spare_attached=True, epochs=True, ack_high_water=True, gap_safe=True)
"""All that the text's own options offer, without attachment numbers."""
CHECKED = msgspec.structs.replace(OPTIONS, live_mark_check=True)
HARDENED = msgspec.structs.replace(CHECKED, attach_no=True, chase=True, spread=True, **dict.fromkeys(RACES, True))
OURS = msgspec.structs.replace(HARDENED, client_marks=True, own_memory=True)
