"""What one hop of a session costs on the ring, by the number of brokers: contents that are written before they leave.

    python benchmarks/ring_hops.py --brokers 50 --brokers 1000

The deployed brokers run in the simulator, with links as `topology.mesh` keeps them, and join one another for real. A
subscriber that three brokers match something for moves once. The formulae of docs/scaling.md stand beside what was
counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator

from godwit.protocols.broker.fabric.ring.fabric import HOMES, RingFabric
from godwit.protocols.broker.fabric.ring.targets import of_level
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.mesh import LINKS_LEAST, lot, near
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions

LEVELS = ("a", "b", "c")
JOIN_MAX_S = 4_000


def links(names: list[NodeId]) -> set[tuple[NodeId, NodeId]]:
    """Those beside each broker on the circle of names, and some far ones by lot."""
    found = set()
    for name in names:
        others = near(name, names)
        far = sorted((one for one in names if one not in others and one != name), key=lambda one: lot(name, one))
        for other in (*others, *far[-(LINKS_LEAST - len(others)) :]):
            found.add((min(name, other), max(name, other)))
    return found


class Counted:
    """Contents by kind, once for each receiver, however many links they crossed."""

    def __init__(self, cluster: Cluster) -> None:
        self.kinds: Counter[str] = Counter()
        self._seen: set[tuple[NodeId, int, NodeId]] = set()
        cluster.cables.spy = self._overhear

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels):
            for run in message.runs:
                for item in decode_items(run):
                    for leg in run.legs:
                        key = message.origin, item.number, leg.to
                        if item.durable and key not in self._seen:
                            self._seen.add(key)
                            self.kinds[type(item.content).__name__] += 1


def fabrics(cluster: Cluster) -> Iterator[RingFabric]:
    for machine in cluster.sites.values():
        fabric = machine.station.fabric
        assert isinstance(fabric, RingFabric)
        yield fabric


def ring(count: int) -> Cluster:
    names = [f"b{at}" for at in range(1, count + 1)]
    cluster = Cluster(names, sorted(links(names)), 1, StationOptions(fabric="dht", handoff="reactive"))
    while not all(fabric.is_member for fabric in fabrics(cluster)):
        cluster.run(5.0)
        if cluster.engine.now > JOIN_MAX_S:
            outside = [fabric.host.name for fabric in fabrics(cluster) if not fabric.is_member]
            raise SystemExit(f"{len(outside)} brokers are not in after {JOIN_MAX_S} s, {outside[0]} for one")
    cluster.run(30.0)
    return cluster


def measured(count: int) -> str:
    begun_s = time.perf_counter()
    cluster = ring(count)
    joined_s, simulated_s = time.perf_counter() - begun_s, cluster.engine.now
    owners = {
        region.owner
        for fabric in fabrics(cluster)
        for region in fabric.regions
        if any(fabric.atlas.owner(of_level(level)) == region for level in LEVELS)
    }
    old, new = [name for name in cluster.sites if name not in owners][:2]
    client = Client(cluster, "s")  # type: ignore[arg-type]
    client.connect(old)
    cluster.run(10.0)
    for level in LEVELS:
        client.subscribe(f"{level}/#", qos=2)
    cluster.run(30.0)
    counted = Counted(cluster)
    client.drop().connect(new)
    cluster.run(40.0)
    most = max(len(fabric.links) for fabric in fabrics(cluster))
    total, formula = sum(counted.kinds.values()), 4 * len(owners) + 2 + 2 * HOMES
    kinds = ", ".join(f"{kind} {number}" for kind, number in counted.kinds.most_common())
    met = sorted(len(fabric.brokers) for fabric in fabrics(cluster))
    return (
        f"{count:,} brokers: m = {len(owners)}, {total} items a hop (4m + 2 + 2k = {formula}); {most} links at most, "
        f"{met[len(met) // 2]} brokers known in the median; joined in {simulated_s:.0f} s simulated, {joined_s:.0f} s\n"
        f"  {kinds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--brokers", type=int, action="append")
    for count in parser.parse_args().brokers or [10, 50]:
        print(measured(count), flush=True)


if __name__ == "__main__":
    main()
