"""How a broker behaves, as named switches: the defaults are the corrected protocol, each published defect has its own.

Numbers are the spec's (2.1); a rule that is off shows what it repairs (6.2-H, `godwit lab gathering --defects`).
"""

from __future__ import annotations

import math

import msgspec

from godwit.protocols.topology.pastry.node import RingOptions


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    exact: bool = False
    """Exact circle and box tests in place of the report's half-planes."""
    homes: int = 3
    """k: how many home brokers know where a client is."""
    pointers_max: int = 1024
    buffer_max: int | None = None
    fails_max: int = 3
    """n_fail: unconfirmed sends after which a client is absent."""
    chain_max: int = 64
    ack_s: float = 1.0
    """T_ack, for a hop and for a send to a client."""
    tries: int = 3
    register_s: float = 2.0
    registers_max: int = 3
    lookup_s: float = 2.0
    recheck_s: float = 60.0
    """T_recheck: how often an absent client is looked up; 0 is never, as in experiment M."""
    tombstone_s: float = 60.0
    split_s: float = 30.0
    """How long an owner waits for a newcomer that it has assigned a cell to."""
    replicate_s: float = 0.0
    """T_rep; 0 is no replicas and no takeover."""
    replicas: int = 2
    assured: bool = False
    """A client is told that its subscription is in place, once all owners and their stand-ins have it. Needs
    `replicate_s`; off in the published protocol, which answers nothing."""
    assured_s: float = 10.0
    """After so long it is told that it may not be everywhere."""
    profile_ttl_s: float = math.inf
    """How long an absent client that never returns keeps its profile."""

    epochs: bool = True
    """Tell late messages of earlier moves from new ones. Off: the report's protocol."""
    keyed_handovers: bool = True
    """A later association does not overwrite the pending handover of an earlier one."""
    chase: bool = True
    """A handover that finds only an older pointer follows it."""
    tried: bool = True
    """Hand over also from brokers that were asked and whose answer never came."""
    late_guard: bool = True
    """A pointer as new as an ASSOCIATE shows that the client has left again."""
    ready: bool = True
    """A newcomer serves its cell from STATE on. Off: from SPLIT on, and matches are missed."""
    handover: bool = True
    """Off: nothing follows a client, which has to subscribe again (the sub-unsub family)."""
    via_home: bool = False
    """Notices always go to a client's first home and on from there (home-only forwarding)."""

    ring: RingOptions = RingOptions()


CORRECTED = Rules()

PUBLISHED = Rules(epochs=False, keyed_handovers=False, chase=False, tried=False, late_guard=False, recheck_s=0.0)
"""What the report says, and no more."""
