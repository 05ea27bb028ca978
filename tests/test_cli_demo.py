"""`godwit demo`: real brokers, real clients, a real kill, and an account that would tell."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from godwit.cli import app


@pytest.mark.parametrize("fabric", ["tree", "dht"])
def test_a_small_town_gets_through_the_death_of_a_broker(fabric: str) -> None:
    result = CliRunner().invoke(app, ["demo", "--seconds", "4", "--walkers", "6", "--fabric", fabric, "--json"])
    assert result.exit_code == 0, result.output
    assert "is killed (kill -9)" in result.stderr
    assert "is back" in result.stderr
    figures = {
        what: int(number.replace(",", ""))
        for number, what in re.findall(r"^ *([\d,]+)  (\w.*?) *$", result.stderr, re.M)
    }
    assert figures["delivered"] > 100
    assert (figures["lost"], figures["duplicated"], figures["out of order"]) == (0, 0, 0)
    assert json.loads(result.stdout)["delivered"] == figures["delivered"]
