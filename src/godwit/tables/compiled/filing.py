"""Compiled: subscriptions in and out, from programs.

A program comes from `programs.Programmer`, which is right by construction: steps leave as many predicates on the stack
as later ones take, texts and circles are numbered in their order, and `stack` and `posts` have room for the longest
alternative. So what is checked at run time is room in the state, once a subscription, before anything is changed.
"""

from __future__ import annotations

import numpy as np

from godwit.tables.compiled import layout as L
from godwit.tables.compiled.books import Vector
from godwit.tables.compiled.layout import Program, State
from godwit.tables.compiled.memory import address_of, compiled, whole
from godwit.tables.compiled.terms import (
    allocate,
    compound_hash,
    compound_term,
    copy_area,
    cut_term,
    file_hashed,
    like_term,
    list_of,
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
    while slots[at] != L.ID_EMPTY:
        if keys[at] == number and slots[at] != L.ID_GONE:
            return whole(at)
        at = (at + np.uint64(1)) & mask
    return -1


@compiled
def file_id(keys: Vector[int], slots: Vector[int], number: int, slot: int) -> int:
    mask = np.uint64(len(keys) - 1)
    at = mixed(np.uint64(number)) & mask
    while slots[at] != L.ID_EMPTY and slots[at] != L.ID_GONE:
        at = (at + np.uint64(1)) & mask
    fresh = 1 if slots[at] == L.ID_EMPTY else 0
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
    """What there may be too little of to add one more subscription, or DONE.

    This is what every index into the arrays of a state rests on: what adding takes is bounded here, from above, before
    anything is changed. One step makes at most three terms (two cuts, or a pattern and its needle, and a presence) and
    three entries in tables. A cut needs at most one new block: the first of its attribute, or the half of a full one.
    A posting needs a slot, at most one node and one bucket; splits take more only where `has_room_to_part` says so.
    """
    first, last = p.alternatives[which], p.alternatives[which + 1]
    steps, postings, cuts, circles = 0, last - first, 8, 0
    for alternative in range(first, last):
        begin, end = p.starts[alternative], p.starts[alternative + 1]
        steps += end - begin
        for i in range(begin, end):
            step = p.code[i]
            # A range has two cuts, and may be filed under its attribute's third. What is no range, as `a != 5`, may
            # still ask whether there is a number, which is a cut too.
            cuts += 3 if step.op == L.OP_RANGE else 1
            if step.op == L.OP_POSTS:
                postings += step.count
            elif step.op == L.OP_CIRCLE or step.op == L.OP_ALL:
                circles += 1
    if s.heads[L.TERM_TOP] + 3 * steps + 8 > len(s.terms):
        return L.SHORT_TERMS
    if free_blocks(s, cuts) < cuts:
        return L.SHORT_BLOCKS
    if s.heads[L.NODE_TOP] + postings + 8 > len(s.nodes):
        return L.SHORT_NODES
    if s.heads[L.BUCKET_TOP] + 2 * postings + 64 > len(s.buckets):
        return L.SHORT_BUCKETS
    if s.heads[L.SLOT_TOP] + postings > len(s.slots):
        return L.SHORT_SLOTS
    if s.heads[L.AREA_TOP] + circles * max(1, postings) > len(s.areas):
        return L.SHORT_AREAS
    if s.heads[L.MULTI_TOP] + 1 > len(s.multis):
        return L.SHORT_MULTIS
    s.heads[L.NEEDED] = words_needed(s, p, which)
    reserve = max(min(L.ARENA_RESERVE, 4096 + s.heads[L.ARENA_TOP]), s.heads[L.WISHED])
    if s.heads[L.NEEDED] + reserve > spare_words(s):
        return L.SHORT_ARENA
    s.heads[L.WISHED] = 0
    # Tables are at most half full, so that whoever looks for something finds it or a place that was never used.
    if 2 * (s.heads[L.POINTS_USED] + steps) > len(s.points):
        return L.SHORT_POINTS
    if 2 * (s.heads[L.TEXTS_USED] + steps) > len(s.texts):
        return L.SHORT_TEXTS
    if 2 * (s.heads[L.COMPOUNDS_USED] + steps) > len(s.compounds):
        return L.SHORT_COMPOUNDS
    if 2 * (s.heads[L.IDS_USED] + 1) > len(s.id_keys):
        return L.SHORT_IDS
    return L.DONE


@compiled
def words_needed(s: State, p: Program, which: int) -> int:
    """How many words of the arena a subscription takes at most, beyond what buckets grow by where there is room.

    64 words a step pay for its part of a compound's chunk and of a new bucket's (each at most twice what is in it), and
    for lists that double again and again (at most 12 words for each step). A text costs itself, twice for the power
    of two. The lists of an attribute that is mentioned may double once at whatever length they have.
    """
    words, attr = 0, -1
    for alternative in range(p.alternatives[which], p.alternatives[which + 1]):
        begin, end = p.starts[alternative], p.starts[alternative + 1]
        words += 64 * (end - begin + 1)
        for i in range(begin, end):
            step = p.code[i]
            if step.op == L.OP_POSTS:
                words += 16 * step.count * (end - begin + 1)
            elif step.op == L.OP_TEXT or step.op == L.OP_LIKE:
                behind = step.text + (1 if step.op == L.OP_TEXT else 2)
                words += 32 + p.text_starts[behind] - p.text_starts[step.text]
            if step.attr != attr:
                attr = step.attr
                for each in range(list_of(attr, 0), list_of(attr, L.LISTS)):
                    words += 2 * max(8, s.lists[each].room)
    return words


@compiled
def free_blocks(s: State, enough: int) -> int:
    count, block = len(s.block_n) - s.heads[L.BLOCK_TOP], s.heads[L.BLOCK_FREE]
    while block and count < enough:
        block = s.block_n[block]
        count += 1
    return count


@compiled
def add_from(s: State, p: Program, begin: int) -> tuple[int, int]:
    """Add subscriptions from `begin` on; returns how far it came and why it stopped."""
    for which in range(begin, len(p.ids)):
        short = shortage(s, p, which)
        if short:
            return which, short
        add_one(s, p, which)
    return len(p.ids), L.DONE


@compiled
def add_one(s: State, p: Program, which: int) -> None:
    number, flags, slot = p.ids[which], 0, L.NO_SLOT
    first, last = p.alternatives[which], p.alternatives[which + 1]
    if last - first > 1:
        multi = take(s, L.MULTI_FREE, L.MULTI_TOP, s.multis[s.heads[L.MULTI_FREE]])
        s.multis[multi] = number
        number, flags = multi, L.IS_MULTI
    for alternative in range(first, last):
        slot = add_alternative(s, p, alternative, flags, number, slot)
    s.heads[L.IDS_USED] += file_id(s.id_keys, s.id_slots, p.ids[which], slot)
    s.heads[L.SUBSCRIPTIONS] += 1


@compiled
def add_alternative(s: State, p: Program, alternative: int, flags: int, number: int, chain: int) -> int:
    """File the postings of one alternative, each with a slot in front of the chain."""
    k, posts, area = run(s, p, p.starts[alternative], p.starts[alternative + 1])
    if area >= 0:
        flags |= L.IS_AREA
    for i in range(max(1, posts)):
        if i:
            for j in range(2 * k):
                retain(s, p.stack[j])
            if area >= 0:
                area = copy_area(s, area)
        slot = take(s, L.SLOT_FREE, L.SLOT_TOP, s.slots[s.heads[L.SLOT_FREE]].next)
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
        if step.op == L.OP_CIRCLE:
            area = new_area(s, s.attrs[step.attr].place, p.circles, step.count)
        elif step.op == L.OP_POSTS:
            posts = step.count
            k -= posts
            for j in range(posts):
                p.posts[j] = p.stack[2 * (k + j)]
        elif step.op == L.OP_NOT:
            p.stack[2 * k - 1] = p.stack[2 * k - 2]
            p.stack[2 * k - 2] = presence_term(s, step.attr, step.count)
            retain(s, p.stack[2 * k - 2])
        else:
            if step.op == L.OP_ANY or step.op == L.OP_ALL:
                k -= step.count
                u, v = run_compound(s, p, i, k), L.NEVER
            else:
                u, v = run_simple(s, p, i)
            retain(s, u)
            retain(s, v)
            p.stack[2 * k] = u
            p.stack[2 * k + 1] = v
            k += 1
    return k, posts, area


@compiled
def run_simple(s: State, p: Program, i: int) -> tuple[int, int]:
    step = p.code[i]
    op, attr, count = step.op, step.attr, step.count
    text = address_of(p.text, 0)
    if op == L.OP_RANGE:
        u = cut_term(s, attr, ordered(step.one), step.one_low)
        return u, cut_term(s, attr, ordered(step.two), step.two_low) if count else L.NEVER
    if op == L.OP_POINT:
        return point_term(s, attr, ordered(step.one), step.one_low), L.NEVER
    if op == L.OP_TEXT:
        start, stop = p.text_starts[step.text], p.text_starts[step.text + 1]
        return text_term(s, attr, count, text + start, stop - start), L.NEVER
    if op == L.OP_LIKE:
        start, middle, stop = p.text_starts[step.text], p.text_starts[step.text + 1], p.text_starts[step.text + 2]
        return like_term(s, attr, count, text + start, middle - start, text + middle, stop - middle), L.NEVER
    if op == L.OP_PRESENCE:
        return presence_term(s, attr, count), L.NEVER
    return count, L.NEVER


@compiled
def run_compound(s: State, p: Program, i: int, k: int) -> int:
    """Make a compound of the predicates on the stack from the k-th on."""
    step = p.code[i]
    chunk = allocate(s, L.C_PAIRS + 2 * step.count)
    s.arena[chunk + L.C_ALL] = 1 if step.op == L.OP_ALL else 0
    s.arena[chunk + L.C_COUNT] = step.count
    s.arena[chunk + L.C_AREA] = new_area(s, s.attrs[step.attr].place, p.circles, step.text) if step.text >= 0 else -1
    for j in range(2 * step.count):
        s.arena[chunk + L.C_PAIRS + j] = p.stack[2 * k + j]
    return compound_term(s, step.attr, chunk)


@compiled
def remove_one(s: State, number: int) -> bool:
    """Take a subscription out; False where there is none of this id."""
    place = id_place(s.id_keys, s.id_slots, number)
    if place < 0:
        return False
    slot = s.id_slots[place]
    s.id_slots[place] = L.ID_GONE
    multi = 0
    while slot != L.NO_SLOT:
        after = s.slots[slot].next
        several = s.buckets[s.slots[slot].bucket].flags & L.IS_MULTI
        number = unfile_posting(s, slot)
        if several:
            multi = number
        slot = after
    if multi:
        s.multis[multi] = s.heads[L.MULTI_FREE]
        s.heads[L.MULTI_FREE] = multi
    s.heads[L.SUBSCRIPTIONS] -= 1
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
        if s.id_slots[i] >= L.NO_SLOT:
            used += file_id(keys, slots, s.id_keys[i], s.id_slots[i])
    return used
