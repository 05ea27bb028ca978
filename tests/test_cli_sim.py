"""`godwit sim`: good scenarios play, bad ones are named, and what was played can be looked at."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.commands.sim import theatre
from godwit.protocols.records import COLUMNS
from godwit.sim.scenario import load
from godwit.sim.sight import look
from godwit.sim.stage import Stage

SCENARIOS = Path(__file__).resolve().parent.parent / "examples" / "scenarios"
PARTITION, WALKING = SCENARIOS / "partition.toml", SCENARIOS / "walking.toml"


def simulated(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["sim", *map(str, arguments)])


def digest_of(result: Result) -> str:
    found = re.search(r"^digest ([0-9a-f]{32})$", result.stdout, re.MULTILINE)
    assert found is not None
    return found[1]


def test_options_come_first_and_a_summary_at_the_end() -> None:
    result = simulated(PARTITION, "--seed", 9, "--until", 30)
    assert result.exit_code == 0
    first, second, third, *rest = result.stdout.splitlines()
    assert first == load(PARTITION).scenario.title
    assert second == f"scenario {PARTITION}  seed 9  until 30 s"
    assert "7 brokers, 4 subscribers, 2 publishers" in third
    assert "rules=hardened" in third
    summary = "\n".join(rest)
    for row in ("events published", "matched", "routed", "delivered", "duplicates", "queued", "dropped", "migrations"):
        assert re.search(rf"^{row} +[\d,]+", summary, re.MULTILINE), row
    assert re.search(r"^  Heartbeat +\d+", summary, re.MULTILINE)


def test_programs_get_the_summary_and_nothing_else() -> None:
    words = simulated(PARTITION, "--until", 30)
    result = simulated(PARTITION, "--until", 30, "--json")
    told = json.loads(result.stdout)
    assert told["digest"] == digest_of(words)
    assert told["delivered"] <= told["matched"]
    assert "events published" in result.stderr


def test_the_digest_is_the_seeds_and_nobody_elses(tmp_path: Path) -> None:
    plain = digest_of(simulated(PARTITION, "--until", 25))
    looked_at = simulated(
        PARTITION,
        "--until",
        25,
        "--watch",
        "--inspect",
        "b1",
        "--animation",
        tmp_path / "a.html",
        "--trace",
        tmp_path / "t",
    )
    assert digest_of(looked_at) == plain
    assert digest_of(simulated(PARTITION, "--until", 25, "--seed", 2)) != plain


def test_the_trace_is_parquet_that_tells_published_matched_and_delivered(tmp_path: Path) -> None:
    result = simulated(WALKING, "--until", 20, "--trace", tmp_path / "trace.parquet")
    table = pq.read_table(tmp_path / "trace.parquet")
    assert tuple(table.column_names) == COLUMNS
    kinds = table.column("kind").to_pylist()
    assert {"published", "matched", "routed", "delivered", "attached", "migrated", "parent"} <= set(kinds)
    assert f"trace: {table.num_rows:,} records" in result.stdout
    assert re.search(rf"^delivered +{kinds.count('delivered')} ", result.stdout, re.MULTILINE)


@pytest.mark.feature("mft-pubsub F27")
def test_a_brokers_tables_are_shown_at_the_end() -> None:
    shown = simulated(PARTITION, "--until", 30, "--inspect", "b1").stdout
    assert "R of b1" in shown
    assert re.search(r"kind = 'air' AND pm25 > 100 +b3 +s3", shown)
    assert "T of b1" in shown
    assert "Q of b1" in shown


@pytest.mark.feature("mft-pubsub F27")
def test_the_animation_is_one_page_with_every_picture_in_it(tmp_path: Path) -> None:
    nasty = tmp_path / "nasty.toml"
    nasty.write_text(PARTITION.read_text().replace('title = "Seven', 'title = "</script><b>Seven'))
    page = tmp_path / "run.html"
    result = simulated(nasty, "--until", 30, "--animation", page, "--inspect", "b1")
    assert result.exit_code == 0
    text = page.read_text()
    assert "src=" not in text
    assert "http" not in text
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(held)
    assert data["title"].startswith("</script><b>Seven")
    assert len(data["sights"]) == 120
    assert [node["name"] for node in data["nodes"]][:2] == ["b1", "b2"]
    last = data["sights"][-1]
    assert last["time"] == 30
    assert last["cuts"] == [["b1", "b2"]]
    assert last["tables"]["broker"] == "b1"
    assert sum(node[3] for node in last["nodes"]) == 2  # two leaders while the trunk is cut


@pytest.mark.feature("mft-pubsub F27")
def test_watching_off_a_terminal_tells_lines() -> None:
    lines = [line for line in simulated(PARTITION, "--until", 30, "--watch").stdout.splitlines() if "leading" in line]
    assert len(lines) >= 8
    assert "b1 leading" in lines[4]
    assert "b1, b2 leading" in lines[-1]


@pytest.mark.feature("mft-pubsub F27")
def test_the_picture_shows_nodes_tree_leader_messages_and_tables() -> None:
    stage = Stage(load(PARTITION), 1, watched=True)
    stage.run(30.0)
    console = Console(file=io.StringIO(), force_terminal=True, width=110, height=40, color_system=None)
    shown = theatre.Theatre(console, stage)
    console.print(shown.picture(look(stage, "b1")))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for wanted in ("b1*", "b2*", "s4", "p2", "·", "●", "30.0 s", "R of b1", "Q of b1"):
        assert wanted in text, wanted
    assert max(map(len, text.splitlines())) <= 110


def test_a_live_picture_keeps_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    # Its own clock, not the machine's: other threads of the suite sleep too.
    clock = SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)
    monkeypatch.setattr(theatre, "time", clock)
    stage = Stage(load(WALKING), 1, watched=True)
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=40)
    with theatre.Theatre(console, stage) as shown:
        for second in range(3):
            stage.run(float(second))
            shown.show(look(stage))
    assert len(slept) == 3
    assert theatre.step_s(30.0) == pytest.approx(0.1)
    assert theatre.step_s(600.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["missing.toml"], "missing.toml: No such file"),
        ([PARTITION, "--inspect", "b77"], "--inspect b77: there is no such node; the brokers are b1, b2"),
        ([PARTITION, "--until", "0"], "--until 0: give a time above 0"),
        ([PARTITION, "--until", "inf"], "--until inf"),
        ([PARTITION, "--animation", "run.mov"], "--animation run.mov: name a file that ends in .html"),
        ([PARTITION, "--trace", "/nowhere/at/all.parquet"], "--trace /nowhere/at/all.parquet: no file can be written"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(arguments: list[object], complaint: str) -> None:
    result = simulated(*arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr.replace("\n", "")
    assert "events published" not in result.stdout


def test_a_bad_scenario_is_one_line_with_file_and_key(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(PARTITION.read_text().replace("every_s = 0.5", "every_s = -0.5"))
    result = simulated(bad)
    assert result.exit_code == 2
    assert result.stderr.strip() == f"godwit: {bad}: publishers[0].every_s: Expected `float` > 0.0"


def computed_s(pid: int) -> float:
    """Processor time of a process so far: on a busy machine it gets little of a second."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_an_interrupted_run_keeps_what_it_finished(tmp_path: Path) -> None:
    trace = tmp_path / "trace.parquet"
    long = tmp_path / "long.toml"
    text = (SCENARIOS / "c8.toml").read_text()
    long.write_text(
        text.replace("duration_s = 700.0", "duration_s = 100000.0").replace("until_s = 500.0", "until_s = 9e4")
    )
    command = [sys.executable, "-c", "from godwit.cli import main; main()", "sim", str(long), "--trace", str(trace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        while "brokers" not in running.stdout.readline():
            pass
        begun_s = computed_s(running.pid)
        while computed_s(running.pid) < begun_s + 0.5:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        told = running.stdout.read()
    assert running.returncode == 130
    assert "interrupted at" in told
    assert pq.read_table(trace).num_rows > 0
