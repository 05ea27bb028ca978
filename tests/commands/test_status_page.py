"""`godwit top` beside a broker in the air: who is heard, what is carried, and what was not believed."""

from __future__ import annotations

from rich.console import Console

from godwit.commands.status_page import page
from godwit.net.ops.report import AirReport, AirRow, Report


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
