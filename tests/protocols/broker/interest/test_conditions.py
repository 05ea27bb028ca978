"""Conditions give the same answers before and after the compiled index takes over."""

from __future__ import annotations

from godwit.events import Value
from godwit.filters.text import parse
from godwit.protocols.broker.interest.conditions import FEW, Conditions
from godwit.tables.matching.index import BATCHED


def test_few_and_many_conditions_give_the_same_answers_singly_and_together() -> None:
    conditions: Conditions[int] = Conditions()
    numbers = {n: conditions.add(parse(f"n = {n} OR kind = 'k{n % 3}'"), n) for n in range(FEW)}
    events: list[dict[str, Value]] = [{"n": n, "kind": f"k{n % 5}"} for n in range(BATCHED + 5)]

    def expected(event: dict[str, Value]) -> list[int]:
        return [n for n in numbers if event["n"] == n or event["kind"] == f"k{n % 3}"]

    def check() -> None:
        assert [sorted(found) for found in conditions.match(events)] == [expected(event) for event in events]
        assert [sorted(found) for found in conditions.match(events[:1])] == [expected(events[0])]

    check()
    for n in range(FEW, FEW + 10):
        numbers[n] = conditions.add(parse(f"n = {n} OR kind = 'k{n % 3}'"), n)
    check()
    for n in (0, 3, FEW + 1):
        conditions.remove(numbers.pop(n))
    numbers[1000] = conditions.add(parse("n = 1000 OR kind = 'k1'"), 1000)
    check()
    numbers[1001] = conditions.add(parse("n = 1001 OR kind = 'k2'"), 1001)
    conditions.remove(numbers.pop(1001))
    check()
    assert len(conditions) == len(numbers)


def test_until_the_index_is_prepared_conditions_are_asked_one_by_one() -> None:
    conditions: Conditions[int] = Conditions()
    ready = False
    conditions.prepared = lambda: ready
    for n in range(2 * FEW):
        conditions.add(parse(f"n >= {n}"), n)
    assert conditions.match([{"n": 3}]) == [[0, 1, 2, 3]]
    ready = True
    assert sorted(conditions.match([{"n": 3}])[0]) == [0, 1, 2, 3]
