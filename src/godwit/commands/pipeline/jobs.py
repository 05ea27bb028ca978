"""`godwit pipeline JOB`: the jobs together. Each is a struct of what can be typed and one function, in a module of its
own; what takes long to load is imported when a job runs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.command import Json, command
from godwit.commands.console import print_json, printable
from godwit.commands.pipeline.audit import audit
from godwit.commands.pipeline.gathering import gathering
from godwit.commands.pipeline.ingest import ingest
from godwit.commands.pipeline.match import match
from godwit.commands.pipeline.mobility import mobility
from godwit.commands.pipeline.session import Conf, Master, SparkOptions, TableOptions, options_told, published, told

jobs = typer.Typer(help="Data jobs on Apache Spark.", no_args_is_help=True, rich_markup_mode=None)

command(jobs)(mobility)
command(jobs)(match)
command(jobs)(gathering)
command(jobs)(audit)
command(jobs)(ingest)


class PublishCommand(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What a job left at its --out.")]
    target: Annotated[str, typer.Argument(metavar="TARGET", help="iceberg:CATALOG.NAMESPACE or delta:FOLDER.")]
    as_json: Json = False


@command(jobs)
def publish(asked: PublishCommand) -> int:
    """Bring the tables that a job left in a folder into Iceberg or Delta, as --tables does; Spark is not needed.

    Of a batch, a table's rows are replaced in one commit. Of a stream, the micro-batches are added that are complete
    and were not published before. To publish again changes nothing.

    Examples:

        godwit pipeline publish moves iceberg:lake.fleet

    Exit status: 0; 2 where folder or target cannot be used.
    """
    with options_told():
        lines = published(asked.folder, asked.target)
    if asked.as_json:
        print_json(lines)
    else:
        typer.echo("".join(f"{printable(line)}\n" for line in lines), nl=False)
    return 0


class CompactCommand(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The --out of a stream that is not running.")]
    spark: SparkOptions


@command(jobs)
def compact(asked: CompactCommand) -> int:
    """Join the small files that micro-batches of a stream left to large ones; the rows stay the same.

    Where the stream is published to tables, only micro-batches are joined that these have already. The stream goes on
    afterwards as if nothing had been.

    Examples:

        godwit pipeline compact events

    Exit status: 0; 2 where DIR has no stream, or one that is running.
    """
    with options_told():
        from godwit.pipeline.streaming.compaction import compact as run

    tables = TableOptions(out=asked.folder)
    return told("compact", asked.spark, tables, lambda spark, bar: run(spark, asked.folder, bar))


class SweepCommand(msgspec.Struct, frozen=True, kw_only=True):
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="experiment, seeds, [fixed] and [grid] parameters: .toml or .json.")
    ]
    out: Annotated[str, typer.Option(metavar="DIR", help="Where results go; what is there is not run again.")]
    master: Master = "local[*]"
    conf: Conf = None
    as_json: Json = False


@command(jobs)
def sweep(asked: SweepCommand) -> int:
    """Run any grid of experiments, a task for each run, and go on where an earlier sweep ended.

    Writes results.parquet, one row for each run with its configuration, seed and version, and summary.parquet with the
    mean and its confidence interval for each cell and measure. What fails for good is in failed.jsonl.

    Examples:

        godwit pipeline sweep examples/sweeps/sizes.toml --out sizes

    Exit status: 0; 1 where runs failed; 2 where the grid or DIR cannot be used; 130 after Ctrl-C.
    """
    from godwit.commands.pipeline.sweeping import Where
    from godwit.commands.pipeline.sweeping import sweep as run

    where = Where(spark=True, master=asked.master, settings=tuple(asked.conf or ()))
    return run(asked.grid, asked.out, where, as_json=asked.as_json)
