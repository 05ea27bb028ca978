"""Figures of a stream, kept from micro-batch to micro-batch: what has been judged is not looked at again.

Three small tables are enough: counts by cut, with latencies in buckets; the deliveries of the last while, for their
order; and moves of clients whom no event has reached yet. Each micro-batch leaves them as they are after it, so that
one that Spark repeats begins with what the one before it left.
"""

from __future__ import annotations

from math import log

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.audit.figures import LATENCIES
from godwit.pipeline.io.files import within
from godwit.pipeline.schemas import BOOL, DOUBLE, FIGURES, LONG, RELOCATIONS, STRING, shaped
from godwit.pipeline.streaming.queries import write_batch, written
from godwit.pipeline.streaming.state import State

MOVES = "relocations"
WIDTH, LEAST_S = log(1.01), 1e-6
"""A bucket of latencies is a hundredth wide, so a quantile is off by half a hundredth of itself at most."""

COUNTS = ("expected", "delivered", "lost", "dropped", "duplicates", "unexpected", "out_of_order")


def _schema(**kinds: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])  # type: ignore[arg-type]


_COUNTED = _schema(
    cut=STRING, name=STRING, bucket=LONG, **dict.fromkeys((*COUNTS, "latencies"), LONG), latency_max_s=DOUBLE
)
_ORDER = _schema(
    client=STRING, publisher=STRING, sequence=LONG, delivered_s=DOUBLE, published_s=DOUBLE, was_late=BOOL, is_floor=BOOL
)
_OPEN = _schema(client=STRING, time_s=DOUBLE, broker=STRING, previous=STRING, reached_s=DOUBLE, is_move=BOOL)
"""Moves that wait for an arrival, and (no move) where each client was attached last."""


class RunningFigures:
    """`order_s` is for how long deliveries are remembered: one that is judged so much later than another may be counted
    as in order although it came before it."""

    def __init__(self, out: str, order_s: float) -> None:
        self._state = State(out, {"counts": _COUNTED, "order": _ORDER, "moves": _OPEN})
        self._moves, self._order_s = within(out, MOVES), order_s

    def add(self, traces: DataFrame, became: DataFrame, before: int, number: int, closed_s: float | None) -> None:
        """What a micro-batch recorded, and the outcomes that it judged; nothing new is expected up to `closed_s`."""
        spark, state = became.sparkSession, self._state
        order = _ordered(became, state.left(spark, "order", before))
        counted = _counted(became).unionByName(_late(order)).unionByName(state.left(spark, "counts", before))
        state.keep(_summed(counted), "counts", number)
        state.keep(_remembered(order, closed_s, self._order_s), "order", number)
        moves = _moves(traces, became, state.left(spark, "moves", before))
        is_over = sf.coalesce(sf.col("is_move") & (sf.col("reached_s") <= sf.lit(closed_s)), sf.lit(False))
        write_batch(_told(moves.where(is_over)), self._moves, number, RELOCATIONS)
        state.keep(moves.where(~is_over), "moves", number)

    def forget(self, spark: SparkSession, before: int) -> None:
        self._state.forget(spark, before)

    def figures(self, spark: SparkSession, number: int) -> DataFrame:
        """After this micro-batch, as `figures.figures` has them of all outcomes."""
        told = self._state.left(spark, "counts", number).groupBy("cut", "name")
        latency_s = sf.exp((sf.col("bucket") + 0.5) * WIDTH)
        marks = sf.percentile(latency_s, [share / 100 for share in LATENCIES], sf.col("latencies"))
        found = told.agg(
            *(sf.sum(name).alias(name) for name in COUNTS),
            sf.max("latency_max_s").alias("latency_max_s"),
            marks.alias("marks"),
        )
        named = [sf.col("marks")[at].alias(f"latency_p{share}_s") for at, share in enumerate(LATENCIES)]
        return shaped(found.select("*", *named).select(*FIGURES.names), FIGURES)

    def relocations(self, spark: SparkSession, number: int) -> DataFrame:
        """Those that are over, and those that wait, with what is known so far."""
        waiting = self._state.left(spark, "moves", number).where("is_move")
        return written(spark, self._moves, RELOCATIONS).unionByName(_told(waiting))


def _counted(became: DataFrame) -> DataFrame:
    """New outcomes by cut and bucket; their order is told by `_late`."""
    told = audit.cut(became.withColumn("is_late", sf.lit(False))).withColumn("bucket", _bucket())
    return told.groupBy("cut", "name", "bucket").agg(
        *audit.counts(), sf.count("latency_s").alias("latencies"), sf.max("latency_s").alias("latency_max_s")
    )


def _bucket() -> Column:
    return sf.floor(sf.log(sf.greatest(sf.col("latency_s"), sf.lit(LEAST_S))) / WIDTH)


def _ordered(became: DataFrame, kept: DataFrame) -> DataFrame:
    """Deliveries of now and of the last while with `is_late`, as `figures.in_order` has it."""
    new = became.where("delivered_s IS NOT NULL").select(
        *("client", "publisher", "sequence", "delivered_s", "published_s"),
        sf.lit(False).alias("was_late"),
        sf.lit(False).alias("is_floor"),
    )
    order = Window.partitionBy("client", "publisher").orderBy(sf.desc("is_floor"), "delivered_s", "sequence")
    before = sf.max("sequence").over(order.rowsBetween(Window.unboundedPreceding, -1))
    is_late = sf.coalesce(~sf.col("is_floor") & (sf.col("sequence") < before), sf.lit(False))
    return kept.unionByName(new).withColumn("is_late", is_late)


def _late(order: DataFrame) -> DataFrame:
    """Those that are found to be out of order now, as counts."""
    found = audit.cut(order.where("is_late AND NOT was_late")).groupBy("cut", "name")
    none = {name: sf.lit(0).cast("long") for name in (*COUNTS, "latencies")}
    return found.agg(sf.count("*").alias("late")).select(
        *("cut", "name", sf.lit(None).cast("long").alias("bucket")),
        *((none | {"out_of_order": sf.col("late")})[name].alias(name) for name in (*COUNTS, "latencies")),
        sf.lit(None).cast("double").alias("latency_max_s"),
    )


def _summed(counted: DataFrame) -> DataFrame:
    return counted.groupBy("cut", "name", "bucket").agg(
        *(sf.sum(name).alias(name) for name in (*COUNTS, "latencies")), sf.max("latency_max_s").alias("latency_max_s")
    )


def _remembered(order: DataFrame, closed_s: float | None, order_s: float) -> DataFrame:
    """The deliveries of the last while, and of the older ones of each publisher the highest number: the floor."""
    since_s = float("-inf") if closed_s is None else closed_s - order_s
    is_old = sf.col("is_floor") | (sf.col("delivered_s") < since_s)
    recent = order.where(~is_old).select(*_ORDER.names[:5], sf.col("is_late").alias("was_late"), "is_floor")
    floor = order.where(is_old).groupBy("client", "publisher").agg(sf.max("sequence").alias("sequence"))
    nothing = sf.lit(None).cast("double")
    told = floor.select(
        *("client", "publisher", "sequence", nothing.alias("delivered_s"), nothing.alias("published_s")),
        *(sf.lit(False).alias("was_late"), sf.lit(True).alias("is_floor")),
    )
    return recent.unionByName(told)


def _moves(traces: DataFrame, became: DataFrame, kept: DataFrame) -> DataFrame:
    """Moves of now and those that wait, with what has reached them, and each client's last attachment."""
    known = kept.where("NOT is_move").select("client", "time_s", "broker")
    attached = known.unionByName(audit.attachments(traces))
    waiting = kept.where("is_move").select("client", "time_s", "broker", "previous", "reached_s")
    new = audit.moved(attached).withColumn("reached_s", sf.lit(None).cast("double"))
    moves = waiting.unionByName(new)
    earlier = moves.select("client", "time_s", "broker", sf.col("reached_s").alias("known_s"))
    found = audit.reached(moves, became).join(earlier, ["client", "time_s", "broker"])
    both = found.withColumn("reached_s", sf.least("reached_s", "known_s")).withColumn("is_move", sf.lit(True))
    last = attached.groupBy("client").agg(sf.max_by(sf.struct("time_s", "broker"), "time_s").alias("last"))
    ends = last.select("client", "last.*").withColumn("is_move", sf.lit(False))
    return shaped(both.select(*_OPEN.names).unionByName(ends, allowMissingColumns=True), _OPEN)


def _told(moves: DataFrame) -> DataFrame:
    return moves.withColumn("latency_s", sf.col("reached_s") - sf.col("time_s")).select(*RELOCATIONS.names)
