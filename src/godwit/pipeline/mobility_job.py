"""The mobility job: reads positions and sites, composes `mobility`, writes the tables."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline import mobility
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.reading import read
from godwit.pipeline.running import Progress, Summary, watched
from godwit.pipeline.schemas import (
    ASSOCIATIONS,
    DISTRIBUTIONS,
    FORECASTS,
    HANDOFFS,
    NEIGHBORS,
    POSITIONS,
    QUARANTINE,
    RATES,
    SITES,
    VISITS,
)
from godwit.pipeline.writing import Output


class MobilityOptions(msgspec.Struct, frozen=True, kw_only=True):
    positions: str
    sites: str
    out: str
    positions_select: str | None = None
    sites_select: str | None = None
    where: str | None = None
    """A condition on subscriber, time_s, lat and lon, for a part of the positions."""
    most: int | None = None
    test_day: str | None = None
    """The last day that has handoffs, where none is given and there are several."""
    keep_associations: bool = False
    rules: mobility.Rules = mobility.Rules()


def run(spark: SparkSession, options: MobilityOptions, progress: Progress | None = None) -> Summary:
    """Learn, write, and say what was learned."""
    with watched(spark, "mobility", progress) as summary:
        positions = read(spark, options.positions, POSITIONS, "positions", options.positions_select)
        parts = read(spark, options.sites, SITES, "sites", options.sites_select)
        asked = positions.good if options.where is None else positions.good.where(options.where)
        rules, out = options.rules, Output(spark, options.out)
        box = mobility.box_around(parts.good)
        usable = mobility.fixes(asked, None if rules.margin_m is None else box.widened(rules.margin_m))
        bad = positions.bad.unionByName(parts.bad).unionByName(usable.bad)
        out.write("quarantine", bad, QUARANTINE, ["dataset"])
        places = out.write("sites", mobility.sites(parts.good, options.most), SITES, files=1)
        near = mobility.associations(usable.good, places, rules.plane_latitude)
        if options.keep_associations:
            near = out.write("associations", near, ASSOCIATIONS)
        stays = out.write("visits", mobility.visits(near, rules), VISITS)
        moves = out.write("handoffs", mobility.handoffs(stays, rules), HANDOFFS, ["day"])
        graph = out.write("neighbors", mobility.neighbors(moves), NEIGHBORS, files=1)
        brokers = out.rows["sites"]
        out.write("distributions", mobility.distributions(stays), DISTRIBUTIONS, files=1)
        out.write("rates", mobility.rates(stays, graph, brokers), RATES, files=1)
        _forecast(out, moves, options, summary)
        out.finish()
        summary.rows_in = asked.count()
        summary.rows_out = {table: rows for table, rows in out.rows.items() if table != "quarantine"}
        summary.quarantined = out.rows["quarantine"]
    return summary


def _forecast(out: Output, moves: DataFrame, options: MobilityOptions, summary: Summary) -> None:
    days = mobility.days(moves)
    test_day = options.test_day or (days[-1] if len(days) > 1 else None)
    if test_day is None:
        summary.notes.append("no forecast: there is one day only, and none to learn from")
        return
    if test_day not in days or len(days) == 1:
        raise PipelineError(f"no forecast for {test_day}: the days with handoffs are {', '.join(days)}")
    gone = mobility.ways(moves, test_day).persist()
    try:
        scores = out.write("forecasts", mobility.forecasts(gone, test_day), FORECASTS, files=1)
    finally:
        gone.unpersist()
    summary.notes += [
        f"forecast of {row.day}, {row.model}: {row.first:.1%} first, {row.among_three:.1%} among three,"
        f" {row.known:.1%} known"
        for row in scores.orderBy("model").collect()
    ]
