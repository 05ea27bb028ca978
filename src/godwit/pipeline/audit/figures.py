"""Traces -> published x matched x delivered -> what was lost, came twice, came out of order or late, and what it cost.

A simulation records whom each event was for (`matched`); for brokers that do not, the match job's deliveries say it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from godwit.pipeline.schemas import FIGURES, OUTCOMES, OVERHEAD, RELOCATIONS, shaped

PAIR = ["publisher", "sequence", "client"]
EVENT = ["publisher", "sequence"]

IS_ABOUT_AN_EVENT = "publisher IS NOT NULL AND sequence IS NOT NULL"

ALL, CLIENT, MINUTE = "all", "client", "minute"
LATENCIES = (50, 95, 99)
ACCURACY = 10_000
"""Quantiles of latencies are off by at most this part of all ranks; exact ones would gather every latency."""


def told_by(traces: DataFrame) -> DataFrame:
    """Traces where a client that speaks for itself is named as one: there `client` may be empty and `node` says it."""
    return traces.withColumn("client", sf.coalesce(sf.nullif(sf.col("client"), sf.lit("")), sf.col("node")))


def expecting(traces: DataFrame, wanted: DataFrame | None) -> DataFrame:
    """The records that outcomes follow from. What the traces themselves say was matched counts, or who is `wanted`."""
    told = told_by(traces.where(IS_ABOUT_AN_EVENT)).select(*PAIR, "kind", "time_s", "hops")
    if wanted is None:
        return told
    nothing = sf.lit(None)
    matched = wanted.select(
        *PAIR,
        sf.lit("matched").alias("kind"),
        nothing.cast("double").alias("time_s"),
        nothing.cast("long").alias("hops"),
    )
    return told.where("kind <> 'matched'").unionByName(matched)


def outcomes(told: DataFrame) -> DataFrame:
    """What became of every event for every client that should have got it, or did: one aggregation, whose rows are
    together by event, and so are those that say when it was published."""
    published = sf.min(sf.when(sf.col("kind") == "published", sf.col("time_s"))).alias("own_published_s")
    is_delivered = sf.col("kind") == "delivered"
    delivered_s = sf.when(is_delivered, sf.col("time_s"))
    pairs = (
        told.where("kind IN ('published', 'matched', 'delivered', 'dropped')")
        .repartition(*EVENT)
        .groupBy(*PAIR)
        .agg(
            sf.count_if(sf.col("kind") == "matched").alias("matches"),
            sf.count_if(is_delivered).alias("copies"),
            sf.count_if(sf.col("kind") == "dropped").alias("drops"),
            sf.min(delivered_s).alias("delivered_s"),
            sf.min_by(sf.when(is_delivered, sf.col("hops")), delivered_s).alias("hops"),
            published,
        )
    )
    of_event = sf.min("own_published_s").over(Window.partitionBy(*EVENT))
    became = (
        pairs.withColumn("published_s", of_event)
        .where("matches > 0 OR copies > 0")
        .withColumn("is_expected", sf.col("matches") > 0)
        .withColumn("was_dropped", sf.col("drops") > 0)
        .withColumn("latency_s", sf.col("delivered_s") - sf.col("published_s"))
    )
    return shaped(became.select(*OUTCOMES.names), OUTCOMES)


def in_order(became: DataFrame) -> DataFrame:
    """Outcomes with `is_late`: delivered after one that was published later, of the same publisher to this client."""
    order = Window.partitionBy("client", "publisher").orderBy(sf.col("delivered_s").asc_nulls_last(), "sequence")
    before = sf.max("sequence").over(order.rowsBetween(Window.unboundedPreceding, -1))
    is_late = sf.col("delivered_s").isNotNull() & (sf.col("sequence") < before)
    return became.withColumn("is_late", sf.coalesce(is_late, sf.lit(False)))


def figures(became: DataFrame) -> DataFrame:
    """Counts and latencies over all, by client, and by the minute of publication."""
    told = cut(in_order(became)).groupBy("cut", "name")
    return shaped(told.agg(*counts(), *_latencies()).select(*FIGURES.names), FIGURES)


def cut(became: DataFrame) -> DataFrame:
    """Each outcome with each cut that it counts in, as `cut` and `name`."""
    minute = sf.floor(sf.col("published_s") / 60).cast("string")
    kinds = [(ALL, sf.lit(None).cast("string")), (CLIENT, sf.col("client")), (MINUTE, minute)]
    cuts = sf.explode(sf.array(*(_cut(cut, name) for cut, name in kinds)))
    return became.withColumn("one", cuts).select("*", "one.*")


def _cut(cut: str, name: Column) -> Column:
    return sf.struct(sf.lit(cut).alias("cut"), name.alias("name"))


def counts() -> Sequence[Column]:
    is_expected, copies = sf.col("is_expected"), sf.col("copies")
    lost = is_expected & (copies == 0)
    return [
        sf.count_if(is_expected).alias("expected"),
        sf.count_if(copies > 0).alias("delivered"),
        sf.count_if(lost).alias("lost"),
        sf.count_if(lost & sf.col("was_dropped")).alias("dropped"),
        sf.sum(sf.greatest(copies - 1, sf.lit(0))).alias("duplicates"),
        sf.count_if(~is_expected).alias("unexpected"),
        sf.count_if("is_late").alias("out_of_order"),
    ]


def _latencies() -> Sequence[Column]:
    marks = sf.percentile_approx("latency_s", [share / 100 for share in LATENCIES], ACCURACY)
    named = [marks[at].alias(f"latency_p{share}_s") for at, share in enumerate(LATENCIES)]
    return [*named, sf.max("latency_s").alias("latency_max_s")]


def relocations(traces: DataFrame, became: DataFrame) -> DataFrame:
    """Clients that attached to another broker than before, and when the next event first reached them."""
    found = reached(moved(attachments(traces)), became)
    return shaped(found.withColumn("latency_s", sf.col("reached_s") - sf.col("time_s")), RELOCATIONS)


def attachments(traces: DataFrame) -> DataFrame:
    return told_by(traces.where("kind = 'attached'")).select("client", "time_s", sf.col("peer").alias("broker"))


def moved(attached: DataFrame) -> DataFrame:
    """Attachments to another broker than the one before, which is `previous`."""
    order = Window.partitionBy("client").orderBy("time_s")
    return attached.withColumn("previous", sf.lag("broker").over(order)).where("previous <> broker")


def reached(moves: DataFrame, became: DataFrame) -> DataFrame:
    """Moves with the time at which the next event reached the client, as `reached_s`.

    One sorted pass instead of a join of all moves with all arrivals.
    """
    nothing = sf.lit(None)
    both = moves.select("client", "time_s", "broker", "previous", nothing.cast("double").alias("arrived_s"))
    both = both.unionByName(
        became.where("delivered_s IS NOT NULL").select(
            "client",
            sf.col("delivered_s").alias("time_s"),
            nothing.cast("string").alias("broker"),
            nothing.cast("string").alias("previous"),
            sf.col("delivered_s").alias("arrived_s"),
        )
    )
    later = Window.partitionBy("client").orderBy("time_s", sf.col("arrived_s").isNotNull())
    following = sf.first("arrived_s", ignorenulls=True).over(later.rowsBetween(1, Window.unboundedFollowing))
    return both.withColumn("reached_s", following).where("broker IS NOT NULL").drop("arrived_s")


def overhead(traces: DataFrame) -> DataFrame:
    """How many records of each kind and message there are, and the bytes that they say were sent."""
    told = traces.groupBy("kind", sf.coalesce("message", sf.lit("")).alias("message")).agg(
        sf.count("*").alias("records"), sf.sum(sf.coalesce("size_b", sf.lit(0))).alias("bytes")
    )
    return shaped(told.select(*OVERHEAD.names), OVERHEAD)


def summed(parts: DataFrame) -> DataFrame:
    """Overheads of several times as one."""
    told = parts.groupBy("kind", "message").agg(sf.sum("records").alias("records"), sf.sum("bytes").alias("bytes"))
    return shaped(told.select(*OVERHEAD.names), OVERHEAD)
