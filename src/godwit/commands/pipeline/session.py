"""What every job may be told of the session that it runs in; a job watched, and its summary told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.command import Json
from godwit.commands.console import Bar, InputError, Reports, print_json, printable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from godwit.pipeline.progress import Progress, Summary

    Job = Callable[[SparkSession, Progress], Summary]

Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs: local[N], spark://, yarn, k8s://, sc://.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark. May be repeated.")
]


CellOption = Annotated[
    int | None,
    typer.Option("--h3", min=0, max=15, metavar="RES", help="By cells of H3: as sites of mobility, as areas too."),
]


class SparkOptions(msgspec.Struct, frozen=True, kw_only=True):
    master: Master = "local[*]"
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Of the driver; in a local session, of everything.")] = (
        "2g"
    )
    conf: Conf = None
    event_log: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep Spark's event log, for its history server.")
    ] = None
    ship: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Send what executors lack: godwit, all, or a packed environment.")
    ] = None
    as_json: Json = False


class TableOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tables of a job go, and when they do not."""

    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where the tables go; an older result of the same job is replaced.")
    ]
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Publish what is written too: iceberg:CATALOG.NAMESPACE, delta:FOLDER or table:NAMESPACE.",
        ),
    ] = None
    lineage: Annotated[
        str | None, typer.Option(metavar="TARGET", help="Tell OpenLineage's events to a file or an http:// server.")
    ] = None
    fail_on: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Refuse the result, as in 'quarantined > 0.1%'. May be repeated."),
    ] = None


def told(name: str, spark: SparkOptions, tables: TableOptions, job: Job, inputs: tuple[str | None, ...] = ()) -> int:
    """Run a job in a session of its own and print its summary; the exit status. `inputs` are for lineage alone."""
    with parts_told():
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        from godwit.pipeline import lineage
        from godwit.pipeline.errors import PipelineError, reason
    reports = Reports()
    flow = lineage.Flow(job=name, inputs=tuple(one for one in inputs if one), out=tables.out)
    session = started(name, spark)
    try:
        with Bar(reports.console, name) as bar, lineage.told(tables.lineage, flow) as done:
            summary = job(session, bar.update)
            done(session, summary)
            if tables.tables is not None:
                summary.notes += published(tables.out, tables.tables, session)
    except PipelineError as error:
        raise InputError(str(error)) from None
    except (PySparkException, Py4JError) as error:
        raise InputError(f"{name}: {reason(str(error))}") from None
    finally:
        session.stop()
    if spark.as_json:
        print_json(summary)
    else:
        typer.echo("".join(f"{printable(line)}\n" for line in summary.lines()), nl=False)
    return 0


def published(out: str, target: str, session: SparkSession | None = None) -> list[str]:
    from godwit.pipeline.io.lake.address import TABLE, parsed
    from godwit.pipeline.io.lake.publication import published

    address = parsed(target)
    if session is not None and address is not None and address.format == TABLE:
        from godwit.pipeline.io.lake.catalog import replaced

        rows = replaced(session, out, address)
    else:
        rows = published(out, target)
    return [f"{target}: {count:,} rows published to {table}" for table, count in rows.items()]


def started(name: str, asked: SparkOptions) -> SparkSession:
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
        settings=dict(map(_setting, asked.conf or ())),
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


def listed(names: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (names or "").split(",") if name.strip())


@contextmanager
def parts_told() -> Iterator[None]:
    """Say which part of the installation is missing, and which option cannot be understood."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise InputError(f"the pipeline needs {missing.name}, which comes with godwit[pipeline]") from None


@contextmanager
def options_told() -> Iterator[None]:
    """Options of a job are made inside: what is wrong with one is told before Spark is started."""
    with parts_told():
        from godwit.pipeline.errors import PipelineError

        try:
            yield
        except PipelineError as error:
            raise InputError(str(error)) from None
