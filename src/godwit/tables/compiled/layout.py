"""What the arrays of an index hold, and the names of their numbers.

    term       What can be true of an event: a number lies behind a cut, a text equals a word, an attribute is there.
               For the events of a slice (up to 256) a term is a row of 256 bits in `masks`; `rows[term]` says which.
    predicate  A pair of terms (u, v): it holds where exactly one of the two does. A range is a pair of cuts, equality
               a point and NEVER, a negation what is there at all and what is refused.
    posting    One conjunction of predicates, filed under a node. A subscription has one, or several that cannot hold
               at once (one for each value of a list), or one for each alternative.
    node       Postings that share one predicate, or one term that their predicates imply. A node whose term holds for
               no event of a slice costs nothing. Crowded nodes split in halves at a cut.
    bucket     Postings of one node with as many predicates, side by side in the arena.
    peek       What a predicate can be judged by without its terms, next to it in the bucket; for single events.
    slot       Where a posting is, so that it can be found again when its subscription goes.
    arena      Words in chunks of 8, 16, 32 ...: buckets, lists, texts, compounds.

Numbers are keys that order like the numbers: 64 bits of the nearest float, then twice the rest plus the side of a cut,
or plus one for a value. So a value lies behind a cut exactly when the cut's key is smaller.

Number 0 of everything stands for nothing, so that every chain and free list can end with it. Entry 0 of every array is
there, so that reading "the next of nothing" reads memory of ours; nothing that it says is used.

Why indices are right. Everything has a number that `terms.take` gave out: below the `top` of its kind, and tops never
pass the lengths of their arrays, because `filing.shortage` stops before a subscription that might need more than there
is. Chunks of the arena are given out in the same way by `terms.allocate`. Whoever gives a number back also forgets it:
a term when the last reference goes, a node when its last posting goes, a slot, bucket or circle with its posting.
Removing never needs more than it has: it takes a smaller chunk only where one can be had.

What matching costs, for a slice of up to 256 events: the columns are read once, and the numbers of each attribute
sorted. One row number is written for each cut of an attribute that the slice has numbers for. Each number and text is
looked up in a table, and so is each place in a text for each length of a pattern. Then 32 bytes of masks are read for
each half of a predicate of every posting that some event reaches. The last is nearly all of it where there are many
subscriptions. Few events that reach few of many postings are better matched one after the other: they need no row
numbers, and each looks at what it reaches itself.
"""

from __future__ import annotations

from typing import Annotated

from godwit.tables.compiled.books import WORDS, Bits, Matrix, Records, Vector, record

SLICE = 64 * WORDS
CHUNK = 256
"""How many postings are evaluated before their matches are written: what is between stays in the first-level cache."""

NEVER, ALL = 0, 1
"""Terms that hold for no event, and for every one."""

ROW_NONE, ROW_ALL, ROW_FALSE, ROW_FIRST = range(4)
"""Rows of `masks` that are always there; ROW_FALSE marks a compound that a single event is known to fail."""

FREE, CUT, POINT, EQUAL, PREFIX, SUFFIX, INSIDE, NEEDLE_PREFIX, NEEDLE_SUFFIX, NEEDLE_INSIDE, LIKE = range(11)
PRESENCE, ABSENCE, COMPOUND, OUTER, CONSTANT = range(11, 16)
"""Kinds of terms. A needle is a text that a LIKE pattern cannot do without; an OUTER term is decided by Python."""

ABSENT, NUMBER, STRING, FALSE, TRUE, UNMATCHABLE, VALUE_KINDS = range(7)
"""Kinds of values; NaN and foreign objects are there, but nothing accepts them."""

WHOLE, FLAG = VALUE_KINDS, VALUE_KINDS + 1
"""How a single event may have whole numbers and truths laid out, in `rest`; they become values of the kinds above."""

HAS_NUMBER, HAS_STRING, HAS_FLAG, HAS_ANY, IS_ABSENT, IS_TRUE, IS_FALSE, PRESENCES = range(8)
"""Terms that an attribute has once at most; they stay when nobody refers to them any more."""

OP_RANGE, OP_POINT, OP_TEXT, OP_LIKE, OP_PRESENCE, OP_OUTER, OP_NOT, OP_ANY, OP_ALL, OP_CIRCLE, OP_POSTS = range(11)
"""A filter is a program in postfix form: it leaves its predicates on a stack."""

ANY_RUN, ANY_ONE = -1, -2
"""The wildcards of LIKE patterns, among code points."""

PEEK_VALUE, PEEK_LOW, PEEK_HIGH, PEEK = range(4)
"""What can be told of a predicate where it stands: which of `value_keys` it is about, and between which upper halves of
keys. Where the first is above the second the predicate is no range and no equality, and its terms must be asked."""
HALF_MIN, HALF_MAX = -(2**31), 2**31 - 1
PEEK_TERMS = 2**30 - 1
"""Twice the number of a term up to here is an upper half, and so is one more."""

IS_AREA, IS_MULTI, IS_RANGED = 1, 2, 4
"""A bucket whose postings end with a circle to check, belong to subscriptions of several alternatives, or begin with a
range of the attribute that their node is about."""

BLOCKS, LENGTHS, ALLS, ANYS, LISTS = range(5)
"""The lists of an attribute: blocks of cuts in order, lengths of patterns, compounds."""

BLOCK = 128
ROOT = 1
SPLIT_FIRST, SPLIT_MAX, DEPTH_MAX = 128, 4096, 48
BUCKET_WORDS_MAX = 1 << 14
ARENA_RESERVE = 1 << 18

TERM_TOP, TERM_FREE, BLOCK_TOP, BLOCK_FREE, NODE_TOP, NODE_FREE, BUCKET_TOP, BUCKET_FREE = range(8)
SLOT_TOP, SLOT_FREE, AREA_TOP, AREA_FREE, MULTI_TOP, MULTI_FREE, ARENA_TOP, POINTS_USED, TEXTS_USED = range(8, 17)
COMPOUNDS_USED, IDS_USED, SUBSCRIPTIONS, NEEDED, WISHED, TEXTS_SEEN, OUTERS, CHUNKS_FREE = range(17, 25)
HEADS = CHUNKS_FREE + 40
"""Counters of the state, and the heads of its free lists. NEEDED is how many words of the arena the subscription that
is being added may take, and WISHED how many must be free for a node that could not split. Chunks come in grades up to
2^31 words, since indices into the arena take four bytes."""

DONE, SHORT_TERMS, SHORT_BLOCKS, SHORT_NODES, SHORT_BUCKETS, SHORT_SLOTS, SHORT_AREAS, SHORT_MULTIS = range(8)
SHORT_ARENA, SHORT_POINTS, SHORT_TEXTS, SHORT_COMPOUNDS, SHORT_IDS = range(8, 13)
"""Why adding stopped before its end; the caller makes room and goes on."""

ID_EMPTY, ID_GONE, NO_SLOT = -2, -3, -1
GONE = -1

ROWS_USED, TOUCHED, DIRTY_USED, OVERFLOW, STAMP, RAISED, ROOM, EVENTS, TEXT_NEEDED, VISITED, COUNTERS = range(11)
FITS, FEW_ROWS, SHORT_TEXT = range(3)
"""Why a slice could not be matched: it needs more rows of masks, or longer scratch for its texts."""

KEY_ABSENT = -(2**63)
"""Both halves of a number that an event does not have: before every cut."""

LAT, LON, COS_LAT, PLACE_PARTS = range(4)

C_TERM, C_ALL, C_COUNT, C_AREA, C_POSITION, C_PAIRS = range(6)
"""A compound's chunk: its term, whether all or any of its predicates must hold, how many they are, the circle that
places must lie in besides (or -1), its position in its attribute's list, and the predicates."""


I4 = Annotated[int, "i4"]
I8 = Annotated[int, "i8"]
F8 = Annotated[float, "f8"]


class List:
    """Words in order, in a chunk of the arena that grows by doubling."""

    at: I4
    n: I4
    room: I4


class Attribute:
    """What subscriptions ask of one attribute: the span of their numbers, and how many terms of each kind there are."""

    low: F8
    high: F8
    cuts: I4
    points: I4
    equals: I4
    equal_texts: I4
    patterns: I4
    place: I4
    presence: Annotated[Vector[int], "i4", PRESENCES]


class Term:
    """`key` and `low` are a number's, `low` alone is where a text or compound is kept, `link` chains LIKE patterns."""

    key: I8
    low: I4
    attr: I4
    refs: I4
    node: I4
    link: I4
    kind: I4


class Node:
    """`own` postings are its own, `total` with those below; it tries to split when `own` exceeds `limit`."""

    term: I4
    parent: I4
    cut: I4
    left: I4
    right: I4
    bucket: I4
    own: I4
    total: I4
    limit: I4
    depth: I4


class Bucket:
    """Postings of `k` predicates: numbers (two words each), predicates (2k words each), peeks (3k), slots, circles."""

    node: I4
    k: I4
    flags: I4
    at: I4
    n: I4
    room: I4
    next: I4


class Slot:
    bucket: I4
    at: I4
    next: I4


class Area:
    """A circle that a place must lie in."""

    lat: F8
    lon: F8
    radius_m: F8
    cos_lat: F8
    place: I4
    next: I4


class Step:
    """An instruction; `text` numbers texts, or the circle of OP_ALL."""

    op: I4
    attr: I4
    count: I4
    one_low: I4
    one: F8
    two: F8
    two_low: I4
    text: I4


class EventValue:
    """A value of a single event; texts are side by side elsewhere."""

    number: F8
    rest: I8
    attr: I4
    kind: I4
    size: I8


class State:
    """Everything that an index knows; `rows` alone is scratch, made anew in a copy."""

    heads: Annotated[Vector[int], "i8"]
    attrs: Records[Attribute]
    lists: Records[List]
    terms: Records[Term]
    block_keys: Annotated[Matrix[int], "i8", BLOCK]
    block_lows: Annotated[Matrix[int], "i4", BLOCK]
    block_terms: Annotated[Matrix[int], "i4", BLOCK]
    block_n: Annotated[Vector[int], "i4"]
    nodes: Records[Node]
    buckets: Records[Bucket]
    slots: Records[Slot]
    areas: Records[Area]
    multis: Annotated[Vector[int], "i8"]
    arena: Annotated[Vector[int], "i4"]
    points: Annotated[Vector[int], "i4"]
    texts: Annotated[Vector[int], "i4"]
    compounds: Annotated[Vector[int], "i4"]
    id_keys: Annotated[Vector[int], "i8"]
    id_slots: Annotated[Vector[int], "i4"]
    rows: Annotated[Vector[int], "u2"]


class Scratch:
    """What matching writes and forgets."""

    counters: Annotated[Vector[int], "i8"]
    masks: Annotated[Matrix[Bits], "u8", WORDS]
    touched: Annotated[Vector[int], "i4"]
    dirty: Annotated[Vector[int], "i4"]
    stamps: Annotated[Vector[int], "i8"]
    kinds: Annotated[Vector[int], "u1"]
    keys: Annotated[Vector[int], "i8"]
    lows: Annotated[Vector[int], "i8"]
    addresses: Annotated[Vector[int], "i8"]
    sizes: Annotated[Vector[int], "i8"]
    kind_masks: Annotated[Matrix[Bits], "u8", WORDS]
    order: Annotated[Vector[int], "i4"]
    order_spare: Annotated[Vector[int], "i4"]
    bins: Annotated[Vector[int], "i4"]
    cut_keys: Annotated[Vector[int], "i8"]
    cut_lows: Annotated[Vector[int], "i8"]
    cut_rows: Annotated[Vector[int], "i8"]
    seen: Annotated[Vector[int], "i4"]
    seen_next: Annotated[Vector[int], "i4"]
    seen_hashes: Annotated[Vector[Bits], "u8"]
    text_hashes: Annotated[Vector[Bits], "u8"]
    text_points: Annotated[Vector[int], "i4"]
    lats: Annotated[Vector[float], "f8"]
    places: Annotated[Matrix[float], "f8", SLICE]
    sums: Annotated[Matrix[Bits], "u8", WORDS]
    raised: Annotated[Vector[int], "i4"]
    raised_ids: Annotated[Vector[int], "i8"]
    value_keys: Annotated[Vector[int], "i8"]  # of the single event: a number and what it equals, for each attribute
    value_lows: Annotated[Vector[int], "i8"]
    wanted: Annotated[Matrix[Bits], "u8", WORDS]
    pending: Annotated[Vector[int], "i4"]
    found: Annotated[Matrix[Bits], "u8", WORDS]
    some: Annotated[Vector[int], "i8"]
    words: Annotated[Vector[Bits], "u8"]
    word_places: Annotated[Vector[int], "i8"]
    ends: Annotated[Vector[int], "i8"]


class Program:
    """Subscriptions to add: each a range of alternatives, each of those a range of steps."""

    ids: Annotated[Vector[int], "i8"]
    alternatives: Annotated[Vector[int], "i4"]
    starts: Annotated[Vector[int], "i4"]
    code: Records[Step]
    text_starts: Annotated[Vector[int], "i8"]
    text: Annotated[Vector[int], "u1"]
    circles: Annotated[Vector[float], "f8"]
    stack: Annotated[Vector[int], "i4"]
    posts: Annotated[Vector[int], "i4"]


class Source:
    """Which columns of a batch are which attributes: (first column, last + 1, attribute), the same twice and the
    attribute of the latitude, and for each of `outer_terms` in turn whether it holds for each event."""

    fields: Annotated[Matrix[int], "i4", 3]
    places: Annotated[Matrix[int], "i4", 5]
    outer_terms: Annotated[Vector[int], "i4"]
    outer: Annotated[Vector[int], "u1"]


class SingleEvent:
    """One event: its values with their texts in a row, its places, and the terms that Python found to hold."""

    values: Records[EventValue]
    text: Annotated[Vector[int], "u1"]
    places: Annotated[Vector[int], "i4"]
    degrees: Annotated[Matrix[float], "f8", 2]
    outer: Annotated[Vector[int], "i4"]


class Span:
    """Numbers of one column that are asked for, from `low` to `high`. Then addresses: of the column's numbers, of its
    line of bits up to the last part of the span, and of the line up to the part before the first, or 0."""

    low: F8
    high: F8
    values: I8
    upto: I8
    before: I8


class Search:
    """What is asked of columns: all spans at once."""

    spans: Records[Span]


STEP, EVENT_VALUE, SPAN = record(Step), record(EventValue), record(Span)
