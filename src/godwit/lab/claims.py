"""Published claims, and the five things that can become of them when they are measured again.

A judge is a pure function from results to a `Finding`. Beside its statement stand its place in the published text and
the tolerance with its reason (`Claim`), so that a reader can disagree with the judge and not only with the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from godwit.lab.intervals import Interval


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    DEPENDS = "depends"
    """It holds in some readings of what the text does not report, and fails in others: the finding says which."""
    NOT_DECIDABLE = "not decidable"
    """What was run says nothing about it: the finding says what is missing and what that would cost."""
    ARITHMETIC = "arithmetic checked"
    """Published constants put into published formulas give the published digits; nothing was measured."""


class Claim(msgspec.Struct, frozen=True):
    """`name` is the spec's number, as in E7; `text` what was published, `place` where its spec has it."""

    name: str
    text: str
    place: str = ""
    tolerance: str = ""
    """What is taken for equal, constant or much, and why that much."""
    was: str = ""
    """What its judge once had wrong, where it was repaired: a reader who knows the old verdict wants to know why."""


class Margin(msgspec.Struct, frozen=True):
    """By how much one part of a claim holds: its words are true above zero."""

    of: str
    by: Interval


class Point(msgspec.Struct, frozen=True):
    """One value of the parameter that a claim hangs on; `holds` is None where the runs there cannot tell."""

    at: str
    holds: bool | None
    numbers: str = ""
    margins: tuple[Margin, ...] = ()


class Dependence(msgspec.Struct, frozen=True):
    """`on` is the unreported parameter, `where` the threshold or region in which the claim holds."""

    on: str
    where: str
    curve: tuple[Point, ...]


class Missing(msgspec.Struct, frozen=True):
    """What would have to be known or run before anything can be said, and what that would cost."""

    what: str
    cost: str


class Finding(msgspec.Struct, frozen=True):
    """A claim with its verdict; `numbers` are what the verdict rests on."""

    claim: Claim
    verdict: Verdict
    numbers: str
    depends: Dependence | None = None
    missing: Missing | None = None
    margins: tuple[Margin, ...] = ()

    def __post_init__(self) -> None:
        if (self.verdict is Verdict.DEPENDS) != (self.depends is not None):
            raise ValueError(f"{self.claim.name}: exactly a verdict that depends says on what")
        if (self.verdict is Verdict.NOT_DECIDABLE) != (self.missing is not None):
            raise ValueError(f"{self.claim.name}: exactly a verdict that is not decidable says what is missing")

    def at(self, value: str) -> Point:
        """What was found at one value of a parameter."""
        holds = {Verdict.REPRODUCED: True, Verdict.NOT_REPRODUCED: False}.get(self.verdict)
        return Point(value, holds, self.numbers, self.margins)

    @property
    def told(self) -> str:
        """The verdict in words, with what it hangs on or lacks."""
        if self.depends is not None:
            return f"depends on {self.depends.on}: holds {self.depends.where}"
        if self.missing is not None:
            return f"not decidable: {self.missing.what} ({self.missing.cost})"
        return self.verdict.value


MORE_RUNS = "more seeds of the same plan"


def judged(claim: Claim, holds: bool | None, numbers: str, cost: str = MORE_RUNS) -> Finding:
    """`holds` is None where nothing can be said; `numbers` then say what is missing."""
    if holds is None:
        return undecided(claim, numbers, cost)
    return Finding(claim, Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED, numbers)


def undecided(claim: Claim, what: str, cost: str = MORE_RUNS, numbers: str = "") -> Finding:
    return Finding(claim, Verdict.NOT_DECIDABLE, numbers or what, missing=Missing(what, cost))


def arithmetic(claim: Claim, agrees: bool, numbers: str) -> Finding:
    """Digits that do not follow from their own formula are an error of the source: not reproduced."""
    return Finding(claim, Verdict.ARITHMETIC if agrees else Verdict.NOT_REPRODUCED, numbers)


def along(
    claim: Claim, on: str, curve: Iterable[Point], numbers: str, cost: str = MORE_RUNS, *, ordered: bool = True
) -> Finding:
    """The verdict over all values of an unreported parameter, in their order if they have one.

    It depends on the parameter if there is a value at which it holds and one at which it fails. Where it holds or fails
    at every value that could be decided, the parameter does not matter.
    """
    points = tuple(curve)
    known = {point.holds for point in points} - {None}
    if not known:
        return undecided(claim, numbers, cost)
    if len(known) == 1:
        return judged(claim, known.pop(), numbers)
    return Finding(claim, Verdict.DEPENDS, numbers, depends=Dependence(on, region(points, ordered=ordered), points))


def region(points: Sequence[Point], *, ordered: bool = True) -> str:
    """Where a claim holds along a curve: `from A on`, `up to B`, or the values one by one."""
    holding = [point.holds is True for point in points]
    count = sum(holding)
    if not ordered:
        return "with " + "; ".join(point.at for point in points if point.holds)
    if holding == [False] * (len(points) - count) + [True] * count:
        return f"from {points[-count].at} on"
    if holding == [True] * count + [False] * (len(points) - count):
        return f"up to {points[count - 1].at}"
    return "at " + ", ".join(point.at for point, holds in zip(points, holding, strict=True) if holds)


def fair(finding: Finding, *, quick: bool, cost: str) -> Finding:
    """What a quick plan may say: that it has seen a claim hold, never that the claim fails, for want of power."""
    if not quick or finding.verdict is not Verdict.NOT_REPRODUCED:
        return finding
    what = "the quick plan did not see it, and has not the power to refute it"
    return undecided(finding.claim, what, cost, finding.numbers)
