"""Which of the things that the text does not report decide its claims: a screening plan over six of them at once.

Every combination of heartbeat period, acknowledgements, our retry, workload, reading of AODV and radio range is run
briefly, in the same worlds. MFT does not hang on how AODV is read, nor AODV on heartbeats, so that 96 settings of the
one and 18 of the other give all 288 comparisons. The margin by which a claim holds (`lab.parts`) is then a function of
six factors; how much of its variance each explains says which of them matter, and where its sign changes says where
the claim holds.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from godwit.lab.claims import Margin, Point
from godwit.lab.intervals import Interval
from godwit.lab.mft.claims import CLAIMS
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import ACKNOWLEDGED, AODV, Configuration
from godwit.lab.mft.verdicts import JUDGES, Evidence, parts_of
from godwit.lab.parts import least_margin

FACTORS: Mapping[str, tuple[Any, ...]] = {
    "period_s": (1.0, 2.0, 5.0, 10.0),
    "acknowledge": ACKNOWLEDGED,
    "retry_s": (1.0, 0.0),
    "workload": ("unicast", "multicast"),
    "aodv": tuple(AODV),
    "range_m": (18.0, 28.0, 46.0),
}
"""What the text does not give, and the values that it may have had."""
NAMES = {
    "period_s": "the heartbeat period",
    "acknowledge": "who acknowledges events",
    "retry_s": "our retry of stored events",
    "workload": "the workload",
    "aodv": "the reading of AODV",
    "range_m": "the radio's range",
}
UNITS = {"period_s": " s", "retry_s": " s", "range_m": " m"}
OF_MFT = ("period_s", "acknowledge", "retry_s", "workload", "range_m")
OF_AODV = ("aodv", "workload", "range_m")
CELLS = {
    "mft": ((2, 8.0), (8, 8.0), (16, 2.0), (16, 6.0), (16, 10.0), (32, 8.0)),
    "aodv": ((2, 8.0), (4, 8.0), (8, 8.0), (16, 2.0), (16, 6.0), (16, 10.0), (32, 8.0)),
}
"""Sizes and speeds, of which there are as many as the claims need and no more."""
REFERENCE_MPS = 8.0

Setting = dict[str, Any]
"""A value for each factor."""


class Screening(msgspec.Struct, frozen=True, kw_only=True):
    seeds: int = 1
    first_seed: int = 101
    publish_s: float = 60.0
    drain_s: float = 24.0

    def runs(self) -> list[Configuration]:
        """Whole settings one after the other, short periods last: they cost the most."""
        mft = [(s, "mft") for s in sorted(settings(OF_MFT), key=lambda s: -float(s["period_s"]))]
        aodv = [(s, "aodv") for s in settings(OF_AODV)]
        return [run for setting, protocol in (*aodv, *mft) for run in self._of(protocol, setting)]

    def _of(self, protocol: str, setting: Setting) -> list[Configuration]:
        return [
            Configuration(
                size=size,
                speed_mps=speed,
                seed=seed,
                protocol=protocol,
                publish_s=self.publish_s,
                drain_s=self.drain_s,
                **setting,
            )
            for size, speed in CELLS[protocol]
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]


def settings(factors: Iterable[str]) -> list[Setting]:
    names = [name for name in FACTORS if name in factors]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(FACTORS[name] for name in names))]


class Margins:
    """By claim and setting the margin by which the claim holds there; negative where it fails."""

    def __init__(self, rows: Sequence[Row]) -> None:
        mft, aodv = _grouped(rows, "mft", OF_MFT), _grouped(rows, "aodv", OF_AODV)
        self.settings = settings(FACTORS)
        self.by_claim: dict[str, list[float | None]] = {name: [] for name in JUDGED}
        for setting in self.settings:
            own = [*mft.get(_key(setting, OF_MFT), ()), *aodv.get(_key(setting, OF_AODV), ())]
            evidence = Evidence(own, (), REFERENCE_MPS)
            for name in JUDGED:
                self.by_claim[name].append(least_margin(parts_of(name, evidence)) if own else None)

    def of(self, claim: str, **fixed: Any) -> list[float]:
        """The margins at all settings that have these values."""
        return [
            margin
            for setting, margin in zip(self.settings, self.by_claim[claim], strict=True)
            if margin is not None and all(setting[name] == value for name, value in fixed.items())
        ]

    def holding(self, claim: str, **fixed: Any) -> float | None:
        """In which share of the settings with these values the claim holds; None where none was run."""
        found = self.of(claim, **fixed)
        return sum(margin > 0 for margin in found) / len(found) if found else None

    def explained(self, claim: str) -> dict[str, float]:
        """How much of the variance of the margin each factor alone explains."""
        total = self.of(claim)
        spread = statistics.pvariance(total) if len(total) > 1 else 0.0
        found = {}
        for name, values in FACTORS.items():
            groups = [self.of(claim, **{name: value}) for value in values]
            between = sum(len(g) * (statistics.fmean(g) - statistics.fmean(total)) ** 2 for g in groups if g)
            found[name] = between / len(total) / spread if spread else 0.0
        return found

    def decisive(self, claim: str) -> str:
        """The factor that moves the share of settings where the claim holds the most."""

        def swing(name: str) -> float:
            shares = [share for v in FACTORS[name] if (share := self.holding(claim, **{name: v})) is not None]
            return max(shares) - min(shares) if shares else 0.0

        return max(FACTORS, key=lambda name: (swing(name), self.explained(claim)[name]))

    def curve(self, claim: str, factor: str) -> list[Point]:
        """At each value of a factor: the claim holds there in most, in few, or in some of the other settings."""
        points = []
        for value in FACTORS[factor]:
            share = self.holding(claim, **{factor: value})
            holds = None if share is None else True if share >= MOSTLY else False if share <= 1 - MOSTLY else None
            told = "not run" if share is None else f"holds in {share:.0%} of the other settings"
            beyond = () if share is None else (Margin(BEYOND_HALF, Interval(share - 0.5, 0.0, 1)),)
            points.append(Point(named(factor, value), holds, told, beyond))
        return points

    def together(self) -> list[tuple[int, Setting]]:
        """The settings by how many claims hold in them, the most first."""
        counted = []
        for i, setting in enumerate(self.settings):
            margins = [self.by_claim[name][i] for name in JUDGED]
            counted.append((sum(margin is not None and margin > 0 for margin in margins), setting))
        return sorted(counted, key=lambda one: -one[0])


BEYOND_HALF = "share of the settings in which it holds, beyond a half"
MOSTLY = 0.75
"""At a value a claim holds, or fails, where it does so in this share of the settings that have the value."""
JUDGED = [name for name in CLAIMS if name in JUDGES and name != "E17"]
"""E17 is about area, and has a curve of its own."""


def named(factor: str, value: object) -> str:
    if factor == "retry_s" and not value:
        return "no retry"
    return (f"{value:g}" if isinstance(value, float) else str(value)) + UNITS.get(factor, "")


def told(setting: Setting) -> str:
    return ", ".join(f"{NAMES[name].removeprefix('the ')} {named(name, value)}" for name, value in setting.items())


def _key(setting: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(setting[name] for name in names)


def _grouped(rows: Sequence[Row], protocol: str, names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row.configuration.protocol == protocol:
            found.setdefault(tuple(getattr(row.configuration, name) for name in names), []).append(row)
    return found
