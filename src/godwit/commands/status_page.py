"""What `godwit top` shows: the report of a broker on one screen."""

from __future__ import annotations

import time

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from godwit.commands.keys import View
from godwit.net.ops.report import ClientRow, HandoffReport, Report, UplinkRow

MB = 1024 * 1024
NEIGHBORS_SHOWN = 8
RATES = ("published", "delivered", "forwarded", "dropped")


ORDERS = ("waiting", "dropped", "subscriptions", "name")
"""By what clients may be sorted; the first is how brokers report them."""


def page(
    report: Report, before: Report | None, since_s: float, rows: int, view: View | None = None, lost: str = ""
) -> RenderableType:
    """Everything on one screen, with rates where there is an earlier report to compare with. With a `view`, it
    tells what keys do; `lost` says why the report is an old one."""
    head = Text.assemble(
        (report.name, "bold"), f"  godwit {report.version}, up {_lasting(report.uptime_s)}   ",
        f"{report.connected:,} connected of {report.sessions:,} sessions, {report.subscriptions:,} subscriptions",
    )  # fmt: skip
    troubles = [Text(f"! {trouble}", "bold red") for trouble in (*([lost] if lost else []), *report.troubles)]
    keys = [Text(view.help, "dim")] if view is not None else []
    ways = [way for way in (_peers(report), _air(report), _sites(report)) if way is not None]
    return Group(head, *troubles, Text(), _rates(report, before, since_s), Text(), *ways, Text(), _neighbors(report),
                 Text(), _clients(report, max(3, rows), view), *keys, Text(), _interest(report))  # fmt: skip


def _rates(report: Report, before: Report | None, since_s: float) -> Table:
    table = Table.grid(padding=(0, 3))
    for name in RATES:
        total = _total(report, name)
        rate = "" if before is None or not since_s else f"{(total - _total(before, name)) / since_s:,.0f}/s"
        table.add_row(Text(name, "bold"), f"{total:,.0f}", Text(rate, "cyan"), Text(_parts(report, name), "dim"))
    return table


def _total(report: Report, name: str) -> float:
    figure = report.counts.get(name, 0)
    return sum(figure.values()) if isinstance(figure, dict) else figure


def _parts(report: Report, name: str) -> str:
    figure = report.counts.get(name, 0)
    return "  ".join(f"{part} {value:,.0f}" for part, value in figure.items()) if isinstance(figure, dict) else ""


def _air(report: Report) -> RenderableType | None:
    """Nodes without infrastructure, and what of the air was not believed."""
    if report.air is None:
        return None
    seal = "sealed" if report.air.sealed else "without a key"
    dropped = _parts(report, "air_dropped") or "nothing"
    title = f"air: {report.air.where}, {seal}; {report.air.carried:,} events carried; dropped: {dropped}"
    table = Table(box=None, padding=(0, 2))
    for heading in ("node", "heard", "distance", "filters"):
        table.add_column(heading, justify="left" if heading in ("node", "heard") else "right")
    for node in report.air.nodes:
        heard = Text("yes", "green") if node.heard else Text("told of", "dim")
        table.add_row(node.name, heard, f"{node.proximity:.1f}", f"{node.filters:,}")
    return Group(Text(title, "bold"), table)


def _sites(report: Report) -> RenderableType | None:
    """Uplinks and what they cost, then MQTT brokers of others."""
    if not report.uplinks and not report.bridges:
        return None
    table = Table(box=None, padding=(0, 1))  # narrow, so that 80 columns show whole names
    for heading in ("uplink", "link", "events out", "in", "bytes out", "in", "packed to", "waiting", "dropped"):
        table.add_column(heading, justify="left" if heading in ("uplink", "link") else "right")
    for row in report.uplinks:
        packed = f"{row.wire_out / row.plain_out:.0%}" if row.plain_out else ""
        numbers = (row.events_out, row.events_in, row.wire_out, row.wire_in)
        waits = (f"{row.waiting:,}", f"{row.dropped:,}")
        table.add_row(row.peer, _uplink_state(row), *(f"{one:,}" for one in numbers), packed, *waits)
    for bridge in report.bridges:
        state = Text("up", "green") if bridge.up else Text("down", "yellow")
        crossed = f"{bridge.events_out:,}", f"{bridge.events_in:,}"
        table.add_row(
            f"{bridge.name} (MQTT)", state, *crossed, "", "", "", f"{bridge.waiting:,}", f"{bridge.refused:,}"
        )
    return Group(Text(f"site {report.site}" if report.site else "bridges", "bold"), table)


def _uplink_state(row: UplinkRow) -> Text:
    if row.cycle:
        return Text(f"refused: {row.cycle}", "red")
    if not row.up:
        return Text("down", "yellow")
    return Text("up", "green") if row.acts else Text("standby", "dim")


def _fabric(report: Report) -> str:
    ring = report.ring
    if ring is None:
        leads = (
            "this broker leads" if report.leader == report.name else f"leader {report.leader}, {report.hops} hops away"
        )
        return f"tree: {leads}"
    cells = ", ".join(f"{one.prefix or 'all'} ({_box(one.box)})" for one in ring.cells) or "none yet"
    problem = f"; {ring.problem}" if ring.problem else ""
    kept = " and ".join(ring.holders) or "nobody"
    waits = f"; {ring.custody:,} publications wait" if ring.custody else ""
    return (
        f"ring: cell {cells}; of {len(ring.owners):,} known; book {ring.book:,} filters of {ring.book_brokers:,} "
        f"brokers, kept by {kept} too; home of {ring.homes:,} clients{waits}{problem}"
    )


def _box(box: list[list[float]]) -> str:
    """Latitudes and longitudes as people write them."""
    (west, east), (south, north) = box
    return f"{south:.1f} to {north:.1f} N, {west:.1f} to {east:.1f} E"


def _peers(report: Report) -> Table | None:
    if report.air is not None and not report.leader:
        return None
    table = Table(title=_fabric(report), title_justify="left", box=None, padding=(0, 2), title_style="bold")
    for heading in ("broker", "link", "role", "filters", "unconfirmed", "clients", "events/s"):
        table.add_column(heading, justify="left" if heading in ("broker", "link", "role") else "right")
    for peer in report.peers:
        link = Text("up", "green") if peer.linked else Text("none", "yellow")
        numbers = (peer.filters, peer.unconfirmed, peer.clients, peer.events_per_s)
        table.add_row(peer.name, link, peer.role, *(f"{number:,.0f}" for number in numbers))
    return table


def _neighbors(report: Report) -> RenderableType:
    table = Table(box=None, padding=(0, 2))
    for heading in ("neighbor", "share", "moves", "last", "copies"):
        table.add_column(heading, justify="right" if heading in ("share", "moves") else "left")
    for row in report.neighbors[:NEIGHBORS_SHOWN]:
        last_used = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.last_used))
        copies = Text(f"{row.copied_share:.0%}", "green") if row.copied else Text("no", "dim")
        table.add_row(row.peer, f"{row.share:.1%}", f"{row.uses:,}", last_used, copies)
    ways = f"ways not known {report.handoff.false_negatives:.0%}, ways unused {report.handoff.false_positives:.0%}"
    head = Text(_handoffs(report.handoff), "bold"), Text(ways), Text(_copies(report))
    return Group(*head, table) if report.neighbors else Group(*head)


def _handoffs(told: HandoffReport) -> str:
    found = f", {told.hit_rate:.0%} found a copy, {told.copies_each:.1f} copies each" if told.handoffs else ""
    return f"handoff: {told.scheme}; last hour: {told.handoffs:,} left{found}"


def _copies(report: Report) -> str:
    told, redirected = report.handoff, _total(report, "redirected")
    refused = f", {told.copies_refused:,} refused" if told.copies_refused else ""
    sent = f"; {redirected:,.0f} clients sent elsewhere" if redirected else ""
    held = f"{told.copies_held:,} held in {told.copies_bytes / MB:,.1f} of {told.copies_bytes_max / MB:,.0f} MB"
    return f"copies: {held}, {told.copies_made:,} made, {told.copies_used:,} used{refused}{sent}"


def _sorted(clients: list[ClientRow], by: str) -> list[ClientRow]:
    if by == "name":
        return sorted(clients, key=lambda row: row.client)
    if by == "waiting":
        return sorted(clients, key=lambda row: (-row.waiting - row.under_way, row.client))
    return sorted(clients, key=lambda row: (-getattr(row, by), row.client))


def _clients(report: Report, rows: int, view: View | None) -> Table:
    first, shown, title = 0, report.clients, "clients"
    if view is not None:
        first, shown = min(view.first, max(0, len(report.clients) - rows)), _sorted(report.clients, view.by)
        title = f"clients by {view.by}, {first + 1} to {min(first + rows, len(shown))} of {len(shown)}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2), title_style="bold")
    for heading in ("client", "where", "subscriptions", "waiting", "under way", "dropped"):
        table.add_column(heading, justify="left" if heading in ("client", "where") else "right")
    for row in shown[first : first + rows]:
        dropped = Text(f"{row.dropped:,}", "red" if row.dropped else "dim")
        numbers = (f"{number:,}" for number in (row.subscriptions, row.waiting, row.under_way))
        table.add_row(row.client, _where(row), *numbers, dropped)
    return table


def _where(row: ClientRow) -> Text:
    if row.moved_to:
        return Text(f"moved to {row.moved_to}", "yellow")
    return Text(row.address or "here", "green") if row.connected else Text("away", "dim")


def _interest(report: Report) -> Text:
    shown = "\n".join(f"  {text}" for text in report.interest[:5])
    more = f"\n  and {report.interest_size - 5:,} more" if report.interest_size > 5 else ""
    return Text.assemble((f"interest: {report.interest_size:,} filters\n", "bold"), shown, (more, "dim"))


def _lasting(seconds: float) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days:.0f} d {hours % 24:.0f} h"
    return f"{hours:.0f} h {minutes % 60:.0f} min" if hours else f"{minutes:.0f} min {seconds % 60:.0f} s"
