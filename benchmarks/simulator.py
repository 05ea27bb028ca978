"""How fast the simulator runs, beside SimPy in the same run.

    python benchmarks/simulator.py           about a minute on an idle core
    python benchmarks/simulator.py --quick   shorter rounds

Ours and SimPy's take turns, and of several rounds the best counts: whatever else the machine does can only make a
round slower. Seconds are of processor time, which on an idle machine is the same as time. The protocol core is the
whole broker: leader election, whose every round makes each node broadcast once a second, and hardened MFT on top;
parents are sticky, so that heartbeats are most of what there is to send.
SimPy's nodes only take a message out of their store. Nodes stand as in the classic ad-hoc studies, 50 to the square
kilometre and heard to 250 m, which makes seven or eight neighbors; dense is one node to 200 square metres and a range
of 46 m, as in the published evaluation of MFT.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Generator
from functools import partial
from random import Random
from typing import Any, NamedTuple

import simpy
from rich.console import Console
from rich.table import Table

from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.topology.election import Choice, ElectionOptions
from godwit.sim.engine import Engine
from godwit.sim.mobility import Still, Waypoint
from godwit.sim.radio import CC2420, WIFI_TWO_RAY, Air, Disc, Profile, Radio
from godwit.sim.world import Medium, Node, World

TICKERS = 100
ROUNDS = 3

Rate = Callable[[], float]


class Setting(NamedTuple):
    range_m: float
    area_per_node_m2: float
    profile: Profile

    def disc(self, world: World) -> Disc:
        return Disc(world, range_m=self.range_m)

    def radio(self, world: World) -> Radio:
        return Radio(world, self.profile)


CLASSIC = Setting(250.0, 20_000.0, WIFI_TWO_RAY)
DENSE = Setting(46.0, 200.0, CC2420)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def engine_rate(events: int, *, cancellable: bool) -> float:
    """Events a second of callbacks that schedule themselves again."""
    engine = Engine()

    def tick() -> None:
        if cancellable:
            engine.after(1.0, tick)
        else:
            engine.at(engine.now + 1.0, tick)

    for number in range(TICKERS):
        engine.at(number / TICKERS, tick)
    return events / seconds(lambda: engine.run(calls=events))


def simpy_callback_rate(events: int) -> float:
    environment = simpy.Environment()

    def tick(_: Any) -> None:
        environment.timeout(1.0).callbacks.append(tick)

    for number in range(TICKERS):
        environment.timeout(number / TICKERS).callbacks.append(tick)
    return events / seconds(lambda: environment.run(until=events / TICKERS))


def places(setting: Setting, nodes: int) -> list[tuple[float, float]]:
    dice, side = Random(1), math.sqrt(nodes * setting.area_per_node_m2)
    return [(dice.uniform(0, side), dice.uniform(0, side)) for _ in range(nodes)]


def simpy_process_rate(setting: Setting, nodes: int, duration_s: float) -> float:
    """Receptions a second in the idiomatic style: a process beacons, a process per node takes from its store."""
    environment = simpy.Environment()
    received = 0
    where = places(setting, nodes)
    stores = [simpy.Store(environment) for _ in where]
    near = [
        [s for s, at in zip(stores, where, strict=True) if 0 < math.dist(here, at) <= setting.range_m] for here in where
    ]

    def beacon(node: int) -> Generator[Any, Any, None]:
        yield environment.timeout(node / nodes)
        while True:
            yield environment.timeout(0.00048)
            for store in near[node]:
                store.put(node)
            yield environment.timeout(1.0 - 0.00048)

    def listen(node: int) -> Generator[Any, Any, None]:
        nonlocal received
        while True:
            yield stores[node].get()
            received += 1

    for node in range(nodes):
        environment.process(beacon(node))
        environment.process(listen(node))
    took = seconds(lambda: environment.run(until=duration_s))
    return received / took


def brokers(setting: Setting, medium: Callable[[World], Medium], nodes: int, speed_mps: float = 0.0) -> World:
    """A world in which the tree stands."""
    world = World(1, medium)
    assert isinstance(world.medium, Air)
    side = math.sqrt(nodes * setting.area_per_node_m2)
    walk = Waypoint(width_m=side, height_m=side, speed_mps=(speed_mps, speed_mps))
    for number, (x, y) in enumerate(places(setting, nodes)):
        name = f"b{number:03d}"
        world.medium.place(name, walk if speed_mps else Still(x, y))
        world.add(name, broker)
    world.run(5.0)
    return world


def broker(node: Node) -> BrokerProcess:
    options = ElectionOptions(choice=Choice.STICKY, hold_s=0.03)
    return BrokerProcess(node, partial(MftBroker, acknowledge=True), options, incarnation=1)


def reception_rate(setting: Setting, medium: Callable[[World], Medium], nodes: int, duration_s: float) -> float:
    """Receptions a second."""
    world = brokers(setting, medium, nodes)
    assert isinstance(world.medium, Air)
    before = world.medium.received
    took = seconds(lambda: world.run(world.engine.now + duration_s))
    return (world.medium.received - before) / took


def real_time(
    setting: Setting, medium: Callable[[World], Medium], nodes: int, duration_s: float, speed_mps: float = 0.0
) -> float:
    """Simulated seconds in a second."""
    world = brokers(setting, medium, nodes, speed_mps)
    return duration_s / seconds(lambda: world.run(world.engine.now + duration_s))


def row(table: Table, what: str, unit: str, ours: Rate, theirs: Rate | None, goal: float | None) -> None:
    best, baseline = 0.0, 0.0
    for _ in range(ROUNDS):
        best = max(best, ours())
        baseline = max(baseline, theirs()) if theirs is not None else 0.0
    table.add_row(
        what,
        f"{best:,.0f} {unit}",
        f"{baseline:,.0f}" if baseline else "-",
        f"{best / baseline:.1f}" if baseline else "-",
        f"{goal:,.0f}" if goal else "SimPy" if baseline else "-",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter rounds")
    scale = 0.2 if parser.parse_args().quick else 1.0
    events, small_s, large_s = int(1_000_000 * scale), 100 * scale, 20 * scale
    table = Table(title="The simulator beside SimPy")
    for column in ("what", "godwit", "SimPy", "ratio", "goal"):
        table.add_column(column, justify="left" if column == "what" else "right")
    callbacks = partial(simpy_callback_rate, events)
    row(table, "bare engine", "events/s", partial(engine_rate, events, cancellable=False), callbacks, None)
    row(table, "... cancellable", "events/s", partial(engine_rate, events, cancellable=True), callbacks, None)
    for name, setting in (("", CLASSIC), (", dense", DENSE)):
        processes = partial(simpy_process_rate, setting, 50, small_s)
        disc, radio = (
            partial(reception_rate, setting, medium, 50, small_s) for medium in (setting.disc, setting.radio)
        )
        row(table, f"50 brokers{name}, ideal disc", "receptions/s", disc, processes, 100_000)
        row(table, f"50 brokers{name}, contention", "receptions/s", radio, processes, 80_000)
    for medium in (CLASSIC.disc, CLASSIC.radio):
        name = "ideal disc" if medium == CLASSIC.disc else "contention"
        row(table, f"500 brokers, {name}", "x real time", partial(real_time, CLASSIC, medium, 500, large_s), None, 30)
    walking = partial(real_time, CLASSIC, CLASSIC.disc, 500, large_s, 5.0)
    row(table, "500 walking, ideal disc", "x real time", walking, None, None)
    Console().print(table)


if __name__ == "__main__":
    main()
