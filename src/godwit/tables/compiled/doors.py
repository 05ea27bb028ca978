"""Compiled: the doors through which Python enters, as numba makes them. `kernels` decides whether it has to.

Machine code is cached on disk by numba, which renews it when the file of the outermost function changes, or a variable
that the function closes over. Every function here closes over a digest of all compiled modules: none goes stale.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, get_args, get_type_hints

import numpy as np
from numba import njit, types
from numba.core.event import Listener, install_listener

from godwit.tables.compiled import checks, columns, filing
from godwit.tables.compiled import layout as L
from godwit.tables.compiled.entries import Ints, Kernels, Longs
from godwit.tables.compiled.filing import add_from, first_known, knows, remove_one
from godwit.tables.compiled.memory import lent, opener
from godwit.tables.compiled.slices import begin_slice, end_slice, forget_values, prepare, unreadable
from godwit.tables.compiled.terms import free_term, new_term
from godwit.tables.compiled.walk import copied, forget_event, in_order, take_event, walk_event, walk_slice

state_at, scratch_at, program_at = opener(L.State), opener(L.Scratch), opener(L.Program)
source_at, event_at, search_at = opener(L.Source), opener(L.SingleEvent), opener(L.Search)

_entry = njit(cache=True, error_model="numpy")


Doors = tuple[Callable[..., Any], ...]


def made(digest: int) -> Kernels:
    doors = (*_changes(digest), *_tables(digest), *_batches(digest), *_events(digest))
    return Kernels(*(checks.watched(name, kernel) for name, kernel in zip(Kernels._fields, doors, strict=True)))


def _changes(digest: int) -> Doors:
    @_entry
    def add(state: int, program: int, begin: int) -> tuple[int, int]:
        digest  # noqa: B018
        return add_from(state_at(state), program_at(program), begin)

    @_entry
    def remove(state: int, number: int) -> bool:
        digest  # noqa: B018
        return remove_one(state_at(state), number)

    @_entry
    def is_known(state: int, number: int) -> bool:
        digest  # noqa: B018
        return knows(state_at(state), number)

    @_entry
    def first(state: int, numbers: Any) -> int:
        digest  # noqa: B018
        return first_known(state_at(state), lent(numbers))

    @_entry
    def new_outer(state: int, attr: int) -> int:
        digest  # noqa: B018
        s = state_at(state)
        s.heads[L.OUTERS] += 1
        return new_term(s, L.OUTER, attr, 0, 0)

    @_entry
    def drop_outer(state: int, term: int) -> None:
        digest  # noqa: B018
        s = state_at(state)
        s.heads[L.OUTERS] -= 1
        free_term(s, term)

    return add, remove, is_known, first, new_outer, drop_outer


def _tables(digest: int) -> Doors:
    @_entry
    def rehash_points(state: int, table: Any) -> int:
        digest  # noqa: B018
        return filing.rehash_points(state_at(state), lent(table))

    @_entry
    def rehash_texts(state: int, table: Any) -> int:
        digest  # noqa: B018
        return filing.rehash_texts(state_at(state), lent(table))

    @_entry
    def rehash_compounds(state: int, table: Any) -> int:
        digest  # noqa: B018
        return filing.rehash_compounds(state_at(state), lent(table))

    @_entry
    def rehash_ids(state: int, keys: Any, slots: Any) -> int:
        digest  # noqa: B018
        return filing.rehash_ids(state_at(state), lent(keys), lent(slots))

    @_entry
    def first_unreadable(schema: int) -> int:
        digest  # noqa: B018
        return unreadable(schema)

    return rehash_points, rehash_texts, rehash_compounds, rehash_ids, first_unreadable


def _batches(digest: int) -> Doors:
    @_entry
    def match_slice(
        state: int, scratch: int, source: int, schema: int, array: int, start: int, n: int, length: int, out: Any
    ) -> Any:
        digest  # noqa: B018
        s, w = state_at(state), scratch_at(scratch)
        prepare(s, w, source_at(source), schema, array, start, n, length, False)
        counts = np.zeros(n, np.int64)
        w.counters[L.ROOM] = len(out) // L.SLICE
        for event in range(n):
            w.ends[event] = event * (len(out) // L.SLICE)
        if not w.counters[L.OVERFLOW]:
            out = walk_slice(s, w, n, out, False)
        end_slice(s, w)
        return in_order(w, n, out, lent(counts)), counts, out

    @_entry
    def count_slice(
        state: int, scratch: int, source: int, schema: int, array: int, start: int, n: int, length: int
    ) -> Any:
        digest  # noqa: B018
        s, w = state_at(state), scratch_at(scratch)
        prepare(s, w, source_at(source), schema, array, start, n, length, False)
        for event in range(n):
            w.ends[event] = 0
        if not w.counters[L.OVERFLOW]:
            walk_slice(s, w, n, np.empty(0, np.int64), True)
        end_slice(s, w)
        counts = np.empty(n, np.int64)
        for event in range(n):
            lent(counts)[event] = w.ends[event]
        return counts

    return match_slice, count_slice


def _events(digest: int) -> Doors:
    @_entry
    def match_few(
        state: int, scratch: int, source: int, schema: int, array: int, start: int, n: int, length: int, out: Any
    ) -> Any:
        digest  # noqa: B018
        s, w, q = state_at(state), scratch_at(scratch), source_at(source)
        counts, count = np.zeros(n, np.int64), 0
        w.counters[L.VISITED] = 0
        for event in range(n):
            prepare(s, w, q, schema, array, start + event, 1, length, True)
            before = count
            if not w.counters[L.OVERFLOW]:
                count, out = walk_event(s, w, count, out)
            end_slice(s, w)
            forget_values(w, q)
            if w.counters[L.OVERFLOW]:
                break
            lent(counts)[event] = count - before
        return copied(out, count, count), counts, out

    @_entry
    def match_event(state: int, scratch: int, event: int, out: Any) -> Any:
        digest  # noqa: B018
        s, w, e = state_at(state), scratch_at(scratch), event_at(event)
        begin_slice(w, 1)
        take_event(s, w, e)
        count = 0
        if not w.counters[L.OVERFLOW]:
            count, out = walk_event(s, w, 0, out)
        end_slice(s, w)
        forget_event(w, e)
        return copied(out, count, count), out

    @_entry
    def rows_between(search: int, words: int, out: Any) -> Any:
        digest  # noqa: B018
        count = columns.rows_between(search_at(search), words, lent(out))
        return copied(out, count, count)

    return match_few, match_event, rows_between


NATIVE: dict[Any, Any] = {int: types.int64, Longs: types.int64[::1], Ints: types.int32[::1]}


def dispatcher(kernel: Callable[..., Any]) -> Any:
    """What numba made, without what the checked mode puts around it."""
    return kernel if hasattr(kernel, "stats") else kernel.__wrapped__  # type: ignore[attr-defined]


def signatures(kernels: Kernels) -> dict[str, tuple[types.Type, ...]]:
    """What each kernel takes, as numba calls it."""
    hints = get_type_hints(Kernels)
    return {name: tuple(NATIVE[one] for one in get_args(hints[name])[0]) for name in kernels._fields}


def compile_all(kernels: Kernels, each: Callable[[int, int], None]) -> tuple[int, int, str]:
    """Have every kernel in the cache on disk: how many had to be compiled, how many were there, and the folder.

    `each` is told how many are done, of how many.
    """
    compiled = known = 0
    where = ""
    for done, (name, arguments) in enumerate(signatures(kernels).items(), 1):
        entry = dispatcher(getattr(kernels, name))
        entry.compile(arguments)
        compiled += sum(entry.stats.cache_misses.values())
        known += sum(entry.stats.cache_hits.values())
        where = entry.stats.cache_path
        each(done, len(kernels))
    return compiled, known, where


class Announcer(Listener):
    """Tells once that something is being compiled; what comes from the cache on disk is not."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell = tell
        self.told = False

    def listening(self) -> AbstractContextManager[None]:
        made: AbstractContextManager[None] = install_listener("numba:compile", self)
        return made

    def on_start(self, event: object) -> None:
        if not self.told:
            self.told = True
            self.tell()

    def on_end(self, event: object) -> None:
        """Nothing to say."""
