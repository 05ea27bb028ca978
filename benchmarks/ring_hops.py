"""What one hop of a session costs on the ring, by the number of brokers: contents that are written before they leave.

    python benchmarks/ring_hops.py --brokers 50 --brokers 1000

The deployed brokers run in the simulator, with links as `topology.mesh` keeps them. They find on their disks what
joining would have told them, since a thousand real joins take an hour. A subscriber that three brokers match something
for walks from one place to each of five others and back, and then moves once more; pro-active brokers copy it to the
five others. The formulae of docs/scaling.md stand beside what was counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import ROWS, TABLE
from godwit.protocols.broker.fabric.ring.fabric import HOMES, RingFabric, RingOptions
from godwit.protocols.broker.fabric.ring.targets import of_level
from godwit.protocols.broker.messages import Region
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.gathering.areas import meets
from godwit.protocols.gathering.space import WHOLE, cut_between
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.mesh import LINKS_LEAST, lot, near
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.fabric_kinds import place_of
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.station import ExpectsEverywhere

LEVELS = ("a", "b", "c")
COPIES = 5
SETTLE_S, STAY_S = 20.0, 8.0
WATCH_S = 12.0
"""How often holders of replicas ask whether the owner is there. No hop depends on it, and a thousand brokers that do so
every two seconds are most of what there is to simulate."""


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


class Plot(msgspec.Struct):
    """A broker on the map."""

    name: NodeId
    region: Region


def drawn_map(names: list[NodeId]) -> list[Plot]:
    """The cells that these brokers would have, had they come in one after the other."""
    plots = [Plot(names[0], Region(WHOLE, names[0], 1))]
    for name in names[1:]:
        place = place_of(name)
        old = next(one for one in plots if one.region.cell.owns_all(place))
        cut, term = cut_between(place_of(old.name), place), old.region.term + 1
        plots.append(Plot(name, Region(old.region.cell.append(cut, "1"), name, term)))
        old.region = Region(old.region.cell.append(cut.opposite(), "0"), old.name, term)
    return plots


def contacts_of(plot: Plot, by_prefix: dict[str, list[Region]], dice: Random) -> Iterator[Region]:
    """For each cut two brokers on the other side, as a newcomer is told."""
    cell = plot.region.cell
    for level in range(len(cell)):
        there = by_prefix[cell.sibling_prefix(level)]
        yield from dice.sample(there, min(2, len(there)))


def ring(count: int, handoff: str) -> Cluster:
    """From a map: each broker finds on its disk what joining would have told it."""
    names = [f"b{at}" for at in range(1, count + 1)]
    options = StationOptions(fabric="dht", handoff=handoff, ring=RingOptions(watch_s=WATCH_S), foresight="everybody")  # type: ignore[arg-type]
    cables = sorted(links(names))
    cluster = Cluster(names, cables, 1, options)
    plots, dice = drawn_map(names), Random(1)
    by_prefix: dict[str, list[Region]] = defaultdict(list)
    for plot in plots:
        for end in range(len(plot.region.prefix) + 1):
            by_prefix[plot.region.prefix[:end]].append(plot.region)
    for name in names:
        cluster.crash(name)
    for plot in plots:
        rows = {(ROWS + one.prefix, 0): msgspec.msgpack.encode(one) for one in contacts_of(plot, by_prefix, dice)}
        rows[ROWS + plot.region.prefix, 0] = msgspec.msgpack.encode(plot.region)
        cluster.sites[plot.name].node.disk["disk"] = {TABLE: rows}
        cluster.start(plot.name)
    for a, b in cables:
        cluster._meet(a, b)  # all at once: while only some are up, everything takes long ways
    cluster.run(SETTLE_S)
    return cluster


def measured(count: int, handoff: str, away_s: float) -> str:
    begun_s = time.process_time()
    cluster = ring(count, handoff)
    owners = {
        fabric.host.name
        for fabric in fabrics(cluster)
        for region in fabric.regions
        if any(meets(region.cell, of_level(level)) for level in LEVELS)
    }
    places = [name for name in cluster.sites if name not in owners][: COPIES + 1]
    for machine in cluster.sites.values():
        foresight = machine.station.neighbors
        assert isinstance(foresight, ExpectsEverywhere)
        foresight.names = lambda: places
    client = Client(cluster, "s")  # type: ignore[arg-type]
    client.keeps_token = True
    client.connect(places[0])
    cluster.run(5.0)
    for level in LEVELS:
        client.subscribe(f"{level}/#", qos=2)
    cluster.run(12.0)
    # The first place meets each of the others: the first of all hops costs more, and nobody copies to strangers.
    for other in places[1:]:
        for place in (other, places[0]):
            client.drop()
            cluster.run(away_s)
            client.connect(place)
            cluster.run(STAY_S)
    counted = Counted(cluster)
    client.drop()
    cluster.run(away_s)
    client.connect(places[1])
    cluster.run(20.0)
    return told(cluster, counted, len(owners), handoff, time.process_time() - begun_s)


def told(cluster: Cluster, counted: Counted, matching: int, handoff: str, cpu_s: float) -> str:
    found = list(fabrics(cluster))
    links_of = sorted(len(fabric.links) for fabric in found)
    met = sorted(len(fabric.brokers) for fabric in found)
    bound = 4 * matching + 2 + 2 * HOMES if handoff == "reactive" else 20 * matching + 14 + 2 * HOMES
    kinds = ", ".join(f"{kind} {number}" for kind, number in counted.kinds.most_common())
    return (
        f"{len(found):,} brokers, {handoff}: m = {matching}, {sum(counted.kinds.values())} items a hop "
        f"(designed: {bound}); links {links_of[len(links_of) // 2]} in the median, {links_of[-1]} at most; "
        f"{met[len(met) // 2]} brokers known in the median, {met[-1]} at most; {cpu_s:.0f} s of processor\n  {kinds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--brokers", type=int, action="append")
    parser.add_argument("--handoff", choices=("reactive", "proactive"), default="reactive")
    parser.add_argument(
        "--away", type=float, default=5.0, help="seconds between two brokers; with 0 copies are not ready in time"
    )
    options = parser.parse_args()
    for count in options.brokers or [10, 50]:
        print(measured(count, options.handoff, options.away), flush=True)


if __name__ == "__main__":
    main()
