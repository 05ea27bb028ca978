"""Which runs make up the published evaluation (spec proactive-handoff 4.5), whole or in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from godwit.lab.handoff.extras import FITTED, SHARED
from godwit.lab.handoff.runs import Configuration
from godwit.lab.models import published

COMPARED = ("durable", "reactive", "proactive", "ours", "memory")
BY_SIZE_ONLY = ("memory", "product")
"""Run where the number of subscribers varies, and nowhere else."""
EXPERIMENTS = ("X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8", "X9", "X10", "X12", "X13", "X14")
"""X13 and X14 are ours: copies for some neighbors only, where they are not equally likely; and long walks with hardly
an event, for where everybody is once nobody's first place matters (Q16)."""
WALK: Mapping[str, Any] = {"scheme": "durable", "sleep_s": 20.0, "warmup_s": 700.0, "measure_s": 1500.0}
"""A walker forgets where it began within some three stays and absences of 91 s."""
UNEVEN = {"skew": 0.6, "strays": 0.05}
FORESEEING = ("proactive", "ours")
BY_SIZE = ("X1", "X2", "X3", "X9", "X10")
"""These read the same runs: all sizes, both patterns."""


TEXT_READING = "one channel of 11 Mb/s, 968 B"
OURS_READING = "a channel for each cell, 2,400 B"
STORED = {f"{TEXT_READING}, stored at {times:g} times the size": times for times in (1.0, 4.0)}
"""How Sun's broker counted what it stored is not known; the text's own reading has 2.5."""
READINGS: Mapping[str, Mapping[str, Any]] = {
    TEXT_READING: {**SHARED, **FITTED},
    **{name: {**SHARED, **FITTED, "stored": times} for name, times in STORED.items()},
    "one channel of 11 Mb/s, 2,400 B": {"channel": "shared"},
    OURS_READING: {},
}
"""Of the text's testbed, its own first: it speaks of total available bandwidth, and at the published 1,420 msg/s such a
channel carries messages of at most 968 B. The last is what earlier results of ours rest on."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """`base` subscribers are used where something else than their number varies."""

    subscribers: tuple[int, ...] = (10, 50, 100, 150, 200)
    base: int = 200
    seeds: int = 5
    schemes: tuple[str, ...] = COMPARED
    experiments: tuple[str, ...] = EXPERIMENTS
    warmup_s: float = 120.0
    measure_s: float = 300.0
    sleeps_s: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    queues_mb: tuple[float, ...] = (2.0, 3.0, 4.0)
    masses: tuple[float, ...] = (1.0, 0.97, 0.93, 0.85, 0.7)
    quick: bool = False
    first_seed: int = 1
    reading: str = OURS_READING
    lean: bool = False
    walks: int = 20
    """Seeds of X14: more than there are brokers, or their covariance cannot be estimated."""
    further: int = 0
    """Worlds after the seeds, of what Q9 and Q1 compare: with ten subscribers a run either loses nothing or much."""

    def variants(self) -> list[dict[str, Any]]:
        """What differs from the defaults in X4 to X8 and X12; the first is the default itself."""
        by_experiment: dict[str, list[dict[str, Any]]] = {
            "X4": [{"sleep_s": sleep_s} for sleep_s in self.sleeps_s],
            "X5": [{"queue_mb": queue_mb} for queue_mb in self.queues_mb],
            "X6": [{"disconnect_s": 24.0}],
            "X7": [{"connect_s": 150.0}],
            "X8": [{"bandwidth_mbps": 1.0}],
            "X12": [{"moving": False}],
        }
        chosen = [variant for name in by_experiment if name in self.experiments for variant in by_experiment[name]]
        return [{}, *chosen] if chosen else []

    def cells(self) -> list[Configuration]:
        """Every run once; the largest come first, so that no process is left alone with one at the end."""
        sizes = sorted(self.subscribers, reverse=True) if set(BY_SIZE) & set(self.experiments) else ()
        wanted = [
            self._run(scheme, seed, subscribers=size, pattern=pattern)
            for size in sizes
            for seed in self._seeds()
            for pattern in ("RND", "NBR")
            for scheme in self.schemes
        ]
        wanted += [
            self._run(scheme, seed, subscribers=self.base, **variant)
            for seed in self._seeds()
            for variant in self.variants()
            for scheme in self.schemes
            if scheme not in BY_SIZE_ONLY
        ]
        if "X13" in self.experiments:
            wanted += [
                self._run(scheme, seed, subscribers=self.base, pattern="NBR", mass=mass, **UNEVEN)
                for seed in self._seeds()
                for mass in self.masses
                for scheme in self.schemes
                if scheme in FORESEEING
            ]
        wanted += [
            self._run(scheme, seed, subscribers=size, pattern="RND")
            for seed in self.further_seeds()
            for size in (self.subscribers[0], self.subscribers[-1])
            for scheme in ("reactive", "proactive")
        ]
        wanted += [
            self._run("durable", seed, subscribers=self.subscribers[0], pattern="RND") for seed in self.further_seeds()
        ]
        if "X14" in self.experiments:
            wanted += [
                Configuration(seed=seed, subscribers=self.base, pattern=pattern, **WALK)
                for seed in range(self.first_seed, self.first_seed + self.walks)
                for pattern in ("RND", "NBR")
            ]
        return list(dict.fromkeys(wanted))

    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def further_seeds(self) -> range:
        return range(self.first_seed + self.seeds, self.first_seed + self.seeds + self.further)

    def _run(self, scheme: str, seed: int, **others: Any) -> Configuration:
        usual = {"warmup_s": self.warmup_s, "measure_s": self.measure_s, **READINGS[self.reading]}
        if scheme != "durable" and self.reading in STORED:
            usual["stored"] = SHARED["stored"]  # it means nothing to the others, whose runs are those of the text
        return Configuration(scheme=scheme, seed=seed, **{**usual, **others})


QUICK = Grid(
    subscribers=(10, 200),
    base=50,
    seeds=1,
    warmup_s=30.0,
    measure_s=40.0,
    sleeps_s=(0.5, 2.0),
    queues_mb=(2.0, 4.0),
    masses=(1.0, 0.93, 0.85),
    walks=0,
    quick=True,
)
"""About three minutes on one quiet core."""

PUBLISHED_SCHEMES = ("durable", "reactive", "proactive")
JUDGED = ("X2", "X4", "X5", "X6", "X7", "X8", "X10", "X12")
SHORT = Grid(
    subscribers=(10, 100),
    base=50,
    seeds=3,
    first_seed=401,
    schemes=PUBLISHED_SCHEMES,
    experiments=JUDGED,
    warmup_s=15.0,
    measure_s=25.0,
    sleeps_s=(1.0,),
    queues_mb=(4.0,),
    lean=True,
    quick=True,
)
"""About a minute of a core: with up to 100 subscribers, in runs a tenth as long as published ones. That is shorter
than a subscriber's round of 91 s and than a buffer takes to fill: they refute nothing."""
PUBLISHED = Grid(
    first_seed=401, schemes=(*PUBLISHED_SCHEMES, "product"), experiments=(*JUDGED, "X14"), lean=True, further=30
)
"""The text's reading whole, and with the deployed broker; the others where most claims are."""


def readings(base: Grid) -> dict[str, Grid]:
    """The same plan in every reading; where it is lean, readings after the text's have only what decides the most.

    That is X2 and X10 at one size; where only durable's store is read otherwise, all that durable is compared in.
    """
    found = {name: msgspec.structs.replace(base, reading=name) for name in READINGS}
    if not base.lean:
        return found
    usual = {"schemes": PUBLISHED_SCHEMES, "further": 0}
    few = {**usual, "experiments": ("X2", "X10"), "subscribers": base.subscribers[-1:]}
    stored = {**usual, "experiments": ("X2", "X5", "X6", "X8", "X10"), "queues_mb": QUEUE_ENDS[1:]}
    changes = {name: stored if name in STORED else few for name in READINGS if name != TEXT_READING}
    return {name: msgspec.structs.replace(grid, **changes.get(name, {})) for name, grid in found.items()}


QUEUE_ENDS = (1.0, 4.0)


def all_readings(base: Grid) -> list[Configuration]:
    """What decides the most first, and of equal ones seed by seed."""
    every = [cell for grid in readings(base).values() for cell in grid.cells()]
    return sorted(dict.fromkeys(every), key=lambda cell: (_rank(cell, base), cell.seed))


def _rank(cell: Configuration, base: Grid) -> int:
    """The text's reading at the sizes whose losses were published (Q1), what a claim varies there, long walks. Then
    further worlds and the rest of X2 and X10. At last what else durable's store may be, the other readings, the
    deployed broker, and what no claim speaks of."""
    varied = {name for name, usual in USUAL.items() if getattr(cell, name) != usual}
    texts = cell.channel == "shared" and cell.size_b == SHARED["size_b"]
    if cell.scheme == "product":
        return 6
    if cell.warmup_s == WALK["warmup_s"]:
        return 1
    if not texts:
        return 5
    if cell.stored != SHARED["stored"]:
        return 4
    if not varied:
        return 0 if _is_of_published_losses(cell, base) else 3
    return 2 if _is_judged(cell, varied) else 7


USUAL = {
    "sleep_s": 0.0,
    "queue_mb": 1.0,
    "disconnect_s": 12.0,
    "connect_s": 60.0,
    "bandwidth_mbps": 11.0,
    "moving": True,
}
"""What X4 to X8 and X12 vary."""


def _is_of_published_losses(cell: Configuration, base: Grid) -> bool:
    """Of the further worlds Q1 compares durable and pro-active with the fewest subscribers."""
    if cell.seed in base.further_seeds():
        return cell.subscribers == base.subscribers[0] and cell.scheme != "reactive"
    return cell.subscribers in published.LOSS


def _is_judged(cell: Configuration, varied: set[str]) -> bool:
    """Whether some claim speaks of this scheme with this varied (Q10 to Q13)."""
    speaks = {
        "queue_mb": PUBLISHED_SCHEMES,
        "bandwidth_mbps": PUBLISHED_SCHEMES,
        "disconnect_s": ("durable", "proactive"),
        "connect_s": ("reactive",),
    }
    return cell.queue_mb in QUEUE_ENDS and all(cell.scheme in speaks.get(name, ()) for name in varied)
