"""What operators are told is described, and what dashboards and alerts ask for exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.net.servers import client, parts, port, serving
from tests.net.stations import played
from tests.pages import ROOT
from tools import dashboard

import godwit
from godwit.net.mqtt.front import SAMPLED
from godwit.net.ops.catalogue import COUNTERS, GAUGES, HISTOGRAMS
from godwit.net.ops.services import Teller
from godwit.net.ops.status import Facts, StatusServer

ALERTS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
QUESTIONS = [question for _, _, asked in dashboard.PANELS for question, _ in asked]
OTHERS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""What Prometheus itself and its library tell."""


def told() -> dict[str, set[str]]:
    """The names of all series, with those of their labels."""
    found = {f"godwit_{name}_total": {figure.label} for name, figure in COUNTERS.items()}
    found |= {f"godwit_{name}": {figure.label} for name, figure in GAUGES.items()}
    for name in HISTOGRAMS:
        found |= {f"godwit_{name}_seconds_{part}": {"le"} for part in ("bucket", "sum", "count")}
    return found | {name: set() for name in OTHERS}


def selectors(expression: Any) -> Iterator[tuple[str, set[str]]]:
    """The series that a question asks for, and the labels by which it chooses."""
    for found in re.finditer(
        r"\b((?:godwit|process)_\w+|up)\b(?:\{([^}]*)\})?", promql_parser.Expr.prettify(expression)
    ):
        yield found[1], set(re.findall(r"(\w+)\s*[=!]", found[2] or ""))


@pytest.mark.parametrize("question", [*QUESTIONS, *(rule["expr"] for rule in RULES)])
def test_every_question_can_be_parsed_and_asks_for_what_there_is(question: str) -> None:
    asked = list(selectors(promql_parser.parse(question.replace("$broker", ".+"))))
    assert asked
    series = told()
    for name, labels in asked:
        assert name in series
        assert labels <= series[name] | {"instance", "job"}
    grouped = {label for one in re.findall(r"by \(([^)]*)\)", question) for label in one.split(", ")}
    assert grouped <= {"instance"}.union(*(series[name] for name, _ in asked))


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_the_dashboard_is_drawn_from_its_panels() -> None:
    assert json.loads(dashboard.PLACE.read_text()) == dashboard.dashboard(), "draw it: python -m tools.dashboard"


def test_names_and_helps_keep_to_prometheus_conventions() -> None:
    for name, figure in (*COUNTERS.items(), *GAUGES.items(), *HISTOGRAMS.items()):
        assert re.fullmatch(r"[a-z][a-z_]*", name)
        assert re.fullmatch(r"[a-z]*", figure.label)
        assert figure.help[0].isupper() or figure.help[0].isdigit()
        assert figure.help.endswith(".")
        assert len(figure.help.split()) >= 3


def test_a_broker_tells_nothing_that_is_not_described_and_times_what_it_does(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            teller = Teller(parts(a))
            teller.time_matches()
            assert teller.counts().keys() <= COUNTERS.keys()
            assert teller.levels().keys() <= GAUGES.keys()
            assert teller.timings().keys() == HISTOGRAMS.keys()
            async with godwit.connect(f"127.0.0.1:{port(a)}") as reader, client(a, "speaker") as speaker:
                readings = await reader.subscribe("n >= 0", topics="t/#")
                for number in range(2 * SAMPLED):
                    await speaker.publish("t/x", f'{{"n": {number}}}', qos=1)
                for _ in range(2 * SAMPLED):
                    await anext(readings)
            facts = Facts(
                counts=teller.counts, levels=teller.levels, timings=teller.timings, troubles=list, status=dict
            )
            families = {family.name: family for family in read(facts)}
            assert value(families["godwit_commit_seconds"], "_count") > 0
            assert value(families["godwit_match_seconds"], "_count") >= 1
            assert value(families["godwit_delivery_seconds"], "_count") == 2
            assert value(families["godwit_delivery_seconds"], "_sum") < 60
            assert value(families["process_open_fds"], "") > 0

    played(scene)


def read(facts: Facts) -> list[Metric]:
    server = StatusServer(facts, "127.0.0.1", 0)
    return list(text_string_to_metric_families(generate_latest(server._registry).decode()))


def value(family: Metric, suffix: str) -> float:
    return next(sample.value for sample in family.samples if sample.name == family.name + suffix)
