"""What a study is: a plan in three sizes, runs, and a page with findings.

Whoever has claims to judge writes a `Study` and names it in `lab/catalogue.py`; `godwit lab all` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from godwit.lab.claims import Finding
from godwit.lab.pages import Page, Table
from godwit.lab.provenance import Provenance

C = TypeVar("C", bound=msgspec.Struct)

SIZES = ("quick", "short", "published")
"""A few minutes, about a quarter of an hour, and what was published; of a core, for each study."""


class Kept(Protocol):
    """Where a study's results are: `lab.results.Results` or anything that does the same."""

    path: Path
    made: Provenance
    any_code: bool
    vouched: frozenset[tuple[str, str]]
    strand: Callable[[Any], str]

    def missing(self, wanted: Iterable[Any]) -> list[Any]: ...

    def add(self, one: Any, done: Any, /) -> None: ...

    def settle(self) -> None: ...

    def of(self, wanted: Sequence[Any]) -> list[Any]: ...

    def foreign_runs(self, wanted: Iterable[Any]) -> dict[str, list[Any]]: ...

    def is_equal(self, code: str, one: Any, done: Any, /) -> bool: ...


class Parameter(msgspec.Struct, frozen=True):
    """`source` is where a value comes from: the text, fitted, or ours."""

    name: str
    value: str
    source: str


class Awaited(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that has no study yet; `study` is the one that will judge it."""

    spec: str
    name: str
    text: str
    study: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the text that is not judged, and why nobody should."""

    name: str
    text: str
    why: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a study has to say about the rows that there are."""

    lead: str
    findings: Sequence[Finding]
    tables: Sequence[Table]
    parameters: Sequence[Parameter]
    seeds: str
    figures: Callable[[], Mapping[str, bytes]] = dict
    """PNG by caption, drawn when asked for: that needs matplotlib."""
    left_out: Sequence[LeftOut] = ()


class Study(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    spec: str
    runs: Callable[[str], Sequence[Any]]
    """The configurations of a size, in the order in which they should be run."""
    work: Callable[[Any], Any]
    cost_s: Callable[[Any], float]
    """The expected seconds of a core."""
    kept: Callable[[Path], Any]
    outcome: Callable[[Sequence[Any], str], Outcome]
    """Of the rows of a size."""
    named: Callable[[Any], str] = str
    ran: Callable[[Any], Any] = attrgetter("configuration")
    """The configuration of a row; several rows may be of one run."""
    strand: Callable[[Any], str] = lambda one: ""
    """Names runs that rest on code of their own, as those of the deployed broker do; the others have no name."""

    def kept_at(self, path: Path) -> Kept:
        """The results there, which know the study's strands."""
        found: Kept = self.kept(path)
        found.strand = self.strand
        return found


def up_to(study: Study, size: str) -> list[Any]:
    """All runs that a page of this size may speak of: what it leaves open is taken from smaller ones."""
    return list(dict.fromkeys(one for own in reversed(SIZES[: SIZES.index(size) + 1]) for one in study.runs(own)))


def reported(
    page: Page, parameters: Sequence[Parameter], seeds: str, figures: Callable[[], Mapping[str, bytes]]
) -> Outcome:
    """The outcome of a study that writes a page of its own."""
    return Outcome(
        lead=page.lead,
        findings=page.findings,
        tables=page.tables,
        parameters=parameters,
        seeds=seeds,
        figures=figures,
    )


def seed_by_seed(cells: Iterable[tuple[C, int]]) -> list[C]:
    """The runs of settings with so many seeds each; an interrupted run then says something about everything."""
    many = [(seed, cell) for cell, seeds in cells for seed in range(1, seeds + 1)]
    many.sort(key=lambda one: one[0])
    return list(dict.fromkeys(msgspec.structs.replace(cell, seed=seed) for seed, cell in many))


def origins(rows: Sequence[Any]) -> list[Provenance]:
    """Where these rows come from, each place once."""
    return list(dict.fromkeys(row.made for row in rows))


def spanned(seeds: Iterable[int]) -> str:
    """Seeds as a reader wants them: 401 to 435, 440."""
    known = sorted(set(seeds))
    first = [seed for seed in known if seed - 1 not in known]
    last = [seed for seed in known if seed + 1 not in known]
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True))


HOUR_S, MINUTE_S = 3600.0, 60.0


def duration(seconds: float) -> str:
    if seconds >= HOUR_S:
        return f"{seconds / HOUR_S:.1f} h"
    return f"{seconds / MINUTE_S:.0f} min" if seconds >= MINUTE_S else f"{seconds:.0f} s"
