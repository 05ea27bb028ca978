"""The published rules of MFT-PubSub and those that harden them (spec mft-pubsub 2.12), each by name.

`THESIS` is the protocol as published, `HARDENED` the product's. `LITERAL` is `THESIS` with one more printed slip, kept
only to show what it costs.
"""

from __future__ import annotations

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker does where the published rule loses a subscriber; everything off is the thesis."""

    attached_decides: bool = False
    """H1: on a tie only the broker that the subscriber is attached to may refuse a claim."""

    new_parent_is_beyond: bool = False
    """H2: a subscriber already behind the new parent is listed as beyond, not as below."""

    one_hop_for_all: bool = False
    """H3: an accepted SUB or UNS re-points every entry of its subscriber."""

    flood_moves: bool = False
    """H4: a client's MIG goes everywhere, as its SUB does, instead of along the path to its previous broker."""

    attached_stay: bool = False
    """H5: an attached client is never re-pointed; the recursive approach claims only attached clients."""

    refresh: bool = False
    """H6: the subscriber repeats all its filters now and then, under a new sequence number."""

    loops_end: bool = False
    """H7: hop counts are limited, and a flood of filters passes each broker once."""

    newer_only: bool = False
    """H8: a client's message is taken only with a new sequence number; the same one from nearer is a duplicate."""

    doubts: bool = False
    """H10, ours: whoever may have missed something of a subscriber asks all over the tree, and across every new link,
    until the subscriber has spoken under a new number. Signs of it are a gap in the numbers, a next hop that has gone,
    a flood that comes back, and two brokers that point at each other."""

    addressed: bool = False
    """H11, ours: an event says for whom it is passed on. A broker that would have to send it back, or has never heard
    of its subscriber, then stores it, where the published rule loses it in silence (D8)."""

    acknowledge_control: bool = False
    """Control messages are repeated until the neighbor has them or leaves (2.7)."""

    lists_from_routes: bool = False
    """The printed `migrate` lists only subscribers that still have filters, so that a departure cannot travel (D3)."""


THESIS = Rules()
LITERAL = Rules(lists_from_routes=True)
HARDENED = Rules(
    attached_decides=True,
    new_parent_is_beyond=True,
    one_hop_for_all=True,
    flood_moves=True,
    attached_stay=True,
    refresh=True,
    loops_end=True,
    newer_only=True,
    doubts=True,
    addressed=True,
    acknowledge_control=True,
)
HOPS_MAX = 64
