"""docs/sites.md as a stranger does it: from two sites on one machine to a bridge to mosquitto, command by command."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.pages import blocks, page
from tests.shells import WAIT_S, Shell, shell, until

PAGE = page("docs/sites.md")
PORTS = ("1883", "1884", "1885", "7884", "9883", "9884")
NEEDED = ("mosquitto", "mosquitto_sub", "mosquitto_pub")


def uplink(made: Shell, port: str) -> dict[str, object]:
    """What a gateway says of its uplink; nothing where it does not answer yet."""
    try:
        rows = json.loads(made.got(port, "/status")).get("uplinks") or [{}]
    except OSError:
        return {}
    return dict(rows[0])


def commands(number: int) -> list[str]:
    return blocks(PAGE, "sh")[number].strip().splitlines()


@pytest.mark.skipif(any(shutil.which(one) is None for one in NEEDED), reason="there is no mosquitto with its clients")
def test_the_page_leads_from_two_sites_to_a_bridge(tmp_path: Path) -> None:
    with shell(tmp_path, PORTS) as made:
        for name, text in zip(("plant", "hq"), blocks(PAGE, "toml")[:2], strict=True):
            (tmp_path / f"{name}.toml").write_text(made.here(text))
        check_plant, check_hq, serve_plant, serve_hq = commands(0)
        made.run(check_plant)
        made.run(check_hq)
        made.start(serve_plant, "plant.log")
        hq = made.start(serve_hq, "hq.log")
        until(lambda: uplink(made, "9883").get("up"))
        listen, press = commands(1)
        made.start(listen, "office")
        until(lambda: uplink(made, "9883").get("wanted"))
        made.run(press)
        until(lambda: 'line/press {"celsius": 71}' in made.said("office"))

        hq.terminate()
        hq.wait(WAIT_S)
        made.run(press.replace("71", "72"))
        hq = made.start(serve_hq, "hq.log")
        until(lambda: 'line/press {"celsius": 72}' in made.said("office"))
        (top,) = commands(2)
        shown = made.run(f"{top} --once")
        assert "site plant" in shown
        cost = re.search(r"hq/hq-1 +up +(\d+) +\d+ +([\d,]+) +[\d,]+ +\d+% +\d+ +0 *$", shown, re.MULTILINE)
        assert cost is not None, shown
        assert int(cost[1]) == 2, "both events, and the second once, though the other side was away"
        told = made.got("9883", "/metrics")
        sent = re.search(r'godwit_uplink_wire_out_bytes\w*\{[^}]*peer="hq/[\w-]+"[^}]*\} (\d+)', told)
        assert sent is not None, [line for line in told.splitlines() if "uplink" in line]
        assert int(float(sent[1])) >= int(cost[2].replace(",", "")) > len('line/press {"celsius": 71}')

        (mosquitto,) = commands(3)
        made.start(mosquitto, "mosquitto.log")
        hq.terminate()
        hq.wait(WAIT_S)
        with (tmp_path / "hq.toml").open("a") as config:
            config.write(made.here(blocks(PAGE, "toml")[2]))
        made.start(serve_hq, "hq.log")
        until(lambda: uplink(made, "9883").get("up"))
        out, publish, back, order = commands(4)
        made.start(out, "old")
        made.start(back, "orders")
        until(lambda: made.says_after(publish, 'godwit/line/press {"celsius": 80}', "old"))
        until(lambda: made.says_after(order, 'old/orders/17 {"pieces": 12}', "orders"))
