"""Compiled: which rows of a few columns have numbers in given spans; `matching.population` keeps the columns.

What is assumed of memory: each span names the numbers of a column and one or two of its lines of bits. All columns of
a search have the same number of rows, 64 for each word of a line, and `Population` holds their arrays and changes none
during a call. So a bit of word i < `words` is that of a row that each column has.

Why `out` is long enough: it has an entry for each row, and a row has one bit.

Costs: one or two words of each span for 64 rows, until none of the 64 is left; then a number of each span for every row
that is in all of its parts.
"""

from __future__ import annotations

import numpy as np

from godwit.tables.compiled.books import Vector
from godwit.tables.compiled.layout import Search
from godwit.tables.compiled.memory import compiled, load_f8, load_u8, lowest_bit


@compiled
def rows_between(q: Search, words: int, out: Vector[int]) -> int:
    """Write the rows that are in all spans, in order; returns how many they are. There is a span at least."""
    count = 0
    for word in range(words):
        bits, i = np.uint64(0xFFFFFFFFFFFFFFFF), 0
        while bits and i < len(q.spans):
            line = load_u8(q.spans[i].upto + 8 * word)
            if q.spans[i].before:
                line ^= load_u8(q.spans[i].before + 8 * word)
            bits &= line
            i += 1
        while bits:
            row = 64 * word + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if is_between(q, row):
                out[count] = row
                count += 1
    return count


@compiled
def is_between(q: Search, row: int) -> bool:
    for i in range(len(q.spans)):
        number = load_f8(q.spans[i].values + 8 * row)
        if not q.spans[i].low <= number <= q.spans[i].high:
            return False
    return True
