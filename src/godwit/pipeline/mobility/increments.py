"""Visits of positions that come file by file: only new files are read, and the boundary is carried on.

Of each subscriber the last three stays are kept. The last may go on, and whether the handoff before it was ping-pong is
not known yet; the third says where they came from, and has been told. All others are decided and never looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.mobility.visits import UNDECIDED, Visiting
from godwit.pipeline.schemas import DOUBLE, LONG, STRING, VISITS, shaped
from godwit.pipeline.streaming.state import State

STAYS, WAYS, SPELLS, OPEN = "stays", "ways", "spells", "open"

LATE = StructType(
    [StructField("subscriber", STRING), StructField("time_s", DOUBLE), StructField("site", STRING)],
)
"""Fixes that came after a later one of the same subscriber had been taken."""

_KEPT = StructType(
    [
        *(StructField(name, STRING) for name in ("subscriber", "site")),
        *(StructField(name, DOUBLE) for name in ("entered_s", "last_fix_s")),
        StructField("fixes", LONG),
        StructField("from_end", LONG),
    ]
)
_WAYS = StructType(
    [
        *(StructField(name, STRING) for name in ("previous_site", "site", "next_site", "day")),
        *(StructField(name, LONG) for name in ("gone", "ping_pongs")),
        StructField("last_s", DOUBLE),
        StructField("steady", LONG),
    ]
)
_SPELLS = StructType(
    [
        *(StructField(name, STRING) for name in ("site", "ended")),
        StructField("s", DOUBLE),
        StructField("visits", LONG),
        *(StructField(name, DOUBLE) for name in ("connected_s", "away_s")),
        StructField("to_same", LONG),
    ]
)

_COLUMNS = StructType([*VISITS, StructField("row", LONG)])


@dataclass(frozen=True, slots=True)
class Taken:
    """What a micro-batch makes of new fixes and of what the one before left."""

    found: DataFrame
    """All visits of now, kept in memory until they have been written; to be unpersisted."""
    decided: DataFrame
    open: DataFrame
    """Visits that may still change, as they are now."""
    late: DataFrame
    seen: Observation

    def late_fixes(self) -> int:
        """Known once the visits have been written."""
        return int(self.seen.get.get("late") or 0)


class Increments:
    def __init__(self, out: str, rules: Rules) -> None:
        self._state, self._rules = State(out, {STAYS: _KEPT, WAYS: _WAYS, SPELLS: _SPELLS, OPEN: VISITS}), rules

    def taken(self, near: DataFrame, before: int) -> Taken:
        """`near` are new fixes with their sites."""
        kept = self._state.left(near.sparkSession, STAYS, before)
        seen = Observation()
        usable, late = _in_time(near, kept, seen)
        found = _numbered(usable, kept, self._rules).persist(StorageLevel.MEMORY_AND_DISK)
        is_told = sf.col("has_told") & (sf.col("from_start") == 1)
        is_decided = sf.col("from_end") > UNDECIDED
        return Taken(
            found,
            shaped(found.where(is_decided & ~is_told).select(*VISITS.names), VISITS),
            shaped(found.where(~is_decided).select(*VISITS.names), VISITS),
            late,
            seen,
        )

    def keep(self, taken: Taken, decided: DataFrame, moves: DataFrame, before: int, number: int) -> None:
        """Leave the state as it is after this micro-batch; `decided` and `moves` are as they were written."""
        spark, state = decided.sparkSession, self._state
        kept = taken.found.where(sf.col("from_end") <= UNDECIDED + 1).select(*_KEPT.names)
        state.keep(kept, STAYS, number)
        state.keep(taken.open, OPEN, number)
        ways = state.left(spark, WAYS, before).unionByName(mobility.daily_ways(moves))
        state.keep(_summed_ways(ways), WAYS, number)
        spells = state.left(spark, SPELLS, before).unionByName(mobility.spells(decided))
        state.keep(_summed_spells(spells), SPELLS, number)

    def open(self, spark: SparkSession, number: int) -> DataFrame:
        """Visits that may still change, as they are after this micro-batch."""
        return self._state.left(spark, OPEN, number)

    def ways(self, spark: SparkSession, number: int, still_open: DataFrame) -> DataFrame:
        """Of each day, after this micro-batch, those included that may still change."""
        moves = mobility.daily_ways(mobility.handoffs(still_open, self._rules))
        return _summed_ways(self._state.left(spark, WAYS, number).unionByName(moves))

    def spells(self, spark: SparkSession, number: int, still_open: DataFrame) -> DataFrame:
        return _summed_spells(self._state.left(spark, SPELLS, number).unionByName(mobility.spells(still_open)))

    def forget(self, spark: SparkSession, before: int) -> None:
        self._state.forget(spark, before)


def _in_time(near: DataFrame, kept: DataFrame, seen: Observation) -> tuple[DataFrame, DataFrame]:
    """Fixes that come after those taken before, and those that are late; a repetition of the last fix is neither."""
    last = kept.where("from_end = 1").select(
        "subscriber", sf.col("last_fix_s").alias("known_s"), sf.col("site").alias("at")
    )
    both = near.join(last, "subscriber", "left")
    is_late = sf.coalesce(sf.col("time_s") < sf.col("known_s"), sf.lit(False))
    is_repeated = sf.coalesce((sf.col("time_s") == sf.col("known_s")) & (sf.col("site") == sf.col("at")), sf.lit(False))
    watched = both.observe(seen, sf.count_if(is_late).alias("late"))
    return watched.where(~is_late & ~is_repeated), shaped(both.where(is_late).select(*LATE.names), LATE)


def _numbered(fixes: DataFrame, kept: DataFrame, rules: Rules) -> DataFrame:
    """All visits of kept stays and new fixes, each with its place from the start and from the end."""
    own = kept.select(
        *("subscriber", sf.col("entered_s").alias("time_s"), (-sf.col("from_end")).alias("log_row"), "site"),
        *("last_fix_s", "fixes", sf.lit(False).alias("is_new")),
    )
    new = fixes.select(
        *("subscriber", "time_s", "log_row", "site", sf.col("time_s").alias("last_fix_s")),
        *(sf.lit(1).cast("long").alias("fixes"), sf.lit(True).alias("is_new")),
    )
    order = (sf.col("subscriber"), sf.col("is_new"), sf.when(sf.col("is_new"), sf.col("time_s")), sf.col("log_row"))
    in_order = own.unionByName(new).repartition("subscriber").sortWithinPartitions(*order).drop("is_new")
    visiting = Visiting(rules.gap_s, rules.ping_pong_s)
    found = in_order.mapInArrow(visiting.numbered, _COLUMNS)
    whole = Window.partitionBy("subscriber")
    told = kept.where(sf.col("from_end") > UNDECIDED).select("subscriber", sf.lit(True).alias("told"))
    return (
        found.withColumn("from_start", sf.row_number().over(whole.orderBy("row")))
        .withColumn("from_end", (sf.count("*").over(whole) - sf.col("from_start") + 1).cast("long"))
        .join(told, "subscriber", "left")
        .withColumn("has_told", sf.coalesce("told", sf.lit(False)))
    )


def _summed_ways(ways: DataFrame) -> DataFrame:
    return ways.groupBy("previous_site", "site", "next_site", "day").agg(
        sf.sum("gone").alias("gone"),
        sf.sum("ping_pongs").alias("ping_pongs"),
        sf.max("last_s").alias("last_s"),
        sf.sum("steady").alias("steady"),
    )


def _summed_spells(spells: DataFrame) -> DataFrame:
    names = ("visits", "connected_s", "away_s", "to_same")
    return spells.groupBy("site", "ended", "s").agg(*(sf.sum(name).alias(name) for name in names))
