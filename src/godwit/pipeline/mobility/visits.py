"""Fixes to visits in one pass, for `mapInArrow`: constant memory, however long a subscriber was watched.

The fixes of a partition come sorted by subscriber, time and their place in the log: clocks tick in seconds, and who was
heard at two sites in one second was there in this order. A fix is a stay of no length; stays are joined until nothing
more can be said of all but the last two, so that it does not matter where Spark cuts its batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HANDOFF, GAP, BEGIN, END = "handoff", "gap", "begin", "end"

COLUMNS = (
    "subscriber",
    "site",
    "entered_s",
    "last_fix_s",
    "left_s",
    "fixes",
    "began",
    "ended",
    "ping_pong",
    "next_site",
    "next_s",
    "previous_site",
)

UNDECIDED = 2
"""Of the last stay nobody knows how it ends, and of the one before not yet whether its handoff was ping-pong."""

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stays:
    """Uninterrupted stays, one a row."""

    subscriber: pa.Array
    site: pa.Array
    entered_s: Floats
    last_fix_s: Floats
    fixes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, fixes: pa.RecordBatch) -> Stays:
        """Of fixes; a row with `last_fix_s` and `fixes` is a stay already."""
        time_s = fixes.column("time_s").to_numpy()
        if "last_fix_s" not in fixes.schema.names:
            return cls(fixes.column("subscriber"), fixes.column("site"), time_s, time_s, np.ones(len(time_s), np.int64))
        last_s, count = fixes.column("last_fix_s").to_numpy(), fixes.column("fixes").to_numpy()
        return cls(fixes.column("subscriber"), fixes.column("site"), time_s, last_s, count)

    def __len__(self) -> int:
        return len(self.entered_s)

    def __getitem__(self, rows: slice) -> Stays:
        return Stays(
            self.subscriber[rows], self.site[rows], self.entered_s[rows], self.last_fix_s[rows], self.fixes[rows]
        )

    def __add__(self, other: Stays) -> Stays:
        return Stays(
            pa.concat_arrays([self.subscriber, other.subscriber]),
            pa.concat_arrays([self.site, other.site]),
            np.concatenate([self.entered_s, other.entered_s]),
            np.concatenate([self.last_fix_s, other.last_fix_s]),
            np.concatenate([self.fixes, other.fixes]),
        )

    def joined(self, gap_s: float) -> Stays:
        """Where nothing came between them."""
        away_s = self.entered_s - np.roll(self.last_fix_s, 1)
        begins = ~(_follows(self.subscriber) & _follows(self.site) & (away_s < gap_s))
        first = np.flatnonzero(begins)
        last = np.append(first, len(self))[1:] - 1
        at = pa.array(first)
        fixes = np.add.reduceat(self.fixes, first) if len(first) else self.fixes
        return Stays(self.subscriber.take(at), self.site.take(at), self.entered_s[first], self.last_fix_s[last], fixes)


@dataclass(frozen=True, slots=True)
class Visiting:
    """Times are in seconds, and mean what they mean in `mobility.Rules`."""

    gap_s: float
    ping_pong_s: float

    def visits(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sorted fixes to the visits of the schema `VISITS`, in the same order."""
        repeats = _Repeats()
        return self.joined(Stays.of(repeats.left_out(batch)) for batch in batches)

    def numbered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same with the column `row`, which grows from visit to visit: times alone do not tell their order."""
        begin = 0
        for batch in self.visits(batches):
            yield batch.append_column("row", pa.array(np.arange(begin, begin + len(batch))))
            begin += len(batch)

    def joined(self, parts: Iterable[Stays]) -> Iterator[pa.RecordBatch]:
        """The same of stays, wherever they were cut into parts."""
        open_, told = None, 0
        for part in parts:
            known = (part if open_ is None else open_ + part).joined(self.gap_s)
            decided = max(len(known) - UNDECIDED, told)
            if decided > told:
                yield self._table(known, told, decided)
            # The one before those undecided says where they came from.
            kept = max(decided - 1, 0)
            open_, told = known[kept:], decided - kept
        if open_ is not None and len(open_) > told:
            yield self._table(open_, told, len(open_))

    def _table(self, stays: Stays, begin: int, end: int) -> pa.RecordBatch:
        goes_on = _followed(stays.subscriber)
        next_s = np.where(goes_on, np.roll(stays.entered_s, -1), np.nan)
        moves = goes_on & (next_s - stays.last_fix_s < self.gap_s)
        came = _shifted(moves, 1)
        next_site, previous_site = _taken(stays.site, goes_on, 1), _taken(stays.site, _shifted(goes_on, 1), -1)
        columns = [
            stays.subscriber,
            stays.site,
            pa.array(stays.entered_s),
            pa.array(stays.last_fix_s),
            pa.array(np.where(moves, next_s, stays.last_fix_s)),
            pa.array(stays.fixes),
            pa.array(np.where(came, HANDOFF, np.where(_shifted(goes_on, 1), GAP, BEGIN))),
            pa.array(np.where(moves, HANDOFF, np.where(goes_on, GAP, END))),
            pa.array(self._is_ping_pong(stays, moves, next_s)),
            next_site,
            pa.array(next_s, mask=~goes_on),
            previous_site,
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS)).slice(begin, end - begin)

    def _is_ping_pong(self, stays: Stays, moves: Bools, next_s: Floats) -> Bools:
        """There and back in a short time: the handoff that ends the short stay, and the one that began it."""
        is_short = next_s - stays.entered_s < self.ping_pong_s
        names = _codes(stays.site)
        returns: Bools = moves & _shifted(moves, 1) & is_short & (np.roll(names, -1) == np.roll(names, 1))
        return returns | (moves & _shifted(returns, -1))


class _Repeats:
    """Of fixes of one subscriber at one time, those at a site that was told already for that time count no more."""

    def __init__(self) -> None:
        self._last: tuple[str, float] | None = None
        self._sites: set[str] = set()

    def left_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not len(batch):
            return batch
        time_s = batch.column("time_s").to_numpy()
        ties = _follows(batch.column("subscriber")) & (time_s == np.roll(time_s, 1))
        ties[0] = self._last == (batch.column("subscriber")[0].as_py(), time_s[0])
        kept = np.ones(len(batch), np.bool_)
        # Most fixes are alone in their second: only those are looked at that share one, and the first of each such run.
        alone = ~(ties | np.append(ties[1:], False))
        for at in np.flatnonzero(~alone).tolist():
            site = batch.column("site")[at].as_py()
            self._sites = self._sites if ties[at] else set()
            kept[at] = site not in self._sites
            self._sites.add(site)
        if alone[-1]:
            self._sites = {batch.column("site")[-1].as_py()}
        self._last = (batch.column("subscriber")[-1].as_py(), float(time_s[-1]))
        return batch if kept.all() else batch.filter(pa.array(kept))


def _codes(names: pa.Array) -> npt.NDArray[np.int32]:
    codes: npt.NDArray[np.int32] = names.dictionary_encode().indices.to_numpy()
    return codes


def _follows(names: pa.Array) -> Bools:
    """Whether the row before has the same name."""
    codes, same = _codes(names), np.zeros(len(names), np.bool_)
    same[1:] = codes[1:] == codes[:-1]
    return same


def _followed(names: pa.Array) -> Bools:
    return _shifted(_follows(names), -1)


def _shifted(flags: Bools, by: int) -> Bools:
    """Each row told what holds so far before it, or after it where `by` is negative; nothing where there is no row."""
    moved = np.zeros_like(flags)
    if by > 0:
        moved[by:] = flags[:-by]
    else:
        moved[:by] = flags[-by:]
    return moved


def _taken(names: pa.Array, is_there: Bools, by: int) -> pa.Array:
    """The names so far further on, null where there is none."""
    at = np.arange(len(names)) + by
    return names.take(pa.array(at, mask=~is_there))
