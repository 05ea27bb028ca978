"""Compiled: nodes, their buckets, and where a posting belongs.

A node's tree is at most DEPTH_MAX deep, since a node at that depth does not split: `walk` has rows for as many. A
bucket is a chunk of `room` postings and `n` <= `room` of them are used; its five parts follow each other at `at`,
`pairs_at`, `peeks_at`, `slots_at` and `areas_at`, so that entry i < n of each lies inside of the chunk. Every posting
knows its slot and every slot its posting: when the last posting of a bucket takes the place of one that goes, its slot
is told.

Costs: filing a posting is a guess for each of its predicates and one comparison for each level of the tree. A split
goes through all postings of its node a few times, and happens when their number has doubled. Taking a posting out moves
one.
"""

from __future__ import annotations

import numpy as np

from godwit.tables.compiled import layout as L
from godwit.tables.compiled.books import Vector
from godwit.tables.compiled.layout import State
from godwit.tables.compiled.memory import as_longs, compiled
from godwit.tables.compiled.terms import (
    allocate,
    equal_value,
    free_area,
    has_chunk,
    is_equality,
    is_pattern,
    less,
    move,
    number_value,
    presence_term,
    release,
    release_chunk,
    retain,
    spare_words,
    take,
    unordered,
)


@compiled
def new_node(s: State, term: int, parent: int) -> int:
    node = take(s, L.NODE_FREE, L.NODE_TOP, s.nodes[s.heads[L.NODE_FREE]].parent)
    s.nodes[node].term = term
    s.nodes[node].parent = parent
    s.nodes[node].cut = 0
    s.nodes[node].left = 0
    s.nodes[node].right = 0
    s.nodes[node].bucket = 0
    s.nodes[node].own = 0
    s.nodes[node].total = 0
    s.nodes[node].limit = L.SPLIT_FIRST
    s.nodes[node].depth = s.nodes[parent].depth + 1 if parent else 0
    return node


@compiled
def free_tree(s: State, node: int) -> int:
    """Free an empty node and those below it, which are empty too."""
    if s.nodes[node].cut:
        free_tree(s, s.nodes[node].left)
        free_tree(s, s.nodes[node].right)
        release(s, s.nodes[node].cut)
    s.nodes[node].parent = s.heads[L.NODE_FREE]
    s.heads[L.NODE_FREE] = node
    return 0


# A bucket's chunk: subscription numbers (two words each), predicates (2k words each), peeks (3k words each), slots,
# circles. Each part of the first predicate's peeks is a column, so that a sweep through one reads nothing else. Those
# of the others stand side by side for each posting: whoever has passed the first reads one or two cache lines.


@compiled
def posting_words(k: int, flags: int) -> int:
    return (2 + L.PEEK) * k + (4 if flags & L.IS_AREA else 3)


@compiled
def pairs_at(s: State, bucket: int) -> int:
    return s.buckets[bucket].at + 2 * s.buckets[bucket].room


@compiled
def peeks_at(s: State, bucket: int) -> int:
    return pairs_at(s, bucket) + 2 * s.buckets[bucket].k * s.buckets[bucket].room


@compiled
def rest_at(s: State, bucket: int) -> int:
    """Where the peeks of all predicates but the first begin; there is a first."""
    return peeks_at(s, bucket) + L.PEEK * s.buckets[bucket].room


@compiled
def slots_at(s: State, bucket: int) -> int:
    return pairs_at(s, bucket) + (2 + L.PEEK) * s.buckets[bucket].k * s.buckets[bucket].room


@compiled
def areas_at(s: State, bucket: int) -> int:
    return slots_at(s, bucket) + s.buckets[bucket].room


@compiled
def new_bucket(s: State, node: int, k: int, flags: int) -> int:
    bucket = take(s, L.BUCKET_FREE, L.BUCKET_TOP, s.buckets[s.heads[L.BUCKET_FREE]].next)
    words = 8
    while words < posting_words(k, flags):
        words *= 2
    s.buckets[bucket].node = node
    s.buckets[bucket].k = k
    s.buckets[bucket].flags = flags
    s.buckets[bucket].at = allocate(s, words)
    s.buckets[bucket].n = 0
    s.buckets[bucket].room = words // posting_words(k, flags)
    s.buckets[bucket].next = s.nodes[node].bucket
    s.nodes[node].bucket = bucket
    return bucket


@compiled
def resize_bucket(s: State, bucket: int, words: int) -> None:
    """Move a bucket to a chunk of so many words, a power of two that holds all its postings."""
    k, flags, n = s.buckets[bucket].k, s.buckets[bucket].flags, s.buckets[bucket].n
    old, room = s.buckets[bucket].at, s.buckets[bucket].room
    pairs, slots, circles = pairs_at(s, bucket), slots_at(s, bucket), areas_at(s, bucket)
    peeks = peeks_at(s, bucket)
    s.buckets[bucket].at = allocate(s, words)
    s.buckets[bucket].room = words // posting_words(k, flags)
    move(s, old, s.buckets[bucket].at, 2 * n)
    move(s, pairs, pairs_at(s, bucket), 2 * k * n)
    if k:
        for column in range(L.PEEK):
            move(s, peeks + column * room, peeks_at(s, bucket) + column * s.buckets[bucket].room, n)
        move(s, peeks + L.PEEK * room, rest_at(s, bucket), L.PEEK * (k - 1) * n)
    move(s, slots, slots_at(s, bucket), n)
    if flags & L.IS_AREA:
        move(s, circles, areas_at(s, bucket), n)
    release_chunk(s, old, room * posting_words(k, flags))


@compiled
def move_peeks(s: State, peeks: int, room: int, origin: int, bucket: int, target: int) -> None:
    """Those of one posting, from what begins at `peeks` and has so much room to a bucket with as many predicates."""
    k = s.buckets[bucket].k
    if k:
        for column in range(L.PEEK):
            place = peeks_at(s, bucket) + column * s.buckets[bucket].room + target
            s.arena[place] = s.arena[peeks + column * room + origin]
        rest = L.PEEK * (k - 1)
        move(s, peeks + L.PEEK * room + rest * origin, rest_at(s, bucket) + rest * target, rest)


@compiled
def bucket_words(s: State, bucket: int) -> int:
    words = 8
    while words < s.buckets[bucket].room * posting_words(s.buckets[bucket].k, s.buckets[bucket].flags):
        words *= 2
    return words


@compiled
def bucket_with_room(s: State, node: int, k: int, flags: int) -> int:
    bucket = s.nodes[node].bucket
    while bucket and (s.buckets[bucket].k != k or s.buckets[bucket].flags != flags):
        bucket = s.buckets[bucket].next
    if bucket and s.buckets[bucket].n == s.buckets[bucket].room:
        words = 2 * bucket_words(s, bucket)
        # To grow is a choice, and must leave what the subscription cannot do without.
        if words <= L.BUCKET_WORDS_MAX and spare_words(s) > s.heads[L.NEEDED] + 4 * words:
            resize_bucket(s, bucket, words)
        else:
            bucket = 0
    return bucket if bucket else new_bucket(s, node, k, flags)


@compiled
def append(s: State, node: int, k: int, flags: int, number: int, slot: int, area: int) -> int:
    """Room for one more posting at the end of a bucket of this node; returns where its predicates go."""
    bucket = bucket_with_room(s, node, k, flags)
    n = s.buckets[bucket].n
    as_longs(s.arena)[s.buckets[bucket].at // 2 + n] = number
    s.arena[slots_at(s, bucket) + n] = slot
    if flags & L.IS_AREA:
        s.arena[areas_at(s, bucket) + n] = area
    s.buckets[bucket].n = n + 1
    s.slots[slot].bucket = bucket
    s.slots[slot].at = n
    s.nodes[node].own += 1
    return pairs_at(s, bucket) + 2 * k * n


@compiled
def peek_of(s: State, u: int, v: int) -> tuple[int, int, int]:
    """Of a range of numbers: behind cut u, or any number; and not behind cut v, if there is one. Of an equality: what
    is next to the half of its term's key on both sides. Of other predicates, nothing: 0, and the ends reversed.

    A value whose half lies between both ends fulfils it, and one outside does not; where it is equal to one of them the
    terms decide. A value that is absent, or of another kind, has the smallest half, as a range without cut u has. No
    value has the half of an equality's end: so its terms, which are elsewhere in memory, are never asked.
    """
    attr, kind = s.terms[u].attr, s.terms[u].kind
    if is_end(s, v, attr):
        high = L.HALF_MAX if v == L.NEVER else s.terms[v].key >> 32
        if kind == L.CUT:
            return number_value(attr), s.terms[u].key >> 32, high
        if kind == L.PRESENCE and u == s.attrs[attr].presence[L.HAS_NUMBER]:
            return number_value(attr), L.HALF_MIN, high
        if v == L.NEVER and (kind == L.POINT or kind == L.EQUAL) and u <= L.PEEK_TERMS:
            return equal_value(attr), 2 * u - 1, 2 * u + 1
    return 0, L.HALF_MAX, L.HALF_MIN


@compiled
def is_end(s: State, v: int, attr: int) -> bool:
    """Whether a range of an attribute may end so: at a cut of it, or nowhere."""
    return v == L.NEVER or (s.terms[v].kind == L.CUT and s.terms[v].attr == attr)


@compiled
def put_peek(s: State, slot: int, j: int, u: int, v: int) -> None:
    bucket = s.slots[slot].bucket
    apart, at = s.buckets[bucket].room, peeks_at(s, bucket) + s.slots[slot].at
    if j:
        apart, at = 1, rest_at(s, bucket) + L.PEEK * ((s.buckets[bucket].k - 1) * s.slots[slot].at + j - 1)
    value, low, high = peek_of(s, u, v)
    s.arena[at + L.PEEK_VALUE * apart] = value
    s.arena[at + L.PEEK_LOW * apart] = low
    s.arena[at + L.PEEK_HIGH * apart] = high


@compiled
def side_of(s: State, cut: int, pairs: Vector[int], at: int, k: int) -> int:
    """Where a posting belongs that has the k predicates at `pairs[at]`: -1 before a cut, 1 behind it, 0 neither."""
    attr, key, low = s.terms[cut].attr, s.terms[cut].key, s.terms[cut].low
    for j in range(k):
        u, v = pairs[at + 2 * j], pairs[at + 2 * j + 1]
        if s.terms[u].kind == L.CUT and s.terms[u].attr == attr:
            if not less(s.terms[u].key, s.terms[u].low, key, low):
                return 1
            if s.terms[v].kind == L.CUT and not less(key, low, s.terms[v].key, s.terms[v].low):
                return -1
    return 0


@compiled
def split(s: State, node: int) -> None:
    """Halve a crowded node at the cut, of all the attributes that its first posting has ranges on, that parts most.

    Postings on both sides of the cut stay. Where too few would move the node is left alone until it has doubled. Where
    there is no room, room is made before the next subscription, and the next posting here tries again.
    """
    own, is_final = s.nodes[node].own, s.nodes[node].depth >= L.DEPTH_MAX
    if not (is_final or own > L.SPLIT_MAX or has_room_to_part(s, node)):
        return
    s.nodes[node].limit *= 2
    if is_final or own > L.SPLIT_MAX:
        return
    # A split that leaves half of the postings here would be paid by all events and spare few of them.
    best, best_moved = 0, own // 2
    bucket = s.nodes[node].bucket
    chain = 0
    while bucket:
        first = pairs_at(s, bucket)
        for j in range(min(8, s.buckets[bucket].k)):
            u = s.arena[first + 2 * j]
            if s.terms[u].kind == L.CUT:
                cut = middle_cut(s, node, s.terms[u].attr)
                moved = parted_by(s, node, cut) if cut else 0
                if moved > best_moved:
                    best, best_moved = cut, moved
        chain += 1
        bucket = s.buckets[bucket].next
        if chain == 2:
            break
    if best:
        part(s, node, best)


@compiled
def has_room_to_part(s: State, node: int) -> bool:
    bucket, buckets, words = s.nodes[node].bucket, 0, 0
    while bucket:
        buckets += 1
        words += bucket_words(s, bucket)
        bucket = s.buckets[bucket].next
    if spare_words(s) <= s.heads[L.NEEDED] + 6 * words:
        s.heads[L.WISHED] = 6 * words + 1
        return False
    return s.heads[L.BUCKET_TOP] + 3 * buckets + 8 < len(s.buckets) and s.heads[L.NODE_TOP] + 2 < len(s.nodes)


@compiled
def middle_cut(s: State, node: int, attr: int) -> int:
    """About the median of the lower cuts of a node's ranges on one attribute."""
    sample = np.empty(33, np.int32)  # one of few arrays of numba's own: splits are rare
    count = 0
    step = max(1, s.nodes[node].own // 32)
    passed = 0
    bucket = s.nodes[node].bucket
    while bucket and count < 33:
        k, first = s.buckets[bucket].k, pairs_at(s, bucket)
        for i in range(s.buckets[bucket].n):
            passed += 1
            if passed % step == 0 and count < 33:
                for j in range(k):
                    u = s.arena[first + 2 * (k * i + j)]
                    if s.terms[u].kind == L.CUT and s.terms[u].attr == attr:
                        sample[count] = u
                        count += 1
                        break
        bucket = s.buckets[bucket].next
    for i in range(1, count):
        u, j = sample[i], i
        while j and less(s.terms[u].key, s.terms[u].low, s.terms[sample[j - 1]].key, s.terms[sample[j - 1]].low):
            sample[j] = sample[j - 1]
            j -= 1
        sample[j] = u
    return sample[count // 2] if count else 0


@compiled
def parted_by(s: State, node: int, cut: int) -> int:
    """How many postings would leave the node, or 0 where nearly all of them would go to one side."""
    before = behind = 0
    bucket = s.nodes[node].bucket
    while bucket:
        k, first = s.buckets[bucket].k, pairs_at(s, bucket)
        for i in range(s.buckets[bucket].n):
            side = side_of(s, cut, s.arena, first + 2 * k * i, k)
            before += side < 0
            behind += side > 0
        bucket = s.buckets[bucket].next
    return before + behind if min(before, behind) * 8 >= s.nodes[node].own else 0


@compiled
def part(s: State, node: int, cut: int) -> None:
    retain(s, cut)
    left, right = new_node(s, L.NEVER, node), new_node(s, L.NEVER, node)
    s.nodes[node].cut = cut
    s.nodes[node].left = left
    s.nodes[node].right = right
    bucket = s.nodes[node].bucket
    s.nodes[node].bucket = 0
    s.nodes[node].own = 0
    while bucket:
        k, flags, first = s.buckets[bucket].k, s.buckets[bucket].flags, pairs_at(s, bucket)
        slots, circles, numbers = slots_at(s, bucket), areas_at(s, bucket), s.buckets[bucket].at // 2
        peeks, room = peeks_at(s, bucket), s.buckets[bucket].room
        for i in range(s.buckets[bucket].n):
            pairs = first + 2 * k * i
            side = side_of(s, cut, s.arena, pairs, k)
            target = left if side < 0 else right if side > 0 else node
            area = s.arena[circles + i] if flags & L.IS_AREA else -1
            number = as_longs(s.arena)[numbers + i]
            slot = s.arena[slots + i]
            move(s, pairs, append(s, target, k, flags, number, slot, area), 2 * k)
            move_peeks(s, peeks, room, i, s.slots[slot].bucket, s.slots[slot].at)
        after = s.buckets[bucket].next
        release_chunk(s, s.buckets[bucket].at, s.buckets[bucket].room * posting_words(k, flags))
        s.buckets[bucket].next = s.heads[L.BUCKET_FREE]
        s.heads[L.BUCKET_FREE] = bucket
        bucket = after
    s.nodes[left].total = s.nodes[left].own
    s.nodes[right].total = s.nodes[right].own


@compiled
def chance(s: State, u: int, v: int) -> float:
    """A guess at how often a predicate holds, from what subscribers ask for: most ask for what there is most of."""
    kind, attr = s.terms[u].kind, s.terms[u].attr
    if v == L.NEVER:
        if is_equality(kind):
            return s.terms[u].refs / (s.attrs[attr].equals + 1.0)
        if is_pattern(kind):
            return 0.02 + s.terms[u].refs / (s.attrs[attr].patterns + 1.0)
        if kind == L.OUTER or u == s.attrs[attr].presence[L.IS_TRUE] or u == s.attrs[attr].presence[L.IS_FALSE]:
            return 0.5
    if kind == L.CUT and (v == L.NEVER or s.terms[v].kind == L.CUT):
        low, high = s.attrs[attr].low, s.attrs[attr].high
        first = max(low, unordered(s.terms[u].key))
        last = high if v == L.NEVER else min(high, unordered(s.terms[v].key))
        if high > low and last >= first:
            return 0.05 + 0.9 * (last - first) / (high - low)
        return 0.5
    return 0.95 if kind in (L.CUT, L.PRESENCE) else 2.0


@compiled
def file_posting(
    s: State, pairs: Vector[int], k: int, flags: int, number: int, slot: int, area: int, post: int
) -> None:
    """File a posting where the fewest events reach it: under `post` if given, else under its least likely predicate."""
    node = L.ROOT
    if post:
        node = node_of(s, post)
    else:
        best, least = -1, 1.5
        for j in range(k):
            likely = chance(s, pairs[2 * j], pairs[2 * j + 1])
            if likely < least:
                best, least = j, likely
        if best >= 0:
            u, v = pairs[2 * best], pairs[2 * best + 1]
            if s.terms[u].kind == L.CUT:
                node = node_of(s, presence_term(s, s.terms[u].attr, L.HAS_NUMBER))
                # Single events ask the first predicate first: let it be the one that they fail most.
                pairs[2 * best], pairs[2 * best + 1] = pairs[0], pairs[1]
                pairs[0], pairs[1] = u, v
                if is_end(s, v, s.terms[u].attr):
                    flags |= L.IS_RANGED
            else:
                node = node_of(s, u)
                if v == L.NEVER:
                    k -= 1
                    for i in range(2 * best, 2 * k):
                        pairs[i] = pairs[i + 2]
    s.nodes[node].total += 1
    while s.nodes[node].cut:
        side = side_of(s, s.nodes[node].cut, pairs, 0, k)
        if side == 0:
            break
        node = s.nodes[node].left if side < 0 else s.nodes[node].right
        s.nodes[node].total += 1
    at = append(s, node, k, flags, number, slot, area)
    for i in range(2 * k):
        s.arena[at + i] = pairs[i]
    for j in range(k):
        put_peek(s, slot, j, pairs[2 * j], pairs[2 * j + 1])
    if s.nodes[node].own > s.nodes[node].limit and not s.nodes[node].cut:
        split(s, node)


@compiled
def node_of(s: State, term: int) -> int:
    if s.terms[term].node == 0:
        s.terms[term].node = new_node(s, term, 0)
    return s.terms[term].node


@compiled
def unfile_posting(s: State, slot: int) -> int:
    """Take a posting out and give its references back; returns its number: of a subscription, or of a multi."""
    bucket, at = s.slots[slot].bucket, s.slots[slot].at
    k, flags, node = s.buckets[bucket].k, s.buckets[bucket].flags, s.buckets[bucket].node
    first, numbers = pairs_at(s, bucket), as_longs(s.arena)
    number = numbers[s.buckets[bucket].at // 2 + at]
    for i in range(2 * k):
        release(s, s.arena[first + 2 * k * at + i])
    if flags & L.IS_AREA:
        free_area(s, s.arena[areas_at(s, bucket) + at])
    last = s.buckets[bucket].n - 1
    if at != last:
        numbers[s.buckets[bucket].at // 2 + at] = numbers[s.buckets[bucket].at // 2 + last]
        move(s, first + 2 * k * last, first + 2 * k * at, 2 * k)
        move_peeks(s, peeks_at(s, bucket), s.buckets[bucket].room, last, bucket, at)
        moved = s.arena[slots_at(s, bucket) + last]
        s.arena[slots_at(s, bucket) + at] = moved
        s.slots[moved].at = at
        if flags & L.IS_AREA:
            s.arena[areas_at(s, bucket) + at] = s.arena[areas_at(s, bucket) + last]
    s.buckets[bucket].n = last
    s.nodes[node].own -= 1
    if last == 0:
        free_bucket(s, bucket)
    elif last * 4 < s.buckets[bucket].room:
        shrink_bucket(s, bucket)
    leave(s, node)
    s.slots[slot].next = s.heads[L.SLOT_FREE]
    s.heads[L.SLOT_FREE] = slot
    return number


@compiled
def shrink_bucket(s: State, bucket: int) -> None:
    """Move a bucket to half the words, where they can be had: nobody has made room for a removal."""
    words = bucket_words(s, bucket) // 2
    if words >= 8 and has_chunk(s, words):
        resize_bucket(s, bucket, words)


@compiled
def free_bucket(s: State, bucket: int) -> None:
    node = s.buckets[bucket].node
    if s.nodes[node].bucket == bucket:
        s.nodes[node].bucket = s.buckets[bucket].next
    else:
        before = s.nodes[node].bucket
        while s.buckets[before].next != bucket:
            before = s.buckets[before].next
        s.buckets[before].next = s.buckets[bucket].next
    words = s.buckets[bucket].room * posting_words(s.buckets[bucket].k, s.buckets[bucket].flags)
    release_chunk(s, s.buckets[bucket].at, words)
    s.buckets[bucket].next = s.heads[L.BUCKET_FREE]
    s.heads[L.BUCKET_FREE] = bucket


@compiled
def leave(s: State, node: int) -> None:
    """One posting less in this node and those above it; a tree without any is freed."""
    s.nodes[node].total -= 1
    while s.nodes[node].parent:
        node = s.nodes[node].parent
        s.nodes[node].total -= 1
    term = s.nodes[node].term
    if node != L.ROOT and s.nodes[node].total == 0:
        s.terms[term].node = 0
        free_tree(s, node)
    if s.terms[term].kind != L.CUT:
        release(s, term)
