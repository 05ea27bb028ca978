"""How subscribers move: positions x sites -> associations -> visits -> handoffs -> what a broker can learn from them.

Every function takes frames and gives a frame of the schema that its last line spells. Noise is handled by the rules of
`Rules`, and by nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from godwit.filters.areas import EARTH_RADIUS_M
from godwit.pipeline.cells import local_day
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.reading import Dataset, quarantined
from godwit.pipeline.mobility.nearest import Nearest
from godwit.pipeline.mobility.visits import END, GAP, HANDOFF, Visiting
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
    zone: str | None = None
    """The same by the clocks of a zone of IANA's list, summer time included."""

    def day(self, time_s: Column) -> Column:
        if self.zone is not None:
            return local_day(time_s, self.zone)
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
    nearest = _nearest(places, plane_latitude)
    chosen = positions.select("subscriber", "time_s", "lat", "lon", _log_row())
    return chosen.mapInArrow(nearest.associated, ASSOCIATIONS).select(*ASSOCIATIONS.names)


def _nearest(places: DataFrame, plane_latitude: float | None) -> Nearest:
    rows = sorted(places.collect(), key=lambda place: str(place["site"]))
    if not rows:
        raise PipelineError("there are no sites; without them nobody can be near one")
    lats, lons = np.array([row["lat"] for row in rows]), np.array([row["lon"] for row in rows])
    return Nearest([row["site"] for row in rows], lats, lons, plane_latitude)


def visits(associated: DataFrame, rules: Rules) -> DataFrame:
    """Uninterrupted stays at one site. A repeated fix, of the same subscriber, time and site, counts once; fixes of one
    time at several sites follow each other as in the log.

    One shuffle and one sort; Spark may have cut a subscriber's fixes into batches anywhere.
    """
    ordered = associated if "log_row" in associated.columns else associated.withColumn("log_row", _log_row())
    return _visited(ordered, ("site",), Visiting(rules.gap_s, rules.ping_pong_s).visits)


def visits_of(positions: DataFrame, places: DataFrame, rules: Rules) -> DataFrame:
    """The same of positions whose associations nobody wants to keep. Rows go to Python once, where their sites are
    found and joined to visits: they need not come back to Java and go there again."""
    nearest, visiting = _nearest(places, rules.plane_latitude), Visiting(rules.gap_s, rules.ping_pong_s)

    def visited(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return visiting.visits(nearest.associated(batches))

    return _visited(positions.withColumn("log_row", _log_row()), ("lat", "lon"), visited)


ORDER = ("subscriber", "time_s", "log_row")
Visited = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _visited(numbered: DataFrame, places: Sequence[str], visited: Visited) -> DataFrame:
    in_order = numbered.select(*ORDER, *places).repartition("subscriber").sortWithinPartitions(*ORDER)
    return shaped(in_order.mapInArrow(visited, VISITS).select(*VISITS.names), VISITS)


def _log_row() -> Column:
    """Grows with the rows of a file, and from each part of it to the next, as long as nothing is shuffled before."""
    return sf.monotonically_increasing_id().alias("log_row")


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


def ways(moves: DataFrame, test_day: str | None) -> DataFrame:
    """How often each way over three sites was gone, how often as ping-pong, and when last. Without ping-pong, `tested`
    counts those of this day and `learned` those of the others.

    A tenth of the handoffs or less, which the graph and the forecasts need no more of: worth to be kept meanwhile.
    """
    return tested(daily_ways(moves), test_day)


def daily_ways(moves: DataFrame) -> DataFrame:
    """The same for each day by itself; `steady` are those that were no ping-pong."""
    return moves.groupBy("previous_site", "site", "next_site", "day").agg(
        sf.count("*").alias("gone"),
        sf.count_if("ping_pong").alias("ping_pongs"),
        sf.max("time_s").alias("last_s"),
        sf.count_if(~sf.col("ping_pong")).alias("steady"),
    )


def tested(daily: DataFrame, test_day: str | None) -> DataFrame:
    """Ways of all days, perhaps in several parts, with one day to foretell."""
    is_tested = sf.lit(False) if test_day is None else sf.col("day") == test_day
    return daily.groupBy("previous_site", "site", "next_site").agg(
        sf.sum("gone").alias("gone"),
        sf.sum("ping_pongs").alias("ping_pongs"),
        sf.max("last_s").alias("last_s"),
        _sum_where(is_tested, "steady").alias("tested"),
        _sum_where(~is_tested, "steady").alias("learned"),
    )


def neighbors(gone: DataFrame) -> DataFrame:
    """The neighbor graph (2.5): undirected uses for ageing, and how likely each neighbor is the next broker."""
    none, before = sf.lit(0).cast("long"), sf.coalesce("previous_site", "site").alias("before")
    there = sf.struct(
        *(sf.col("site").alias("broker"), sf.col("next_site").alias("peer"), sf.col("gone").alias("out"), "ping_pongs"),
        sf.struct(before, "gone").alias("path"),
    )
    back = sf.struct(
        *(
            sf.col("next_site").alias("broker"),
            sf.col("site").alias("peer"),
            none.alias("out"),
            none.alias("ping_pongs"),
        ),
        sf.lit(None).cast("struct<before: string, gone: bigint>").alias("path"),
    )
    paths = sf.map_from_entries(sf.array_sort(sf.collect_list("path")))
    edges = (
        gone.select("gone", "last_s", sf.inline(sf.array(there, back)))
        .groupBy("broker", "peer")
        .agg(
            sf.sum("gone").alias("uses"),
            sf.max("last_s").alias("last_used_s"),
            sf.sum("out").alias("handoffs_out"),
            sf.sum("ping_pongs").alias("ping_pongs_out"),
            sf.when(sf.sum("out") > 0, paths).alias("before"),
        )
    )
    steady = sf.col("handoffs_out") - sf.col("ping_pongs_out")
    all_steady = sf.sum(steady).over(Window.partitionBy("broker"))
    probability = sf.when(all_steady > 0, steady / all_steady).otherwise(sf.lit(0.0)).alias("probability")
    return shaped(edges.select("*", probability), NEIGHBORS)


def spells(stays: DataFrame) -> DataFrame:
    """Visits by how they ended, and after how many seconds: dwelling before a handoff, or the gap after the visit.

    What the data's end cut off is left out. Times are `rounded`, so that these are far fewer than visits, however fine
    clocks tick: distributions and rates need no more, so it is worth to be kept meanwhile.
    """
    away_s = sf.col("next_s") - sf.col("last_fix_s")
    dwell_s = sf.col("left_s") - sf.col("entered_s")
    s = rounded(sf.when(sf.col("ended") == HANDOFF, dwell_s).otherwise(away_s)).alias("s")
    return (
        stays.where(sf.col("ended") != END)
        .groupBy("site", "ended", s)
        .agg(
            sf.count("*").alias("visits"),
            sf.sum(sf.col("last_fix_s") - sf.col("entered_s")).alias("connected_s"),
            sf.sum(away_s).alias("away_s"),
            sf.count_if(sf.col("next_site") == sf.col("site")).alias("to_same"),
        )
    )


def rounded(s: Column) -> Column:
    """To half a thousandth from 10 s on, and to half a hundredth of a second below. Whole seconds below 10,000 stay.

    For quantiles, one executor holds every time that differs from others: in a year there are fewer than 240,000.
    """
    fine, coarse = sf.round(s, 2), sf.round(s, -3)
    return (
        sf.when(s < 100, fine).when(s < 10_000, sf.round(s, 1)).when(s < 1_000_000, sf.round(s, -1)).otherwise(coarse)
    )


def distributions(ended: DataFrame) -> DataFrame:
    """How long visits last that ended by a handoff, and how long subscribers are away, by site and over all.

    Means are exact, and quantiles as exact as `rounded` times are."""
    shares = (5, 25, 50, 75, 95, 99)
    # Asked for one by one, each would gather all values for itself.
    marks = sf.percentile("s", [share / 100 for share in shares], sf.col("visits")).alias("marks")
    count = sf.sum("visits")
    is_handoff = sf.col("ended") == HANDOFF
    measure = sf.when(is_handoff, "dwell").otherwise("gap").alias("measure")
    # Who dwells until a handoff is connected up to the last fix, and on the way from then on.
    total_s = sf.col("away_s") + sf.when(is_handoff, sf.col("connected_s")).otherwise(0.0)
    told = (
        ended.select("site", measure, "s", "visits", total_s.alias("total_s"))
        .groupingSets([["site", "measure"], ["measure"]], "site", "measure")
        .agg(count.alias("samples"), (sf.sum("total_s") / count).alias("mean_s"), marks)
        .select(
            *("measure", "samples", "mean_s", "site"),
            *(sf.col("marks")[at].alias(f"p{share}_s") for at, share in enumerate(shares)),
        )
    )
    return shaped(told, DISTRIBUTIONS)


def rates(ended: DataFrame, graph: DataFrame, brokers: int) -> DataFrame:
    """What the Markov models ask for: mean times, how states are left, and the rates that follow (6.7-6.9, 6.14-6.16).

    A handoff lasts from the last fix at the old site to the first at the new, which is an upper bound.
    """
    handoff, gap = sf.col("ended") == HANDOFF, sf.col("ended") == GAP
    connects, handoffs, disconnects = (sf.sum("visits"), _sum_where(handoff, "visits"), _sum_where(gap, "visits"))
    means = ended.groupingSets([["site"], []], "site").agg(
        connects.alias("connects"),
        disconnects.alias("disconnects"),
        handoffs.alias("handoffs"),
        (sf.sum("connected_s") / connects).alias("connect_mean_s"),
        sf.try_divide(_sum_where(gap, "away_s"), disconnects).alias("disconnect_mean_s"),
        sf.try_divide(_sum_where(handoff, "away_s"), handoffs).alias("handoff_mean_s"),
        sf.try_divide(_sum_where(gap, "to_same"), disconnects).alias("to_same_broker"),
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


def _sum_where(condition: Column, name: str) -> Column:
    return sf.sum(sf.when(condition, sf.col(name)).otherwise(0))


def _one_over(mean: Column) -> Column:
    return sf.when(mean > 0, 1 / mean)


def forecasts(gone: DataFrame, test_day: str) -> DataFrame:
    """How well the other days foretell this one's handoffs.

    Three models: `graph` goes by the broker alone, `path` also by the broker before, and falls back on the graph where
    that path is new; `busiest` always says the brokers that are entered most, and is what a model must beat.
    """
    models = ("graph", "path", "busiest")
    scored = _ranked(gone).join(sf.broadcast(_busiest(gone)), ["next_site"], "left")
    first_of_edge = sf.col("is_first_of_edge")
    edges, origins = (
        sf.count_if(first_of_edge & sf.col("graph_rank").isNotNull()),
        sf.count_if(first_of_edge & (sf.col("graph_rank") == 1)),
    )
    every = scored.agg(
        sf.sum("tested").alias("handoffs"),
        sf.sum("learned").alias("learned"),
        sf.try_divide(edges, origins).alias("neighbors"),
        *(_scores(model).alias(model) for model in models),
    )
    one = sf.inline(sf.array(*(sf.struct(sf.lit(model).alias("model"), f"{model}.*") for model in models)))
    told = every.where("handoffs > 0").select(sf.lit(test_day).alias("day"), "handoffs", "learned", "neighbors", one)
    return shaped(told, FORECASTS)


def _ranked(gone: DataFrame) -> DataFrame:
    """Each way with the rank of its last step among those learned, by the site alone and by the site before, else null.

    All that is compared begins at one site: one shuffle does for every rank.
    """
    learned = sf.col("learned")
    alike = Window.partitionBy("site", "previous_site")
    edge, origin = Window.partitionBy("site", "next_site"), Window.partitionBy("site")
    by_edge = (
        gone.where("tested + learned > 0")
        .repartition("site")
        .select(
            *("site", "previous_site", "next_site", "tested", "learned"),
            sf.sum("learned").over(edge).alias("edge_learned"),
            (sf.row_number().over(edge.orderBy("previous_site")) == 1).alias("is_first_of_edge"),
        )
    )
    # Equal in both are only ways over the same edge, which shall have the same rank.
    place = sf.dense_rank().over(origin.orderBy(sf.desc("edge_learned"), "next_site"))
    graph_rank = sf.when(sf.col("edge_learned") > 0, place)
    path_rank = sf.when(learned > 0, sf.row_number().over(alike.orderBy(sf.desc("learned"), "next_site")))
    has_path = sf.col("previous_site").isNotNull() & (sf.max("learned").over(alike) > 0)
    return by_edge.select(
        *("next_site", "tested", "learned", "is_first_of_edge"),
        graph_rank.alias("graph_rank"),
        sf.when(has_path, path_rank).otherwise(graph_rank).alias("path_rank"),
    )


def _busiest(gone: DataFrame) -> DataFrame:
    uses = gone.groupBy("next_site").agg(sf.sum("learned").alias("uses")).where("uses > 0")
    rank = sf.row_number().over(Window.orderBy(sf.desc("uses"), "next_site"))
    return uses.select("next_site", rank.alias("busiest_rank"))


def _scores(model: str) -> Column:
    rank = sf.col(f"{model}_rank")
    return sf.struct(
        _share(rank.isNotNull()).alias("known"),
        _share(rank == 1).alias("likeliest"),
        _share(rank <= 3).alias("among_three"),
    )


def _share(condition: Column) -> Column:
    return sf.try_divide(_sum_where(condition, "tested"), sf.sum("tested"))


def days(moves: DataFrame) -> list[str]:
    """The days that have handoffs, in order."""
    return sorted(row["day"] for row in moves.select("day").distinct().collect())
