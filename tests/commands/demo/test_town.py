"""The town is the same for the same seed, and its wishes are filters that fit some of what happens."""

from __future__ import annotations

from random import Random

from godwit.commands.demo.town import REACH_M, Taxi, people
from godwit.filters.text import parse


def reports(seed: int) -> list[dict[str, object]]:
    random = Random(seed)
    taxis = [Taxi(number, random) for number in range(20)]
    return [dict(taxi.drive(1.0)) for _ in range(100) for taxi in taxis]


def test_a_seed_decides_everything() -> None:
    assert reports(1) == reports(1) != reports(2)
    assert people(5, 20, Random(3)) == people(5, 20, Random(3))


def test_taxis_stay_in_town() -> None:
    assert all(abs(float(str(report["lat"])) - 37.78) < 1.2 * REACH_M / 111_000 for report in reports(1))


def test_every_wish_is_a_filter_that_wants_some_events_and_not_all() -> None:
    seen = reports(1)
    for person in people(20, 20, Random(1)):
        wish = parse(person.wish)
        wanted = sum(wish.matches(report) for report in seen)  # type: ignore[arg-type]
        assert 0 < wanted < len(seen), person
