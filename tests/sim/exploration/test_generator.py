"""Seeds make plans that differ, and together have everything."""

from __future__ import annotations

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import FAULTS, MOVES


def test_a_seed_is_one_plan() -> None:
    assert drawn(11) == drawn(11)
    assert drawn(11) != drawn(12)


def test_brokers_are_joined_whatever_the_seed() -> None:
    for seed in range(60):
        plan = drawn(seed)
        reached, waiting = {plan.brokers[0]}, [plan.brokers[0]]
        while waiting:
            here = waiting.pop()
            near = {other for link in plan.links if here in link for other in link} - reached
            reached |= near
            waiting += near
        assert reached == set(plan.brokers)


def test_a_few_hundred_seeds_have_every_kind_of_fault_and_move() -> None:
    found = {kind for seed in range(300) for kind in drawn(seed).kinds}
    assert found == {*FAULTS, *MOVES} - {"since", "rate"}


def test_worlds_apart_have_one_client_that_roams_with_its_token_among_the_same_brokers() -> None:
    for seed in range(30):
        for fabric in ("tree", "dht", "sites"):
            plain, apart = drawn(seed, fabric), drawn(seed, fabric, worlds="apart")
            assert (apart.brokers, apart.links, apart.late) == (plain.brokers, plain.links, plain.late)
            assert [card.name for card in apart.clients if card.wishes] == ["s1"]
            roaming = {getattr(step, "client", "") for step in apart.steps if step.kind in ("come", "twice", "vanish")}
            assert roaming == {"s1"}
            assert not {"none", "old", "clean"} & set(apart.kinds)


def test_worlds_of_what_lasts_have_all_of_it_and_leave_the_rest_as_it_was() -> None:
    for seed in range(30):
        plain, lasting = drawn(seed), drawn(seed, worlds="lasting")
        assert {"lasting", "since"} <= set(lasting.kinds)
        assert all(card.asks for card in lasting.clients if card.name.startswith("s"))
        new = {card.name for card in lasting.clients} - {card.name for card in plain.clients}
        before = [step for step in plain.steps if step.kind != "put"]
        assert sorted(before, key=lambda step: step.at_s) == [
            step for step in lasting.steps if step.kind != "put" and getattr(step, "client", "") not in new
        ]
    asks = [ask for seed in range(60) for card in drawn(seed, worlds="lasting").clients for ask in card.asks]
    assert {ask.qos for ask in asks} == {0, 1, 2}
    assert any(ask.near for ask in asks)
    assert any(ask.cover for ask in asks)
    assert any(ask.quiet and ask.interval_s for ask in asks)
    assert any("rate" in drawn(seed, worlds="lasting").kinds for seed in range(30))
