"""What is seen while it runs, and the account at the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from statistics import median

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from godwit.commands.demo.ledger import Verdict
from godwit.commands.demo.play import Play

SHOWN = 6


async def watched(play: Play, console: Console) -> None:
    """Until cancelled. Without a terminal the happenings are printed as they come."""
    if not console.is_terminal:
        await _told(play, console)
        return
    with Live(console=console, refresh_per_second=8, transient=True) as live:
        while True:
            live.update(Group(_brokers(play), _figures(play), _happenings(play)))
            await asyncio.sleep(0.12)


async def _told(play: Play, console: Console) -> None:
    told = 0
    try:
        while True:
            for at_s, text in play.happenings[told:]:
                console.print(f"{at_s:5.1f} s  {text}")
            told = len(play.happenings)
            await asyncio.sleep(0.1)
    finally:
        for at_s, text in play.happenings[told:]:
            console.print(f"{at_s:5.1f} s  {text}")


def _brokers(play: Play) -> Table:
    table = Table.grid(padding=(0, 2))
    here: dict[str, list[str]] = {broker.address: [] for broker in play.brokers}
    under_way = []
    for walker in play.walkers:
        short = walker.person.name.rpartition("-")[2]
        if walker.under_way:
            under_way.append(short)
        else:
            here.setdefault(str(walker.client.broker), []).append(short)
    for broker in play.brokers:
        state = Text("up", "green") if broker.running else Text("down", "bold red")
        table.add_row(Text(broker.name, "bold"), state, Text(" ".join(here[broker.address]), "cyan"))
    table.add_row(Text("between", "dim"), "", Text(" ".join(under_way), "yellow"))
    return table


def _figures(play: Play) -> Text:
    kinds = Counter(record.kind for _, _, record in play.ledger.facts)
    moved = f"{len(play.handoffs)} handoffs"
    if play.handoffs:
        moved += f", median {1000 * median(end_s - begin_s for begin_s, end_s in play.handoffs):.0f} ms"
    return Text(
        f"\n{play.now_s():4.1f} s   {kinds['published']:,} published   {kinds['delivered']:,} delivered   {moved}\n"
    )


def _happenings(play: Play) -> Text:
    return Text("\n".join(f"{at_s:5.1f} s  {text}" for at_s, text in play.happenings[-SHOWN:]), "dim")


def concluded(console: Console, verdict: Verdict) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    rows: list[tuple[int, str]] = [
        (verdict.published, "events published"),
        (verdict.matched, "deliveries owed: an event and somebody whose wish it fits"),
        (verdict.delivered, "delivered"),
        (verdict.lost, "lost"),
        (verdict.duplicated, "duplicated"),
        (verdict.out_of_order, "out of order"),
        (verdict.unwanted, "that nobody asked for"),
    ]
    for number, what in rows:
        wrong = what in ("lost", "duplicated", "out of order", "that nobody asked for") and number
        table.add_row(Text(f"{number:,}", "bold red" if wrong else "bold"), what)
    console.print(table)
    if verdict.handoff_median_s is not None and verdict.handoff_95_s is not None:
        console.print(
            f"\n{verdict.handoffs} handoffs: median {1000 * verdict.handoff_median_s:.1f} ms,"
            f" 95 % within {1000 * verdict.handoff_95_s:.1f} ms, from knocking at a broker until it has the session."
        )
