"""A script of moves played by the deployed broker: its own sessions and handoff, over the tree of the script or in a
ring over the same network.

Nobody foresees a move here, so that what is measured is the reactive handoff; pro-active copies would make it faster
and cost more. A client is away for seconds, not for half an hour: a deployed broker is never silent, and its heartbeats
would be most of the run.
"""

from __future__ import annotations

import statistics

from godwit.lab.product.fleet import Fleet, Loud, Phone, between, meshed
from godwit.lab.relocation.runs import PROCESSING_S, SPAN, Result, Script
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.streams.frames import Parcels
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Said

AWAY_S = 5.0
REST_S = 5.0
KNOWN_S = 20.0
"""Until brokers know each other and what clients want."""
JOINED_S, JOINED_MAX_S = 10.0, 600.0
"""How often it is looked whether all are in the ring, and how long they may take."""


class DeployedReplay:
    """The product on the network of a script; `fabric` is one of `FABRICS`."""

    def __init__(self, seed: int, played: Script, fabric: str = "tree") -> None:
        self.script = played
        topology, names = played.topology, list(played.topology.names)
        self.taken: list[tuple[str, int, float]] = []
        options = StationOptions(fabric=fabric, session_wait_s=1e6, first=names[0])
        edges = meshed(names) if fabric == "dht" else list(topology.tree)
        self.fleet = Fleet(names, seed, options, latency_s=0.01, on_taken=self._taken, edges=edges)
        self.engine = self.fleet.cluster.engine
        for a, b in edges:
            delay_s = topology.direct_s[a][b] if fabric == "dht" else topology.delays_s[a, b]
            for here, there in ((a, b), (b, a)):
                self.fleet.cluster.cables.links[here][there].latency_s = delay_s + PROCESSING_S
        self._let_join()
        self.speaker: Loud = self.fleet.publisher("p0", played.publishers[0])
        self.phones: list[Phone] = []
        for number, (at, wanted) in enumerate(played.subscribers):
            low, high = _ends(wanted)
            phone = self.fleet.subscriber(f"s{number}", between(low, high))
            phone.connect(at)
            self.phones.append(phone)
        self.engine.run(self.engine.now + KNOWN_S)

    def _let_join(self) -> None:
        """In a ring brokers come in one after the other."""
        machines, end_s = self.fleet.cluster.sites.values(), self.engine.now + JOINED_MAX_S
        rings = [one.station.fabric for one in machines if isinstance(one.station.fabric, RingFabric)]
        while not all(one.is_member for one in rings):
            if self.engine.now > end_s:
                raise TimeoutError("not all brokers are in the ring")
            self.engine.run(self.engine.now + JOINED_S)

    def _taken(self, name: str, said: Said) -> None:
        self.taken.append((name, said.n, self.engine.now))

    def _say(self, client: int) -> int | None:
        """Publish something that this client wants; its number."""
        low, _ = _ends(self.script.subscribers[client][1])
        said = self.speaker.tell(low)
        return None if said is None else said.n

    @property
    def _carried(self) -> int:
        return sum(count for (_, kind), count in self.fleet.cluster.cables.sent.items() if kind == Parcels.__name__)

    def run(self) -> Result:
        counts, latencies, flaws = [], [], 0
        for move in self.script.moves:
            phone = self.phones[move.client]
            phone.vanish(0.0)
            missed = self._say(move.client)
            self.engine.run(self.engine.now + AWAY_S)
            before, came_s = self._carried, self.engine.now
            phone.connect(move.to)
            self.engine.run(came_s + REST_S)
            counts.append(self._carried - before)
            at_s = [time_s for name, n, time_s in self.taken if (name, n) == (f"s{move.client}", missed)]
            flaws += len(at_s) != 1
            latencies += [at_s[0] - came_s] if at_s else []
        return Result(
            moved=len(counts),
            signalling=statistics.fmean(counts),
            signalling_max=max(counts),
            latency_s=statistics.fmean(latencies),
            latency_std_s=statistics.pstdev(latencies),
            flaws=flaws,
        )


def _ends(wanted: object) -> tuple[int, int]:
    accepted = [x for x in range(SPAN + 1) if wanted.matches({"type": "t", "x": x})]  # type: ignore[attr-defined]
    return accepted[0], accepted[-1]


def replayed(seed: int, played: Script, fabric: str) -> Result:
    return DeployedReplay(seed, played, fabric).run()
