"""Compiled: the arena, and the terms that live as long as somebody refers to them.

Nothing here asks whether there is room: `filing.shortage` has made sure of it. What remains to be argued:

- tables of terms (`points`, `texts`, `compounds`) have lengths that are powers of two, so that `hash & (length - 1)` is
  a place in them, and are at most half full, so that a search ends;
- a block's cuts are at most BLOCK: a full one is split before another is put in;
- positions from binary searches are between the bounds that they began with;
- a text's chunk says first how many bytes it has, and was made as large as that needs.

Costs: a cut is found by two binary searches and put in by moving at most a block; a point, text or compound by one look
into its table; a LIKE pattern by going through those with the same needle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from godwit.tables.compiled import layout as L
from godwit.tables.compiled.books import Vector
from godwit.tables.compiled.layout import State
from godwit.tables.compiled.memory import address_of, as_bytes, bits_of, compiled, float_of, load_i8, load_u1

HASH_BASE = 0x9E3779B97F4A7C15


@compiled
def ordered(number: float) -> int:
    """The key of a float: an integer that orders as the floats do, with one zero."""
    bits = bits_of(number + 0.0)
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@compiled
def unordered(key: int) -> float:
    return float_of(key ^ ((key >> 63) & 0x7FFFFFFFFFFFFFFF))


@compiled
def less(key: int, low: int, other: int, other_low: int) -> bool:
    return key < other or (key == other and low < other_low)


@compiled
def mixed(word: Any) -> Any:
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@compiled
def take(s: State, free: int, top: int, next_free: int) -> int:
    """A number from a free list whose head is `heads[free]`, or the next that was never used."""
    # The caller has read `next_free` of whatever is the head, also of number 0 where the list is empty: entry 0 is
    # there in every array, and what it says is not used then.
    number = s.heads[free]
    if number:
        s.heads[free] = next_free
    else:
        number = s.heads[top]
        s.heads[top] += 1
    return number


@compiled
def grade_of(words: int) -> int:
    grade = 3
    while (1 << grade) < words:
        grade += 1
    return grade


@compiled
def allocate(s: State, words: int) -> int:
    """A chunk of the arena of at least so many words, from 8 up by powers of two."""
    grade = grade_of(words)
    at = s.heads[L.CHUNKS_FREE + grade]
    if at:
        s.heads[L.CHUNKS_FREE + grade] = s.arena[at]
    else:
        at = s.heads[L.ARENA_TOP]
        s.heads[L.ARENA_TOP] += 1 << grade
    return at


@compiled
def has_chunk(s: State, words: int) -> bool:
    """Whether a chunk of so many words, a power of two, can be had without more room."""
    return s.heads[L.CHUNKS_FREE + grade_of(words)] != 0 or spare_words(s) >= words


@compiled
def release_chunk(s: State, at: int, words: int) -> None:
    grade = grade_of(words)
    s.arena[at] = s.heads[L.CHUNKS_FREE + grade]
    s.heads[L.CHUNKS_FREE + grade] = at


@compiled
def spare_words(s: State) -> int:
    return len(s.arena) - s.heads[L.ARENA_TOP]


@compiled
def move(s: State, origin: int, target: int, words: int) -> None:
    for i in range(words):
        s.arena[target + i] = s.arena[origin + i]


@compiled
def list_of(attr: int, which: int) -> int:
    return 1 + attr * L.LISTS + which


@compiled
def list_insert(s: State, which: int, position: int, value: int) -> None:
    """Lists hold words in order; they grow by doubling."""
    n, room = s.lists[which].n, s.lists[which].room
    if n == room:
        bigger = max(8, 2 * room)
        at = allocate(s, bigger)
        move(s, s.lists[which].at, at, n)
        if room:
            release_chunk(s, s.lists[which].at, room)
        s.lists[which].at = at
        s.lists[which].room = bigger
    at = s.lists[which].at
    for i in range(at + n, at + position, -1):
        s.arena[i] = s.arena[i - 1]
    s.arena[at + position] = value
    s.lists[which].n = n + 1


@compiled
def list_delete(s: State, which: int, position: int) -> None:
    at, n = s.lists[which].at, s.lists[which].n - 1
    for i in range(at + position, at + n):
        s.arena[i] = s.arena[i + 1]
    s.lists[which].n = n
    if n == 0:
        release_chunk(s, at, s.lists[which].room)
        s.lists[which].room = 0


@compiled
def new_term(s: State, kind: int, attr: int, key: int, low: int) -> int:
    number = take(s, L.TERM_FREE, L.TERM_TOP, s.terms[s.heads[L.TERM_FREE]].link)
    term = s.terms[number]
    term.key = key
    term.low = low
    term.attr = attr
    term.refs = 0
    term.node = 0
    term.link = 0
    term.kind = kind
    s.rows[number] = L.ROW_ALL if kind == L.ABSENCE else L.ROW_NONE
    return number


@compiled
def free_term(s: State, term: int) -> None:
    s.terms[term].kind = L.FREE
    s.terms[term].link = s.heads[L.TERM_FREE]
    s.heads[L.TERM_FREE] = term
    s.rows[term] = L.ROW_NONE


@compiled
def find_block(s: State, which: int, key: int, low: int) -> int:
    """The position in an attribute's list of blocks of the last one that does not begin behind this key."""
    at, first, last = s.lists[which].at, 0, s.lists[which].n
    while last - first > 1:
        middle = (first + last) // 2
        block = s.arena[at + middle]
        if less(key, low, s.block_keys[block, 0], s.block_lows[block, 0]):
            last = middle
        else:
            first = middle
    return first


@compiled
def find_in_block(s: State, block: int, first: int, key: int, low: int) -> int:
    """The position of the first cut of a block, from `first` on, that is not before this key."""
    last = s.block_n[block]
    while first < last:
        middle = (first + last) // 2
        if less(s.block_keys[block, middle], s.block_lows[block, middle], key, low):
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def new_block(s: State, which: int, position: int) -> int:
    block = take(s, L.BLOCK_FREE, L.BLOCK_TOP, s.block_n[s.heads[L.BLOCK_FREE]])
    s.block_n[block] = 0
    list_insert(s, which, position, block)
    return block


@compiled
def copy_cut(s: State, block: int, at: int, other: int, target: int) -> None:
    s.block_keys[other, target] = s.block_keys[block, at]
    s.block_lows[other, target] = s.block_lows[block, at]
    s.block_terms[other, target] = s.block_terms[block, at]


@compiled
def split_block(s: State, which: int, position: int, keep: int) -> int:
    """Move all but the first `keep` cuts of a block to a new one behind it."""
    block = s.arena[s.lists[which].at + position]
    other = new_block(s, which, position + 1)
    for i in range(keep, L.BLOCK):
        copy_cut(s, block, i, other, i - keep)
    s.block_n[block] = keep
    s.block_n[other] = L.BLOCK - keep
    return other


@compiled
def cut_term(s: State, attr: int, key: int, low: int) -> int:
    """The term of values behind this cut, made where there is none."""
    which = list_of(attr, L.BLOCKS)
    if s.lists[which].n == 0:
        new_block(s, which, 0)
    position = find_block(s, which, key, low)
    block = s.arena[s.lists[which].at + position]
    at = find_in_block(s, block, 0, key, low)
    if at < s.block_n[block] and s.block_keys[block, at] == key and s.block_lows[block, at] == low:
        return s.block_terms[block, at]
    if s.block_n[block] == L.BLOCK:
        # Cuts that come in order fill their blocks; others find half a block of room after a split.
        keep = L.BLOCK if at == L.BLOCK and position + 1 == s.lists[which].n else L.BLOCK // 2
        other = split_block(s, which, position, keep)
        if at >= keep:
            block, at = other, at - keep
    term = new_term(s, L.CUT, attr, key, low)
    for i in range(s.block_n[block], at, -1):
        copy_cut(s, block, i - 1, block, i)
    s.block_keys[block, at] = key
    s.block_lows[block, at] = low
    s.block_terms[block, at] = term
    s.block_n[block] += 1
    note_cut(s, attr, unordered(key))
    return term


@compiled
def note_cut(s: State, attr: int, number: float) -> None:
    s.attrs[attr].cuts += 1
    if math.isfinite(number):
        s.attrs[attr].low = min(s.attrs[attr].low, number)
        s.attrs[attr].high = max(s.attrs[attr].high, number)


@compiled
def forget_cut(s: State, term: int) -> None:
    attr, key, low = s.terms[term].attr, s.terms[term].key, s.terms[term].low
    which = list_of(attr, L.BLOCKS)
    position = find_block(s, which, key, low)
    block = s.arena[s.lists[which].at + position]
    n = s.block_n[block] - 1
    for i in range(find_in_block(s, block, 0, key, low), n):
        copy_cut(s, block, i + 1, block, i)
    s.block_n[block] = n
    s.attrs[attr].cuts -= 1
    if n == 0:
        list_delete(s, which, position)
        s.block_n[block] = s.heads[L.BLOCK_FREE]
        s.heads[L.BLOCK_FREE] = block


@compiled
def file_hashed(table: Vector[int], hashed: Any, term: int) -> int:
    """Put a term in its table; 1 where a place was used that never was."""
    mask = np.uint64(len(table) - 1)
    at = hashed & mask
    while table[at] > 0:
        at = (at + np.uint64(1)) & mask
    fresh = 1 if table[at] == 0 else 0
    table[at] = term
    return fresh


@compiled
def unfile_hashed(table: Vector[int], hashed: Any, term: int) -> None:
    mask = np.uint64(len(table) - 1)
    at = hashed & mask
    while table[at] != term:
        at = (at + np.uint64(1)) & mask
    table[at] = L.GONE


@compiled
def point_hash(attr: int, key: int, low: int) -> Any:
    return mixed(np.uint64(key) ^ mixed((np.uint64(attr) << np.uint64(32)) ^ np.uint64(low)))


@compiled
def find_point(s: State, attr: int, key: int, low: int) -> int:
    """The term of a number's equality, or NEVER."""
    mask = np.uint64(len(s.points) - 1)
    at = point_hash(attr, key, low) & mask
    while s.points[at]:
        number = s.points[at]
        if number > 0:
            term = s.terms[number]
            if term.key == key and term.low == low and term.attr == attr:
                return number
        at = (at + np.uint64(1)) & mask
    return L.NEVER


@compiled
def point_term(s: State, attr: int, key: int, low: int) -> int:
    term = find_point(s, attr, key, low)
    if term == L.NEVER:
        term = new_term(s, L.POINT, attr, key, low)
        s.heads[L.POINTS_USED] += file_hashed(s.points, point_hash(attr, key, low), term)
        s.attrs[attr].points += 1
    return term


@compiled
def polynomial(address: int, size: int) -> Any:
    """A hash of which every part of a text can be had from the hashes of its beginnings."""
    # One more than each byte, or texts that begin with zero bytes would have the hash of the rest.
    hashed = np.uint64(0)
    for i in range(size):
        hashed = hashed * np.uint64(HASH_BASE) + np.uint64(load_u1(address + i)) + np.uint64(1)
    return hashed


@compiled
def number_value(attr: int) -> int:
    """Where in `value_keys` the number of an attribute is."""
    return 2 * attr


@compiled
def equal_value(attr: int) -> int:
    """Where in `value_keys` it is told which equality its value fulfils."""
    return 2 * attr + 1


@compiled
def equal_key(term: int) -> int:
    """What is told there: a key whose upper half is no other term's, nor next to one."""
    return (2 * term) << 32


@compiled
def text_hash(attr: int, kind: int, hashed: Any) -> Any:
    return mixed(hashed ^ (np.uint64(attr * 16 + kind) << np.uint64(40)))


@compiled
def same_bytes(address: int, other: int, size: int) -> bool:
    i = 0
    while i + 8 <= size:
        if load_i8(address + i) != load_i8(other + i):
            return False
        i += 8
    while i < size:
        if load_u1(address + i) != load_u1(other + i):
            return False
        i += 1
    return True


@compiled
def is_text(s: State, chunk: int, address: int, size: int) -> bool:
    """Whether a chunk made by `keep_text` holds these bytes."""
    return s.arena[chunk] == size and same_bytes(address_of(s.arena, chunk + 1), address, size)


@compiled
def keep_text(s: State, address: int, size: int) -> int:
    """A chunk with the size and the bytes."""
    chunk = allocate(s, text_words(size))
    s.arena[chunk] = size
    copy = as_bytes(s.arena)
    for i in range(size):
        copy[4 * (chunk + 1) + i] = load_u1(address + i)
    return chunk


@compiled
def text_words(size: int) -> int:
    return 2 + (size + 3) // 4


@compiled
def find_text(s: State, attr: int, kind: int, address: int, size: int, hashed: Any) -> int:
    """The term of this attribute and kind with this operand, or NEVER."""
    mask = np.uint64(len(s.texts) - 1)
    at = text_hash(attr, kind, hashed) & mask
    while s.texts[at]:
        number = s.texts[at]
        if number > 0:
            term = s.terms[number]
            if term.attr == attr and term.kind == kind and is_text(s, term.low, address, size):
                return number
        at = (at + np.uint64(1)) & mask
    return L.NEVER


@compiled
def count_length(s: State, attr: int, kind: int, size: int, change: int) -> None:
    """Keep the list of (kind, length, how many) of an attribute's patterns: the lengths to look for in a value."""
    which = list_of(attr, L.LENGTHS)
    at, n = s.lists[which].at, s.lists[which].n
    for i in range(0, n, 3):
        if s.arena[at + i] == kind and s.arena[at + i + 1] == size:
            s.arena[at + i + 2] += change
            if s.arena[at + i + 2] == 0:
                for _ in range(3):
                    list_delete(s, which, i)
            return
    list_insert(s, which, n, kind)
    list_insert(s, which, n + 1, size)
    list_insert(s, which, n + 2, change)


@compiled
def text_term(s: State, attr: int, kind: int, address: int, size: int) -> int:
    hashed = polynomial(address, size)
    term = find_text(s, attr, kind, address, size, hashed)
    if term == L.NEVER:
        term = new_term(s, kind, attr, 0, keep_text(s, address, size))
        s.heads[L.TEXTS_USED] += file_hashed(s.texts, text_hash(attr, kind, hashed), term)
        if kind == L.EQUAL:
            s.attrs[attr].equal_texts += 1
        else:
            count_length(s, attr, kind, size, 1)
    return term


@compiled
def forget_text(s: State, term: int) -> None:
    chunk, attr, kind = s.terms[term].low, s.terms[term].attr, s.terms[term].kind
    size = s.arena[chunk]
    hashed = polynomial(address_of(s.arena, chunk + 1), size)
    unfile_hashed(s.texts, text_hash(attr, kind, hashed), term)
    if kind == L.EQUAL:
        s.attrs[attr].equal_texts -= 1
    else:
        count_length(s, attr, kind, size, -1)
    release_chunk(s, chunk, text_words(size))


# The LIKE terms of one needle are a chain in both directions: a term's `key` is the one before it and the one behind.


@compiled
def behind(s: State, term: int) -> int:
    return s.terms[term].key & 0xFFFFFFFF


@compiled
def chain(s: State, before: int, after: int, needle: int) -> None:
    if before:
        s.terms[before].key = (s.terms[before].key >> 32 << 32) | after
    else:
        s.terms[needle].link = after
    if after:
        s.terms[after].key = (before << 32) | behind(s, after)


@compiled
def like_term(s: State, attr: int, kind: int, text: int, size: int, pattern: int, pattern_size: int) -> int:
    """The term of a LIKE pattern with a needle of this kind; equal patterns of one attribute share it."""
    needle = text_term(s, attr, kind, text, size)
    term = s.terms[needle].link
    while term:
        if is_text(s, s.terms[term].low, pattern, pattern_size):
            return term
        term = behind(s, term)
    term = new_term(s, L.LIKE, attr, 0, keep_text(s, pattern, pattern_size))
    s.terms[term].link = needle
    chain(s, term, s.terms[needle].link, needle)
    chain(s, 0, term, needle)
    s.terms[needle].refs += 1
    return term


@compiled
def forget_like(s: State, term: int) -> None:
    chunk, needle = s.terms[term].low, s.terms[term].link
    chain(s, s.terms[term].key >> 32, behind(s, term), needle)
    release_chunk(s, chunk, text_words(s.arena[chunk]))
    s.terms[needle].refs -= 1
    if s.terms[needle].refs == 0:
        forget_text(s, needle)
        free_term(s, needle)


@compiled
def presence_term(s: State, attr: int, which: int) -> int:
    term = s.attrs[attr].presence[which]
    if term == 0:
        if which == L.HAS_NUMBER:
            term = cut_term(s, attr, ordered(-math.inf), 0)
            s.terms[term].refs += 1
        else:
            term = new_term(s, L.ABSENCE if which == L.IS_ABSENT else L.PRESENCE, attr, 0, 0)
        s.attrs[attr].presence[which] = term
    return term


@compiled
def new_area(s: State, place: int, circles: Vector[float], circle: int) -> int:
    """A circle of four numbers from `circles`: latitude, longitude, radius, cosine of the latitude."""
    number = take(s, L.AREA_FREE, L.AREA_TOP, s.areas[s.heads[L.AREA_FREE]].next)
    area = s.areas[number]
    area.lat = circles[4 * circle]
    area.lon = circles[4 * circle + 1]
    area.radius_m = circles[4 * circle + 2]
    area.cos_lat = circles[4 * circle + 3]
    area.place = place
    return number


@compiled
def copy_area(s: State, area: int) -> int:
    number = take(s, L.AREA_FREE, L.AREA_TOP, s.areas[s.heads[L.AREA_FREE]].next)
    s.areas[number].lat = s.areas[area].lat
    s.areas[number].lon = s.areas[area].lon
    s.areas[number].radius_m = s.areas[area].radius_m
    s.areas[number].cos_lat = s.areas[area].cos_lat
    s.areas[number].place = s.areas[area].place
    return number


@compiled
def free_area(s: State, area: int) -> None:
    s.areas[area].next = s.heads[L.AREA_FREE]
    s.heads[L.AREA_FREE] = area


@compiled
def area_hash(s: State, area: int) -> Any:
    lat, lon, radius_m = (s.areas[area].lat, s.areas[area].lon, s.areas[area].radius_m)
    return mixed(np.uint64(bits_of(lat))) + mixed(np.uint64(bits_of(lon)) + np.uint64(1)) + np.uint64(bits_of(radius_m))


@compiled
def same_area(s: State, one: int, two: int) -> bool:
    if one < 0 or two < 0:
        return one < 0 and two < 0
    same_centre = s.areas[one].lat == s.areas[two].lat and s.areas[one].lon == s.areas[two].lon
    return same_centre and s.areas[one].radius_m == s.areas[two].radius_m


@compiled
def compound_hash(s: State, chunk: int) -> Any:
    hashed = mixed(np.uint64(s.arena[chunk + L.C_ALL]) ^ (np.uint64(s.arena[chunk + L.C_COUNT]) << np.uint64(8)))
    for i in range(2 * s.arena[chunk + L.C_COUNT]):
        hashed = hashed * np.uint64(HASH_BASE) + np.uint64(s.arena[chunk + L.C_PAIRS + i])
    if s.arena[chunk + L.C_AREA] >= 0:
        hashed ^= area_hash(s, s.arena[chunk + L.C_AREA])
    return mixed(hashed)


@compiled
def same_compound(s: State, chunk: int, other: int) -> bool:
    count = s.arena[chunk + L.C_COUNT]
    if s.arena[chunk + L.C_ALL] != s.arena[other + L.C_ALL] or count != s.arena[other + L.C_COUNT]:
        return False
    for i in range(2 * count):
        if s.arena[chunk + L.C_PAIRS + i] != s.arena[other + L.C_PAIRS + i]:
            return False
    return same_area(s, s.arena[chunk + L.C_AREA], s.arena[other + L.C_AREA])


@compiled
def compound_term(s: State, attr: int, chunk: int) -> int:
    """The term of a compound whose chunk is written; the chunk, its references and its circle become the term's."""
    hashed = compound_hash(s, chunk)
    mask = np.uint64(len(s.compounds) - 1)
    at = hashed & mask
    while s.compounds[at]:
        term = s.compounds[at]
        if term > 0 and s.terms[term].attr == attr and same_compound(s, s.terms[term].low, chunk):
            drop_twin(s, chunk)
            return term
        at = (at + np.uint64(1)) & mask
    which = list_of(attr, L.ALLS if s.arena[chunk + L.C_ALL] else L.ANYS)
    term = new_term(s, L.COMPOUND, attr, 0, chunk)
    s.heads[L.COMPOUNDS_USED] += file_hashed(s.compounds, hashed, term)
    s.arena[chunk + L.C_TERM] = term
    s.arena[chunk + L.C_POSITION] = s.lists[which].n
    list_insert(s, which, s.lists[which].n, chunk)
    return term


@compiled
def unlist_compound(s: State, term: int) -> int:
    """Take a compound out of its table and its list; returns its chunk."""
    chunk, attr = s.terms[term].low, s.terms[term].attr
    unfile_hashed(s.compounds, compound_hash(s, chunk), term)
    which = list_of(attr, L.ALLS if s.arena[chunk + L.C_ALL] else L.ANYS)
    position, last = s.arena[chunk + L.C_POSITION], s.lists[which].n - 1
    moved = s.arena[s.lists[which].at + last]
    s.arena[s.lists[which].at + position] = moved
    s.arena[moved + L.C_POSITION] = position
    list_delete(s, which, last)
    return chunk


@compiled
def drop_twin(s: State, chunk: int) -> None:
    """Undo a compound that is there already, so that everything it refers to has another reference."""
    count = s.arena[chunk + L.C_COUNT]
    for i in range(2 * count):
        term = s.arena[chunk + L.C_PAIRS + i]
        if not is_lasting(s.terms[term].kind):
            count_reference(s, term, -1)
    drop_chunk(s, chunk)


@compiled
def drop_chunk(s: State, chunk: int) -> None:
    if s.arena[chunk + L.C_AREA] >= 0:
        free_area(s, s.arena[chunk + L.C_AREA])
    release_chunk(s, chunk, L.C_PAIRS + 2 * s.arena[chunk + L.C_COUNT])


@compiled
def is_equality(kind: int) -> bool:
    return kind in (L.POINT, L.EQUAL)


@compiled
def is_pattern(kind: int) -> bool:
    return kind == L.LIKE or L.PREFIX <= kind <= L.INSIDE


@compiled
def is_lasting(kind: int) -> bool:
    return kind in (L.PRESENCE, L.ABSENCE, L.CONSTANT)


@compiled
def count_reference(s: State, term: int, change: int) -> None:
    kind, attr = s.terms[term].kind, s.terms[term].attr
    s.terms[term].refs += change
    if is_equality(kind):
        s.attrs[attr].equals += change
    elif is_pattern(kind):
        s.attrs[attr].patterns += change


@compiled
def retain(s: State, term: int) -> None:
    if not is_lasting(s.terms[term].kind):
        count_reference(s, term, 1)


@compiled
def release(s: State, term: int) -> int:
    """Give a reference back; what nobody refers to any more is forgotten."""
    kind = s.terms[term].kind
    if is_lasting(kind):
        return 0
    count_reference(s, term, -1)
    if s.terms[term].refs > 0:
        return 0
    if kind == L.COMPOUND:
        chunk = unlist_compound(s, term)
        for i in range(2 * s.arena[chunk + L.C_COUNT]):
            release(s, s.arena[chunk + L.C_PAIRS + i])
        drop_chunk(s, chunk)
    else:
        forget(s, term)
    free_term(s, term)
    return 1


@compiled
def forget(s: State, term: int) -> None:
    """Take a term that is no compound out of where it is looked up; Python looks after OUTER terms."""
    kind = s.terms[term].kind
    if kind == L.CUT:
        forget_cut(s, term)
    elif kind == L.POINT:
        attr = s.terms[term].attr
        unfile_hashed(s.points, point_hash(attr, s.terms[term].key, s.terms[term].low), term)
        s.attrs[attr].points -= 1
    elif kind == L.LIKE:
        forget_like(s, term)
    elif kind == L.OUTER:
        s.heads[L.OUTERS] -= 1
    else:
        forget_text(s, term)
