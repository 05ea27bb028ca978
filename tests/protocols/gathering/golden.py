"""The golden fixture of the spec (2.16): ten brokers in a square of 100 by 100."""

from __future__ import annotations

from godwit.protocols.gathering.maps import Site
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.gathering.space import Boundary, Cell, Point
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering
from godwit.sim.ring.underlay import kind_of

PLACES: dict[str, Point] = {
    "0000": (12.0, 10.0),
    "0001": (12.0, 33.0),
    "0010": (40.0, 10.0),
    "0011": (42.0, 42.0),
    "010": (7.0, 75.0),
    "0110": (30.0, 65.0),
    "0111": (20.0, 90.0),
    "10": (65.0, 30.0),
    "110": (62.0, 75.0),
    "111": (90.0, 75.0),
}
CUTS: dict[str, tuple[int, float]] = {
    "": (0, 56.0),
    "0": (1, 53.0),
    "00": (0, 27.0),
    "000": (1, 22.0),
    "001": (1, 20.0),
    "01": (0, 14.0),
    "011": (1, 78.0),
    "1": (1, 50.0),
    "11": (0, 78.0),
}


def cell(prefix: str) -> Cell:
    boundaries = (Boundary(*CUTS[prefix[:at]], prefix[at] == "1") for at in range(len(prefix)))
    return Cell(prefix, tuple(boundaries))


def sites() -> list[Site]:
    """Named by their bits, four of them."""
    return [Site(prefix.ljust(4, "0"), PLACES[prefix], cell(prefix)) for prefix in sorted(PLACES)]


def golden(rules: Rules | None = None) -> Gathering:
    """With b = 1 and no leaves, as the worked examples are."""
    ring = RingOptions(bits=1, leaves=0)
    gathering = Gathering(1, rules or Rules(ring=ring))
    gathering.deploy(sites())
    return gathering


class Tape:
    """Every transmission between brokers but for confirmations: (kind, from, to), as they arrive."""

    def __init__(self, gathering: Gathering) -> None:
        self.gathering = gathering
        self.rows: list[tuple[str, NodeId, NodeId]] = []
        self.times: list[float] = []
        gathering.underlay.watch = self._note

    def _note(self, sender: NodeId, to: NodeId, message: Message) -> None:
        kind = kind_of(message)
        if kind != "HopAck" and to in self.gathering.brokers and sender in self.gathering.brokers:
            self.rows.append((kind, sender, to))
            self.times.append(self.gathering.world.engine.now)

    def of(self, kind: str) -> list[tuple[NodeId, NodeId]]:
        return [(sender, to) for name, sender, to in self.rows if name == kind]
