"""What a judge takes a claim apart into: quantities that must each be above zero for the claim to hold.

The tolerance is already in the quantity. A part holds where its whole interval is above zero. It fails where the whole
interval is below `least`, the smallest effect for which anybody would have used the claim's words: that way many runs
can refute a claim whose effect is nil, and few runs cannot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from godwit.lab.claims import MORE_RUNS, Claim, Finding, Margin, judged, undecided
from godwit.lab.intervals import Interval


class Part(msgspec.Struct, frozen=True):
    name: str
    margin: Interval | None
    """None where the runs for it are missing."""
    least: float = 0.0

    @property
    def holds(self) -> bool | None:
        if self.margin is None:
            return None
        if self.margin.low > 0:
            return True
        return False if self.margin.high < self.least or self.margin.high <= 0 else None

    @property
    def is_failing(self) -> bool:
        """Whether it would fail rather than hold if its mean were exact."""
        return self.margin is not None and self.margin.mean < max(self.least, 0.0) - self.margin.mean

    @property
    def worlds(self) -> int | None:
        """How many would decide it, about, if their mean and spread are those that were seen; None where one cannot
        say."""
        if self.margin is None or not math.isfinite(self.margin.half):
            return None
        apart = max(self.margin.mean, max(self.least, 0.0) - self.margin.mean)
        return math.ceil(self.margin.runs * (self.margin.half / apart) ** 2) if apart else None

    def __str__(self) -> str:
        return f"{self.name} {self.margin}" if self.margin is not None else f"{self.name}: not run"


def all_hold(parts: Sequence[bool | None]) -> bool | None:
    """False if one is, else unknown if one is."""
    if False in parts:
        return False
    return None if None in parts or not parts else True


def decided(claim: Claim, parts: Sequence[Part], beside: str = "", cost: str = MORE_RUNS) -> Finding:
    """The verdict of a claim that is all of its parts; `beside` are numbers that decide nothing."""
    numbers = "; ".join(str(part) for part in parts) + (f"; {beside}" if beside else "")
    missing = [part.name for part in parts if part.margin is None]
    margins = tuple(Margin(part.name, part.margin) for part in parts if part.margin is not None)
    holds = all_hold([part.holds for part in parts])
    if holds is None and (missing or not parts):
        return undecided(claim, f"not run: {', '.join(missing) or 'anything of it'}", cost)
    if holds is None:
        close = [part for part in parts if part.holds is None]
        runs = max(part.margin.runs for part in parts if part.margin is not None)
        what = f"{len(close)} of {len(parts)} parts are too close to tell with {runs} worlds{_enough(close)}"
        return msgspec.structs.replace(undecided(claim, what, cost, numbers), margins=margins)
    return msgspec.structs.replace(judged(claim, holds, numbers), margins=margins)


def _enough(close: Sequence[Part]) -> str:
    """What it would take, as far as can be foreseen: one part that fails is enough, else all must hold."""
    if any(part.worlds is None for part in close):
        return ""
    failing = [part.worlds or 0 for part in close if part.is_failing]
    needed = min(failing) if failing else max(part.worlds or 0 for part in close)
    return f", about {needed:,} might"


def least_margin(parts: Sequence[Part]) -> float | None:
    """By how much a claim holds, negative where it fails, whatever the error; None where a part was not run."""
    if not parts or any(part.margin is None for part in parts):
        return None
    return min(part.margin.mean for part in parts if part.margin is not None)
