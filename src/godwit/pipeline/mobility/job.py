"""The mobility job: reads positions and sites, or a log of attachments, composes `mobility`, writes the tables."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline import cells, quality, schemas
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.marks import BATCH, STREAM, Mark, deciding
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
    h3: int | None = None
    """Of positions: cells of H3 at this resolution are the sites."""
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
    files_per_batch: int | None = None
    """Of a stream: how many files a micro-batch takes at most."""
    live: Live = EVERYTHING
    fail_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        quality.check(self.fail_on)

    def mark(self) -> Mark:
        return Mark(job="mobility", mode=BATCH)

    def stream_mark(self, sites: str) -> Mark:
        """`sites` tells sets of them apart: whom they were nearest to decides what fixes mean."""
        rules = msgspec.structs.asdict(self.rules)
        asked = deciding(
            positions=self.positions,
            sites=f"{self.sites} ({sites})" if self.sites else None,
            select=self.positions_select,
            sites_select=self.sites_select,
            where=self.where,
            most=self.most,
            h3=self.h3,
            **{name.removesuffix("_s").removesuffix("_m"): value for name, value in rules.items()},
        )
        return Mark(job="mobility", mode=STREAM, options=asked)


TABLES = ("sites", "associations", "visits", "handoffs", "neighbors", "distributions", "rates", "forecasts")
"""In the order that the summary tells them."""


def run(spark: SparkSession, options: MobilityOptions, progress: Progress | None = None) -> Summary:
    """Learn, write, and say what was learned. The input is read once, and again only where some of it is set aside."""
    with watched(spark, "mobility", progress) as summary, Output(spark, options.out, options.mark()) as out:
        by_kind = _of_cells if options.h3 is not None else _of_positions
        read_all = by_kind if options.kind == POSITIONS else _of_log
        read_all(spark, out, options, summary)
        out.finish()
        summary.rows_out = {table: out.rows[table] for table in TABLES if table in out.rows}
        summary.quarantined = out.rows["quarantine"]
    return summary


def _of_positions(spark: SparkSession, out: Output, options: MobilityOptions, summary: Summary) -> None:
    if options.sites is None:
        raise PipelineError(
            f"{options.positions}: positions need SITES, site, lat and lon, or --h3 for cells instead; a log of who was"
            " attached where needs none, and is told by --kind attachments"
        )
    positions = read(spark, options.positions, schemas.POSITIONS, "positions", options.positions_select)
    parts = read(spark, options.sites, SITES, "sites", options.sites_select)
    asked = positions.good if options.where is None else positions.good.where(options.where)
    rules = options.rules
    around = mobility.box_around(parts.good)
    box = None if rules.margin_m is None else around.widened(rules.margin_m)

    usable = mobility.fixes(asked, box)
    places = out.write("sites", mobility.sites(parts.good, options.most), SITES, files=1)
    if options.keep_associations:
        near = mobility.associations(usable.good, places, rules.plane_latitude)
        found = mobility.visits(out.write("associations", near, ASSOCIATIONS), rules)
    else:
        found = mobility.visits_of(usable.good, places, rules)
    stays = out.write("visits", found, VISITS)
    _conclude(spark, out, stays, out.rows["sites"], (positions, usable), parts.bad, options, summary)


def _of_cells(spark: SparkSession, out: Output, options: MobilityOptions, summary: Summary) -> None:
    """Who has no list of sites takes cells of H3 for them."""
    assert options.h3 is not None
    positions = read(spark, options.positions, schemas.POSITIONS, "positions", options.positions_select)
    asked = positions.good if options.where is None else positions.good.where(options.where)
    usable = mobility.fixes(asked, None)
    near = cells.associated(usable.good, options.h3)
    if options.keep_associations:
        near = out.write("associations", near, ASSOCIATIONS)
    stays = out.write("visits", mobility.visits(near, options.rules), VISITS)
    names = sorted(row["site"] for row in stays.select("site").distinct().collect())
    out.write("sites", spark.createDataFrame(cells.middles(names), SITES), SITES, files=1)
    nothing = spark.createDataFrame([], QUARANTINE)
    _conclude(spark, out, stays, len(names), (positions, usable), nothing, options, summary)


def _of_log(spark: SparkSession, out: Output, options: MobilityOptions, summary: Summary) -> None:
    """Where somebody was attached is known, and no site has to be found."""
    log = _log(spark, options)
    asked = log.good if options.where is None else log.good.where(options.where)
    bad = spark.createDataFrame([], QUARANTINE)
    if options.sites is not None:
        parts = read(spark, options.sites, SITES, "sites", options.sites_select)
        out.write("sites", mobility.sites(parts.good, options.most), SITES, files=1)
        bad = bad.unionByName(parts.bad)

    usable = attachments.usable(asked)
    stays = out.write("visits", attachments.visits(usable.good, options.rules, sampled=options.sampled), VISITS)
    brokers = stays.select("site").distinct().count()
    _conclude(spark, out, stays, brokers, (log, usable), bad, options, summary)


def _conclude(
    spark: SparkSession,
    out: Output,
    stays: DataFrame,
    brokers: int,
    judged: tuple[Dataset, Dataset],
    bad: DataFrame,
    options: MobilityOptions,
    summary: Summary,
) -> None:
    """What follows from visits, and what was set aside on the way to them: as `judged`, input and what was usable."""
    found, usable = judged

    def set_aside() -> None:
        whole = found.set_aside().unionByName(bad).unionByName(usable.set_aside())
        table = out.write("quarantine", whole, QUARANTINE, ["dataset"])
        quality.judge(out, {options.kind: found.counted}, table, options.fail_on)

    at_once(spark, set_aside, lambda: _learn(spark, out, stays, brokers, options, summary))
    summary.rows_in = usable.counted.rows()


def _log(spark: SparkSession, options: MobilityOptions) -> Dataset:
    if options.kind == TRACES:
        found = read(spark, options.positions, schemas.TRACES, "traces", options.positions_select, live=options.live)
        return Dataset(attachments.of_traces(found.good), found.bad, found.counted)
    return read(spark, options.positions, schemas.ATTACHMENTS, "attachments", options.positions_select, needed=["site"])


def _learn(
    spark: SparkSession, out: Output, stays: DataFrame, brokers: int, options: MobilityOptions, summary: Summary
) -> None:
    moves = out.write("handoffs", mobility.handoffs(stays, options.rules), HANDOFFS, ["day"])
    write_learned(spark, out, mobility.spells(stays), mobility.daily_ways(moves), brokers, options, summary)


def write_learned(
    spark: SparkSession,
    out: Output,
    spells: DataFrame,
    daily: DataFrame,
    brokers: int,
    options: MobilityOptions,
    summary: Summary,
) -> None:
    """What follows from visits. All but the handoffs themselves comes from two tables that are small, and kept."""
    by_day = daily.persist()
    test_day = _test_day(mobility.days(by_day), options, summary)
    ended, gone = spells.persist(), mobility.tested(by_day, test_day).persist()
    try:

        def of_sites() -> None:
            out.write("distributions", mobility.distributions(ended), DISTRIBUTIONS, files=1)

        def of_ways() -> None:
            graph = out.write("neighbors", mobility.neighbors(gone), NEIGHBORS, files=1)
            out.write("rates", mobility.rates(ended, graph, brokers), RATES, files=1)

        def foretold() -> None:
            _forecast(spark, out, gone, test_day, summary)

        at_once(spark, of_ways, of_sites, foretold)
    finally:
        for kept in (by_day, ended, gone):
            kept.unpersist()


def _test_day(days: list[str], options: MobilityOptions, summary: Summary) -> str | None:
    """The day to foretell, or None where there is none to learn from."""
    test_day = options.test_day or (days[-1] if len(days) > 1 else None)
    if test_day is None:
        summary.notes.append("no forecast: there is one day only, and none to learn from")
    elif test_day not in days or len(days) == 1:
        raise PipelineError(f"no forecast for {test_day}: the days with handoffs are {', '.join(days)}")
    return test_day


def _forecast(spark: SparkSession, out: Output, gone: DataFrame, test_day: str | None, summary: Summary) -> None:
    told = spark.createDataFrame([], FORECASTS) if test_day is None else mobility.forecasts(gone, test_day)
    scores = out.write("forecasts", told, FORECASTS, files=1)
    summary.notes += [
        f"forecast of {row.day}, {row.model}: {row.likeliest:.1%} likeliest, {row.among_three:.1%} among three,"
        f" {row.known:.1%} known, of {row.handoffs:,} handoffs after {row.learned:,}"
        for row in sorted(scores.collect(), key=lambda row: str(row.model))
    ]
