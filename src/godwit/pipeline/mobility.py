"""How subscribers move: positions x sites -> associations -> visits -> handoffs -> what a broker can learn from them.

Every function takes frames and gives a frame of the schema that its last line spells. Noise is handled by the rules of
`Rules`, and by nothing else.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from godwit.filters.areas import EARTH_RADIUS_M
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.nearest import Nearest
from godwit.pipeline.reading import Dataset, quarantined
from godwit.pipeline.schemas import (
    ASSOCIATIONS,
    DISTRIBUTIONS,
    FORECASTS,
    HANDOFFS,
    NEIGHBORS,
    RATES,
    SITES,
    VISITS,
    shaped,
)
from godwit.pipeline.visiting import HANDOFF, Visiting

IMPOSSIBLE = "impossible: no place on Earth"
OUTSIDE = "outside: not in the box around the sites"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What is noise, and what is movement."""

    gap_s: float = 300.0
    """Fixes this far apart say nothing of what was between them: the subscriber was away."""
    ping_pong_s: float = 120.0
    """Back where it was within this: the handoff and its return are called ping-pong, and no probability is learned
    from them. 0 for never."""
    margin_m: float | None = 0.0
    """Fixes further outside the box around all sites are bad; none are where this is None."""
    plane_latitude: float | None = None
    """Nearest is by great circles; with a latitude, on the plane that `nearest.flat` makes there of degrees."""
    utc_offset_h: float = 0.0
    """Where the days of the handoffs begin."""

    def day(self, time_s: Column) -> Column:
        seconds = time_s + sf.lit(self.utc_offset_h * 3600.0)
        return sf.date_format(sf.timestamp_seconds(seconds), "yyyy-MM-dd")


class Box(msgspec.Struct, frozen=True):
    """Degrees, edges included."""

    south: float
    west: float
    north: float
    east: float

    def widened(self, metres: float) -> Box:
        """By so many metres to each side."""
        tall = math.degrees(metres / EARTH_RADIUS_M)
        wide = tall / max(math.cos(math.radians(max(abs(self.south), abs(self.north)))), 1e-6)
        return Box(self.south - tall, self.west - wide, self.north + tall, self.east + wide)

    def holds(self, lat: Column, lon: Column) -> Column:
        return lat.between(self.south, self.north) & lon.between(self.west, self.east)


def sites(parts: DataFrame, most: int | None = None) -> DataFrame:
    """Sites from their parts, each in the middle of its own; with `most`, only those with the most parts.

    Of two with as many parts, the one whose name comes first is taken; names that are numbers come in their order.
    """
    found = parts.groupBy("site").agg(
        sf.avg("lat").alias("lat"), sf.avg("lon").alias("lon"), sf.count("*").alias("parts")
    )
    if most is not None:
        number = sf.col("site").try_cast("double")
        found = found.orderBy(sf.desc("parts"), number, "site").limit(most)
    return shaped(found.select("site", "lat", "lon"), SITES)


def box_around(parts: DataFrame) -> Box:
    row = parts.agg(sf.min("lat"), sf.min("lon"), sf.max("lat"), sf.max("lon")).first()
    if row is None or row[0] is None:
        raise PipelineError("there are no sites; without them nobody can be near one")
    return Box(*row)


def fixes(positions: DataFrame, box: Box | None) -> Dataset:
    """Positions that can be used, and the others with the rule that refuses them."""
    lat, lon = sf.col("lat"), sf.col("lon")
    rules = {IMPOSSIBLE: ~(lat.between(-90, 90) & lon.between(-180, 360))}
    if box is not None:
        rules[OUTSIDE] = ~box.holds(lat, lon)
    return quarantined(positions, rules, "positions")


def associations(positions: DataFrame, places: DataFrame, plane_latitude: float | None = None) -> DataFrame:
    """Every fix with the site that is nearest to it, on the globe or on the plane of this latitude."""
    rows = places.orderBy("site").collect()
    if not rows:
        raise PipelineError("there are no sites; without them nobody can be near one")
    lats, lons = np.array([row["lat"] for row in rows]), np.array([row["lon"] for row in rows])
    nearest = Nearest([row["site"] for row in rows], lats, lons, plane_latitude)
    chosen = positions.select("subscriber", "time_s", "lat", "lon")
    return chosen.mapInArrow(nearest.associated, ASSOCIATIONS).select(*ASSOCIATIONS.names)


def visits(associated: DataFrame, rules: Rules) -> DataFrame:
    """Uninterrupted stays at one site. A repeated fix, of the same subscriber at the same time, counts once.

    One shuffle and one sort; Spark may have cut a subscriber's fixes into batches anywhere.
    """
    order = ("subscriber", "time_s", "distance_m", "site")
    fixes_in_order = associated.select(*order).repartition("subscriber").sortWithinPartitions(*order)
    visiting = Visiting(rules.gap_s, rules.ping_pong_s)
    return shaped(fixes_in_order.mapInArrow(visiting.visits, VISITS).select(*VISITS.names), VISITS)


def handoffs(stays: DataFrame, rules: Rules) -> DataFrame:
    """Visits that ended at another site without a gap."""
    told = stays.where(sf.col("ended") == HANDOFF).select(
        "subscriber",
        sf.col("next_s").alias("time_s"),
        rules.day(sf.col("next_s")).alias("day"),
        "site",
        "next_site",
        "ping_pong",
        sf.when(sf.col("began") == HANDOFF, sf.col("previous_site")).alias("previous_site"),
    )
    return shaped(told, HANDOFFS)


def neighbors(moves: DataFrame) -> DataFrame:
    """The neighbor graph (2.5): undirected uses for ageing, and how likely each neighbor is the next broker."""
    before = sf.coalesce("previous_site", "site").alias("before")
    paths = moves.groupBy(sf.col("site").alias("broker"), sf.col("next_site").alias("peer"), before).agg(
        sf.count("*").alias("handoffs"), sf.count_if("ping_pong").alias("ping_pongs"), sf.max("time_s").alias("last_s")
    )
    out = paths.groupBy("broker", "peer").agg(
        sf.sum("handoffs").alias("handoffs_out"),
        sf.sum("ping_pongs").alias("ping_pongs_out"),
        sf.max("last_s").alias("last_s"),
        sf.map_from_entries(sf.array_sort(sf.collect_list(sf.struct("before", "handoffs")))).alias("before"),
    )
    back = out.select(
        sf.col("peer").alias("broker"),
        sf.col("broker").alias("peer"),
        sf.col("handoffs_out").alias("handoffs_in"),
        sf.col("last_s").alias("last_back_s"),
    )
    edges = out.join(back, ["broker", "peer"], "full").na.fill(0, ["handoffs_out", "ping_pongs_out", "handoffs_in"])
    steady = sf.col("handoffs_out") - sf.col("ping_pongs_out")
    all_steady = sf.sum(steady).over(Window.partitionBy("broker"))
    told = edges.select(
        "broker",
        "peer",
        (sf.col("handoffs_out") + sf.col("handoffs_in")).alias("uses"),
        sf.greatest("last_s", "last_back_s").alias("last_used_s"),
        "handoffs_out",
        "ping_pongs_out",
        sf.when(all_steady > 0, steady / all_steady).otherwise(sf.lit(0.0)).alias("probability"),
        "before",
    )
    return shaped(told, NEIGHBORS)


def distributions(stays: DataFrame) -> DataFrame:
    """How long visits last that ended by a handoff, and how long subscribers are away, by site and over all."""
    dwell = stays.where("ended = 'handoff'").select(
        "site", sf.lit("dwell").alias("measure"), (sf.col("left_s") - sf.col("entered_s")).alias("s")
    )
    gap = stays.where("ended = 'gap'").select(
        "site", sf.lit("gap").alias("measure"), (sf.col("next_s") - sf.col("last_fix_s")).alias("s")
    )
    shares = (5, 25, 50, 75, 95, 99)
    # Asked for one by one, each would gather all values for itself.
    marks = sf.percentile("s", [share / 100 for share in shares]).alias("marks")
    told = (
        dwell.unionByName(gap)
        .groupingSets([["site", "measure"], ["measure"]], "site", "measure")
        .agg(sf.count("*").alias("count"), sf.avg("s").alias("mean_s"), marks)
        .select(
            *("measure", "count", "mean_s", "site"),
            *(sf.col("marks")[at].alias(f"p{share}_s") for at, share in enumerate(shares)),
        )
    )
    return shaped(told, DISTRIBUTIONS)


def rates(stays: DataFrame, graph: DataFrame, brokers: int) -> DataFrame:
    """What the Markov models ask for: mean times, how states are left, and the rates that follow (6.7-6.9, 6.14-6.16).

    A handoff lasts from the last fix at the old site to the first at the new, which is an upper bound.
    """
    handoff, gap = sf.col("ended") == "handoff", sf.col("ended") == "gap"
    away_s = sf.col("next_s") - sf.col("last_fix_s")
    means = (
        stays.where("ended <> 'end'")
        .groupingSets([["site"], []], "site")
        .agg(
            sf.count("*").alias("connects"),
            sf.count_if(gap).alias("disconnects"),
            sf.count_if(handoff).alias("handoffs"),
            sf.avg(sf.col("last_fix_s") - sf.col("entered_s")).alias("connect_mean_s"),
            sf.avg(sf.when(gap, away_s)).alias("disconnect_mean_s"),
            sf.avg(sf.when(handoff, away_s)).alias("handoff_mean_s"),
            sf.avg(sf.when(gap, (sf.col("next_site") == sf.col("site")).cast("double"))).alias("to_same_broker"),
        )
    )
    degrees = graph.groupBy(sf.col("broker").alias("of")).agg(sf.count("*").alias("degree"))
    joined = means.join(sf.broadcast(degrees), sf.col("site") == sf.col("of"), "left")
    known = sf.coalesce(sf.col("degree"), sf.when(sf.col("site").isNull(), sf.lit(brokers - 1)), sf.lit(0)).cast("long")
    connect, disconnect, handing = sf.col("connect_mean_s"), sf.col("disconnect_mean_s"), sf.col("handoff_mean_s")
    told = joined.select(
        "connects",
        "disconnects",
        "handoffs",
        known.alias("neighbors"),
        "site",
        "connect_mean_s",
        "disconnect_mean_s",
        "handoff_mean_s",
        (sf.col("disconnects") / sf.col("connects")).alias("to_disconnect"),
        "to_same_broker",
        _one_over(2 * connect).alias("beta_per_s"),
        _one_over((brokers + 1) * disconnect).alias("delta_random_per_s"),
        _one_over(2 * disconnect).alias("delta_neighboring_per_s"),
        _one_over(brokers * handing).alias("alpha_random_per_s"),
        _one_over(known * handing).alias("alpha_neighboring_per_s"),
    )
    return shaped(told, RATES)


def _one_over(mean: Column) -> Column:
    return sf.when(mean > 0, 1 / mean)


def ways(moves: DataFrame, test_day: str) -> DataFrame:
    """How often each way over three sites was gone on this day (`tested`) and on the others, ping-pong left out.

    Forecasts go over it several times: worth to be kept until they are written.
    """
    is_tested = sf.col("day") == test_day
    steady = moves.where(~sf.col("ping_pong"))
    return steady.groupBy("previous_site", "site", "next_site").agg(
        sf.count_if(is_tested).alias("tested"), sf.count_if(~is_tested).alias("learned")
    )


def forecasts(gone: DataFrame, test_day: str) -> DataFrame:
    """How well the other days foretell this one's handoffs.

    Three models: `graph` goes by the broker alone, `path` also by the broker before, and falls back on the graph where
    that path is new; `busiest` always says the brokers that are entered most, and is what a model must beat.
    """
    graph = _ranked(gone, ["site"])
    by_graph = graph.select("site", "next_site", sf.col("rank").alias("graph_rank"))
    busiest = _ranked(gone, []).select("next_site", sf.col("rank").alias("busiest_rank"))
    joined = (
        _with_path_rank(gone)
        .where("tested > 0")
        .join(sf.broadcast(by_graph), ["site", "next_site"], "left")
        .join(sf.broadcast(busiest), ["next_site"], "left")
        .withColumn("path_rank", sf.when(sf.col("has_path"), sf.col("path_rank")).otherwise(sf.col("graph_rank")))
    )
    models = ("graph", "path", "busiest")
    ranks = [sf.struct(sf.lit(model).alias("model"), sf.col(f"{model}_rank").alias("rank")) for model in models]
    scored = joined.select("tested", sf.explode(sf.array(*ranks)).alias("one")).select("tested", "one.*")
    sizes = graph.groupBy("site").count().agg(sf.avg("count").alias("neighbors"))
    told = (
        scored.groupBy("model")
        .agg(
            sf.sum("tested").alias("handoffs"),
            _share(sf.col("rank").isNotNull()).alias("known"),
            _share(sf.col("rank") == 1).alias("first"),
            _share(sf.col("rank") <= 3).alias("among_three"),
        )
        .crossJoin(sf.broadcast(sizes))
        .select(sf.lit(test_day).alias("day"), "model", "handoffs", "known", "first", "among_three", "neighbors")
    )
    return shaped(told, FORECASTS)


def _with_path_rank(gone: DataFrame) -> DataFrame:
    """Where each way stands among those that begin alike; `has_path` where any of these was learned."""
    alike = Window.partitionBy("previous_site", "site")
    rank = sf.row_number().over(alike.orderBy(sf.desc("learned"), "next_site"))
    has_path = sf.col("previous_site").isNotNull() & (sf.max("learned").over(alike) > 0)
    return gone.select("*", sf.when(sf.col("learned") > 0, rank).alias("path_rank"), has_path.alias("has_path"))


def _share(condition: Column) -> Column:
    return sf.sum(sf.when(condition, sf.col("tested")).otherwise(0)) / sf.sum("tested")


def _ranked(gone: DataFrame, keys: list[str]) -> DataFrame:
    uses = gone.where("learned > 0").groupBy(*keys, "next_site").agg(sf.sum("learned").alias("uses"))
    order = Window.partitionBy(*keys).orderBy(sf.desc("uses"), "next_site")
    return uses.withColumn("rank", sf.row_number().over(order))


def days(moves: DataFrame) -> list[str]:
    """The days that have handoffs, in order."""
    return sorted(row["day"] for row in moves.select("day").distinct().collect())
