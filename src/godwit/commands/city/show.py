"""The demo at work: a city's events matched with what its people want, and a sample of them checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from godwit.commands.city import world
from godwit.commands.city.screen import Watch, display_for
from godwit.commands.city.wishes import WISHES, Wish, heard, wishes
from godwit.commands.match.matcher import make_ready
from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.filters.text import to_text
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index, Matches

EVENTS_MIN, EVENTS_MAX = 8, 2048
BATCH_S = 0.05
"""Batches are as large as this time allows, so that the show never stands still."""

CHUNK = 1 << 13
HEARD_EVERY_S = 0.7
VERIFYING_SHARE = 0.15
VERIFYING_STEP = 2000
VERIFYING_AFTERWARDS_S = 1.5

FIRST_NAMES = ("Ada", "Bram", "Chloe", "Dilan", "Emre", "Fenna", "Goran", "Hana", "Ilse", "Jonas", "Kofi", "Lotte")


class Verifier:
    """Tries random events on every subscription one by one, a few thousand at a time so that the show goes on."""

    def __init__(self, watch: Watch, subscriptions: Sequence[FilterSet], random: np.random.Generator) -> None:
        self.watch = watch
        self.subscriptions = subscriptions
        self.random = random
        self.spent_s = 0.0
        self._checks: Iterator[bool] = iter(())

    def work(self, events: pa.RecordBatch, matches: Matches, until_s: float) -> None:
        """Check events, of this batch if none is under way, until so much time went into it since the beginning."""
        while self.spent_s < until_s:
            begun = time.perf_counter()
            same = next(self._checks, None)
            if same is None:
                event = int(self.random.integers(len(events)))
                self._checks = self._check(values_of(events, event), matches[event])
            self.spent_s += time.perf_counter() - begun

    def _check(self, values: Mapping[str, Value], ids: NDArray[np.int64]) -> Iterator[bool]:
        """Whether matcher and filters agree, part by part; the event counts as verified at the end."""
        found = np.zeros(len(self.subscriptions), np.bool_)
        found[ids] = True
        same = True
        for start in range(0, len(found), VERIFYING_STEP):
            part = self.subscriptions[start : start + VERIFYING_STEP]
            same &= [filters.matches(values) for filters in part] == found[start : start + VERIFYING_STEP].tolist()
            yield same
        self.watch.verified += 1
        self.watch.differences += not same


class Show:
    """The stream: makes events, matches them, and tells the watch."""

    def __init__(self, index: Index, people: Sequence[tuple[Wish, FilterSet]], random: np.random.Generator) -> None:
        self.index = index
        self.people = people
        self.random = random
        self.city = world.City(random)
        self.size = EVENTS_MIN
        self.heard_at = 0.0
        self.turn = 0

    def run(self, console: Console, watch: Watch) -> None:
        verifier = Verifier(watch, [filters for _, filters in self.people], self.random)
        shown = 0.0
        with display_for(console, watch) as display:
            while watch.elapsed_s < watch.seconds:
                events, matches = self._step(watch)
                verifier.work(events, matches, watch.elapsed_s * VERIFYING_SHARE)
                if watch.elapsed_s - shown >= display.every_s:
                    shown = watch.elapsed_s
                    display.show(self._busiest(watch))
            verifier.work(events, matches, verifier.spent_s + VERIFYING_AFTERWARDS_S)
            display.show(self._busiest(watch))

    def _step(self, watch: Watch) -> tuple[pa.RecordBatch, Matches]:
        events = self.city.events(self.size)
        begun = time.perf_counter()
        matches = self.index.match_batch(Batch.from_arrow(events))
        took_s = time.perf_counter() - begun
        self.size = int(np.clip(min(self.size * BATCH_S / took_s, 2 * self.size), EVENTS_MIN, EVENTS_MAX))
        watch.count(events, matches.counts, matches.ids, took_s)
        watch.cloud = self.city.cloud()
        if watch.elapsed_s - self.heard_at > HEARD_EVERY_S:
            self.heard_at = watch.elapsed_s
            self._hear(watch, events, matches)
        return events, matches

    def _hear(self, watch: Watch, events: pa.RecordBatch, matches: Matches) -> None:
        """Let one person be heard, each time one with another kind of wish, or most would wait for taxis."""
        self.turn += 1
        wish = WISHES[self.turn % len(WISHES)]
        for event in self.random.permutation(len(events)).tolist():
            for person in matches[event][:50].tolist():
                if self.people[person][0] is wish:
                    told = heard(wish, self.people[person][1], values_of(events, event))
                    watch.heard.append((name_of(person), told))
                    return

    def _busiest(self, watch: Watch) -> list[tuple[int, str]]:
        return [(int(watch.wanted[at]), to_text(self.people[at][1])) for at in watch.busiest()]


def values_of(events: pa.RecordBatch, event: int) -> dict[str, Value]:
    row = events.slice(event, 1).to_pylist()[0]
    return {name: value for name, value in row.items() if value is not None}


def name_of(person: int) -> str:
    return f"{FIRST_NAMES[person % len(FIRST_NAMES)]} {person:,}"


def prepared(console: Console, people: int, random: np.random.Generator) -> tuple[Index, list[tuple[Wish, FilterSet]]]:
    """So many people's subscriptions, and the index of them."""
    begun = time.monotonic()
    written = wishes(random, people)
    subscriptions = list(track(written, "writing subscriptions", people, console=console, transient=True))
    console.print(f"written in {time.monotonic() - begun:.1f} s")
    make_ready(console.print)
    begun = time.monotonic()
    index = Index()
    chunks = range(0, people, CHUNK)
    for start in track(chunks, "building the index", console=console, transient=True):
        part = subscriptions[start : start + CHUNK]
        index.add_many(range(start, start + len(part)), (filters for _, filters in part))
    console.print(f"indexed in {time.monotonic() - begun:.1f} s; now the events\n")
    return index, subscriptions
