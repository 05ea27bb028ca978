"""Compiled: the events of a slice, read from Arrow's memory, and which terms hold for which of them.

What is assumed of memory: the structs and buffers are those of Arrow's C data interface, made by pyarrow, unchanged
while `Piece` holds them; `unreadable` has refused every type that is not read here. A buffer may be absent only where
the specification allows it: that of validity, or any of an array of nulls or of length 0.

Why indices are right:

- a slice has n <= SLICE events, and all arrays by event have SLICE entries;
- rows of masks come from `new_row`, which never gives out the last one: where rows run out, the slice is marked void
  and the caller comes back with more rows or fewer events. What is written meanwhile goes to that last row;
- `touched` has an entry for each term. A term gets there when its row is set for the first time in a slice;
- a text's hashes go to `text_hashes`, which has one entry more than the longest text that may come here; longer ones
  mark the slice as void before anything is written;
- the numbers of attributes, terms and places come from the state: see `layout`.

Costs: each phase says its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from godwit.filters.areas import EARTH_RADIUS_M, HALF_WAY_ROUND_M, M_PER_DEGREE
from godwit.tables.compiled import layout as L
from godwit.tables.compiled.books import WORDS
from godwit.tables.compiled.layout import Scratch, Source, State
from godwit.tables.compiled.memory import (
    address_of,
    clear_bit,
    compiled,
    load_f4,
    load_f8,
    load_i1,
    load_i2,
    load_i4,
    load_i8,
    load_u1,
    load_u2,
    load_u4,
    load_u8,
    lowest_bit,
    row_and_xor,
    row_clear,
    row_copy,
    row_or,
    row_or_xor,
    row_some,
    set_bit,
    whole,
)
from godwit.tables.compiled.terms import (
    HASH_BASE,
    behind,
    equal_key,
    equal_value,
    find_in_block,
    find_point,
    find_text,
    less,
    list_of,
    mixed,
    number_value,
    ordered,
    polynomial,
    same_bytes,
    unordered,
)

# Arrow's C data interface: where its structs keep what is needed here.
S_FORMAT, S_CHILDREN_N, S_CHILDREN, S_DICTIONARY = 0, 32, 40, 48
A_NULLS, A_OFFSET, A_BUFFERS, A_CHILDREN, A_DICTIONARY = 8, 16, 40, 48, 56

F_I1, F_U1, F_I2, F_U2, F_I4, F_U4, F_I8, F_U8 = (ord(letter) for letter in "cCsSiIlL")
F_F4, F_F8, F_BOOL, F_TEXT, F_LONG_TEXT, F_NULL = (ord(letter) for letter in "fgbuUn")


@compiled
def format_of(schema: int) -> int:
    """The letter of a type that is one letter long, else 0."""
    text = load_i8(schema + S_FORMAT)
    return load_u1(text) if load_u1(text + 1) == 0 else 0


@compiled
def is_whole(form: int) -> bool:
    return form in (F_I1, F_U1, F_I2, F_U2, F_I4, F_U4, F_I8, F_U8)


@compiled
def is_readable(form: int) -> bool:
    return is_whole(form) or form in (F_F4, F_F8, F_BOOL, F_NULL, F_TEXT, F_LONG_TEXT)


@compiled
def unreadable(schema: int) -> int:
    """The number of the first column that the index cannot read, or -1."""
    children = load_i8(schema + S_CHILDREN)
    for i in range(load_i8(schema + S_CHILDREN_N)):
        child = load_i8(children + 8 * i)
        words = load_i8(child + S_DICTIONARY)
        if not is_readable(format_of(child)) or (words and not is_readable(format_of(words))):
            return i
    return -1


@compiled
def take_number(w: Scratch, event: int, number: float, rest: int) -> None:
    w.kinds[event] = L.NUMBER
    w.keys[event] = ordered(number)
    w.lows[event] = 2 * rest + 1


@compiled
def take_whole(w: Scratch, event: int, number: int) -> None:
    high = float(number)
    if high < 9223372036854775808.0:
        take_number(w, event, high, number - whole(high))
    else:
        take_number(w, event, high, number - 0x7FFFFFFFFFFFFFFF - 1)


@compiled
def take_natural(w: Scratch, event: int, number: Any) -> None:
    high = float(number)
    if number < np.uint64(0x8000000000000000):
        take_whole(w, event, whole(number))
    elif high < 18446744073709551616.0:
        take_number(w, event, high, whole(number - np.uint64(high)))
    else:
        take_number(w, event, high, whole(number - np.uint64(0xFFFFFFFFFFFFFFFF)) - 1)


@compiled
def take_float(w: Scratch, event: int, number: float) -> None:
    if math.isnan(number):
        w.kinds[event] = L.UNMATCHABLE
    else:
        take_number(w, event, number, 0)


@compiled
def whole_at(form: int, data: int, i: int) -> int:
    if form in (F_I8, F_U8):
        return load_i8(data + 8 * i)
    if form == F_I4:
        return load_i4(data + 4 * i)
    if form == F_U4:
        return load_u4(data + 4 * i)
    if form == F_I2:
        return load_i2(data + 2 * i)
    if form == F_U2:
        return load_u2(data + 2 * i)
    return load_i1(data + i) if form == F_I1 else load_u1(data + i)


@compiled
def bit_at(data: int, i: int) -> bool:
    return (load_u1(data + (i >> 3)) >> (i & 7)) & 1 != 0


@compiled
def take_value(w: Scratch, event: int, form: int, buffers: int, i: int) -> None:
    """Read the i-th value of an Arrow array, which is not null."""
    data = load_i8(buffers + 8)
    if form == F_U8:
        take_natural(w, event, load_u8(data + 8 * i))
    elif is_whole(form):
        take_whole(w, event, whole_at(form, data, i))
    elif form == F_F8:
        take_float(w, event, load_f8(data + 8 * i))
    elif form == F_F4:
        take_float(w, event, float(load_f4(data + 4 * i)))
    elif form == F_BOOL:
        w.kinds[event] = L.TRUE if bit_at(data, i) else L.FALSE
    else:
        size = F_I8 if form == F_LONG_TEXT else F_I4
        start, stop = whole_at(size, data, i), whole_at(size, data, i + 1)
        w.kinds[event] = L.STRING
        w.addresses[event] = load_i8(buffers + 16) + start
        w.sizes[event] = stop - start


@compiled
def is_there(array: int, i: int) -> bool:
    valid = load_i8(load_i8(array + A_BUFFERS))
    return valid == 0 or bit_at(valid, i)


@compiled
def take_column(w: Scratch, schema: int, array: int, column: int, start: int, n: int) -> None:
    """Read n values of a column; events that it has nothing for keep what they have.

    The offset of the batch counts for its columns too, and each column may have one of its own.
    """
    first = load_i8(array + A_OFFSET) + start
    schema = load_i8(load_i8(schema + S_CHILDREN) + 8 * column)
    array = load_i8(load_i8(array + A_CHILDREN) + 8 * column)
    form, words, buffers = format_of(schema), load_i8(schema + S_DICTIONARY), load_i8(array + A_BUFFERS)
    first += load_i8(array + A_OFFSET)
    if words:
        take_coded(w, form, words, array, first, n)
    elif form == F_I8 and load_i8(array + A_NULLS) == 0:
        data = load_i8(buffers + 8) + 8 * first
        for event in range(n):
            take_whole(w, event, load_i8(data + 8 * event))
    elif form != F_NULL:
        for event in range(n):
            if is_there(array, first + event):
                take_value(w, event, form, buffers, first + event)


@compiled
def take_coded(w: Scratch, form: int, words: int, array: int, first: int, n: int) -> None:
    codes = load_i8(load_i8(array + A_BUFFERS) + 8)
    dictionary = load_i8(array + A_DICTIONARY)
    skipped, buffers, form_of_words = load_i8(dictionary + A_OFFSET), load_i8(dictionary + A_BUFFERS), format_of(words)
    if form_of_words == F_NULL:
        return
    for event in range(n):
        if is_there(array, first + event):
            code = whole_at(form, codes, first + event) + skipped
            if is_there(dictionary, code):
                take_value(w, event, form_of_words, buffers, code)


@compiled
def clear_kinds(w: Scratch, n: int) -> None:
    for event in range(n):
        w.kinds[event] = L.ABSENT


@compiled
def new_row(w: Scratch) -> int:
    """A row of masks for this slice; where none is left the slice is void and the caller comes back with more."""
    row = w.counters[L.ROWS_USED]
    if row + 1 >= len(w.masks):
        w.counters[L.OVERFLOW] = L.FEW_ROWS
        return row
    w.counters[L.ROWS_USED] = row + 1
    return row


@compiled
def reach(s: State, w: Scratch, term: int, row: int) -> None:
    s.rows[term] = row
    w.touched[w.counters[L.TOUCHED]] = term
    w.counters[L.TOUCHED] += 1


@compiled
def touch(s: State, w: Scratch, term: int) -> int:
    """The address of the row of a term that holds for some event of the slice; cleared when it is the first.

    A single event needs no row of its own: what holds for it holds for all.
    """
    row = s.rows[term]
    if row == L.ROW_NONE:
        if w.counters[L.EVENTS] == 1:
            row = L.ROW_ALL
        else:
            row = new_row(w)
            row_clear(address_of(w.masks, row))
        reach(s, w, term, row)
    return address_of(w.masks, row)


@compiled
def touch_event(s: State, w: Scratch, term: int, event: int) -> None:
    row = touch(s, w, term)
    set_bit(row, event)


@compiled
def touch_mask(s: State, w: Scratch, term: int, mask: int) -> None:
    if term and row_some(mask):
        row_or(touch(s, w, term), mask)


@compiled
def begin_slice(w: Scratch, n: int) -> None:
    w.counters[L.ROWS_USED] = L.ROW_FIRST
    w.counters[L.TOUCHED] = 0
    w.counters[L.OVERFLOW] = L.FITS
    w.counters[L.RAISED] = 0
    w.counters[L.EVENTS] = n
    w.counters[L.STAMP] += 1
    for row in range(L.ROW_FIRST):
        row_clear(address_of(w.masks, row))
    for event in range(n):
        set_bit(address_of(w.masks, L.ROW_ALL), event)


@compiled
def end_slice(s: State, w: Scratch) -> None:
    for i in range(w.counters[L.TOUCHED]):
        term = w.touched[i]
        s.rows[term] = L.ROW_ALL if s.terms[term].kind == L.ABSENCE else L.ROW_NONE


@compiled
def forget_values(w: Scratch, q: Source) -> None:
    """The numbers of a single event, so that the next begins without any."""
    for i in range(len(q.fields)):
        forget_value(w, q.fields[i, 2])
    for i in range(len(q.places)):
        for part in range(2):
            forget_value(w, q.places[i, 4] + part)


@compiled
def forget_value(w: Scratch, attr: int) -> None:
    w.value_keys[number_value(attr)] = L.KEY_ABSENT
    w.value_keys[equal_value(attr)] = L.KEY_ABSENT
    w.value_lows[attr] = L.KEY_ABSENT


@compiled
def evaluate(s: State, w: Scratch, attr: int, n: int, single: bool) -> None:
    """Decide every term of one attribute, given its values for the slice's events; compounds come later."""
    for kind in range(L.VALUE_KINDS):
        row_clear(address_of(w.kind_masks, kind))
    for event in range(n):
        set_bit(address_of(w.kind_masks, w.kinds[event]), event)
    evaluate_presence(s, w, attr)
    if row_some(address_of(w.kind_masks, L.NUMBER)):
        evaluate_numbers(s, w, attr, n, single)
    if row_some(address_of(w.kind_masks, L.STRING)):
        if s.attrs[attr].equal_texts:
            for event in range(n):
                if w.kinds[event] == L.STRING:
                    address, size = w.addresses[event], w.sizes[event]
                    hashed = polynomial(address, size)
                    equal(s, w, attr, find_text(s, attr, L.EQUAL, address, size, hashed), event, single)
        if s.lists[list_of(attr, L.LENGTHS)].n:
            evaluate_patterns(s, w, attr, n)


@compiled
def evaluate_presence(s: State, w: Scratch, attr: int) -> None:
    presence, masks = s.attrs[attr].presence, w.kind_masks
    touch_mask(s, w, presence[L.HAS_STRING], address_of(masks, L.STRING))
    touch_mask(s, w, presence[L.IS_TRUE], address_of(masks, L.TRUE))
    touch_mask(s, w, presence[L.IS_FALSE], address_of(masks, L.FALSE))
    touch_mask(s, w, presence[L.HAS_FLAG], address_of(masks, L.TRUE))
    touch_mask(s, w, presence[L.HAS_FLAG], address_of(masks, L.FALSE))
    for kind in range(L.NUMBER, L.UNMATCHABLE):
        touch_mask(s, w, presence[L.HAS_ANY], address_of(masks, kind))
    if presence[L.IS_ABSENT]:
        row = new_row(w)
        row_copy(address_of(w.masks, row), address_of(masks, L.ABSENT))
        reach(s, w, presence[L.IS_ABSENT], row)


@compiled
def evaluate_numbers(s: State, w: Scratch, attr: int, n: int, single: bool) -> None:
    if single:
        w.value_keys[number_value(attr)] = w.keys[0]
        w.value_lows[attr] = w.lows[0]
    elif s.attrs[attr].cuts:
        evaluate_cuts(s, w, attr, n)
    number = s.attrs[attr].presence[L.HAS_NUMBER]
    if number and s.terms[number].node:
        reach(s, w, number, L.ROW_ALL if single else s.rows[number])
    if s.attrs[attr].points:
        for event in range(n):
            if w.kinds[event] == L.NUMBER:
                equal(s, w, attr, find_point(s, attr, w.keys[event], w.lows[event] >> 1), event, single)


@compiled
def equal(s: State, w: Scratch, attr: int, term: int, event: int, single: bool) -> None:
    """An event's value equals what this term asks for, unless it is NEVER."""
    if term:
        touch_event(s, w, term, event)
        if single:
            w.value_keys[equal_value(attr)] = equal_key(term)


@compiled
def sort_events(w: Scratch, n: int) -> int:
    """Put the events that have numbers in order of their numbers; returns how many they are.

    A radix sort over the bytes in which the keys differ, at most eight passes over at most 256 events; the rests of
    large integers are put right at the end.
    """
    order, count, first, differing = w.order, 0, 0, 0
    for event in range(n):
        if w.kinds[event] == L.NUMBER:
            if count == 0:
                first = w.keys[event]
            differing |= w.keys[event] ^ first
            order[count] = event
            count += 1
    for shift in range(0, 64, 8):
        if (differing >> shift) & 255:
            sort_by_byte(w, count, shift)
    for i in range(1, count):
        event, j = order[i], i
        while j and w.keys[event] == w.keys[order[j - 1]] and w.lows[event] < w.lows[order[j - 1]]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = event
    return count


@compiled
def sort_by_byte(w: Scratch, count: int, shift: int) -> None:
    flip = 128 if shift == 56 else 0
    for i in range(257):
        w.bins[i] = 0
    for i in range(count):
        w.bins[(((w.keys[w.order[i]] >> shift) & 255) ^ flip) + 1] += 1
    for i in range(256):
        w.bins[i + 1] += w.bins[i]
    for i in range(count):
        digit = ((w.keys[w.order[i]] >> shift) & 255) ^ flip
        w.order_spare[w.bins[digit]] = w.order[i]
        w.bins[digit] += 1
    for i in range(count):
        w.order[i] = w.order_spare[i]


@compiled
def evaluate_cuts(s: State, w: Scratch, attr: int, n: int) -> None:
    """One row for each distinct number of the slice: the events with that number or a greater one."""
    count, first = sort_events(w, n), L.SLICE
    before = L.ROW_NONE
    for i in range(count - 1, -1, -1):
        event = w.order[i]
        key, low = w.keys[event], w.lows[event]
        if first == L.SLICE or key != w.cut_keys[first] or low != w.cut_lows[first]:
            first -= 1
            w.cut_keys[first] = key
            w.cut_lows[first] = low
            row = new_row(w)
            row_copy(address_of(w.masks, row), address_of(w.masks, before))
            w.cut_rows[first] = before = row
        set_bit(address_of(w.masks, before), event)
    fill_rows(s, w, attr, first)
    if w.stamps[attr] == 0:
        w.dirty[w.counters[L.DIRTY_USED]] = attr
        w.counters[L.DIRTY_USED] += 1
    w.stamps[attr] = w.counters[L.STAMP]


@compiled
def fill_rows(s: State, w: Scratch, attr: int, first: int) -> None:
    """Give every cut of an attribute the row of the first number behind it, of those from the `first` on.

    Only as many cuts are compared as there are numbers, times the logarithm of a block.
    """
    which = list_of(attr, L.BLOCKS)
    at = s.lists[which].at
    for position in range(at, at + s.lists[which].n):
        block = s.arena[position]
        begin, n = 0, s.block_n[block]
        while begin < n:
            end, row = n, L.ROW_NONE
            if first < L.SLICE:
                row = w.cut_rows[first]
                key, low = w.cut_keys[first], w.cut_lows[first]
                if not less(s.block_keys[block, n - 1], s.block_lows[block, n - 1], key, low):
                    end = find_in_block(s, block, begin, key, low)
            for i in range(begin, end):
                s.rows[s.block_terms[block, i]] = row
            if end < n:
                first += 1
            begin = end


@compiled
def clean_rows(s: State, w: Scratch) -> None:
    """Cuts of attributes that this slice has no numbers for hold for none of its events."""
    kept = 0
    for i in range(w.counters[L.DIRTY_USED]):
        attr = w.dirty[i]
        if w.stamps[attr] == w.counters[L.STAMP]:
            w.dirty[kept] = attr
            kept += 1
        else:
            fill_rows(s, w, attr, L.SLICE)
            w.stamps[attr] = 0
    w.counters[L.DIRTY_USED] = kept


@compiled
def evaluate_patterns(s: State, w: Scratch, attr: int, n: int) -> None:
    """Look for the operands of all patterns in each distinct text once, whatever the number of patterns.

    `seen` has twice as many places as a slice has events, so that a search among them ends.
    """
    longest, mask = 0, address_of(w.kind_masks, L.VALUE_KINDS)
    for i in range(2 * L.SLICE):
        w.seen[i] = -1
    for event in range(n):
        if w.kinds[event] == L.STRING:
            longest = max(longest, w.sizes[event])
            see_text(w, event)
    if longest >= len(w.text_hashes):
        w.counters[L.OVERFLOW] = L.SHORT_TEXT
        w.counters[L.TEXT_NEEDED] = longest
        return
    for i in range(2 * L.SLICE):
        event = w.seen[i]
        if event >= 0:
            address, size = w.addresses[event], w.sizes[event]
            row_clear(mask)
            while event >= 0:
                set_bit(mask, event)
                event = w.seen_next[event]
            evaluate_text(s, w, attr, address, size, mask)


@compiled
def see_text(w: Scratch, event: int) -> None:
    """Chain an event to those before it with the same text."""
    hashed = mixed(polynomial(w.addresses[event], w.sizes[event]))
    w.seen_hashes[event] = hashed
    at = whole(hashed & np.uint64(2 * L.SLICE - 1))
    while w.seen[at] >= 0 and not same_text(w, w.seen[at], event):
        at = (at + 1) & (2 * L.SLICE - 1)
    w.seen_next[event] = w.seen[at]
    w.seen[at] = event


@compiled
def same_text(w: Scratch, event: int, other: int) -> bool:
    if w.seen_hashes[event] != w.seen_hashes[other] or w.sizes[event] != w.sizes[other]:
        return False
    return same_bytes(w.addresses[event], w.addresses[other], w.sizes[event])


@compiled
def evaluate_text(s: State, w: Scratch, attr: int, address: int, size: int, mask: int) -> None:
    base, hashes = np.uint64(HASH_BASE), w.text_hashes
    hashes[0] = np.uint64(0)
    for i in range(size):
        hashes[i + 1] = hashes[i] * base + np.uint64(load_u1(address + i)) + np.uint64(1)
    s.heads[L.TEXTS_SEEN] += 1
    points = -1
    which = list_of(attr, L.LENGTHS)
    at = s.lists[which].at
    for entry in range(at, at + s.lists[which].n, 3):
        kind, length = s.arena[entry], s.arena[entry + 1]
        if length > size:
            continue
        begin, end = span_of(kind, size - length)
        power = power_of(length)
        for i in range(begin, end + 1):
            term = find_text(s, attr, kind, address + i, length, hashes[i + length] - hashes[i] * power)
            if term == L.NEVER:
                continue
            if kind <= L.INSIDE:
                touch_mask(s, w, term, mask)
            elif s.terms[term].key != s.heads[L.TEXTS_SEEN]:
                s.terms[term].key = s.heads[L.TEXTS_SEEN]
                if points < 0:
                    points = take_points(w, address, size)
                evaluate_likes(s, w, s.terms[term].link, points, mask)


@compiled
def span_of(kind: int, last: int) -> tuple[int, int]:
    """Where in a text an operand of this kind may begin, if it can begin at `last` at the latest."""
    if kind in (L.PREFIX, L.NEEDLE_PREFIX):
        return 0, 0
    if kind in (L.SUFFIX, L.NEEDLE_SUFFIX):
        return last, last
    return 0, last


@compiled
def power_of(exponent: int) -> Any:
    power, base = np.uint64(1), np.uint64(HASH_BASE)
    while exponent:
        if exponent & 1:
            power *= base
        base *= base
        exponent >>= 1
    return power


@compiled
def take_points(w: Scratch, address: int, size: int) -> int:
    """Decode UTF-8, lone surrogates included; returns how many characters there are."""
    count, i = 0, 0
    while i < size:
        point = load_u1(address + i)
        extra = 0 if point < 0x80 else 1 if point < 0xE0 else 2 if point < 0xF0 else 3
        if extra:
            point &= 0x3F >> extra
        for j in range(1, extra + 1):
            point = (point << 6) | (load_u1(address + i + j) & 0x3F)
        w.text_points[count] = point
        count += 1
        i += extra + 1
    return count


@compiled
def evaluate_likes(s: State, w: Scratch, term: int, points: int, mask: int) -> None:
    while term:
        if is_like(s, w, s.terms[term].low, points):
            touch_mask(s, w, term, mask)
        term = behind(s, term)


@compiled
def is_like(s: State, w: Scratch, chunk: int, points: int) -> bool:
    """`patterns.accepts`, step by step: at most the one length times the other."""
    at, mark, retry, position = chunk + 1, -1, 0, 0
    end = at + s.arena[chunk] // 4
    while position < points:
        token = s.arena[at] if at < end else -3
        if token == L.ANY_RUN:
            mark, retry = at, position
            at += 1
        elif token == L.ANY_ONE or token == w.text_points[position]:
            at += 1
            position += 1
        elif mark >= 0:
            retry += 1
            position, at = retry, mark + 1
        else:
            return False
    while at < end and s.arena[at] == L.ANY_RUN:
        at += 1
    return at == end


RADIANS = math.pi / 180
SURELY_M_PER_DEGREE = M_PER_DEGREE * (1 - 1e-12)


@compiled
def is_in_circle(s: State, w: Scratch, area: int, event: int) -> bool:
    """`Circle.contains`, operation by operation, so that it rounds alike."""
    circle = s.areas[area]
    place, radius_m = circle.place * L.PLACE_PARTS, circle.radius_m
    lat, lon = w.places[place + L.LAT, event], w.places[place + L.LON, event]
    if abs(lat - circle.lat) * SURELY_M_PER_DEGREE > radius_m:
        return False
    cosines = circle.cos_lat * w.places[place + L.COS_LAT, event]
    half_turn = (lon - circle.lon) * RADIANS / 2
    rise, turn = math.sin((lat - circle.lat) * RADIANS / 2), math.sin(half_turn)
    h = rise * rise + cosines * turn * turn
    if h <= 0.5:
        return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(h)) <= radius_m
    rise, turn = math.sin((lat + circle.lat) * RADIANS / 2), math.cos(half_turn)
    far = 2 * EARTH_RADIUS_M * math.asin(math.sqrt(rise * rise + cosines * turn * turn))
    return HALF_WAY_ROUND_M - far <= radius_m


@compiled
def clip(s: State, w: Scratch, area: int, mask: int) -> bool:
    """Take the events out of a row that do not lie in a circle; returns whether any are left."""
    for word in range(WORDS):
        bits = load_u8(mask + 8 * word)
        while bits:
            event = 64 * word + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if not is_in_circle(s, w, area, event):
                clear_bit(mask, event)
    return row_some(mask)


@compiled
def evaluate_compounds(s: State, w: Scratch, attr: int) -> None:
    evaluate_listed(s, w, list_of(attr, L.ALLS), True)
    evaluate_listed(s, w, list_of(attr, L.ANYS), False)


@compiled
def evaluate_listed(s: State, w: Scratch, which: int, all_of: bool) -> None:
    mask, at = address_of(w.kind_masks, L.VALUE_KINDS), s.lists[which].at
    for i in range(at, at + s.lists[which].n):
        chunk = s.arena[i]
        row_copy(mask, address_of(w.masks, L.ROW_ALL if all_of else L.ROW_NONE))
        for j in range(chunk + L.C_PAIRS, chunk + L.C_PAIRS + 2 * s.arena[chunk + L.C_COUNT], 2):
            u, v = address_of(w.masks, s.rows[s.arena[j]]), address_of(w.masks, s.rows[s.arena[j + 1]])
            if all_of:
                row_and_xor(mask, u, v)
            else:
                row_or_xor(mask, u, v)
        if s.arena[chunk + L.C_AREA] >= 0 and row_some(mask):
            clip(s, w, s.arena[chunk + L.C_AREA], mask)
        touch_mask(s, w, s.arena[chunk + L.C_TERM], mask)


@compiled
def take_place(w: Scratch, place: int, event: int, lat: float, lon: float) -> None:
    """Note an event's place; its kind becomes ABSENT where the two numbers are none."""
    w.kinds[event] = L.ABSENT
    if -90 <= lat <= 90 and -180 <= lon <= 360:
        w.kinds[event] = L.NUMBER
        w.places[place * L.PLACE_PARTS + L.LAT, event] = lat
        w.places[place * L.PLACE_PARTS + L.LON, event] = lon - 360.0 if lon >= 180.0 else lon
        w.places[place * L.PLACE_PARTS + L.COS_LAT, event] = math.cos(lat * RADIANS)


@compiled
def evaluate_place(s: State, w: Scratch, attr: int, n: int, single: bool) -> None:
    """The two attributes that a place is: latitude, then longitude in -180 <= lon < 180."""
    for part in range(2):
        for event in range(n):
            if w.kinds[event] == L.NUMBER:
                take_number(w, event, w.places[s.attrs[attr].place * L.PLACE_PARTS + part, event], 0)
        evaluate(s, w, attr + part, n, single)


@compiled
def number_of(w: Scratch, event: int) -> float:
    return unordered(w.keys[event]) if w.kinds[event] == L.NUMBER else math.nan


@compiled
def take_places(s: State, w: Scratch, q: Source, which: int, schema: int, array: int, start: int, n: int) -> None:
    """Read the places of a slice from the columns of its latitudes and of its longitudes."""
    clear_kinds(w, n)
    for column in range(q.places[which, 0], q.places[which, 1]):
        take_column(w, schema, array, column, start, n)
    for event in range(n):
        w.lats[event] = number_of(w, event)
    clear_kinds(w, n)
    for column in range(q.places[which, 2], q.places[which, 3]):
        take_column(w, schema, array, column, start, n)
    for event in range(n):
        take_place(w, s.attrs[q.places[which, 4]].place, event, w.lats[event], number_of(w, event))


@compiled
def prepare(
    s: State, w: Scratch, q: Source, schema: int, array: int, start: int, n: int, length: int, single: bool
) -> None:
    """Decide every term for n events of a batch of `length`; for a single one all but cuts and compounds.

    Compounds come last: they are made of terms of the same attribute that are decided before. An absent attribute has
    no column, and is in `fields` with none only where its absence can satisfy somebody.
    """
    begin_slice(w, n)
    for i in range(len(q.fields)):
        clear_kinds(w, n)
        for column in range(q.fields[i, 0], q.fields[i, 1]):
            take_column(w, schema, array, column, start, n)
        evaluate(s, w, q.fields[i, 2], n, single)
    for i in range(len(q.places)):
        take_places(s, w, q, i, schema, array, start, n)
        evaluate_place(s, w, q.places[i, 4], n, single)
    for i in range(len(q.outer_terms)):
        for event in range(n):
            if q.outer[i * length + start + event]:
                touch_event(s, w, q.outer_terms[i], event)
    if single:
        return
    clean_rows(s, w)
    for i in range(len(q.fields)):
        evaluate_compounds(s, w, q.fields[i, 2])
    for i in range(len(q.places)):
        for part in range(3):
            evaluate_compounds(s, w, q.places[i, 4] + part)
