"""Compiled: from the terms that hold to the ids of the subscriptions that match.

Why indices are right:

- the row of a term is below the number of rows in use, or one of the first: see `slices`;
- CHUNK postings are evaluated at a time, and `found`, `some`, `words` and `word_places` have room for as many;
- the walk down a tree keeps one row for each level in `wanted`, which has more than DEPTH_MAX;
- `raised` and `sums` have an entry for each subscription with alternatives, which is raised once in a slice;
- before ids are written `with_room` makes sure that every event's list has room for one id of each posting, and an
  event has each posting once at most.

Costs: for a posting of k predicates 2k numbers of terms, 2k numbers of rows and 2k rows of 32 bytes are read, one row
is written. Terms and rows of one node are neighbors in memory or in the cache. Then one write for each delivery. A node
that no event reaches costs nothing, and the half of a node behind a cut only the events that lie there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from godwit.tables.compiled import layout as L
from godwit.tables.compiled.books import WORDS, Vector
from godwit.tables.compiled.layout import Scratch, SingleEvent, State
from godwit.tables.compiled.memory import (
    BETWEEN,
    address_of,
    as_longs,
    between,
    compiled,
    conjunction,
    lent,
    load_u8,
    lowest_bit,
    row_and,
    row_and_not,
    row_and_xor,
    row_clear,
    row_copy,
    row_or,
    row_some,
)
from godwit.tables.compiled.slices import (
    clip,
    evaluate,
    evaluate_place,
    forget_value,
    is_in_circle,
    reach,
    take_number,
    take_place,
    take_whole,
    touch_event,
)
from godwit.tables.compiled.terms import less, number_value
from godwit.tables.compiled.tree import areas_at, pairs_at, peeks_at, rest_at

conjunction_1, conjunction_2, conjunction_3, conjunction_4 = (conjunction(k) for k in range(1, 5))


@compiled
def evaluate_postings(s: State, w: Scratch, bucket: int, begin: int, n: int, depth: int) -> int:
    """Evaluate n postings of a bucket for all events of a slice; returns how many have any event left.

    Whether there is one is noted for all of them first and gathered afterwards: a store whose place depends on what
    was just computed would hold up the loads behind it.
    """
    k = s.buckets[bucket].k
    start = pairs_at(s, bucket) + 2 * k * begin
    masks, rows, arena, some = w.masks, s.rows, s.arena, w.some
    wanted, found = address_of(w.wanted, depth), address_of(w.found, 0)
    if k == 1:
        for i in range(n):
            some[i] = conjunction_1(masks, rows, arena, start, wanted, found, i)
    elif k == 2:
        for i in range(n):
            some[i] = conjunction_2(masks, rows, arena, start, wanted, found, i)
    elif k == 3:
        for i in range(n):
            some[i] = conjunction_3(masks, rows, arena, start, wanted, found, i)
    elif k == 4:
        for i in range(n):
            some[i] = conjunction_4(masks, rows, arena, start, wanted, found, i)
    else:
        for i in range(n):
            some[i] = evaluate_many(s, w, start + 2 * k * i, k, wanted, i)
    # In place: entry `kept` has been read, since `kept` <= i.
    kept = 0
    for i in range(n):
        flag = some[i]
        some[kept] = i
        kept += flag
    return kept


@compiled
def evaluate_many(s: State, w: Scratch, start: int, k: int, wanted: int, i: int) -> int:
    found = address_of(w.found, i)
    row_copy(found, wanted)
    for at in range(start, start + 2 * k, 2):
        row_and_xor(found, address_of(w.masks, s.rows[s.arena[at]]), address_of(w.masks, s.rows[s.arena[at + 1]]))
        if not row_some(found):
            return 0
    return 1 if row_some(found) else 0


@compiled
def want_all(w: Scratch, n: int, depth: int) -> int:
    for i in range(n):
        w.some[i] = i
        row_copy(address_of(w.found, i), address_of(w.wanted, depth))
    return n


@compiled
def keep_in_circles(s: State, w: Scratch, circles: int, count: int) -> int:
    kept = 0
    for j in range(count):
        i = w.some[j]
        if clip(s, w, s.arena[circles + i], address_of(w.found, i)):
            w.some[kept] = i
            kept += 1
    return kept


@compiled
def raise_sums(s: State, w: Scratch, numbers: int, count: int) -> None:
    """Postings of subscriptions with alternatives are summed up, so that an id comes once for each event."""
    for j in range(count):
        multi = as_longs(s.arena)[numbers + w.some[j]]
        sums = address_of(w.sums, multi)
        if not row_some(sums):
            w.raised[w.counters[L.RAISED]] = multi
            w.counters[L.RAISED] += 1
        row_or(sums, address_of(w.found, w.some[j]))


@compiled
def emit(w: Scratch, ids: Vector[int], numbers: int, count: int, out: Vector[int]) -> None:
    """Append the ids of the postings in `some` to the lists of their events, which end at `ends`."""
    # All words are written and those without a bit written over: a branch here would be guessed wrong half of the time.
    words, places, ends, used = w.words, w.word_places, w.ends, 0
    for j in range(count):
        i = w.some[j]
        for word in range(WORDS):
            bits = load_u8(address_of(w.found, i) + 8 * word)
            words[used] = bits
            places[used] = WORDS * i + word
            used += 1 if bits else 0
    for j in range(used):
        bits, place = words[j], places[j]
        number, first = ids[numbers + place // WORDS], 64 * (place % WORDS)
        while True:
            event = first + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            end = ends[event]
            out[end] = number
            ends[event] = end + 1
            if bits == 0:
                break


@compiled
def tally(w: Scratch, count: int) -> None:
    for j in range(count):
        for word in range(WORDS):
            bits = load_u8(address_of(w.found, w.some[j]) + 8 * word)
            while bits:
                w.ends[64 * word + lowest_bit(bits)] += 1
                bits &= bits - np.uint64(1)


@compiled
def with_room(w: Scratch, n: int, count: int, out: Any) -> Any:
    """A buffer that has room for one more id of each event for each of `count` postings."""
    w.counters[L.ROOM] -= count
    if w.counters[L.ROOM] < 0:
        if longest(w, n, len(out) // L.SLICE) + L.CHUNK > len(out) // L.SLICE:
            out = widened(w, n, out)
        stride = len(out) // L.SLICE
        w.counters[L.ROOM] = stride - longest(w, n, stride) - count
    return out


@compiled
def longest(w: Scratch, n: int, stride: int) -> int:
    most = 0
    for event in range(n):
        most = max(most, w.ends[event] - event * stride)
    return most


@compiled
def widened(w: Scratch, n: int, out: Any) -> Any:
    """A buffer with twice the room, its lists an odd number of cache lines apart: otherwise their ends would all
    compete for the same places in the cache."""
    stride = len(out) // L.SLICE
    wider = (2 * (longest(w, n, stride) + L.CHUNK) // 16 + 1) * 16 + 8
    moved = np.empty(L.SLICE * wider, np.int64)
    old, new = lent(out), lent(moved)
    for event in range(n):
        size = w.ends[event] - event * stride
        for i in range(size):
            new[event * wider + i] = old[event * stride + i]
        w.ends[event] = event * wider + size
    return moved


@compiled
def walk_slice(s: State, w: Scratch, n: int, out: Any, counting: bool) -> Any:
    """Visit the postings of every node that some event reaches."""
    out = walk_tree(s, w, n, L.ROOT, L.ROW_ALL, out, counting)
    for i in range(w.counters[L.TOUCHED]):
        node = s.terms[w.touched[i]].node
        if node:
            out = walk_tree(s, w, n, node, s.rows[w.touched[i]], out, counting)
    return finish_sums(s, w, n, out, counting)


@compiled
def walk_tree(s: State, w: Scratch, n: int, root: int, row: int, out: Any, counting: bool) -> Any:
    row_copy(address_of(w.wanted, 0), address_of(w.masks, row))
    w.pending[0] = root
    depth = 0
    while depth >= 0:
        node, wanted = w.pending[depth], address_of(w.wanted, depth)
        if not row_some(wanted):
            depth -= 1
            continue
        bucket = s.nodes[node].bucket
        while bucket:
            out = visit_bucket(s, w, bucket, n, depth, out, counting)
            bucket = s.buckets[bucket].next
        cut = s.nodes[node].cut
        if cut:
            behind, after = address_of(w.masks, s.rows[cut]), address_of(w.wanted, depth + 1)
            row_copy(after, wanted)
            row_and(after, behind)
            row_and_not(wanted, behind)
            w.pending[depth] = s.nodes[node].left
            w.pending[depth + 1] = s.nodes[node].right
            depth += 1
        else:
            depth -= 1
    return out


@compiled
def visit_bucket(s: State, w: Scratch, bucket: int, n: int, depth: int, out: Any, counting: bool) -> Any:
    flags, k = s.buckets[bucket].flags, s.buckets[bucket].k
    for begin in range(0, s.buckets[bucket].n, L.CHUNK):
        size = min(L.CHUNK, s.buckets[bucket].n - begin)
        numbers = s.buckets[bucket].at // 2 + begin
        count = evaluate_postings(s, w, bucket, begin, size, depth) if k else want_all(w, size, depth)
        if flags & L.IS_AREA:
            count = keep_in_circles(s, w, areas_at(s, bucket) + begin, count)
        if flags & L.IS_MULTI:
            raise_sums(s, w, numbers, count)
        elif counting:
            tally(w, count)
        elif count:
            out = with_room(w, n, count, out)
            emit(w, as_longs(s.arena), numbers, count, lent(out))
    return out


@compiled
def finish_sums(s: State, w: Scratch, n: int, out: Any, counting: bool) -> Any:
    for begin in range(0, w.counters[L.RAISED], L.CHUNK):
        size = min(L.CHUNK, w.counters[L.RAISED] - begin)
        for i in range(size):
            multi = w.raised[begin + i]
            w.some[i] = i
            row_copy(address_of(w.found, i), address_of(w.sums, multi))
            row_clear(address_of(w.sums, multi))
            w.raised_ids[i] = s.multis[multi]
        if counting:
            tally(w, size)
        else:
            out = with_room(w, n, size, out)
            emit(w, w.raised_ids, 0, size, lent(out))
    return out


@compiled
def in_order(w: Scratch, n: int, out: Any, counts: Vector[int]) -> Any:
    """The ids of all events one after the other, and how many each has."""
    stride, total, lists = len(out) // L.SLICE, 0, lent(out)
    for event in range(n):
        counts[event] = w.ends[event] - event * stride
        total += counts[event]
    ids = np.empty(total, np.int64)
    copy, total = lent(ids), 0
    for event in range(n):
        for i in range(counts[event]):
            copy[total + i] = lists[event * stride + i]
        total += counts[event]
    return ids


@compiled
def holds(s: State, w: Scratch, term: int) -> bool:
    """Whether a term holds for the single event; compounds are decided when first asked for."""
    kind = s.terms[term].kind
    if kind == L.CUT:
        attr = s.terms[term].attr
        return less(s.terms[term].key, s.terms[term].low, w.value_keys[number_value(attr)], w.value_lows[attr])
    row = s.rows[term]
    if kind != L.COMPOUND or row != L.ROW_NONE:
        return bool(w.masks[row, 0])
    chunk = s.terms[term].low
    all_of = s.arena[chunk + L.C_ALL] == 1
    answer = all_of
    for i in range(chunk + L.C_PAIRS, chunk + L.C_PAIRS + 2 * s.arena[chunk + L.C_COUNT], 2):
        if (holds(s, w, s.arena[i]) != holds(s, w, s.arena[i + 1])) != all_of:
            answer = not all_of
            break
    if answer and s.arena[chunk + L.C_AREA] >= 0:
        answer = is_in_circle(s, w, s.arena[chunk + L.C_AREA], 0)
    reach(s, w, term, L.ROW_ALL if answer else L.ROW_FALSE)
    return answer


@compiled
def take_event(s: State, w: Scratch, e: SingleEvent) -> None:
    """Decide every term but cuts and compounds for one event."""
    text = address_of(e.text, 0)
    for i in range(len(e.values)):
        value = e.values[i]
        w.kinds[0] = value.kind
        if value.kind == L.WHOLE:
            take_whole(w, 0, value.rest)
        elif value.kind == L.FLAG:
            w.kinds[0] = L.TRUE if value.rest else L.FALSE
        elif value.kind == L.NUMBER:
            if value.number == value.number:
                take_number(w, 0, value.number, value.rest)
            else:
                w.kinds[0] = L.UNMATCHABLE
        elif value.kind == L.STRING:
            w.addresses[0] = text
            w.sizes[0] = value.size
            text += value.size
        evaluate(s, w, value.attr, 1, True)
    for i in range(len(e.places)):
        take_place(w, s.attrs[e.places[i]].place, 0, e.degrees[i, 0], e.degrees[i, 1])
        evaluate_place(s, w, e.places[i], 1, True)
    for i in range(len(e.outer)):
        touch_event(s, w, e.outer[i], 0)


@compiled
def forget_event(w: Scratch, e: SingleEvent) -> None:
    for i in range(len(e.values)):
        forget_value(w, e.values[i].attr)
    for i in range(len(e.places)):
        for part in range(2):
            forget_value(w, e.places[i] + part)


@compiled
def walk_event(s: State, w: Scratch, count: int, out: Any) -> tuple[int, Any]:
    """Write the ids for the single event to the buffer, behind `count` others, or to a longer one; returns how many it
    then has, and the buffer."""
    count, out = walk_path(s, w, L.ROOT, count, out)
    for i in range(w.counters[L.TOUCHED]):
        node = s.terms[w.touched[i]].node
        if node:
            count, out = walk_path(s, w, node, count, out)
    out = lengthened(out, count, w.counters[L.RAISED])
    for i in range(w.counters[L.RAISED]):
        w.sums[w.raised[i], 0] = np.uint64(0)
        lent(out)[count] = s.multis[w.raised[i]]
        count += 1
    return count, out


@compiled
def walk_path(s: State, w: Scratch, node: int, count: int, out: Any) -> tuple[int, Any]:
    half = w.value_keys[number_value(s.terms[s.nodes[node].term].attr)] >> 32
    while node:
        bucket = s.nodes[node].bucket
        while bucket:
            out = lengthened(out, count, s.buckets[bucket].n)
            w.counters[L.VISITED] += s.buckets[bucket].n
            if s.buckets[bucket].flags & L.IS_RANGED:
                count = visit_ranged(s, w, bucket, half, lent(out), count)
            else:
                count = visit_single(s, w, bucket, lent(out), count)
            bucket = s.buckets[bucket].next
        cut = s.nodes[node].cut
        if cut == 0:
            break
        node = s.nodes[node].right if holds(s, w, cut) else s.nodes[node].left
    return count, out


@compiled
def lengthened(out: Any, used: int, more: int) -> Any:
    if used + more <= len(out):
        return out
    return copied(out, used, 2 * (used + more))


@compiled
def copied(out: Any, used: int, length: int) -> Any:
    copy = np.empty(length, np.int64)
    origin, target = lent(out), lent(copy)
    for i in range(used):
        target[i] = origin[i]
    return copy


@compiled
def holds_pair(s: State, w: Scratch, peek: int, apart: int, pair: int) -> bool:
    """Whether a predicate holds for the single event: by what stands next to it, or else by its terms."""
    low, high = s.arena[peek + L.PEEK_LOW * apart], s.arena[peek + L.PEEK_HIGH * apart]
    if low <= high:
        half = w.value_keys[s.arena[peek + L.PEEK_VALUE * apart]] >> 32
        if half < low or half > high:
            return False
        if low < half < high:
            return True
    v = s.arena[pair + 1]
    return holds(s, w, s.arena[pair]) != (v != L.NEVER and holds(s, w, v))


@compiled
def may_hold(s: State, w: Scratch, peek: int) -> bool:
    """What can be told without asking the terms."""
    low, high = s.arena[peek + L.PEEK_LOW], s.arena[peek + L.PEEK_HIGH]
    half = w.value_keys[s.arena[peek + L.PEEK_VALUE]] >> 32
    return bool(((low <= half) & (half <= high)) | (low > high))


@compiled
def visit_ranged(s: State, w: Scratch, bucket: int, half: int, out: Vector[int], count: int) -> int:
    """Visit those postings of a bucket whose first range may have the single event's number, by its upper half.

    All these ranges are of one attribute. So nothing but two columns is read of most postings, and many are compared at
    once. The last comparison may go beyond the end of the columns: there is more of the arena, as far as it goes, and
    whatever is found there is not looked at.
    """
    k, n, room = s.buckets[bucket].k, s.buckets[bucket].n, s.buckets[bucket].room
    lows = peeks_at(s, bucket) + L.PEEK_LOW * room
    highs, rest = lows + room * (L.PEEK_HIGH - L.PEEK_LOW), rest_at(s, bucket)
    for begin in range(0, n, BETWEEN):
        bits, left = np.uint64(0), n - begin
        if highs + begin + BETWEEN <= len(s.arena):
            bits = between(s.arena, lows + begin, highs + begin, half)
            if left < BETWEEN:
                bits &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        else:
            for i in range(min(left, BETWEEN)):
                if s.arena[lows + begin + i] <= half <= s.arena[highs + begin + i]:
                    bits |= np.uint64(1) << np.uint64(i)
        while bits:
            i = begin + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            if k == 1 or may_hold(s, w, rest + L.PEEK * (k - 1) * i):
                count = visit_posting(s, w, bucket, i, out, count)
    return count


@compiled
def peek_first(s: State, w: Scratch, bucket: int, begin: int, n: int) -> int:
    """Of n postings note those whose first predicate may hold for the single event; returns how many they are."""
    arena, values, some, room = s.arena, w.value_keys, w.some, s.buckets[bucket].room
    about = peeks_at(s, bucket) + begin
    lows, highs = about + L.PEEK_LOW * room, about + L.PEEK_HIGH * room
    kept = 0
    for i in range(n):
        low, high, half = arena[lows + i], arena[highs + i], values[arena[about + i]] >> 32
        some[kept] = begin + i
        kept += ((low <= half) & (half <= high)) | (low > high)
    return kept


@compiled
def peek_second(s: State, w: Scratch, bucket: int, n: int) -> int:
    """Of the first n postings in `some` keep those whose second predicate may hold."""
    rest, step, kept = rest_at(s, bucket), L.PEEK * (s.buckets[bucket].k - 1), 0
    for each in range(n):
        i = w.some[each]
        w.some[kept] = i
        kept += 1 if may_hold(s, w, rest + step * i) else 0
    return kept


@compiled
def visit_single(s: State, w: Scratch, bucket: int, out: Vector[int], count: int) -> int:
    """The same where first predicates are of any kind: one sweep through their columns, without a branch."""
    k = s.buckets[bucket].k
    for begin in range(0, s.buckets[bucket].n, L.CHUNK):
        size = min(L.CHUNK, s.buckets[bucket].n - begin)
        if k:
            size = peek_first(s, w, bucket, begin, size)
            if k > 1:
                size = peek_second(s, w, bucket, size)
        else:
            for i in range(size):
                w.some[i] = begin + i
        for i in range(size):
            count = visit_posting(s, w, bucket, w.some[i], out, count)
    return count


@compiled
def visit_posting(s: State, w: Scratch, bucket: int, i: int, out: Vector[int], count: int) -> int:
    """Append the id of a posting of which all holds. Its first predicate comes last: most who come here have looked at
    its peek."""
    k, flags, room = s.buckets[bucket].k, s.buckets[bucket].flags, s.buckets[bucket].room
    if k:
        pairs, peek = pairs_at(s, bucket) + 2 * k * i, rest_at(s, bucket) + L.PEEK * (k - 1) * i
        for j in range(1, k):
            if not holds_pair(s, w, peek + L.PEEK * (j - 1), 1, pairs + 2 * j):
                return count
        if not holds_pair(s, w, peeks_at(s, bucket) + i, room, pairs):
            return count
    if flags & L.IS_AREA and not is_in_circle(s, w, s.arena[areas_at(s, bucket) + i], 0):
        return count
    number = as_longs(s.arena)[s.buckets[bucket].at // 2 + i]
    if not flags & L.IS_MULTI:
        out[count] = number
        return count + 1
    if w.sums[number, 0] == 0:
        w.sums[number, 0] = np.uint64(1)
        w.raised[w.counters[L.RAISED]] = number
        w.counters[L.RAISED] += 1
    return count
