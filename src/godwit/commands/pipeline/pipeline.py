"""`godwit pipeline JOB`: options checked, a session started, the job watched, its summary told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import typer

from godwit.commands.console import Bar, InputError, Reports, printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from godwit.pipeline.io.source_options import Live
    from godwit.pipeline.progress import Progress, Summary
    from godwit.pipeline.streaming.queries import Pace

    Job = Callable[[SparkSession, Progress], Summary]


class Spark(msgspec.Struct, frozen=True, kw_only=True):
    """What every job may be told about the session that it runs in."""

    master: str
    memory: str
    settings: tuple[str, ...] = ()
    event_log: str | None = None
    ship: str | None = None
    tables: str | None = None
    """Where the tables that a job wrote are published too, when it is done."""


class Streaming(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a job is a stream, and what every stream may be told."""

    stream: bool = False
    follow: bool = False
    every: str = "0 seconds"
    files_per_batch: int | None = None
    events_per_batch: int | None = None
    filter: str = ""
    topics: str = ""

    @property
    def asked(self) -> bool:
        return self.stream or self.follow

    def pace(self) -> Pace:
        from godwit.pipeline.streaming.queries import Pace

        return Pace(follow=self.follow, every=self.every)

    def live(self, *sources: str) -> Live:
        from godwit.pipeline.io.kafka.address import is_kafka
        from godwit.pipeline.io.source_options import Live, is_live

        if (self.filter or self.topics) and not all(map(is_live, sources)):
            raise InputError("--filter and --topics are for sources such as godwit://host:port")
        if self.events_per_batch and not all(is_live(source) or is_kafka(source) for source in sources):
            raise InputError("--events-per-batch is for sources such as godwit://host:port and kafka://host:port/topic")
        return Live(filter=self.filter, topics=self.topics, events_per_batch=self.events_per_batch)


def mobility(
    spark: Spark,
    *,
    positions: str,
    sites: str | None,
    out: str,
    kind: str,
    sampled: bool,
    positions_select: str | None,
    sites_select: str | None,
    where: str | None,
    most: int | None,
    test_day: str | None,
    keep_associations: bool,
    gap_s: float,
    ping_pong_s: float,
    margin_m: float,
    plane_latitude: float | None = None,
    utc_offset_h: float,
) -> int:
    with parts_told():
        from godwit.pipeline.mobility.job import KINDS, POSITIONS, MobilityOptions, run
        from godwit.pipeline.mobility.movement import Rules
    if kind not in KINDS:
        raise InputError(f"--kind {kind!r}: right would be {', '.join(KINDS)}")
    if sampled and kind == POSITIONS:
        raise InputError("--sampled is for logs: --kind attachments or traces; positions are samples always")
    options = MobilityOptions(
        positions=positions,
        sites=sites,
        out=out,
        kind=kind,
        sampled=sampled,
        positions_select=positions_select,
        sites_select=sites_select,
        where=where,
        most=most,
        test_day=test_day,
        keep_associations=keep_associations,
        rules=Rules(
            gap_s=gap_s,
            ping_pong_s=ping_pong_s,
            margin_m=margin_m if margin_m >= 0 else None,
            plane_latitude=plane_latitude,
            utc_offset_h=utc_offset_h,
        ),
    )
    return _told("mobility", spark, out, lambda session, progress: run(session, options, progress))


def match(
    spark: Spark,
    *,
    events: str,
    subscriptions: str,
    out: str,
    key: str | None,
    select: str | None,
    where: str | None,
    to: str | None,
    part_max: int,
    stream: Streaming,
) -> int:
    with parts_told():
        from godwit.pipeline.match.job import MatchOptions, run, run_stream
    live = stream.live(events)
    options = MatchOptions(
        events=events,
        subscriptions=subscriptions,
        out=out,
        key=_listed(key or ""),
        select=select,
        where=where,
        to=to,
        part_max=part_max,
        files_per_batch=stream.files_per_batch,
        live=live,
    )
    if stream.asked:
        return _told(
            "match", spark, out, lambda session, progress: run_stream(session, options, stream.pace(), progress)
        )
    return _told("match", spark, out, lambda session, progress: run(session, options, progress))


def gathering(
    spark: Spark,
    *,
    readings: str,
    out: str,
    quantities: str,
    select: str | None,
    sensors: str | None,
    sensors_select: str | None,
    areas: str | None,
    alerts: str | None,
    cells: bool,
    window: str,
    period_s: float,
    late: str,
    stream: Streaming,
) -> int:
    with parts_told():
        from godwit.pipeline.gathering.job import GatheringOptions, run, run_stream
    live = stream.live(readings)
    if cells and sensors is None:
        raise InputError("--cells needs --sensors: the cells are those of brokers where the sensors stand")
    options = GatheringOptions(
        readings=readings,
        out=out,
        quantities=_listed(quantities),
        select=select,
        sensors=sensors,
        sensors_select=sensors_select,
        areas=areas,
        alerts=alerts,
        cells=cells,
        window=window,
        period_s=period_s,
        late=late,
        files_per_batch=stream.files_per_batch,
        live=live,
    )
    if stream.asked:
        return _told(
            "gathering", spark, out, lambda session, progress: run_stream(session, options, stream.pace(), progress)
        )
    return _told("gathering", spark, out, lambda session, progress: run(session, options, progress))


def audit(
    spark: Spark,
    *,
    traces: str,
    out: str,
    expected: str | None,
    expected_select: str | None,
    late: str,
    stream: Streaming,
) -> int:
    with parts_told():
        from godwit.pipeline.audit.job import AuditOptions, run, run_stream
    options = AuditOptions(
        traces=traces,
        out=out,
        expected=expected,
        expected_select=expected_select,
        late=late,
        files_per_batch=stream.files_per_batch,
        live=stream.live(traces),
    )
    if stream.asked:
        return _told(
            "audit", spark, out, lambda session, progress: run_stream(session, options, stream.pace(), progress)
        )
    return _told("audit", spark, out, lambda session, progress: run(session, options, progress))


def ingest(
    spark: Spark, *, archives: list[str], out: str, select: str | None, to: str | None, stream: Streaming
) -> int:
    with parts_told():
        from godwit.pipeline.ingest import IngestOptions, run, run_stream
    options = IngestOptions(
        archives=tuple(archives),
        out=out,
        select=select,
        to=to,
        live=stream.live(*archives),
        files_per_batch=stream.files_per_batch,
    )
    if stream.asked:
        return _told(
            "ingest", spark, out, lambda session, progress: run_stream(session, options, stream.pace(), progress)
        )
    return _told("ingest", spark, out, lambda session, progress: run(session, options, progress))


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _told(name: str, asked: Spark, out: str, job: Job) -> int:
    """Run a job in a session of its own and print its summary; the exit status."""
    with parts_told():
        from pyspark.errors import PySparkException

        from godwit.pipeline.errors import PipelineError
    reports = Reports()
    session = started(name, asked)
    try:
        with Bar(reports.console, name) as bar:
            summary = job(session, bar.update)
            if asked.tables is not None:
                summary.notes += _published(out, asked.tables)
    except PipelineError as error:
        raise InputError(str(error)) from None
    except PySparkException as error:
        raise InputError(f"{name}: {(str(error).strip().splitlines() or ['Spark failed'])[0]}") from None
    finally:
        session.stop()
    typer.echo("".join(f"{printable(line)}\n" for line in summary.lines()), nl=False)
    return 0


def publish(folder: str, target: str) -> int:
    with parts_told():
        from godwit.pipeline.errors import PipelineError
    try:
        lines = _published(folder, target)
    except PipelineError as error:
        raise InputError(str(error)) from None
    typer.echo("".join(f"{printable(line)}\n" for line in lines), nl=False)
    return 0


def _published(out: str, target: str) -> list[str]:
    from godwit.pipeline.io.lake.publication import published

    return [f"{target}: {rows:,} rows published to {table}" for table, rows in published(out, target).items()]


def started(name: str, asked: Spark) -> SparkSession:
    """A session as it was asked for; to be stopped."""
    with parts_told():
        from godwit.pipeline.errors import PipelineError
        from godwit.pipeline.session import Options, start
    options = Options(
        master=asked.master,
        name=f"godwit {name}",
        memory=asked.memory,
        event_log=asked.event_log,
        ship=asked.ship,
        settings=dict(map(_setting, asked.settings)),
    )
    try:
        return start(options)
    except PipelineError as error:
        raise InputError(str(error)) from None


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise InputError(f"--conf {text!r}: must be a setting of Spark, as in spark.executor.memory=4g")
    return name, value


@contextmanager
def parts_told() -> Iterator[None]:
    """Say which part of the installation is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        extra = "lab" if missing.name in ("scipy", "matplotlib") else "pipeline"
        raise InputError(f"the pipeline needs {missing.name}, which comes with godwit[{extra}]") from None
