"""`godwit pipeline gathering`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.console import InputError
from godwit.commands.pipeline.session import CellOption, SparkOptions, TableOptions, listed, options_told, told
from godwit.commands.pipeline.streams import LiveOptions, StreamOptions, live


class GatheringCommand(msgspec.Struct, frozen=True, kw_only=True):
    readings: Annotated[
        str, typer.Argument(metavar="READINGS", help="sensor, time_s, perhaps lat and lon, quantities.")
    ]
    table: TableOptions
    quantities: Annotated[str, typer.Option(metavar="COLUMNS", help="What was measured, as in pm25,pm10.")]
    select: Annotated[str | None, typer.Option(metavar="SQL", help="Expressions that make the columns.")] = None
    sensors: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where sensors stand, if readings do not say: sensor, lat, lon.")
    ] = None
    sensors_select: Annotated[
        str | None, typer.Option(metavar="SQL", help="Expressions that make site, lat and lon of --sensors.")
    ] = None
    areas: Annotated[str | None, typer.Option(metavar="FILE", help="area, filter: aggregate by these too.")] = None
    alerts: Annotated[str | None, typer.Option(metavar="FILE", help="id, filter: write the readings that match.")] = (
        None
    )
    cells: Annotated[
        bool, typer.Option("--cells", help="Aggregate by the cells of the sensors' space partition too.")
    ] = False
    h3: CellOption = None
    window: Annotated[str, typer.Option(metavar="TIME", help="As in '1 hour'.")] = "1 day"
    period_s: Annotated[
        float, typer.Option("--period", min=0.001, metavar="S", help="How often a sensor should be heard.")
    ] = 3600.0
    late: Annotated[str, typer.Option(metavar="TIME", help="How long a window of a stream waits.")] = "1 day"
    streaming: StreamOptions
    narrowed: LiveOptions
    spark: SparkOptions


def gathering(asked: GatheringCommand) -> int:
    """Gather sensor readings by place and time: aggregates, gaps and alerts.

    A missing value is a missing value, never a zero. Writes the tables aggregates, gaps, alerts, quality and
    quarantine. A stream writes aggregates, when the window has waited long enough, alerts, late and quarantine.

    Examples:

        godwit pipeline gathering air.parquet --quantities pm25 --out air --alerts alerts.jsonl

    Exit status: 0; 2 where an input cannot be used or --fail-on holds; 130 after Ctrl-C.
    """
    if asked.cells and asked.sensors is None:
        raise InputError("--cells needs --sensors: the cells are those of brokers where the sensors stand")
    with options_told():
        from godwit.pipeline.gathering.job import GatheringOptions, run, run_stream

        options = GatheringOptions(
            readings=asked.readings,
            out=asked.table.out,
            quantities=listed(asked.quantities),
            select=asked.select,
            sensors=asked.sensors,
            sensors_select=asked.sensors_select,
            areas=asked.areas,
            alerts=asked.alerts,
            cells=asked.cells,
            h3=asked.h3,
            window=asked.window,
            period_s=asked.period_s,
            late=asked.late,
            files_per_batch=asked.streaming.files_per_batch,
            live=live(asked.streaming, asked.narrowed, asked.readings),
            fail_on=tuple(asked.table.fail_on or ()),
        )
    inputs = (asked.readings, asked.sensors, asked.areas, asked.alerts)
    if asked.streaming.asked:
        pace = asked.streaming.pace()
        return told(
            "gathering", asked.spark, asked.table, lambda spark, bar: run_stream(spark, options, pace, bar), inputs
        )
    return told("gathering", asked.spark, asked.table, lambda spark, bar: run(spark, options, bar), inputs)
