"""What runs have shown: means over seeds of each setting, and differences between settings in the same worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from godwit.lab.adhoc.plan import Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.evidence import BySetting
from godwit.lab.results import Row

Quantity = Callable[[Result], float]


def delivery(result: Result) -> float:
    return result.delivery


def overhead(result: Result) -> float:
    return result.overhead


def beacon_share(result: Result) -> float:
    return result.beacon_share


class Evidence(BySetting[Configuration, Result]):
    """The results of a plan."""

    def __init__(self, plan: Plan, rows: Iterable[Row[Configuration, Result]]) -> None:
        super().__init__(rows)
        self.plan = plan


def crossing(xs: Sequence[float], ys: Sequence[float], y: float) -> float | None:
    """Where the line through the points last rises to `y`; None where it does not."""
    found = None
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        if y0 <= y <= y1 and y1 > y0:
            found = x0 + (x1 - x0) * (y - y0) / (y1 - y0)
    return found


def between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """The height of the line through the points at `x`, which lies among them."""
    for (x0, y0), (x1, y1) in pairwise(zip(xs, ys, strict=True)):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    raise ValueError(f"{x} is outside {xs[0]}..{xs[-1]}")
