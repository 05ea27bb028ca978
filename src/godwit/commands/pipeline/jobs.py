"""`godwit pipeline JOB --help`: what can be typed for each job. The work is in `godwit.commands.pipeline.pipeline`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

jobs = typer.Typer(help="Data jobs on Apache Spark.", no_args_is_help=True, rich_markup_mode=None)

Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs: local[N], spark://, yarn, k8s://.")]
Memory = Annotated[str, typer.Option(metavar="SIZE", help="Of the driver; in a local session, of everything.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may come several times.")
]
EventLog = Annotated[str | None, typer.Option(metavar="DIR", help="Keep Spark's event log, for its history server.")]
Out = Annotated[str, typer.Option(metavar="DIR", help="Where the tables go; an older result there is replaced.")]

Every = Annotated[str, typer.Option(metavar="TIME", help="How often a stream that waits looks, as in '10 seconds'.")]


Tables = Annotated[
    str | None,
    typer.Option(metavar="TARGET", help="Publish what is written to iceberg:CATALOG.NAMESPACE or delta:FOLDER too."),
]


def on_spark(
    master: Master = "local[*]",
    memory: Memory = "2g",
    conf: Conf = None,
    event_log: EventLog = None,
    ship: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Send what executors lack: godwit, all, or a packed environment.")
    ] = None,
    tables: Tables = None,
) -> None:
    """What every job may be told of the session that it runs in, and of where else its tables go."""


def streamed(
    stream: Annotated[
        bool, typer.Option("--stream", help="As a stream with a checkpoint: what is there and was not taken before.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="A stream that waits for more, until Ctrl-C.")] = False,
    every: Every = "0 seconds",
    files_per_batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Files that a micro-batch of a stream takes at most.")
    ] = None,
    events_per_batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Events of a broker that a micro-batch goes through at most.")
    ] = None,
) -> None:
    """What every job that can be a stream may be told of it."""


def seldom(every: Every = "10 seconds") -> None:
    """Of a stream that leaves files in many folders."""


def narrowed(
    filter: Annotated[  # noqa: A002
        str,
        typer.Option("--filter", metavar="FILTER", help="Of godwit:// sources: what the broker sends, as subscribed."),
    ] = "",
    topics: Annotated[str, typer.Option("--topics", metavar="TOPICS", help="The same by topic, as in air/#.")] = "",
) -> None:
    """What every job that reads events may be told of live brokers."""


To = Annotated[str | None, typer.Option(metavar="TOPIC", help="Send to kafka://host:port/topic too.")]


def job(*shared: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that has only a signature and a docstring, with the options of others after its own.

    The function of the same name in `commands.pipeline.pipeline` gets what was typed, by name, with what is about Spark
    as `spark` and what is about streams as `stream`, and returns the exit status.
    """

    def made(own: Callable[..., None]) -> Callable[..., None]:
        options = {name: option for one in (own, *shared) for name, option in _options(one).items()}

        @wraps(own)
        def command(**typed: Any) -> None:
            from godwit.commands.console import errors_told

            with errors_told():
                function = getattr(import_module("godwit.commands.pipeline.pipeline"), own.__name__)
                status = function(**_gathered(typed))
            raise typer.Exit(status)

        command.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
        command.__annotations__ = {name: option.annotation for name, option in options.items()}
        return jobs.command()(command)

    return made


def _options(signature: Callable[..., None]) -> dict[str, inspect.Parameter]:
    found = inspect.signature(signature, eval_str=True).parameters
    return {name: option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, option in found.items()}


def _gathered(typed: dict[str, Any]) -> dict[str, Any]:
    from godwit.commands.pipeline.pipeline import Spark, Streaming

    settings = tuple(typed.pop("conf") or ())
    spark = Spark(
        settings=settings, **{name: typed.pop(name) for name in ("master", "memory", "event_log", "ship", "tables")}
    )
    if "stream" not in typed:
        return {**typed, "spark": spark}
    streaming = {name: typed.pop(name) for name in Streaming.__struct_fields__ if name in typed}
    return {**typed, "spark": spark, "stream": Streaming(**streaming)}


SELECT = "SQL expressions that make the columns, as in 'cab AS subscriber, t AS time_s, lat, lon'."


@job(on_spark)
def mobility(
    positions: Annotated[
        str, typer.Argument(metavar="POSITIONS", help="subscriber, time_s, lat, lon: Parquet, CSV, JSON lines.")
    ],
    out: Out,
    sites: Annotated[
        str | None, typer.Argument(metavar="SITES", help="site, lat, lon; rows of one site are averaged.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="Instead of positions: attachments (subscriber, time_s, site), or traces of brokers."
        ),
    ] = "positions",
    sampled: Annotated[
        bool, typer.Option("--sampled", help="The log tells where everybody is again and again: silence means away.")
    ] = False,
    positions_select: Annotated[str | None, typer.Option("--select", metavar="SQL", help=SELECT)] = None,
    sites_select: Annotated[str | None, typer.Option(metavar="SQL", help="The same for sites.")] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Take only these positions.")] = None,
    most: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the N sites with the most rows.")] = None,
    test_day: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Forecast this day from the others; the last one.")
    ] = None,
    keep_associations: Annotated[
        bool, typer.Option("--associations", help="Write the nearest site of every position too.")
    ] = False,
    gap_s: Annotated[
        float, typer.Option("--gap", min=0, metavar="S", help="Away, when not heard of for so long.")
    ] = 300.0,
    ping_pong_s: Annotated[
        float, typer.Option("--ping-pong", min=0, metavar="S", help="There and back within this is ping-pong.")
    ] = 120.0,
    margin_m: Annotated[
        float, typer.Option("--margin", metavar="M", help="Fixes further outside the sites' box are bad; -1 for none.")
    ] = 0.0,
    plane_latitude: Annotated[
        float | None,
        typer.Option(
            "--plane", min=-89, max=89, metavar="LAT", help="Nearest on the plane of this latitude, not on the globe."
        ),
    ] = None,
    utc_offset_h: Annotated[float, typer.Option("--utc-offset", metavar="H", help="Where days begin, as in -7.")] = 0.0,
) -> None:
    """Learn how subscribers move between sites, from positions or from a log of who was attached where.

    Writes the tables visits, handoffs (by day), neighbors, distributions, rates, forecasts, sites and quarantine.

    Examples:

        godwit pipeline mobility positions.parquet sites.csv --out mobility --utc-offset -7

        godwit pipeline mobility wifi.csv --kind attachments --out mobility \\
            --select "mac AS subscriber, t AS time_s, ap AS site, what = 'assoc' AS attached"

    Exit status: 0; 2 where an input cannot be used; 130 after Ctrl-C.
    """


@job(streamed, narrowed, on_spark)
def match(
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS", help="A column for each attribute, a broker's archive, or godwit://host:port."
        ),
    ],
    subscriptions: Annotated[str, typer.Argument(metavar="SUBS", help="id, filter: Parquet, CSV or JSON lines.")],
    out: Out,
    key: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="What names an event: publisher,sequence of an archive, else id."),
    ] = None,
    select: Annotated[str | None, typer.Option(metavar="SQL", help="Expressions that make the attributes.")] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Take only these events.")] = None,
    to: To = None,
    part_max: Annotated[
        int, typer.Option(min=1, metavar="N", help="More subscriptions than this are split over executors.")
    ] = 2_000_000,
) -> None:
    """Match events with subscriptions: the broker's own filters, index and meaning, on any number of machines.

    Writes the tables deliveries (the key of the event, and subscription) and quarantine. A stream reads the
    subscriptions again before every micro-batch, and writes each delivery once, whatever is killed.

    Examples:

        godwit pipeline match archive/events subscriptions.jsonl --out deliveries --stream

        godwit pipeline match godwit://127.0.0.1:9884 subscriptions.jsonl --out deliveries --follow

    Exit status: 0; 2 where an input cannot be used; 130 after Ctrl-C.
    """


@job(streamed, narrowed, on_spark)
def gathering(
    readings: Annotated[str, typer.Argument(metavar="READINGS", help="sensor, time, perhaps lat and lon, quantities.")],
    out: Out,
    quantities: Annotated[str, typer.Option(metavar="COLUMNS", help="What was measured, as in pm25,pm10.")],
    select: Annotated[str | None, typer.Option(metavar="SQL", help="Expressions that make the columns.")] = None,
    sensors: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where sensors stand, if readings do not say: sensor, lat, lon.")
    ] = None,
    sensors_select: Annotated[
        str | None, typer.Option(metavar="SQL", help="Expressions that make site, lat and lon of --sensors.")
    ] = None,
    areas: Annotated[str | None, typer.Option(metavar="FILE", help="area, filter: aggregate by these too.")] = None,
    alerts: Annotated[
        str | None, typer.Option(metavar="FILE", help="id, filter: write the readings that match.")
    ] = None,
    cells: Annotated[
        bool, typer.Option("--cells", help="Aggregate by the cells of the sensors' space partition too.")
    ] = False,
    window: Annotated[str, typer.Option(metavar="TIME", help="As in '1 hour'.")] = "1 day",
    period_s: Annotated[
        float, typer.Option("--period", min=0.001, metavar="S", help="How often a sensor should be heard.")
    ] = 3600.0,
    late: Annotated[str, typer.Option(metavar="TIME", help="How long a window of a stream waits.")] = "1 day",
) -> None:
    """Gather sensor readings by place and time: aggregates, gaps and alerts.

    A missing value is a missing value, never a zero. Writes the tables aggregates, gaps, alerts and quarantine. A
    stream writes aggregates, when no reading of the window can come any more, alerts and quarantine.

    Example:

        godwit pipeline gathering air.parquet --quantities pm25 --out air --alerts alerts.jsonl

    Exit status: 0; 2 where an input cannot be used; 130 after Ctrl-C.
    """


@job(streamed, on_spark)
def audit(
    traces: Annotated[str, typer.Argument(metavar="TRACES", help="Of `godwit sim --trace`, of brokers, or godwit://.")],
    out: Out,
    expected: Annotated[
        str | None, typer.Option(metavar="FILE", help="publisher, sequence, client: who should get what.")
    ] = None,
    expected_select: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Makes these columns, as in 'publisher, sequence, subscription AS client'."),
    ] = None,
    late: Annotated[
        str, typer.Option(metavar="TIME", help="Of a stream: an event has ended when not heard of for so long.")
    ] = "10 minutes",
) -> None:
    """Judge a run by its traces: what was lost, came twice, out of order or late, and what it cost.

    Writes the tables outcomes, figures, relocations, overhead and quarantine, and audit.html. A stream keeps the traces
    of events that have ended, and writes the same to the folder judged.

    Example:

        godwit sim examples/scenarios/walking.toml --trace run.parquet && godwit pipeline audit run.parquet --out audit

    Exit status: 0, whatever is found; 2 where an input cannot be used; 130 after Ctrl-C.
    """


@job(streamed, seldom, narrowed, on_spark)
def ingest(
    archives: Annotated[
        list[str],
        typer.Argument(metavar="ARCHIVE...", help="Folders of brokers, logs of devices, or godwit://host:port."),
    ],
    out: Out,
    select: Annotated[
        str | None, typer.Option(metavar="SQL", help="Expressions that make the archive's columns of a log's.")
    ] = None,
    to: To = None,
) -> None:
    """Bring archives of events together: each event once, whichever brokers archived it, in folders by day.

    Writes the tables events and quarantine. A stream adds what comes, once, whatever is killed.

    Examples:

        godwit pipeline ingest b1/archive b2/archive --out events

        godwit pipeline ingest godwit://127.0.0.1:9884 --out events --follow --filter "pm25 > 150"

        godwit pipeline ingest godwit://127.0.0.1:9884 --out events --follow --to kafka://127.0.0.1:9092/fleet

    Exit status: 0; 2 where an input cannot be used; 130 after Ctrl-C.
    """


@jobs.command()
def publish(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What a job left at its --out.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="iceberg:CATALOG.NAMESPACE or delta:FOLDER.")],
) -> None:
    """Bring the tables that a job left in a folder into Iceberg or Delta, as --tables does; Spark is not needed.

    Of a batch, a table's rows are replaced in one commit. Of a stream, the micro-batches are added that are complete
    and were not published before. To publish again changes nothing.

    Example:

        godwit pipeline publish moves iceberg:lake.fleet

    Exit status: 0; 2 where folder or target cannot be used.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.pipeline.pipeline import publish as run

    with errors_told():
        status = run(folder, target)
    raise typer.Exit(status)


@jobs.command()
def sweep(
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="experiment, seeds, [fixed] and [grid] parameters: .toml or .json.")
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Where results go; what is there is not run again.")],
    master: Master = "local[*]",
    conf: Conf = None,
) -> None:
    """Run any grid of experiments, a task for each run, and go on where an earlier sweep ended.

    Writes results.parquet, one row for each run with its configuration, seed and version, and summary.parquet with the
    mean and its confidence interval for each cell and measure. What fails for good is in failed.jsonl.

    Example:

        godwit pipeline sweep examples/sweeps/sizes.toml --out sizes

    Exit status: 0; 1 where runs failed; 2 where the grid or DIR cannot be used; 130 after Ctrl-C.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.pipeline.sweeping import Where
    from godwit.commands.pipeline.sweeping import sweep as run

    with errors_told():
        status = run(grid, out, Where(spark=True, master=master, settings=tuple(conf or ())))
    raise typer.Exit(status)
