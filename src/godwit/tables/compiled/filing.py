"""Compiled: subscriptions in and out, from programs."""

from __future__ import annotations

import numpy as np

from godwit.tables.compiled.layout import (
    AREA_TOP,
    ARENA_RESERVE,
    ARENA_TOP,
    BLOCK_FREE,
    BLOCK_TOP,
    BUCKET_TOP,
    C_ALL,
    C_AREA,
    C_COUNT,
    C_PAIRS,
    COMPOUNDS_USED,
    DONE,
    ID_EMPTY,
    ID_GONE,
    IDS_USED,
    IS_AREA,
    IS_MULTI,
    LONGEST_LIST,
    MULTI_FREE,
    MULTI_TOP,
    NEVER,
    NO_SLOT,
    NODE_TOP,
    OP_ALL,
    OP_ANY,
    OP_CIRCLE,
    OP_LIKE,
    OP_NOT,
    OP_POINT,
    OP_POSTS,
    OP_PRESENCE,
    OP_RANGE,
    OP_TEXT,
    POINTS_USED,
    SHORT_AREAS,
    SHORT_ARENA,
    SHORT_BLOCKS,
    SHORT_BUCKETS,
    SHORT_COMPOUNDS,
    SHORT_IDS,
    SHORT_MULTIS,
    SHORT_NODES,
    SHORT_POINTS,
    SHORT_SLOTS,
    SHORT_TERMS,
    SHORT_TEXTS,
    SLOT_FREE,
    SLOT_TOP,
    SUBSCRIPTIONS,
    TERM_TOP,
    TEXTS_USED,
    Program,
    State,
)
from godwit.tables.compiled.memory import Vector, address_of, compiled, inlined, whole
from godwit.tables.compiled.terms import (
    allocate,
    compound_hash,
    compound_term,
    copy_area,
    cut_term,
    file_hashed,
    like_term,
    mixed,
    new_area,
    ordered,
    point_hash,
    point_term,
    polynomial,
    presence_term,
    retain,
    spare_words,
    take,
    text_hash,
    text_term,
)
from godwit.tables.compiled.tree import file_posting, unfile_posting


@compiled
def id_place(keys: Vector[int], slots: Vector[int], number: int) -> int:
    """Where an id stands in its table, or -1."""
    mask = np.uint64(len(keys) - 1)
    at = mixed(np.uint64(number)) & mask
    while slots[at] != ID_EMPTY:
        if keys[at] == number and slots[at] != ID_GONE:
            return whole(at)
        at = (at + np.uint64(1)) & mask
    return -1


@compiled
def file_id(keys: Vector[int], slots: Vector[int], number: int, slot: int) -> int:
    mask = np.uint64(len(keys) - 1)
    at = mixed(np.uint64(number)) & mask
    while slots[at] != ID_EMPTY and slots[at] != ID_GONE:
        at = (at + np.uint64(1)) & mask
    fresh = 1 if slots[at] == ID_EMPTY else 0
    keys[at] = number
    slots[at] = slot
    return fresh


@compiled
def knows(s: State, number: int) -> bool:
    return id_place(s.id_keys, s.id_slots, number) >= 0


@compiled
def first_known(s: State, numbers: Vector[int]) -> int:
    """The position of the first of these ids that is in use, or -1."""
    for i in range(len(numbers)):
        if id_place(s.id_keys, s.id_slots, numbers[i]) >= 0:
            return i
    return -1


@compiled
def shortage(s: State, p: Program, which: int) -> int:
    """What there may be too little of to add one more subscription."""
    first, last = p.alternatives[which], p.alternatives[which + 1]
    steps, postings, ranges, circles, words = 0, last - first, 0, 0, 0
    for alternative in range(first, last):
        begin, end = p.starts[alternative], p.starts[alternative + 1]
        steps += end - begin
        words += 64 * (end - begin + 1)
        for i in range(begin, end):
            step = p.code[i]
            if step.op == OP_POSTS:
                postings += step.count
                words += 8 * step.count * (end - begin + 1)
            elif step.op == OP_RANGE:
                ranges += 1
            elif step.op == OP_TEXT or step.op == OP_LIKE:
                behind = step.text + (1 if step.op == OP_TEXT else 2)
                words += 32 + p.text_starts[behind] - p.text_starts[step.text]
            elif step.op == OP_CIRCLE or step.op == OP_ALL:
                circles += 1
    words += 8 * s.heads[LONGEST_LIST] + min(ARENA_RESERVE, 4096 + s.heads[ARENA_TOP])
    if s.heads[TERM_TOP] + 3 * steps + 8 > len(s.terms):
        return SHORT_TERMS
    if free_blocks(s, 2 * ranges + 8) < 2 * ranges + 8:
        return SHORT_BLOCKS
    if s.heads[NODE_TOP] + postings + 8 > len(s.nodes):
        return SHORT_NODES
    if s.heads[BUCKET_TOP] + 2 * postings + 64 > len(s.buckets):
        return SHORT_BUCKETS
    if s.heads[SLOT_TOP] + postings > len(s.slots):
        return SHORT_SLOTS
    if s.heads[AREA_TOP] + circles * max(1, postings) > len(s.areas):
        return SHORT_AREAS
    if s.heads[MULTI_TOP] + 1 > len(s.multis):
        return SHORT_MULTIS
    if words > spare_words(s):
        return SHORT_ARENA
    if 2 * (s.heads[POINTS_USED] + steps) > len(s.points):
        return SHORT_POINTS
    if 2 * (s.heads[TEXTS_USED] + steps) > len(s.texts):
        return SHORT_TEXTS
    if 2 * (s.heads[COMPOUNDS_USED] + steps) > len(s.compounds):
        return SHORT_COMPOUNDS
    if 2 * (s.heads[IDS_USED] + 1) > len(s.id_keys):
        return SHORT_IDS
    return DONE


@compiled
def free_blocks(s: State, enough: int) -> int:
    count, block = len(s.block_n) - s.heads[BLOCK_TOP], s.heads[BLOCK_FREE]
    while block and count < enough:
        block = s.block_n[block]
        count += 1
    return count


@inlined
def add_from(s: State, p: Program, begin: int) -> tuple[int, int]:
    """Add subscriptions from `begin` on; returns how far it came and why it stopped."""
    for which in range(begin, len(p.ids)):
        short = shortage(s, p, which)
        if short:
            return which, short
        add_one(s, p, which)
    return len(p.ids), DONE


@inlined
def add_one(s: State, p: Program, which: int) -> None:
    number, flags, slot = p.ids[which], 0, NO_SLOT
    first, last = p.alternatives[which], p.alternatives[which + 1]
    if last - first > 1:
        multi = take(s, MULTI_FREE, MULTI_TOP, s.multis[s.heads[MULTI_FREE]])
        s.multis[multi] = number
        number, flags = multi, IS_MULTI
    for alternative in range(first, last):
        slot = add_alternative(s, p, alternative, flags, number, slot)
    s.heads[IDS_USED] += file_id(s.id_keys, s.id_slots, p.ids[which], slot)
    s.heads[SUBSCRIPTIONS] += 1


@inlined
def add_alternative(s: State, p: Program, alternative: int, flags: int, number: int, chain: int) -> int:
    """File the postings of one alternative, each with a slot in front of the chain."""
    k, posts, area = run(s, p, p.starts[alternative], p.starts[alternative + 1])
    if area >= 0:
        flags |= IS_AREA
    for i in range(max(1, posts)):
        if i:
            for j in range(2 * k):
                retain(s, p.stack[j])
            if area >= 0:
                area = copy_area(s, area)
        slot = take(s, SLOT_FREE, SLOT_TOP, s.slots[s.heads[SLOT_FREE]].next)
        s.slots[slot].next = chain
        chain = slot
        file_posting(s, p.stack, k, flags, number, slot, area, p.posts[i] if posts else 0)
    return chain


@compiled
def run(s: State, p: Program, begin: int, end: int) -> tuple[int, int, int]:
    """Run one alternative's program: its predicates are left on the stack, one reference taken for each of their terms.

    Returns how many predicates there are, how many terms to post under, and the circle that places must lie in, or -1.
    """
    k, posts, area = 0, 0, -1
    for i in range(begin, end):
        step = p.code[i]
        if step.op == OP_CIRCLE:
            area = new_area(s, s.attrs[step.attr].place, p.circles, step.count)
        elif step.op == OP_POSTS:
            posts = step.count
            k -= posts
            for j in range(posts):
                p.posts[j] = p.stack[2 * (k + j)]
        elif step.op == OP_NOT:
            p.stack[2 * k - 1] = p.stack[2 * k - 2]
            p.stack[2 * k - 2] = presence_term(s, step.attr, step.count)
            retain(s, p.stack[2 * k - 2])
        else:
            if step.op == OP_ANY or step.op == OP_ALL:
                k -= step.count
                u, v = run_compound(s, p, i, k), NEVER
            else:
                u, v = run_simple(s, p, i)
            retain(s, u)
            retain(s, v)
            p.stack[2 * k] = u
            p.stack[2 * k + 1] = v
            k += 1
    return k, posts, area


@inlined
def run_simple(s: State, p: Program, i: int) -> tuple[int, int]:
    step = p.code[i]
    op, attr, count = step.op, step.attr, step.count
    text = address_of(p.text, 0)
    if op == OP_RANGE:
        u = cut_term(s, attr, ordered(step.one), step.one_low)
        return u, cut_term(s, attr, ordered(step.two), step.two_low) if count else NEVER
    if op == OP_POINT:
        return point_term(s, attr, ordered(step.one), step.one_low), NEVER
    if op == OP_TEXT:
        start, stop = p.text_starts[step.text], p.text_starts[step.text + 1]
        return text_term(s, attr, count, text + start, stop - start), NEVER
    if op == OP_LIKE:
        start, middle, stop = p.text_starts[step.text], p.text_starts[step.text + 1], p.text_starts[step.text + 2]
        return like_term(s, attr, count, text + start, middle - start, text + middle, stop - middle), NEVER
    if op == OP_PRESENCE:
        return presence_term(s, attr, count), NEVER
    return count, NEVER


@inlined
def run_compound(s: State, p: Program, i: int, k: int) -> int:
    """Make a compound of the predicates on the stack from the k-th on."""
    step = p.code[i]
    chunk = allocate(s, C_PAIRS + 2 * step.count)
    s.arena[chunk + C_ALL] = 1 if step.op == OP_ALL else 0
    s.arena[chunk + C_COUNT] = step.count
    s.arena[chunk + C_AREA] = new_area(s, s.attrs[step.attr].place, p.circles, step.text) if step.text >= 0 else -1
    for j in range(2 * step.count):
        s.arena[chunk + C_PAIRS + j] = p.stack[2 * k + j]
    return compound_term(s, step.attr, chunk)


@compiled
def remove_one(s: State, number: int) -> bool:
    """Take a subscription out; False where there is none of this id."""
    place = id_place(s.id_keys, s.id_slots, number)
    if place < 0:
        return False
    slot = s.id_slots[place]
    s.id_slots[place] = ID_GONE
    multi = 0
    while slot != NO_SLOT:
        after = s.slots[slot].next
        several = s.buckets[s.slots[slot].bucket].flags & IS_MULTI
        number = unfile_posting(s, slot)
        if several:
            multi = number
        slot = after
    if multi:
        s.multis[multi] = s.heads[MULTI_FREE]
        s.heads[MULTI_FREE] = multi
    s.heads[SUBSCRIPTIONS] -= 1
    return True


@compiled
def rehash_points(s: State, table: Vector[int]) -> int:
    used = 0
    for i in range(len(s.points)):
        term = s.points[i]
        if term > 0:
            used += file_hashed(table, point_hash(s.terms[term].attr, s.terms[term].key, s.terms[term].low), term)
    return used


@compiled
def rehash_texts(s: State, table: Vector[int]) -> int:
    used = 0
    for i in range(len(s.texts)):
        term = s.texts[i]
        if term > 0:
            chunk = s.terms[term].low
            hashed = polynomial(address_of(s.arena, chunk + 1), s.arena[chunk])
            used += file_hashed(table, text_hash(s.terms[term].attr, s.terms[term].kind, hashed), term)
    return used


@compiled
def rehash_compounds(s: State, table: Vector[int]) -> int:
    used = 0
    for i in range(len(s.compounds)):
        term = s.compounds[i]
        if term > 0:
            used += file_hashed(table, compound_hash(s, s.terms[term].low), term)
    return used


@compiled
def rehash_ids(s: State, keys: Vector[int], slots: Vector[int]) -> int:
    used = 0
    for i in range(len(s.id_keys)):
        if s.id_slots[i] >= NO_SLOT:
            used += file_id(keys, slots, s.id_keys[i], s.id_slots[i])
    return used
