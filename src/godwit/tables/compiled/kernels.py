"""Compiled: the doors through which Python enters. Arguments are addresses of books, numbers and arrays.

Machine code is cached on disk by numba, which renews it when the file of the outermost function changes, or a variable
that the function closes over. Every function here closes over a digest of all compiled modules: none goes stale.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from godwit.filters import areas
from godwit.tables.compiled import checks, filing, memory, slices, terms, tree, walk
from godwit.tables.compiled import layout as L
from godwit.tables.compiled.filing import add_from, first_known, knows, remove_one
from godwit.tables.compiled.layout import event_at, program_at, scratch_at, source_at, state_at
from godwit.tables.compiled.memory import lent
from godwit.tables.compiled.slices import begin_slice, end_slice, prepare, unreadable
from godwit.tables.compiled.terms import free_term, new_term
from godwit.tables.compiled.walk import copied, forget_event, in_order, take_event, walk_event, walk_slice

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

_entry = njit(cache=True, error_model="numpy")


class Kernels(NamedTuple):
    """What each does stands at the function that it calls."""

    add: Callable[[int, int, int], tuple[int, int]]
    remove: Callable[[int, int], bool]
    knows: Callable[[int, int], bool]
    first_known: Callable[[int, Longs], int]
    new_outer: Callable[[int, int], int]
    drop_outer: Callable[[int, int], None]
    rehash_points: Callable[[int, Ints], int]
    rehash_texts: Callable[[int, Ints], int]
    rehash_compounds: Callable[[int, Ints], int]
    rehash_ids: Callable[[int, Longs, Ints], int]
    unreadable: Callable[[int], int]
    match_slice: Callable[[int, int, int, int, int, int, int, int, Longs], tuple[Longs, Longs, Longs]]
    count_slice: Callable[[int, int, int, int, int, int, int, int], Longs]
    match_event: Callable[[int, int, int, Longs], tuple[Longs, Longs]]


def _digest(*modules: ModuleType) -> int:
    return int(hashlib.sha256("".join(map(inspect.getsource, modules)).encode()).hexdigest()[:15], 16)


def _made(digest: int) -> Kernels:
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

    @_entry
    def match_slice(
        state: int, scratch: int, source: int, schema: int, array: int, start: int, n: int, length: int, out: Any
    ) -> Any:
        digest  # noqa: B018
        s, w = state_at(state), scratch_at(scratch)
        prepare(s, w, source_at(source), schema, array, start, n, length)
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
        prepare(s, w, source_at(source), schema, array, start, n, length)
        for event in range(n):
            w.ends[event] = 0
        if not w.counters[L.OVERFLOW]:
            walk_slice(s, w, n, np.empty(0, np.int64), True)
        end_slice(s, w)
        counts = np.empty(n, np.int64)
        for event in range(n):
            lent(counts)[event] = w.ends[event]
        return counts

    @_entry
    def match_event(state: int, scratch: int, event: int, out: Any) -> Any:
        digest  # noqa: B018
        s, w, e = state_at(state), scratch_at(scratch), event_at(event)
        begin_slice(w, 1)
        take_event(s, w, e)
        count = 0
        if not w.counters[L.OVERFLOW]:
            count, out = walk_event(s, w, out)
        end_slice(s, w)
        forget_event(w, e)
        return copied(out, count, count), out

    made: tuple[Callable[..., Any], ...] = (
        *(add, remove, is_known, first, new_outer, drop_outer),
        *(rehash_points, rehash_texts, rehash_compounds, rehash_ids),
        *(first_unreadable, match_slice, count_slice, match_event),
    )
    return Kernels(*(checks.watched(name, kernel) for name, kernel in zip(Kernels._fields, made, strict=True)))


KERNELS = _made(_digest(areas, checks, memory, L, terms, tree, filing, slices, walk) + checks.CHECKED)
