"""The mobility job: reads positions and sites, or a log of attachments, composes `mobility`, writes the tables."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline import schemas
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.reading import Dataset, read
from godwit.pipeline.io.source_options import EVERYTHING, Live
from godwit.pipeline.io.writing import Output
from godwit.pipeline.mobility import attachments
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.progress import Progress, Summary, at_once, watched
from godwit.pipeline.schemas import (
    ASSOCIATIONS,
    DISTRIBUTIONS,
    FORECASTS,
    HANDOFFS,
    NEIGHBORS,
    QUARANTINE,
    RATES,
    SITES,
    VISITS,
)

POSITIONS, ATTACHMENTS, TRACES = KINDS = ("positions", "attachments", "traces")
"""What the input tells: where subscribers were, to which site they were attached, or what brokers recorded of it."""


class MobilityOptions(msgspec.Struct, frozen=True, kw_only=True):
    positions: str
    """Or the log, by its `kind`."""
    out: str
    sites: str | None = None
    """Positions need them; with a log they tell brokers where its sites stand."""
    kind: str = POSITIONS
    sampled: bool = False
    """Of a log: it tells again and again where everybody is, so that silence means away."""
    positions_select: str | None = None
    sites_select: str | None = None
    where: str | None = None
    """A condition on the columns of the input, for a part of it."""
    most: int | None = None
    test_day: str | None = None
    """The last day that has handoffs, where none is given and there are several."""
    keep_associations: bool = False
    rules: mobility.Rules = mobility.Rules()
    live: Live = EVERYTHING


TABLES = ("sites", "associations", "visits", "handoffs", "neighbors", "distributions", "rates", "forecasts")
"""In the order that the summary tells them."""


def run(spark: SparkSession, options: MobilityOptions, progress: Progress | None = None) -> Summary:
    """Learn, write, and say what was learned."""
    with watched(spark, "mobility", progress) as summary:
        out = Output(spark, options.out)
        read_all = _of_positions if options.kind == POSITIONS else _of_log
        read_all(spark, out, options, summary)
        out.finish()
        summary.rows_out = {table: out.rows[table] for table in TABLES if table in out.rows}
        summary.quarantined = out.rows["quarantine"]
    return summary


def _of_positions(spark: SparkSession, out: Output, options: MobilityOptions, summary: Summary) -> None:
    if options.sites is None:
        raise PipelineError(
            f"{options.positions}: positions need SITES, site, lat and lon; a log of who was attached where needs none,"
            " and is told by --kind attachments"
        )
    positions = read(spark, options.positions, schemas.POSITIONS, "positions", options.positions_select)
    parts = read(spark, options.sites, SITES, "sites", options.sites_select)
    asked = positions.good if options.where is None else positions.good.where(options.where)
    rules = options.rules
    around = mobility.box_around(parts.good)
    box = None if rules.margin_m is None else around.widened(rules.margin_m)

    def set_aside() -> None:
        seen = Observation()
        unusable = mobility.fixes(asked.observe(seen, sf.count("*").alias("rows")), box).bad
        bad = positions.bad.unionByName(parts.bad).unionByName(unusable)
        out.write("quarantine", bad, QUARANTINE, ["dataset"])
        summary.rows_in = seen.get["rows"]

    def learn() -> None:
        places = out.write("sites", mobility.sites(parts.good, options.most), SITES, files=1)
        near = mobility.associations(mobility.fixes(asked, box).good, places, rules.plane_latitude)
        if options.keep_associations:
            near = out.write("associations", near, ASSOCIATIONS)
        stays = out.write("visits", mobility.visits(near, rules), VISITS)
        _learn(spark, out, stays, out.rows["sites"], options, summary)

    at_once(spark, set_aside, learn)


def _of_log(spark: SparkSession, out: Output, options: MobilityOptions, summary: Summary) -> None:
    """Where somebody was attached is known, and no site has to be found."""
    log = _log(spark, options)
    asked = log.good if options.where is None else log.good.where(options.where)
    bad = log.bad
    if options.sites is not None:
        parts = read(spark, options.sites, SITES, "sites", options.sites_select)
        out.write("sites", mobility.sites(parts.good, options.most), SITES, files=1)
        bad = bad.unionByName(parts.bad)

    def set_aside() -> None:
        seen = Observation()
        unusable = attachments.usable(asked.observe(seen, sf.count("*").alias("rows"))).bad
        out.write("quarantine", bad.unionByName(unusable), QUARANTINE, ["dataset"])
        summary.rows_in = seen.get["rows"]

    def learn() -> None:
        found = attachments.visits(attachments.usable(asked).good, options.rules, sampled=options.sampled)
        stays = out.write("visits", found, VISITS)
        _learn(spark, out, stays, stays.select("site").distinct().count(), options, summary)

    at_once(spark, set_aside, learn)


def _log(spark: SparkSession, options: MobilityOptions) -> Dataset:
    if options.kind == TRACES:
        found = read(spark, options.positions, schemas.TRACES, "traces", options.positions_select, live=options.live)
        return Dataset(attachments.of_traces(found.good), found.bad)
    return read(spark, options.positions, schemas.ATTACHMENTS, "attachments", options.positions_select, needed=["site"])


def _learn(
    spark: SparkSession, out: Output, stays: DataFrame, brokers: int, options: MobilityOptions, summary: Summary
) -> None:
    """What follows from visits. All but the handoffs themselves comes from two tables that are small, and kept."""
    moves = out.write("handoffs", mobility.handoffs(stays, options.rules), HANDOFFS, ["day"])
    test_day = _test_day(mobility.days(moves), options, summary)
    ended, gone = mobility.spells(stays).persist(), mobility.ways(moves, test_day).persist()
    try:

        def of_sites() -> None:
            out.write("distributions", mobility.distributions(ended), DISTRIBUTIONS, files=1)

        def of_ways() -> None:
            graph = out.write("neighbors", mobility.neighbors(gone), NEIGHBORS, files=1)
            out.write("rates", mobility.rates(ended, graph, brokers), RATES, files=1)

        def foretold() -> None:
            if test_day is not None:
                _forecast(out, gone, test_day, summary)

        at_once(spark, of_ways, of_sites, foretold)
    finally:
        ended.unpersist()
        gone.unpersist()


def _test_day(days: list[str], options: MobilityOptions, summary: Summary) -> str | None:
    """The day to foretell, or None where there is none to learn from."""
    test_day = options.test_day or (days[-1] if len(days) > 1 else None)
    if test_day is None:
        summary.notes.append("no forecast: there is one day only, and none to learn from")
    elif test_day not in days or len(days) == 1:
        raise PipelineError(f"no forecast for {test_day}: the days with handoffs are {', '.join(days)}")
    return test_day


def _forecast(out: Output, gone: DataFrame, test_day: str, summary: Summary) -> None:
    scores = out.write("forecasts", mobility.forecasts(gone, test_day), FORECASTS, files=1)
    summary.notes += [
        f"forecast of {row.day}, {row.model}: {row.first:.1%} first, {row.among_three:.1%} among three,"
        f" {row.known:.1%} known"
        for row in sorted(scores.collect(), key=lambda row: str(row.model))
    ]
