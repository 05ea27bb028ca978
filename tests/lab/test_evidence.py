from __future__ import annotations

import msgspec

from godwit.lab.evidence import BySetting
from godwit.lab.results import Row
from godwit.lab.studies import seed_by_seed


class Cell(msgspec.Struct, frozen=True):
    seed: int
    size: int


class Seen(msgspec.Struct):
    value: float


def seen(*rows: tuple[int, int, float]) -> BySetting[Cell, Seen]:
    return BySetting(Row(Cell(seed, size), Seen(value)) for seed, size, value in rows)


def value(result: Seen) -> float:
    return result.value


def test_settings_are_compared_only_in_worlds_that_both_have() -> None:
    evidence = seen((1, 8, 10.0), (2, 8, 12.0), (3, 8, 99.0), (1, 16, 4.0), (2, 16, 5.0))
    difference = evidence.difference(value, Cell(0, 8), Cell(0, 16))
    assert difference is not None
    assert (difference.mean, difference.runs) == (6.5, 2)


def test_of_two_rows_of_one_world_the_later_counts() -> None:
    assert [one.value for one in seen((1, 8, 1.0), (1, 8, 2.0)).results(Cell(0, 8))] == [2.0]


def test_means_of_several_settings_are_known_when_each_is() -> None:
    evidence = seen((1, 8, 1.0), (1, 16, 2.0))
    assert [mean.mean for mean in evidence.means(value, [Cell(0, 8), Cell(0, 16)]) or ()] == [1.0, 2.0]
    assert evidence.means(value, [Cell(0, 8), Cell(0, 64)]) is None
    assert evidence.means(value, []) is None


def test_a_plan_runs_all_settings_of_one_seed_before_the_next_seed() -> None:
    runs = seed_by_seed([(Cell(0, 8), 2), (Cell(0, 16), 1), (Cell(0, 8), 2)])
    assert runs == [Cell(1, 8), Cell(1, 16), Cell(2, 8)]
