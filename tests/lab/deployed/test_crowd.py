"""Three broker processes and MQTT clients that hop among them without a word: all is heard once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.seeds import few

from godwit.lab.deployed.account import Outcome
from godwit.lab.deployed.crowd import Crowd, Plan, Step
from godwit.net.processes import agreed, cluster

PLAN = Plan(subscribers=12, seconds=10.0, publishers=3, events_per_s=150.0, span=10, drain_s=60.0)


def hops(number: int) -> Iterator[Step]:
    """Every two seconds to one of the other two brokers, now and then as fast as it can be done."""
    dice, here = Random(f"hops/{number}"), number % 3
    while True:
        here = (here + dice.randint(1, 2)) % 3
        yield Step(dice.choice((0.05, 2.0, 2.0)), dice.choice((0.0, 0.1, 0.3)), here)


async def hopped(folder: Path, plan: Plan, handoff: str) -> Outcome:
    brokers = cluster(["a", "b", "c"], folder, {"handoff": handoff, "handoff_wait_s": 60})
    try:
        await asyncio.gather(*(broker.start() for broker in brokers))
        return await Crowd(plan, [broker.port for broker in brokers], hops, lambda: agreed(brokers)).run()
    finally:
        await asyncio.gather(*(broker.kill() for broker in brokers))


@pytest.mark.feature("proactive-handoff F46")
@pytest.mark.parametrize("handoff", few(1, ["proactive", "reactive"]))
def test_clients_that_hop_among_real_brokers_hear_everything_once_and_in_order(tmp_path: Path, handoff: str) -> None:
    found = asyncio.run(hopped(tmp_path, PLAN, handoff))
    assert found.owed > 1000
    assert found.moves > 12
    assert found.unknown == 0, "no broker let a client in without its session"
    assert (found.lost, found.duplicated, found.out_of_order, found.unwanted) == (0, 0, 0, 0)
