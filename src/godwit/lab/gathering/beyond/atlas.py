"""A whole ring as arrays: the same decisions as the real core, for thousands of brokers and millions of walks at once.

It counts only because tests show its walks equal to the real core's, hop by hop, up to 1,000 brokers. Names are kept to
64 bits, which no cell of such a map exceeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from godwit.protocols.gathering.maps import Site
from godwit.protocols.topology.pastry.keys import BITS, number_of

Ints = NDArray[np.int64]
Names = NDArray[np.uint64]
Reals = NDArray[np.float64]

WORD = 64
NOBODY = -1
SIDES = 4
"""Leaves on either side."""


class Atlas:
    """Brokers are numbered in the order of their names. Tables are complete, and their cells have the nearest node."""

    def __init__(self, sites: tuple[Site, ...], bits: int = 4) -> None:
        self.bits = bits
        self.count = len(sites)
        self.depth = max(len(site.cell) for site in sites)
        if self.depth > WORD:
            raise ValueError(f"a cell {self.depth} cuts deep has a name longer than {WORD} bits")
        self.numbers: Names = np.array([number_of(site.key) >> (BITS - WORD) for site in sites], np.uint64)
        self.places: Reals = np.array([site.place for site in sites])
        self._cut(sites)
        around = np.arange(self.count)[:, None] + np.array([*range(-SIDES, 0), *range(1, SIDES + 1)])
        self.leaves: Ints = around % self.count
        self.rows = -(-self.depth // bits)
        self.table = self._tables()
        self.siblings = self._siblings()

    def _cut(self, sites: tuple[Site, ...]) -> None:
        shape = (self.count, self.depth)
        self.dimension, self.coordinate = np.zeros(shape, np.int8), np.zeros(shape)
        self.increasing, self.exists = np.zeros(shape, bool), np.zeros(shape, bool)
        for at, site in enumerate(sites):
            for level, cut in enumerate(site.cell.boundaries):
                self.dimension[at, level], self.coordinate[at, level] = cut.dimension, cut.coordinate
                self.increasing[at, level], self.exists[at, level] = cut.increasing, True

    def _tables(self) -> Ints:
        """For every row and digit the nearest of all candidates; a group of names is a range of numbers."""
        table = np.full((self.count, self.rows, 1 << self.bits), NOBODY)
        for row in range(self.rows):
            for low, high in self._ranges(row):
                children = list(self._ranges(row + 1, low, high))
                for a, b in children:
                    outside = np.r_[low:a, b:high]
                    if len(outside):
                        column = int(self.numbers[a] >> np.uint64(WORD - self.bits * (row + 1))) & (
                            (1 << self.bits) - 1
                        )
                        _, nearest = cKDTree(self.places[a:b]).query(self.places[outside])
                        table[outside, row, column] = a + nearest
        return table

    def _ranges(self, row: int, low: int = 0, high: int | None = None) -> Iterator[tuple[int, int]]:
        """The groups of brokers that share so many digits."""
        high = self.count if high is None else high
        if row == 0:
            yield low, high
            return
        heads = self.numbers[low:high] >> np.uint64(WORD - self.bits * row)
        edges = low + np.flatnonzero(np.r_[True, heads[1:] != heads[:-1], True])
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)

    def _siblings(self) -> Ints:
        """By broker and level, the nearest node that it knows on the other side of that cut."""
        found = np.full((self.count, self.depth), NOBODY)
        own = np.arange(self.count)
        for level in range(self.depth):
            row = level // self.bits
            known = np.concatenate([self.table[:, row], self.leaves], axis=1)
            shared = _common(self.numbers[known], self.numbers[:, None])
            fits = (known != NOBODY) & (known != own[:, None]) & (shared == level)
            far = np.linalg.norm(self.places[known] - self.places[:, None], axis=2)
            far[~fits] = np.inf
            nearest = far.argmin(axis=1)
            reached = np.isfinite(far[own, nearest]) & self.exists[:, level]
            found[reached, level] = known[own, nearest][reached]
        return found

    # Walks

    def to_places(self, start: Ints, places: Reals) -> Iterator[Ints]:
        """Location-based unicast: after each hop where each walk is, until all have arrived."""
        here, level = start.copy(), np.zeros(len(start), np.int64)
        while True:
            cut = self._first_not_owned(here, places, level)
            moving = cut != NOBODY
            if not moving.any():
                return
            here[moving] = self.siblings[here[moving], cut[moving]]
            level[moving] = cut[moving] + 1
            yield here.copy()

    def _first_not_owned(self, here: Ints, places: Reals, level: Ints) -> Ints:
        at = np.take_along_axis(places, self.dimension[here].astype(np.int64), axis=1)
        owned = (at >= self.coordinate[here]) == self.increasing[here]
        crossed = ~owned & self.exists[here] & (np.arange(self.depth) >= level[:, None])
        first = crossed.argmax(axis=1)
        return np.where(crossed.any(axis=1), first, NOBODY)

    def to_keys(self, start: Ints, keys: Names) -> Iterator[Ints]:
        """By key: after each hop where each walk is, until all are at the node in charge."""
        here = start.copy()
        moving = np.ones(len(start), bool)
        while True:
            following = here.copy()
            following[moving] = self.next_hops(here[moving], keys[moving])
            moving = following != here
            if not moving.any():
                return
            here = following
            yield here.copy()

    def next_hops(self, here: Ints, keys: Names) -> Ints:
        """The broker itself where it is in charge."""
        around = self.leaves[here]
        first, last = self.numbers[around[:, 0]], self.numbers[around[:, -1]]
        covered = (keys - first <= last - first) | (self.count <= 2 * SIDES)
        row = _common(self.numbers[here], keys) // self.bits
        inside = np.minimum(row, self.rows - 1)
        shift = (WORD - self.bits * (inside + 1)).astype(np.uint64)
        column = (keys >> shift & np.uint64((1 << self.bits) - 1)).astype(np.int64)
        following = self.table[here, inside, column]
        following[row >= self.rows] = NOBODY
        hole = ~covered & (following == NOBODY)
        following[covered] = self._in_charge(np.c_[around[covered], here[covered]], keys[covered])
        following[hole] = self._nearer(here[hole], keys[hole], row[hole])
        return following

    def _in_charge(self, candidates: Ints, keys: Names) -> Ints:
        """Nearest around the ring; of two equally near the longer common prefix, then the smaller name."""
        numbers = self.numbers[candidates]
        way = np.minimum(numbers - keys[:, None], keys[:, None] - numbers)
        best = way.min(axis=1, keepdims=True)
        tied = way == best
        shared = np.where(tied, _common(numbers, keys[:, None]), NOBODY)
        tied &= shared == shared.max(axis=1, keepdims=True)
        chosen: Ints = np.where(tied, candidates, self.count).min(axis=1)
        return chosen

    def _nearer(self, here: Ints, keys: Names, row: Ints) -> Ints:
        """Where a table has a hole: as long a common prefix and numerically nearer; else the broker is in charge."""
        if not len(here):
            return here
        known = np.concatenate([self.table[here].reshape(len(here), -1), self.leaves[here]], axis=1)
        numbers = self.numbers[known]
        way = np.minimum(numbers - keys[:, None], keys[:, None] - numbers)
        own = self.numbers[here]
        own_way = np.minimum(own - keys, keys - own)
        fits = (known != NOBODY) & (_common(numbers, keys[:, None]) // self.bits >= row[:, None])
        fits &= way < own_way[:, None]
        way[~fits] = np.iinfo(np.uint64).max
        best = way.argmin(axis=1)
        return np.where(fits.any(axis=1), known[np.arange(len(here)), best], here)

    def cells_of(self, centers: Reals, radius: float) -> Ints:
        """How many cells each area touches, by the exact test."""
        low, high = self.boxes()
        counts = np.zeros(len(centers), np.int64)
        for at, center in enumerate(centers):
            nearest = np.clip(center, low, high)
            counts[at] = int((np.linalg.norm(nearest - center, axis=1) <= radius).sum())
        return counts

    def boxes(self) -> tuple[Reals, Reals]:
        low, high = np.full((self.count, 2), -np.inf), np.full((self.count, 2), np.inf)
        for level in range(self.depth):
            for dimension in range(2):
                cut = self.exists[:, level] & (self.dimension[:, level] == dimension)
                up, down = cut & self.increasing[:, level], cut & ~self.increasing[:, level]
                low[up, dimension] = np.maximum(low[up, dimension], self.coordinate[up, level])
                high[down, dimension] = np.minimum(high[down, dimension], self.coordinate[down, level])
        return low, high

    def links(self) -> Ints:
        """How many different peers each broker knows."""
        known = np.sort(np.concatenate([self.table.reshape(self.count, -1), self.leaves], axis=1), axis=1)
        fresh = np.diff(known, axis=1, prepend=NOBODY) != 0
        count: Ints = fresh.sum(axis=1)
        return count


def _common(a: Any, b: Any) -> Ints:
    """Leading bits in common of 64-bit names."""
    differing = np.bitwise_xor(a, b)
    shared = np.full(differing.shape, WORD, np.int64)
    left = differing.copy()
    length = np.zeros(differing.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        large = left >= np.uint64(1 << step)
        length[large] += step
        left = np.where(large, left >> np.uint64(step), left)
    set_ = differing != 0
    shared[set_] = WORD - 1 - length[set_]
    return shared
