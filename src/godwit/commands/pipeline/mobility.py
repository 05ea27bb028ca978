"""`godwit pipeline mobility`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from godwit.commands.console import InputError
from godwit.commands.pipeline.session import CellOption, SparkOptions, TableOptions, options_told, told
from godwit.commands.pipeline.streams import LiveOptions, StreamOptions, live

SELECT = "SQL expressions that make the columns, as in 'cab AS subscriber, t AS time_s, lat, lon'."


class RuleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is noise, and what is movement."""

    gap_s: Annotated[float, typer.Option("--gap", min=0, metavar="S", help="Away, when not heard of for so long.")] = (
        300.0
    )
    ping_pong_s: Annotated[
        float, typer.Option("--ping-pong", min=0, metavar="S", help="There and back within this is ping-pong.")
    ] = 120.0
    margin_m: Annotated[
        float, typer.Option("--margin", metavar="M", help="Fixes further outside the sites' box are bad; -1 for none.")
    ] = 0.0
    plane_latitude: Annotated[
        float | None,
        typer.Option(
            "--plane", min=-89, max=89, metavar="LAT", help="Nearest on the plane of this latitude, not on the globe."
        ),
    ] = None
    utc_offset_h: Annotated[float, typer.Option("--utc-offset", metavar="H", help="Where days begin, as in -7.")] = 0.0
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Where days begin, by name, as in America/Los_Angeles.")
    ] = None


class MobilityCommand(msgspec.Struct, frozen=True, kw_only=True):
    positions: Annotated[
        str, typer.Argument(metavar="POSITIONS", help="subscriber, time_s, lat, lon: Parquet, CSV, JSON lines.")
    ]
    sites: Annotated[
        str | None, typer.Argument(metavar="SITES", help="site, lat, lon; rows of one site are averaged.")
    ] = None
    table: TableOptions
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="Instead of positions: attachments (subscriber, time_s, site), or traces of brokers."
        ),
    ] = "positions"
    sampled: Annotated[
        bool, typer.Option("--sampled", help="The log tells where everybody is again and again: silence means away.")
    ] = False
    h3: CellOption = None
    positions_select: Annotated[str | None, typer.Option("--select", metavar="SQL", help=SELECT)] = None
    sites_select: Annotated[str | None, typer.Option(metavar="SQL", help="The same for sites.")] = None
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Take only these positions.")] = None
    most: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the N sites with the most rows.")] = None
    test_day: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="Forecast this day from the others; the last one.")
    ] = None
    keep_associations: Annotated[
        bool, typer.Option("--associations", help="Write the nearest site of every position too.")
    ] = False
    rules: RuleOptions
    streaming: StreamOptions
    spark: SparkOptions


def mobility(asked: MobilityCommand) -> int:
    """Learn how subscribers move between sites, from positions or from a log of who was attached where.

    Writes the tables visits, handoffs (by day), neighbors, distributions, rates, forecasts, sites, quality and
    quarantine. With --stream only new files are read: visits and handoffs are added when nothing can change them, and
    the folder learned has what follows from all so far.

    Examples:

        godwit pipeline mobility positions.parquet sites.csv --out mobility --utc-offset -7

        godwit pipeline mobility positions/ sites.csv --out mobility --stream

        godwit pipeline mobility positions.parquet --h3 8 --zone America/Los_Angeles --out mobility

        godwit pipeline mobility wifi.csv --kind attachments --out mobility \\
            --select "mac AS subscriber, t AS time_s, ap AS site, what = 'assoc' AS attached"

    Exit status: 0; 2 where an input cannot be used or --fail-on holds; 130 after Ctrl-C.
    """
    with options_told():
        from godwit.pipeline.cells import check_zone
        from godwit.pipeline.mobility.job import KINDS, POSITIONS, MobilityOptions, run
        from godwit.pipeline.mobility.movement import Rules

        if asked.kind not in KINDS:
            raise InputError(f"--kind {asked.kind!r}: right would be {', '.join(KINDS)}")
        if asked.sampled and asked.kind == POSITIONS:
            raise InputError("--sampled is for logs: --kind attachments or traces; positions are samples always")
        if asked.h3 is not None and (asked.kind != POSITIONS or asked.sites is not None):
            raise InputError("--h3 makes sites of positions: it takes neither SITES nor a log")
        rules = asked.rules
        if rules.zone is not None:
            check_zone(rules.zone)
        if rules.zone is not None and rules.utc_offset_h:
            raise InputError("--zone and --utc-offset both say where days begin; one is enough")
        options = MobilityOptions(
            positions=asked.positions,
            sites=asked.sites,
            out=asked.table.out,
            kind=asked.kind,
            sampled=asked.sampled,
            h3=asked.h3,
            positions_select=asked.positions_select,
            sites_select=asked.sites_select,
            where=asked.where,
            most=asked.most,
            test_day=asked.test_day,
            keep_associations=asked.keep_associations,
            rules=Rules(
                gap_s=rules.gap_s,
                ping_pong_s=rules.ping_pong_s,
                margin_m=rules.margin_m if rules.margin_m >= 0 else None,
                plane_latitude=rules.plane_latitude,
                utc_offset_h=rules.utc_offset_h,
                zone=rules.zone,
            ),
            files_per_batch=asked.streaming.files_per_batch,
            live=live(asked.streaming, LiveOptions(), asked.positions),
            fail_on=tuple(asked.table.fail_on or ()),
        )
    inputs = (asked.positions, asked.sites)
    if asked.streaming.asked:
        from godwit.pipeline.mobility.stream import run_stream

        pace = asked.streaming.pace()
        return told(
            "mobility", asked.spark, asked.table, lambda spark, bar: run_stream(spark, options, pace, bar), inputs
        )
    return told("mobility", asked.spark, asked.table, lambda session, progress: run(session, options, progress), inputs)
