"""`godwit top` beside a broker in the air, or at the border of a site: who is reached, and what that costs."""

from __future__ import annotations

from rich.console import Console

from godwit.commands.status_page import page
from godwit.net.ops.report import AirReport, AirRow, Report, UplinkRow


def shown(report: Report) -> str:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(page(report, None, 0.0, rows=20))
    return captured.get()


def test_the_air_is_shown_and_no_tree_where_there_is_none() -> None:
    nodes = [
        AirRow(name="left", heard=True, proximity=0.0, filters=2),
        AirRow(name="far", heard=False, proximity=0.3, filters=1),
    ]
    air = AirReport(where="239.255.71.68:7885 on wlan0", sealed=True, nodes=nodes, carried=17)
    counts: dict[str, float | dict[str, float]] = {"air_dropped": {"forged": 3, "replayed": 1}}
    text = shown(Report(name="right", version="1", uptime_s=1.0, air=air, counts=counts))
    assert "239.255.71.68:7885 on wlan0, sealed; 17 events carried; dropped: forged 3  replayed 1" in text
    assert "told of" in text
    assert "tree:" not in text


def test_a_bridge_shows_both() -> None:
    air = AirReport(where="239.255.71.68:7885", sealed=False)
    text = shown(Report(name="right", version="1", uptime_s=1.0, air=air, leader="right"))
    assert "tree: this broker leads" in text
    assert "without a key; 0 events carried; dropped: nothing" in text


def test_an_uplink_shows_what_it_costs_and_why_it_carries_nothing() -> None:
    rows = [
        UplinkRow(peer="hq/hq-1", up=True, events_out=1_200, wire_out=74_000, plain_out=100_000, waiting=3, dropped=2),
        UplinkRow(peer="ship/one", up=True, acts=False),
        UplinkRow(peer="yard/one", up=False),
        UplinkRow(peer="port/one", up=True, cycle="plant - port - hq - plant"),
    ]
    text = shown(Report(name="plant-1", version="1", uptime_s=1.0, site="plant", uplinks=rows))
    lines = [line.split() for line in text[text.index("site plant") :].splitlines()]
    assert ["hq/hq-1", "up", "1,200", "0", "74,000", "0", "74%", "3", "2"] in lines
    assert ["ship/one", "standby"] in [line[:2] for line in lines]
    assert ["yard/one", "down"] in [line[:2] for line in lines]
    assert "refused: plant - port - hq - plant" in text
