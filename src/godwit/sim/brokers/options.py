"""How a deployed broker is set up on a simulated machine, and what a fabric takes from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from godwit.protocols.adhoc.options import Options as AirOptions
from godwit.protocols.broker.fabric.adhoc import field_options
from godwit.protocols.broker.fabric.ring.fabric import RingOptions
from godwit.protocols.broker.fabric.tree import TreeOptions
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Handoff
from godwit.protocols.broker.handoff.prediction import HABITS
from godwit.protocols.broker.lasting.replay import PER_S
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.host import NodeId
from godwit.protocols.neighbors.graph import GraphOptions

QUICK = TreeOptions(streams=StreamOptions(retry_s=0.5, retry_max_s=4.0), refresh_s=20.0, forget_s=10_000.0)
"""The tree with retries that a short run sees."""

RING = RingOptions(
    streams=StreamOptions(retry_s=0.5, retry_max_s=4.0), watch_s=0.5, absent_s=3.0, replace_s=8.0, restore_s=5.0
)
"""The ring with brokers so impatient that crashes of a few seconds are long."""

FORESEEN = ("everybody", "habits")


class StationOptions(msgspec.Struct, frozen=True, kw_only=True):
    fabric: str = "tree"
    """One of `godwit.sim.brokers.fabric_kinds.FABRICS`."""
    handoff: Handoff = "proactive"
    session_wait_s: float = 10.0
    foresight: Literal["everybody", "habits"] = "habits"
    """Who gets copies: those where clients went before, as deployed, or all others."""
    habits: GraphOptions = HABITS
    tree: TreeOptions = QUICK
    air: AirOptions = field_options()
    ring: RingOptions = RING
    first: str = "b1"
    """The broker that begins a ring; the others join it."""
    founds: bool | None = None
    """Whether a broker begins a ring, as its operator has decided; None: the first one does."""
    copies_bytes_max: int = COPIES_BYTES_MAX
    tracing: bool = False
    archives: bool = False
    """Whether brokers keep what their clients publish."""
    replay_per_s: float = PER_S
    sites: Mapping[NodeId, str] = {}
    """In which site each broker is, where there are several (docs/sites.md)."""
    gateways: tuple[NodeId, ...] = ()
    """Those of them that have uplinks, the first of a site first."""
    takeover_s: float = 2.0
    homes: int = 0
    """So many brokers know where a client's session is, and are asked; 0: all do, as deployed."""
