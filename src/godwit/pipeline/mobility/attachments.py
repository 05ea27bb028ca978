"""A log of who was attached where, instead of positions: cell ids, access points, brokers. It gives the same visits.

Two kinds of logs are common. One tells changes: who is attached stays until the log says otherwise. The other tells
where everybody is again and again, as positions do, and silence means that somebody is away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from godwit.pipeline.io.reading import Dataset, quarantined
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.mobility.visits import Bools, Floats, Stays, Visiting
from godwit.pipeline.schemas import ATTACHMENTS, VISITS, shaped

NOWHERE = "attached, and the column 'site' does not say where"
BACKWARDS = "the attachment ends before it begins"

_ORDER = "_godwit_order"


def usable(log: DataFrame) -> Dataset:
    """Rows that can be used, and the others with the rule that refuses them.

    Where `attached` is not said, a row with a site is an attachment and one without is a disconnection.
    """
    told = log.withColumn("attached", sf.coalesce("attached", sf.col("site").isNotNull()))
    rules = {
        NOWHERE: sf.col("attached") & sf.col("site").isNull(),
        BACKWARDS: sf.coalesce(sf.col("until_s") < sf.col("time_s"), sf.lit(False)),
    }
    return quarantined(told, rules, "attachments")


def of_traces(traces: DataFrame) -> DataFrame:
    """What traces say of attachments. A broker names the client; a client that speaks for itself names the broker."""
    told = traces.where("kind IN ('attached', 'detached')").select(
        sf.coalesce(sf.nullif("client", sf.lit("")), sf.col("node")).alias("subscriber"),
        "time_s",
        sf.coalesce(sf.nullif("peer", sf.lit("")), sf.col("node")).alias("site"),
        (sf.col("kind") == "attached").alias("attached"),
        sf.lit(None).cast("double").alias("until_s"),
    )
    return shaped(told, ATTACHMENTS)


def visits(log: DataFrame, rules: Rules, *, sampled: bool = False) -> DataFrame:
    """Uninterrupted stays at one site, as `movement.visits` has them. Rows of one time keep the order of their file.

    One shuffle and one sort; Spark may have cut a subscriber's rows into batches anywhere.
    """
    # The number is given where the file is read: there rows still are as they were written.
    numbered = log.select(*ATTACHMENTS.names, sf.monotonically_increasing_id().alias(_ORDER))
    in_order = numbered.repartition("subscriber").sortWithinPartitions("subscriber", "time_s", _ORDER)
    attached = Attached(Visiting(rules.gap_s, rules.ping_pong_s), sampled)
    return shaped(in_order.mapInArrow(attached.visits, VISITS).select(*VISITS.names), VISITS)


@dataclass(frozen=True, slots=True)
class Attached:
    """Rows of a log, sorted by subscriber and time, to visits in one pass; for `mapInArrow`."""

    visiting: Visiting
    sampled: bool
    """Whether the log tells again and again where everybody is, so that silence means away."""

    def visits(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.visiting.joined(self._stays(batches))

    def _stays(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Stays]:
        """Each attachment as a stay, as soon as the row is known that ends it."""
        open_: _Log | None = None
        for batch in batches:
            rows = _Log.of(batch)
            known = (rows if open_ is None else open_ + rows).effective()
            attached = np.flatnonzero(known.attached)
            if len(attached) == 0:
                open_ = None
                continue
            yield known.stays(self.sampled)[: len(attached) - 1]
            open_ = known[attached[-1] :]
        if open_ is not None:
            yield open_.stays(self.sampled)


@dataclass(frozen=True, slots=True)
class _Log:
    subscriber: pa.Array
    site: pa.Array
    time_s: Floats
    attached: Bools
    until_s: Floats
    """Not a number where the row does not say it."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Log:
        until_s = batch.column("until_s").to_numpy(zero_copy_only=False).astype(np.float64)
        return cls(
            batch.column("subscriber"),
            batch.column("site"),
            batch.column("time_s").to_numpy(),
            batch.column("attached").to_numpy(zero_copy_only=False).astype(np.bool_),
            until_s,
        )

    def __len__(self) -> int:
        return len(self.time_s)

    def __getitem__(self, rows: slice | Bools) -> _Log:
        at = pa.array(np.arange(len(self))[rows])
        return _Log(
            self.subscriber.take(at), self.site.take(at), self.time_s[rows], self.attached[rows], self.until_s[rows]
        )

    def __add__(self, other: _Log) -> _Log:
        return _Log(
            pa.concat_arrays([self.subscriber, other.subscriber]),
            pa.concat_arrays([self.site, other.site]),
            np.concatenate([self.time_s, other.time_s]),
            np.concatenate([self.attached, other.attached]),
            np.concatenate([self.until_s, other.until_s]),
        )

    def effective(self) -> _Log:
        """Without rows that say nothing new: repeated ones, and disconnections of somebody who is not attached there.

        An access point, or a broker, often notices late that somebody has gone: by then it is attached elsewhere, and
        the late word must not end that attachment.
        """
        own = self[~self._repeats()]
        last = np.maximum.accumulate(np.where(own.attached, np.arange(len(own)), -1))
        subscribers, sites = _codes(own.subscriber), _codes(own.site)
        of_it = (last >= 0) & (subscribers[last] == subscribers) & ((sites == _NONE) | (sites[last] == sites))
        ends: Bools = ~own.attached & of_it
        ends[ends] = np.append(True, np.diff(last[ends]) != 0)[: ends.sum()]
        return own[own.attached | ends]

    def _repeats(self) -> Bools:
        columns = (_codes(self.subscriber), _codes(self.site), self.time_s, self.attached)
        same = np.logical_and.reduce([values[1:] == values[:-1] for values in columns])
        return np.append(False, same)[: len(self)]

    def stays(self, sampled: bool) -> Stays:
        """Of every attachment: until it says itself, or until the next row."""
        subscribers, size = _codes(self.subscriber), len(self)
        goes_on = np.append(subscribers[1:] == subscribers[:-1], False)[:size]
        next_s = np.append(self.time_s[1:], np.nan)[:size]
        is_ended = np.append(~self.attached[1:], False)[:size]
        told_until = goes_on & (is_ended | (not sampled))
        last_s = np.where(told_until, next_s, self.time_s)
        said = ~np.isnan(self.until_s)
        last_s = np.where(said, np.where(goes_on, np.minimum(self.until_s, next_s), self.until_s), last_s)
        at = pa.array(np.flatnonzero(self.attached))
        ones = np.ones(len(at), np.int64)
        return Stays(
            self.subscriber.take(at), self.site.take(at), self.time_s[self.attached], last_s[self.attached], ones
        )


_NONE = -1


def _codes(names: pa.Array) -> npt.NDArray[np.int64]:
    """Equal numbers for equal names, and one of its own for none."""
    indices = names.dictionary_encode().indices
    codes: npt.NDArray[np.int64] = indices.fill_null(_NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
