"""Geofences on one broker: `python benchmarks/fences.py`; `--quick` for a hundredth.

Each fence is a lasting subscription, each position a retained publication at QoS 0 from a client of the broker. The
broker runs whole, without a network and a disk: content is read, matched, compared with what each client was told, and
changes are delivered and acknowledged. The baseline of the same run is shapely's STRtree with the same boxes: all
fences of each position, and the difference to those of the position before. Both must tell the same changes. Times
are those of the processor: nothing waits here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import msgspec
import numpy as np
import numpy.typing as npt
import shapely

from godwit.protocols.broker.api import Lasting, Limits
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import World

GOAL_PER_S = 10_000
OF_ONE = 1_000
"""Fences of one client."""
TOGETHER = 100
"""Positions that come in one turn of the broker."""
STEP = 0.001
Floats = npt.NDArray[np.float64]


def walked(things: int, rounds: int, dice: np.random.Generator) -> list[Floats]:
    """Where all things are, round by round."""
    at = dice.random((things, 2)) * (50, 100)
    found = [at]
    for _ in range(rounds):
        at = at + dice.normal(0, STEP * 10, (things, 2))
        found.append(at)
    return found


def fences(count: int, dice: np.random.Generator) -> Floats:
    """South, west, north, east: so large that a thing is in two of them, about."""
    side = (2 * 50 * 100 / count) ** 0.5
    corner = dice.random((count, 2)) * (50, 100)
    return np.hstack((corner, corner + side))


def by_tree(boxes: Floats, rounds: list[Floats]) -> tuple[Counter[str], float]:
    tree = shapely.STRtree(shapely.box(boxes[:, 1], boxes[:, 0], boxes[:, 3], boxes[:, 2]))
    known: dict[int, set[int]] = {}
    told: Counter[str] = Counter()
    began = 0.0
    for number, at in enumerate(rounds):
        if number == 1:
            began = time.process_time()
        for first in range(0, len(at), TOGETHER):
            part = at[first : first + TOGETHER]
            things, found = tree.query(shapely.points(part[:, 1], part[:, 0]), predicate="intersects")
            inside: dict[int, set[int]] = {first + thing: set() for thing in range(len(part))}
            for thing, fence in zip(things.tolist(), found.tolist(), strict=True):
                inside[first + thing].add(fence)
            for thing, now in inside.items():
                before = known.get(thing, set())
                told["+"] += len(now - before)
                told["-"] += len(before - now)
                known[thing] = now
    return told, time.process_time() - began


def by_broker(boxes: Floats, rounds: list[Floats]) -> tuple[Counter[str], float, float]:
    world = World(disk_s=0.0)
    began = time.process_time()
    limits = Limits(subscriptions_max=OF_ONE)
    askers = []
    for first in range(0, len(boxes), OF_ONE):
        client = Client(world, f"asks-{first}").connect("b1", clean=True, expiry_s=0.0, limits=limits)
        world.run(0.01)
        for number, box in enumerate(boxes[first : first + OF_ONE].tolist()):
            area = ", ".join(map(repr, box))
            client.subscribe(
                "vans/+", f"within_box(lat, lon, {area})", key=str(number), qos=0, lasting=Lasting.OVERLAP, quiet=True
            )
        askers.append(client)
    world.run(0.01)
    asked_s = time.process_time() - began
    publisher = Client(world, "says").connect("b1", clean=True, expiry_s=0.0)
    world.run(0.01)
    for number, at in enumerate(rounds):
        if number == 1:
            began = time.process_time()
        for first in range(0, len(at), TOGETHER):
            for thing, (lat, lon) in enumerate(at[first : first + TOGETHER].tolist(), first):
                publisher.publish(f"vans/{thing}", msgspec.json.encode({"lat": lat, "lon": lon}), 0, retain=True)
            world.run(0.001)
    taken_s = time.process_time() - began
    signs = (dict(one.publication.properties.user)["lasting"] for client in askers for one in client.got)
    return Counter(signs), taken_s, asked_s


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--fences", type=int, default=100_000)
    options.add_argument("--things", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--quick", action="store_true", help="a hundredth of everything")
    given = options.parse_args()
    scale = 100 if given.quick else 1
    dice = np.random.default_rng(7)
    boxes, rounds = fences(given.fences // scale, dice), walked(given.things // scale, given.rounds, dice)
    positions = given.things // scale * given.rounds
    print(f"{len(boxes):,} fences, {positions:,} positions of {len(rounds[0]):,} things, {TOGETHER} a turn")
    expected, tree_s = by_tree(boxes, rounds)
    told, broker_s, asked_s = by_broker(boxes, rounds)
    assert told == expected, f"the broker tells {told}, the tree {expected}"
    verdict = "" if positions / broker_s >= GOAL_PER_S else "  MISSED"
    print(f"asking for all fences        {asked_s:8.2f} s, {asked_s / len(boxes) * 1e6:7.1f} us each")
    print(f"STRtree with differences     {positions / tree_s:12,.0f} positions/s")
    ratio = f"{broker_s / tree_s:.2f} times as long"
    print(f"the broker                   {positions / broker_s:12,.0f} positions/s, {ratio}{verdict}")
    print(f"both told {told['+']:,} times that a thing has entered, {told['-']:,} times that it has left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
