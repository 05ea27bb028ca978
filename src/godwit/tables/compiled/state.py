"""The arrays of an index: how they begin and grow, and how compiled code finds them.

An array that grows moves. That is safe because compiled code takes every address from the table of the book, and
nothing grows during a call. `add` stops before a subscription for which there may not be room enough and says what is
short; when Python has made room, it goes on with the same subscription. The old array is let go when the table names
the new one. Since arrays grow by a factor, an entry is copied between three and four times, however many there are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from ctypes import addressof, c_char
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from godwit.tables.compiled import layout
from godwit.tables.compiled.books import WORDS, arrays, known
from godwit.tables.compiled.kernels import KERNELS

Array = npt.NDArray[Any]

ROWS_MAX = 1 << 16
"""Row numbers take two bytes, so that more of them stay in the cache; a slice that needs more rows is halved."""

GROWTH = 1.3
"""By how much arrays grow: adding copies them now and then and does nothing else, and at most a quarter is idle."""


@cache
def _numbers(book: type) -> dict[str, int]:
    return {name: number for number, name in enumerate(arrays(book))}


class Arrays:
    """Arrays by name, and their table of addresses and lengths: a book, for compiled code."""

    def __init__(self, book: type, contents: Mapping[str, Array]) -> None:
        self._numbers = _numbers(book)
        self._table = np.zeros((len(self._numbers), 2), np.int64)
        self._arrays: dict[str, Array] = {}
        self.renewals = 0
        """How often an array was put here: as long as it is the same, all are as long as they were."""
        self.address: int = self._table.ctypes.data
        self.put(contents)
        known(self)

    def put(self, contents: Mapping[str, Array]) -> None:
        self.renewals += 1
        for name, array in contents.items():
            self._arrays[name] = array
            # Not `__array_interface__`: it spells out the fields of records, which takes longer than a match.
            self._table[self._numbers[name]] = (array.ctypes.data, len(array))

    def resize(self, name: str, length: int) -> None:
        """Let compiled code see the first entries of an array only."""
        self._table[self._numbers[name], 1] = length

    def regions(self) -> Iterator[tuple[int, int]]:
        """Where the table and the arrays are, for the checked mode: from, and up to."""
        yield self.address, self.address + self._table.nbytes
        for name, array in self._arrays.items():
            at, length = self._table[self._numbers[name]].tolist()
            yield at, at + length * array.strides[0]

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values()) + self._table.nbytes


class Packed:
    """A book that is made to be read once: its table and all arrays in one piece of memory.

    Numpy needs a few microseconds to say where an array is, and that is asked once here. What is given is the number of
    entries of each array, in the order of the book, and what they are, or the number of bytes where they are zeros.
    """

    def __init__(self, book: type, *contents: tuple[int, bytes | int]) -> None:
        table = _table_of(len(_numbers(book)))
        begin, begins, pieces = table.size, list[int](), [bytes(table.size)]
        for _, piece in contents:
            content = bytes(piece) if isinstance(piece, int) else piece
            begins.append(begin)
            pieces.append(content)
            begin += len(content)
            if begin % 8:
                pieces.append(bytes(-begin % 8))
                begin += -begin % 8
        self._memory = bytearray().join(pieces)
        self.address: int = addressof(c_char.from_buffer(self._memory))
        rows = ((self.address + begin, length) for begin, (length, _) in zip(begins, contents, strict=True))
        table.pack_into(self._memory, 0, *chain.from_iterable(rows))
        self._begins, self._contents = begins, contents
        known(self)

    def regions(self) -> Iterator[tuple[int, int]]:
        """As of `Arrays`."""
        yield self.address, self.address + self._begins[0]
        for begin, (_, piece) in zip(self._begins, self._contents, strict=True):
            size = piece if isinstance(piece, int) else len(piece)
            yield self.address + begin, self.address + begin + size


@cache
def _table_of(arrays: int) -> struct.Struct:
    return struct.Struct(f"={2 * arrays}q")


_GROWN_TOGETHER = {
    layout.SHORT_TERMS: ("terms", "rows"),
    layout.SHORT_BLOCKS: ("block_keys", "block_lows", "block_terms", "block_n"),
    layout.SHORT_NODES: ("nodes",),
    layout.SHORT_BUCKETS: ("buckets",),
    layout.SHORT_SLOTS: ("slots",),
    layout.SHORT_AREAS: ("areas",),
    layout.SHORT_MULTIS: ("multis",),
    layout.SHORT_ARENA: ("arena",),
}
_REHASHED = {
    layout.SHORT_POINTS: ("points", KERNELS.rehash_points, layout.POINTS_USED),
    layout.SHORT_TEXTS: ("texts", KERNELS.rehash_texts, layout.TEXTS_USED),
    layout.SHORT_COMPOUNDS: ("compounds", KERNELS.rehash_compounds, layout.COMPOUNDS_USED),
}
_FIRST_LENGTHS = {
    "heads": layout.HEADS,
    "attrs": 0,
    "lists": 0,
    "block_keys": 16,
    "block_lows": 16,
    "block_terms": 16,
    "block_n": 16,
    "buckets": 128,
    "arena": 1 << 14,
}


def empty_state() -> Arrays:
    state = Arrays(
        layout.State,
        {name: _zeros(_FIRST_LENGTHS.get(name, 64), *kind) for name, kind in arrays(layout.State).items()},
    )
    heads = state["heads"]
    for top in (layout.BLOCK_TOP, layout.BUCKET_TOP, layout.SLOT_TOP, layout.AREA_TOP, layout.MULTI_TOP):
        heads[top] = 1
    heads[layout.ARENA_TOP] = 8
    heads[layout.TERM_TOP] = 2
    state["terms"]["kind"][:2] = layout.CONSTANT
    heads[layout.NODE_TOP] = layout.ROOT + 1
    state["nodes"]["limit"][layout.ROOT] = layout.SPLIT_FIRST
    state["id_slots"][:] = layout.ID_EMPTY
    state["rows"][layout.ALL] = layout.ROW_ALL
    make_attributes(state, 1)
    return state


def _zeros(length: int, kind: Any, width: int) -> Array:
    return np.zeros(length if width == 1 else (length, width), kind)


def _longer(array: Array, length: int) -> Array:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def make_attributes(state: Arrays, count: int) -> None:
    """Make room for attributes numbered below `count`."""
    known = len(state["attrs"])
    if count <= known:
        return
    attrs = _longer(state["attrs"], max(count, known + known // 2))
    attrs["low"][known:] = np.inf
    attrs["high"][known:] = -np.inf
    state.put({"attrs": attrs, "lists": _longer(state["lists"], 1 + len(attrs) * layout.LISTS)})


def make_room(state: Arrays, short: int) -> None:
    """Give a state more of what `add` ran short of."""
    if short == layout.SHORT_IDS:
        _make_room_for_ids(state)
    elif short in _REHASHED:
        name, rehash, used = _REHASHED[short]
        table = np.zeros(_table_size(state[name], state[name] > 0, state["heads"][used]), np.int32)
        state["heads"][used] = rehash(state.address, table)
        state.put({name: table})
    else:
        names = _GROWN_TOGETHER[short]
        floor = 1 << 14 if short == layout.SHORT_ARENA else 64
        length = int(len(state[names[0]]) * GROWTH) + floor
        state.put({name: _longer(state[name], length) for name in names})


def _make_room_for_ids(state: Arrays) -> None:
    size = _table_size(state["id_slots"], state["id_slots"] >= layout.NO_SLOT, state["heads"][layout.IDS_USED])
    keys, slots = np.zeros(size, np.int64), np.full(size, layout.ID_EMPTY, np.int32)
    state["heads"][layout.IDS_USED] = KERNELS.rehash_ids(state.address, keys, slots)
    state.put({"id_keys": keys, "id_slots": slots})


def _table_size(table: Array, live: npt.NDArray[np.bool_], used: int) -> int:
    """Twice the size, unless it is enough to sweep out the places of what is gone."""
    gone = used - np.count_nonzero(live)
    return len(table) if 8 * gone > len(table) else 2 * len(table)


def make_rows(state: Arrays) -> None:
    """Rows as they are between slices."""
    rows = np.zeros(len(state["terms"]), np.uint16)
    rows[layout.ALL] = layout.ROW_ALL
    rows[np.flatnonzero(state["terms"]["kind"] == layout.ABSENCE)] = layout.ROW_ALL
    state.put({"rows": rows})


def scratch_for(state: Arrays, rows: int, places: int, text: int) -> Arrays:
    """Scratch that fits a state, with so many rows of masks, for texts of so many bytes."""
    attrs, multis, chunk = len(state["attrs"]), len(state["multis"]), layout.CHUNK
    lengths = {
        "counters": layout.COUNTERS,
        "touched": len(state["terms"]),
        "dirty": attrs,
        "stamps": attrs,
        "bins": 257,
        "seen": 2 * layout.SLICE,
        "kind_masks": layout.VALUE_KINDS + 1,
        "text_hashes": text + 1,
        "text_points": text + 1,
        "places": places * layout.PLACE_PARTS,
        "sums": multis,
        "raised": multis,
        "raised_ids": chunk,
        "value_keys": 2 * attrs,
        "value_lows": attrs,
        "wanted": layout.DEPTH_MAX + 4,
        "pending": layout.DEPTH_MAX + 4,
        "some": chunk + 1,
        "words": WORDS * chunk + 1,
        "word_places": WORDS * chunk + 1,
    }
    made = {name: _zeros(lengths.get(name, layout.SLICE), *kind) for name, kind in arrays(layout.Scratch).items()}
    made |= {"masks": _aligned(rows), "found": _aligned(chunk)}
    made["value_keys"][:] = layout.KEY_ABSENT
    made["value_lows"][:] = layout.KEY_ABSENT
    return Arrays(layout.Scratch, made)


def _aligned(rows: int) -> npt.NDArray[np.uint64]:
    """Rows of masks at cache lines: two of them in each, none across two."""
    raw = np.zeros(rows * WORDS + 8, np.uint64)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip : skip + rows * WORDS].reshape(rows, WORDS)
