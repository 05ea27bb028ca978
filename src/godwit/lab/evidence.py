"""What runs have shown, setting by setting. A setting is a configuration with seed 0, and each of its seeds a world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

from godwit.lab.intervals import Interval, difference, interval_if_any
from godwit.lab.results import Row

C = TypeVar("C", bound=msgspec.Struct)
R = TypeVar("R", bound=msgspec.Struct)


class BySetting(Generic[C, R]):
    """The results of rows whose configurations have a seed."""

    def __init__(self, rows: Iterable[Row[C, R]]) -> None:
        self._found: dict[C, dict[int, R]] = {}
        for row in rows:
            setting = msgspec.structs.replace(row.configuration, seed=0)
            seed: int = msgspec.structs.asdict(row.configuration)["seed"]
            self._found.setdefault(setting, {})[seed] = row.result

    def by_seed(self, setting: C) -> dict[int, R]:
        return self._found.get(setting, {})

    def results(self, setting: C) -> list[R]:
        return list(self.by_seed(setting).values())

    def every(self) -> list[R]:
        return [result for found in self._found.values() for result in found.values()]

    def values(self, quantity: Callable[[R], float], setting: C) -> dict[int, float]:
        return {seed: quantity(result) for seed, result in self.by_seed(setting).items()}

    def mean(self, quantity: Callable[[R], float], setting: C) -> Interval | None:
        return interval_if_any(map(quantity, self.results(setting)))

    def means(self, quantity: Callable[[R], float], settings: Iterable[C]) -> list[Interval] | None:
        """None unless there are runs of each."""
        found = [self.mean(quantity, setting) for setting in settings]
        known = [mean for mean in found if mean is not None]
        return known if len(known) == len(found) and known else None

    def difference(self, quantity: Callable[[R], float], one: C, other: C) -> Interval | None:
        """`one` minus `other`, world by world."""
        return difference(self.values(quantity, one), self.values(quantity, other))
