"""Traces -> published x matched x delivered -> what was lost, came twice, came out of order or late, and what it cost.

A simulation records whom each event was for (`matched`); for brokers that do not, the match job's deliveries say it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from godwit.pipeline.schemas import FIGURES, OUTCOMES, OVERHEAD, RELOCATIONS, TRACES, shaped

PAIR = ["publisher", "sequence", "client"]
EVENT = ["publisher", "sequence"]

IS_ABOUT_AN_EVENT = "publisher IS NOT NULL AND sequence IS NOT NULL"

ALL, CLIENT, MINUTE = "all", "client", "minute"
_LATENCIES = (50, 95, 99)


def told_by(traces: DataFrame) -> DataFrame:
    """Traces where a client that speaks for itself is named as one: there `client` may be empty and `node` says it."""
    return traces.withColumn("client", sf.coalesce(sf.nullif(sf.col("client"), sf.lit("")), sf.col("node")))


def ended(traces: DataFrame, late: str) -> DataFrame:
    """The records of a stream that speak of events, of each event once no record of it can come any more.

    An event has ended when nothing was recorded of it for so long. A record that comes even later begins another
    account of the same event, and is judged with the first.
    """
    story = [name for name in TRACES.names if name not in EVENT]
    timed = traces.where(IS_ABOUT_AN_EVENT).withColumn("time", sf.timestamp_seconds("time_s"))
    told = timed.withWatermark("time", late).groupBy(*EVENT, sf.session_window("time", late))
    records = told.agg(sf.collect_list(sf.struct(*story)).alias("records"))
    return shaped(records.select(*EVENT, sf.inline("records")).select(*TRACES.names), TRACES)


def expected(traces: DataFrame) -> DataFrame:
    """Who should get what, as the simulation saw it when the event was published."""
    return traces.where("kind = 'matched'").select(*PAIR).distinct()


def outcomes(traces: DataFrame, wanted: DataFrame) -> DataFrame:
    """What became of every event for every client that should have got it, or did."""
    told = told_by(traces)
    published = told.where("kind = 'published'").groupBy(*EVENT).agg(sf.min("time_s").alias("published_s"))
    delivered = (
        told.where("kind = 'delivered'")
        .groupBy(*PAIR)
        .agg(
            sf.count("*").alias("copies"),
            sf.min("time_s").alias("delivered_s"),
            sf.min_by("hops", "time_s").alias("hops"),
        )
    )
    dropped = told.where("kind = 'dropped'").select(*PAIR, sf.lit(True).alias("was_dropped")).distinct()
    joined = (
        wanted.select(*PAIR, sf.lit(True).alias("is_expected"))
        .distinct()
        .join(delivered, PAIR, "full")
        .join(dropped, PAIR, "left")
        .join(published, EVENT, "left")
        .na.fill(0, ["copies"])
        .na.fill(False, ["is_expected", "was_dropped"])
    )
    latency = (sf.col("delivered_s") - sf.col("published_s")).alias("latency_s")
    rest = [name for name in OUTCOMES.names if name != "latency_s"]
    return shaped(joined.select(*rest, latency), OUTCOMES)


def disorder(traces: DataFrame) -> DataFrame:
    """Deliveries that came after one that was published later, by client and publisher; repeated ones do not count."""
    first = told_by(traces).where("kind = 'delivered'").groupBy(*PAIR).agg(sf.min("time_s").alias("delivered_s"))
    order = Window.partitionBy("client", "publisher").orderBy("delivered_s", "sequence")
    before = sf.max("sequence").over(order.rowsBetween(Window.unboundedPreceding, -1))
    return first.withColumn("highest", before).where(sf.col("sequence") < sf.col("highest")).select(*PAIR)


def figures(became: DataFrame, disordered: DataFrame) -> DataFrame:
    """Counts and latencies over all, by client, and by the minute of publication."""
    judged = became.join(disordered.withColumn("is_late", sf.lit(True)), PAIR, "left")
    minute = sf.floor(sf.col("published_s") / 60).cast("string")
    kinds = [(ALL, sf.lit(None).cast("string")), (CLIENT, sf.col("client")), (MINUTE, minute)]
    cut = judged.withColumn("cut", sf.explode(sf.array(*(_cut(by, name) for by, name in kinds)))).select("*", "cut.*")
    told = cut.groupBy("by", "name").agg(*_counts(), *_latencies())
    return shaped(told.select(*FIGURES.names), FIGURES)


def _cut(by: str, name: Column) -> Column:
    return sf.struct(sf.lit(by).alias("by"), name.alias("name"))


def _counts() -> Sequence[Column]:
    is_expected, copies = sf.col("is_expected"), sf.col("copies")
    lost = is_expected & (copies == 0)
    return [
        sf.count_if(is_expected).alias("expected"),
        sf.count_if(copies > 0).alias("delivered"),
        sf.count_if(lost).alias("lost"),
        sf.count_if(lost & sf.col("was_dropped")).alias("dropped"),
        sf.sum(sf.greatest(copies - 1, sf.lit(0))).alias("duplicates"),
        sf.count_if(~is_expected).alias("unexpected"),
        sf.count_if(sf.coalesce(sf.col("is_late"), sf.lit(False))).alias("out_of_order"),
    ]


def _latencies() -> Sequence[Column]:
    marks = [sf.percentile("latency_s", share / 100).alias(f"latency_p{share}_s") for share in _LATENCIES]
    return [*marks, sf.max("latency_s").alias("latency_max_s")]


def relocations(traces: DataFrame) -> DataFrame:
    """Clients that attached to another broker than before, and when the next event reached them."""
    told = told_by(traces)
    # A client that speaks for itself names the broker; a broker that speaks is the one.
    broker = sf.coalesce(sf.nullif("peer", sf.lit("")), sf.col("node")).alias("broker")
    attached = told.where("kind = 'attached'").select("client", "time_s", broker)
    order = Window.partitionBy("client").orderBy("time_s")
    moved = attached.withColumn("previous", sf.lag("broker").over(order)).where("previous <> broker")
    arrivals = told.where("kind = 'delivered'").select("client", sf.col("time_s").alias("arrived_s"))
    # One sorted pass instead of a join of all moves with all arrivals.
    both = moved.select("client", "time_s", "broker", "previous", sf.lit(None).cast("double").alias("arrived_s"))
    both = both.unionByName(
        arrivals.select(
            "client",
            sf.col("arrived_s").alias("time_s"),
            sf.lit(None).cast("string").alias("broker"),
            sf.lit(None).cast("string").alias("previous"),
            "arrived_s",
        )
    )
    later = Window.partitionBy("client").orderBy("time_s", sf.col("arrived_s").isNotNull())
    following = sf.first("arrived_s", ignorenulls=True).over(later.rowsBetween(1, Window.unboundedFollowing))
    found = both.withColumn("latency_s", following - sf.col("time_s")).where("broker IS NOT NULL")
    return shaped(found.select(*RELOCATIONS.names), RELOCATIONS)


def overhead(traces: DataFrame) -> DataFrame:
    """How many records of each kind and message there are, and the bytes that they say were sent."""
    told = traces.groupBy("kind", sf.coalesce("message", sf.lit("")).alias("message")).agg(
        sf.count("*").alias("records"), sf.sum(sf.coalesce("size_b", sf.lit(0))).alias("bytes")
    )
    return shaped(told.select(*OVERHEAD.names), OVERHEAD)
