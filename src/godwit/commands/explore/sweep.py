"""Many seeds on all cores: what finished is kept at once, what fails is shrunk and drawn."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from godwit.commands.console import Bar, InputError, Reports, print_json
from godwit.sim.brokers.fabric_kinds import FABRICS as FABRICS
from godwit.sim.exploration import diagram, generator
from godwit.sim.exploration import plan as plans
from godwit.sim.exploration.generator import WORLDS as WORLDS
from godwit.sim.exploration.plan import FAULTS, MOVES, Plan, PlanError
from godwit.sim.exploration.reduction import reduced
from godwit.sim.exploration.trial import Trial, Verdict

RESULTS, FAILURES = "results.jsonl", "failures"
AHEAD = 4
"""Seeds that each worker has waiting."""


class Land(msgspec.Struct, frozen=True):
    """What a seed means: a world of this kind, with brokers joined by this fabric."""

    fabric: str = "tree"
    worlds: str = "any"

    def plan(self, seed: int) -> Plan:
        return generator.drawn(seed, self.fabric, self.worlds)


class Outcome(msgspec.Struct, kw_only=True, forbid_unknown_fields=False):
    """One line of the results file."""

    seed: int
    fabric: str
    worlds: str = "any"
    kinds: tuple[str, ...]
    """The faults and moves that really happened."""
    found: tuple[str, ...] = ()
    published: int = 0
    delivered: int = 0
    simulated_s: float = 0.0
    took_s: float = 0.0


def _spare() -> None:
    """What a worker has imported by now is no garbage: not to look through it again spares four per cent."""
    gc.freeze()


def tried(seed: int, land: Land) -> tuple[Outcome, Verdict]:
    """One seed from beginning to end; a worker calls it."""
    begun_s = time.monotonic()
    verdict = Trial(land.plan(seed)).run()
    kinds = tuple(kind for kind in (*FAULTS, *MOVES) if verdict.done.get(kind))
    outcome = Outcome(
        seed=seed,
        fabric=land.fabric,
        worlds=land.worlds,
        kinds=kinds,
        found=tuple(sorted({finding.kind for finding in verdict.findings})),
        published=verdict.published,
        delivered=verdict.delivered,
        simulated_s=round(verdict.simulated_s, 3),
        took_s=round(time.monotonic() - begun_s, 3),
    )
    return outcome, verdict


def explained(plan: Plan, folder: Path, *, shrink: bool) -> Plan:
    """Write a plan that fails, whole and shrunk, with the story of the smallest; a worker calls it."""
    stem = folder / f"seed-{plan.seed}"
    plans.save(plan, stem.with_name(f"{stem.name}.json"))
    small = plan
    if shrink:
        kinds = frozenset(finding.kind for finding in Trial(plan).run().findings)
        small = reduced(plan, kinds)
        plans.save(small, stem.with_name(f"{stem.name}.small.json"))
    diagram.write(small, stem)
    return small


class Progress(msgspec.Struct):
    """How far a sweep is, by the clock or by the number of its seeds."""

    begun_s: float
    minutes: float | None
    total: int | None
    done: int = 0

    @property
    def is_over(self) -> bool:
        return self.minutes is not None and time.monotonic() >= self.begun_s + self.minutes * 60

    @property
    def share(self) -> float:
        if self.total is not None:
            return min(1.0, self.done / max(1, self.total))
        return min(1.0, (time.monotonic() - self.begun_s) / max(1.0, (self.minutes or 0.0) * 60))


class Sweep:
    """One folder of results. Whoever continues finds in it what was tried, and tries that not again."""

    def __init__(self, out: Path, land: Land, *, workers: int, shrink: bool, as_json: bool = False) -> None:
        self.out = out
        self.land = land
        self.workers = workers or os.cpu_count() or 1
        self.shrink = shrink
        self.as_json = as_json
        self.console = Console(highlight=False, soft_wrap=True, stderr=as_json)
        try:
            (out / FAILURES).mkdir(parents=True, exist_ok=True)
            self.outcomes = [
                one for one in _read(out / RESULTS) if (one.fabric, one.worlds) == (land.fabric, land.worlds)
            ]
        except OSError as error:
            raise InputError(f"--out {out}: {error.strerror}") from None
        self._tried = {one.seed for one in self.outcomes}
        self._explaining: list[Future[Plan]] = []

    def run(self, first: int, count: int | None, minutes: float | None) -> None:
        last = None if count is None else first + count
        seeds, wanted = _fresh(first, last, self._tried), range(first, last or first)
        self.console.print(self._introduction(first, last, minutes), markup=False)
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(self.workers, mp_context=spawn, initializer=_spare)
        total = None if count is None else count - sum(seed in wanted for seed in self._tried)
        progress = Progress(time.monotonic(), minutes, total)
        try:
            with Bar(Reports().console, "exploring") as bar, (self.out / RESULTS).open("ab") as results:
                self._explore(pool, seeds, results.fileno(), progress, bar)
            for one in self._explaining:
                one.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _explore(
        self, pool: ProcessPoolExecutor, seeds: Iterator[int], results: int, progress: Progress, bar: Bar
    ) -> None:
        running: set[Future[tuple[Outcome, Verdict]]] = set()
        while True:
            room = 0 if progress.is_over else self.workers * AHEAD - len(running)
            running |= {pool.submit(tried, seed, self.land) for seed in islice(seeds, room)}
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for one in finished:
                self._keep(one.result(), results, pool)
                progress.done += 1
            bar.update(progress.share, f"{progress.done:,} seeds, {self.failed} failed")

    @property
    def failed(self) -> int:
        return sum(bool(one.found) for one in self.outcomes)

    def _introduction(self, first: int, last: int | None, minutes: float | None) -> str:
        what = f"seeds {first} to {last - 1}" if last is not None else f"seeds from {first} for {minutes:g} minutes"
        before = f"; {len(self.outcomes):,} seeds are in {self.out} already" if self.outcomes else ""
        kind = self.land.fabric if self.land.worlds == "any" else f"{self.land.fabric}, worlds {self.land.worlds}"
        return f"exploring {kind}: {what}, {self.workers} processes{before}"

    def _keep(self, done: tuple[Outcome, Verdict], results: int, pool: ProcessPoolExecutor) -> None:
        outcome, verdict = done
        os.write(results, msgspec.json.encode(outcome) + b"\n")
        self.outcomes.append(outcome)
        if outcome.found:
            self.console.print(f"seed {outcome.seed} fails: {verdict.findings[0]}", markup=False)
            plan = self.land.plan(outcome.seed)
            self._explaining.append(pool.submit(explained, plan, self.out / FAILURES, shrink=self.shrink))

    def conclude(self, *, interrupted: bool = False) -> int:
        """Say what came of it; how many failed."""
        if interrupted:
            self.console.print("interrupted; what was finished is kept, and the next run goes on behind it")
        self.console.print(table(self.outcomes))
        if failed := [one.seed for one in self.outcomes if one.found]:
            names = ", ".join(map(str, sorted(failed)[:20]))
            self.console.print(f"{len(failed)} seeds fail: {names}; see {self.out / FAILURES}", markup=False)
        if self.as_json:
            print_json(
                {
                    "fabric": self.land.fabric,
                    "worlds": self.land.worlds,
                    "failed": sorted(failed),
                    "by_kind": counted(self.outcomes),
                }
            )
        return len(failed)


def counted(outcomes: list[Outcome]) -> dict[str, dict[str, int]]:
    """By what happened: how many seeds had it, how many of those failed, and how many with each finding."""
    told = {}
    for kind in (*FAULTS, *MOVES, "nothing wrong with brokers", "all"):
        some = [one for one in outcomes if _has(one, kind)]
        counts: Counter[str] = Counter(name for one in some for name in one.found)
        told[kind] = {"seeds": len(some), "failed": sum(bool(one.found) for one in some), **counts}
    return told


def table(outcomes: list[Outcome]) -> Table:
    """How many seeds had each kind of fault, and of those how many failed."""
    shown = Table("what happened", box=None, padding=(0, 2, 0, 0))
    found = sorted({kind for one in outcomes for kind in one.found})
    for title in ("seeds", "failed", *found):
        shown.add_column(title, justify="right")
    for kind, counts in counted(outcomes).items():
        shown.add_row(kind, *(f"{counts.get(name, 0):,}" for name in ("seeds", "failed", *found)))
    return shown


def _has(outcome: Outcome, kind: str) -> bool:
    if kind == "all":
        return True
    if kind == "nothing wrong with brokers":
        return not set(outcome.kinds) & set(FAULTS)
    return kind in outcome.kinds


def _fresh(first: int, last: int | None, tried_before: set[int]) -> Iterator[int]:
    seed = first
    while last is None or seed < last:
        if seed not in tried_before:
            yield seed
        seed += 1


def _read(path: Path) -> Iterator[Outcome]:
    """What was kept; a line that was cut short by a crash is tried again."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=Outcome)
        except msgspec.DecodeError:
            continue


def replayed(what: str, land: Land, out: Path, *, shrink: bool) -> bool:
    """Carry out one plan, tell its story, and draw it; whether it failed."""
    try:
        plan = land.plan(int(what)) if what.isdecimal() else plans.load(Path(what))
    except PlanError as error:
        raise InputError(str(error)) from None
    stem = out / f"replay-{plan.seed}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        verdict = diagram.write(plan, stem)
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None
    console = Console(highlight=False, soft_wrap=True)
    console.print(stem.with_suffix(".txt").read_text().partition("\nwhat was said")[0], markup=False)
    story, picture = stem.with_suffix(".txt"), stem.with_suffix(".html")
    console.print(f"the whole story: {story}, as a picture: {picture}", markup=False)
    if verdict.failed and shrink and what.isdecimal():
        (out / FAILURES).mkdir(exist_ok=True)
        small = explained(plan, out / FAILURES, shrink=True)
        console.print(f"shrunk from {len(plan.steps)} to {len(small.steps)} steps: {out / FAILURES}", markup=False)
    return verdict.failed
