"""The compiled index: which of very many subscriptions want this event, or each event of a batch.

    index = Index()
    index.add_many(ids, filters)
    index.match({"pm25": 180, "kind": "reading"})            one event
    index.match_batch(Batch.from_arrow(record_batch))        many at once, the fast way

Answers are those of `Filter.matches`, for every predicate there is, your own included. `compiled.layout` tells how it
works.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.tables.compiled import layout, state
from godwit.tables.compiled.kernels import KERNELS
from godwit.tables.compiled.programs import Names, Programmer
from godwit.tables.compiled.state import Arrays
from godwit.tables.matching.single import SingleEvent

if TYPE_CHECKING:
    from godwit.tables.matching.batch import Batch, Piece

Ints = npt.NDArray[np.int64]
Wanted = Filter | FilterSet

TOGETHER = 4096
"""How many subscriptions are turned into programs before they are filed."""

BATCHED = 24
"""From so many events on it is faster to match them as one batch."""

EVENT_NS, LOOK_NS = 1_500.0, 4.0
"""What a single event costs, and each posting that it reaches."""
CUT_NS, POSTING_NS = 6.0, 12.0
"""What a slice of events costs: for each cut of an attribute that it has, and each posting that one of them reaches.
Measured with `benchmarks/matching.py --ways`."""
LEARNED = 64
"""After so many slices one event is matched by itself, which tells how many postings an event reaches."""


@cache
def _has_arrow() -> bool:
    return find_spec("pyarrow") is not None


@dataclass(slots=True, frozen=True)
class Matches:
    """The ids of the subscriptions that want each event: those of event i are `ids[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    ids: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> Ints:
        return self.ids[self.offsets[event] : self.offsets[event + 1]]

    def __iter__(self) -> Iterator[Ints]:
        return (self[event] for event in range(len(self)))

    @property
    def counts(self) -> Ints:
        return np.diff(self.offsets)

    def parted(self, groups: array[int]) -> list[tuple[int, list[int]]] | None:
        """By group instead of by event: each that wants one of the events, with all that it wants, in order and each
        once. Of each id `groups` tells its group, or one below zero; None where an id that wants something has none."""
        ids, events, of = self.ids, len(self), np.frombuffer(groups, np.int32) if groups else np.zeros(0, np.int32)
        if not len(ids):
            return []
        if ids.min() < 0 or ids.max() >= len(of):
            return None
        found = of[ids].astype(np.int64)
        if found.min() < 0:
            return None
        keys = found * events + np.repeat(np.arange(events), self.counts)
        keys.sort()
        numbers, wanted = np.divmod(keys[np.flatnonzero(np.diff(keys, prepend=-1))], events)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        order, ends = wanted.tolist(), [*starts[1:].tolist(), len(wanted)]
        return [
            (number, order[begin:end])
            for number, begin, end in zip(numbers[starts].tolist(), starts.tolist(), ends, strict=True)
        ]


class Index:
    """Subscriptions by id, each a filter or a set of alternatives; ids are integers of 64 bits.

    One thread uses an index at a time; between two calls anything may be added or removed.
    """

    def __init__(self) -> None:
        self._names = Names()
        self._outer: dict[int, AttributeFilter] = {}
        self._outer_terms: dict[AttributeFilter, int] = {}
        self._absent: set[int] = set()
        self._state = state.empty_state()
        self._matcher = _Matcher(self._names, self._outer, self._absent, self._state)

    def add(self, id: int, wanted: Wanted) -> None:  # noqa: A002
        """File a subscription; `KeyError` where the id is in use."""
        if id in self:
            raise KeyError(f"subscription {id} is in the index already")
        if not _is_id(id):
            raise KeyError("ids must be integers of 64 bits")
        self._add([id], [wanted])

    def add_many(self, ids: Iterable[int], wanteds: Iterable[Wanted]) -> None:
        """File subscriptions together, which is faster than one by one; all of them, or none where an id is in use."""
        numbers, filters = list(ids), list(wanteds)
        if len(numbers) != len(filters):
            raise ValueError(f"{len(numbers)} ids and {len(filters)} filters: there must be one filter for each id")
        self._check_new(numbers)
        for begin in range(0, len(numbers), TOGETHER):
            self._add(numbers[begin : begin + TOGETHER], filters[begin : begin + TOGETHER])

    def remove(self, id: int) -> None:  # noqa: A002
        """Take a subscription out; `KeyError` where it is not there."""
        if not _is_id(id) or not KERNELS.remove(self._state.address, id):
            raise KeyError(f"subscription {id} is not in the index")
        self._drop_outer()

    def __len__(self) -> int:
        return int(self._state["heads"][layout.SUBSCRIPTIONS])

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return _is_id(id) and KERNELS.knows(self._state.address, id)

    def match(self, values: Mapping[str, Value]) -> Ints:
        """The ids of the subscriptions that want this event, each once."""
        return self._matcher.match(values)

    def match_each(self, events: Sequence[Mapping[str, Value]]) -> Iterable[Ints]:
        """The same for each of these events: as one batch where they are many and pyarrow is installed."""
        together = self.match_together(events)
        return [self._matcher.match(values) for values in events] if together is None else together

    def match_together(self, events: Sequence[Mapping[str, Value]]) -> Matches | None:
        """The same as one batch; None where they are few, or pyarrow is not installed."""
        if len(events) < BATCHED or not _has_arrow():
            return None
        from godwit.tables.matching.batch import Batch

        return self.match_batch(Batch.from_events(events))

    @property
    def gathers(self) -> bool:
        """Whether a batch costs hardly more than a few events: all is compiled, and there are batches."""
        return not self._outer and _has_arrow()

    def match_batch(self, batch: Batch) -> Matches:
        """The same for every event of a batch."""
        return self._matcher.match_batch(batch)

    def count_batch(self, batch: Batch) -> Ints:
        """How many subscriptions want each event of a batch."""
        return self._matcher.count_batch(batch)

    @property
    def nbytes(self) -> int:
        """The memory that the index holds, its scratch and its names included."""
        names = sum(sys.getsizeof(name) for names in (self._names.values, self._names.places) for name in names)
        tables = (self._names.values, self._names.places, self._outer, self._outer_terms, self._absent)
        return self._state.nbytes + self._matcher.nbytes + names + sum(map(sys.getsizeof, tables))

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: self._state[name] for name in self._state if name != "rows"}
        return {"names": self._names, "outer": self._outer, "absent": self._absent, "arrays": arrays}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._names, self._outer, self._absent = kept["names"], kept["outer"], kept["absent"]
        self._outer_terms = {attribute: term for term, attribute in self._outer.items() if _is_hashable(attribute)}
        self._state = Arrays(layout.State, kept["arrays"])
        state.make_rows(self._state)
        self._matcher = _Matcher(self._names, self._outer, self._absent, self._state)

    def _check_new(self, numbers: list[int]) -> None:
        if not all(map(_is_id, numbers)):
            raise KeyError("ids must be integers of 64 bits")
        known = KERNELS.first_known(self._state.address, np.array(numbers, np.int64))
        if known >= 0:
            raise KeyError(f"subscription {numbers[known]} is in the index already")
        if len(set(numbers)) < len(numbers):
            twice = next(number for number in numbers if numbers.count(number) > 1)
            raise KeyError(f"subscription {twice} is given twice")

    def _add(self, numbers: list[int], filters: list[Wanted]) -> None:
        programmer = Programmer(self._names, self._outer_term, self._absent.add)
        for number, wanted in zip(numbers, filters, strict=True):
            programmer.add(number, wanted)
        self._fit_names()
        program, done = programmer.program(), 0
        while True:
            done, short = KERNELS.add(self._state.address, program.address, done)
            if not short:
                break
            state.make_room(self._state, short)
        self._drop_outer()

    def _fit_names(self) -> None:
        """Make room for the attributes that were named since, and number the places."""
        state.make_attributes(self._state, self._names.count)
        places, attrs = self._names.places, self._state["attrs"]
        if places and attrs["place"][next(reversed(places.values()))] != len(places) - 1:
            for number, attr in enumerate(places.values()):
                attrs["place"][attr : attr + 3] = number

    def _outer_term(self, attribute: AttributeFilter, attr: int) -> int:
        known = self._outer_terms.get(attribute) if _is_hashable(attribute) else None
        if known is not None:
            return known
        self._fit_names()
        if self._state["heads"][layout.TERM_TOP] >= len(self._state["terms"]):
            state.make_room(self._state, layout.SHORT_TERMS)
        term = KERNELS.new_outer(self._state.address, attr)
        self._outer[term] = attribute
        if _is_hashable(attribute):
            self._outer_terms[attribute] = term
        return term

    def _drop_outer(self) -> None:
        """Forget the attribute filters that only Python can decide and that nobody asks for any more."""
        if not self._outer:
            return
        terms = self._state["terms"]
        for term in [term for term in self._outer if terms[term]["refs"] == 0]:
            attribute = self._outer.pop(term)
            if terms[term]["kind"] == layout.OUTER:
                KERNELS.drop_outer(self._state.address, term)
            if _is_hashable(attribute):
                self._outer_terms.pop(attribute, None)


def _is_id(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and -(2**63) <= number < 2**63


def _is_hashable(attribute: AttributeFilter) -> bool:
    try:
        hash(attribute)
    except TypeError:
        return False
    return True


class _Matcher:
    """Matches events against a state; its scratch grows with what the events need."""

    def __init__(
        self, names: Names, outer: Mapping[int, AttributeFilter], absent: set[int], subscriptions: Arrays
    ) -> None:
        self._names = names
        self._outer = outer
        self._absent = absent
        self._state = subscriptions
        self._rows, self._text = 1 << 12, 1 << 10
        self._scratch: Arrays | None = None
        self._fitting = (-1, -1)
        """The renewals of the state and the number of places that the scratch is known to fit."""
        self._out = np.empty(layout.SLICE * 24, np.int64)
        self._reach = 0.0
        """How many postings an event reaches, as the last that was matched by itself has told."""
        self._slices = 0
        self._event = SingleEvent(names, outer)

    @property
    def nbytes(self) -> int:
        return self._out.nbytes + self._event.nbytes + (self._scratch.nbytes if self._scratch else 0)

    def match(self, values: Mapping[str, Value]) -> Ints:
        self._event.take(values)
        while True:
            scratch = self._ready()
            ids, self._out = KERNELS.match_event(self._state.address, scratch.address, self._event.address, self._out)
            if not self._overflows(scratch):
                return ids

    def match_batch(self, batch: Batch) -> Matches:
        counts, ids = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
        for piece, source in self._sources(batch):
            start, cuts = 0, self._cuts(source)
            while start < piece.length:
                n = min(layout.SLICE, piece.length - start)
                if self._slices % LEARNED == 0:
                    n = 1
                self._slices += 1
                self._match(piece, source, start, n, counts, ids, apart=n == 1 or self._are_few(n, cuts))
                start += n
        found = ids[1] if len(ids) == 2 else np.concatenate(ids)
        return Matches(np.cumsum(np.concatenate(counts)), found)

    def count_batch(self, batch: Batch) -> Ints:
        counts = [np.zeros(0, np.int64)]
        for piece, source in self._sources(batch):
            for start in range(0, piece.length, layout.SLICE):
                self._count(piece, source, start, min(layout.SLICE, piece.length - start), counts)
        return np.concatenate(counts)

    def _cuts(self, source: Arrays) -> int:
        """Those of all attributes that the events of a batch may have."""
        cuts, places = self._state["attrs"]["cuts"], source["places"][:, 4]
        return int(cuts[source["fields"][:, 2]].sum() + cuts[places].sum() + cuts[places + 1].sum())

    def _are_few(self, n: int, cuts: int) -> bool:
        """Whether so many events are matched faster one after the other than as a slice."""
        reached = min(len(self), n * self._reach)
        return n * (EVENT_NS + LOOK_NS * self._reach) < CUT_NS * cuts + POSTING_NS * reached

    def __len__(self) -> int:
        return int(self._state["heads"][layout.SUBSCRIPTIONS])

    def _match(
        self, piece: Piece, source: Arrays, start: int, n: int, counts: list[Ints], ids: list[Ints], *, apart: bool
    ) -> None:
        """Match n events of a batch, each by itself or all at once."""
        kernel = KERNELS.match_few if apart else KERNELS.match_slice
        while True:
            scratch = self._ready()
            found, lengths, self._out = kernel(
                self._state.address,
                scratch.address,
                source.address,
                piece.schema,
                piece.array,
                start,
                n,
                piece.length,
                self._out,
            )
            if not self._overflows(scratch):
                counts.append(lengths)
                ids.append(found)
                if apart:
                    self._reach = int(scratch["counters"][layout.VISITED]) / n
                return
            if self._rows >= state.ROWS_MAX and n > 1:
                self._match(piece, source, start, n // 2, counts, ids, apart=apart)
                self._match(piece, source, start + n // 2, n - n // 2, counts, ids, apart=apart)
                return

    def _count(self, piece: Piece, source: Arrays, start: int, n: int, counts: list[Ints]) -> None:
        while True:
            scratch = self._ready()
            lengths = KERNELS.count_slice(
                self._state.address,
                scratch.address,
                source.address,
                piece.schema,
                piece.array,
                start,
                n,
                piece.length,
            )
            if not self._overflows(scratch):
                counts.append(lengths)
                return
            if self._rows >= state.ROWS_MAX and n > 1:
                self._count(piece, source, start, n // 2, counts)
                self._count(piece, source, start + n // 2, n - n // 2, counts)
                return

    def _ready(self) -> Arrays:
        """The scratch, made anew where the state has outgrown it."""
        scratch, known = self._scratch, self._state
        if scratch is not None and self._fitting == (known.renewals, len(self._names.places)):
            return scratch
        if (
            scratch is None
            or len(scratch["touched"]) != len(known["terms"])
            or len(scratch["dirty"]) != len(known["attrs"])
            or len(scratch["raised"]) != len(known["multis"])
            or len(scratch["places"]) != len(self._names.places) * layout.PLACE_PARTS
        ):
            state.make_rows(known)
            scratch = self._scratch = state.scratch_for(known, self._rows, len(self._names.places), self._text)
        self._fitting = known.renewals, len(self._names.places)
        return scratch

    def _overflows(self, scratch: Arrays) -> bool:
        """Whether the last call had too little scratch; the next has more."""
        counters = scratch["counters"]
        why = counters[layout.OVERFLOW]
        if why == layout.FITS:
            return False
        if why == layout.SHORT_TEXT:
            self._text = 2 * int(counters[layout.TEXT_NEEDED])
        else:
            self._rows = min(2 * self._rows, state.ROWS_MAX)
        self._scratch = None
        return True

    def _sources(self, batch: Batch) -> Iterator[tuple[Piece, Arrays]]:
        outer, begin = self._outer_answers(batch), 0
        for piece in batch.pieces(self._columns_wanted()):
            yield piece, self._source(piece, outer[:, begin : begin + piece.length])
            begin += piece.length

    def _columns_wanted(self) -> Mapping[str, int]:
        wanted = self._names.values
        if not self._names.places:
            return wanted
        halves = {half: 0 for name in self._names.places for half in name.partition(",")[::2]}
        return {**halves, **wanted}

    def _source(self, piece: Piece, outer: npt.NDArray[np.bool_]) -> Arrays:
        known, at, fields, spans = self._names.values, 0, [], {}
        for name, group in groupby(piece.names):
            end = at + sum(1 for _ in group)
            spans[name] = (at, end)
            if name in known:
                fields.append((at, end, known[name]))
            at = end
        fields += [(0, 0, attr) for attr in self._absent.difference(attr for _, _, attr in fields)]
        places = []
        for name, attr in self._names.places.items():
            lat, _, lon = name.partition(",")
            if lat in spans and lon in spans:
                places.append((*spans[lat], *spans[lon], attr))
        return Arrays(
            layout.Source,
            {
                "fields": np.array(fields, np.int32).reshape(-1, 3),
                "places": np.array(places, np.int32).reshape(-1, 5),
                "outer_terms": np.fromiter(self._outer, np.int32, len(self._outer)),
                "outer": np.ascontiguousarray(outer).view(np.uint8).reshape(-1),
            },
        )

    def _outer_answers(self, batch: Batch) -> npt.NDArray[np.bool_]:
        answers = np.zeros((len(self._outer), len(batch)), np.bool_)
        if self._outer:
            rows = batch.rows()
            for at, attribute in enumerate(self._outer.values()):
                answers[at] = [attribute.matches(row) for row in rows]
        return answers
