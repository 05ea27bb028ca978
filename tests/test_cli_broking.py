"""`godwit pub`, `sub`, `top` and `password`, against a broker that runs."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import select
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tests.brokers import FREE, Process, running
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.client.query import Change, Query
from godwit.commands.status_page import page
from godwit.commands.top import fetched
from godwit.net.ops.report import ClientRow, HandoffReport, NeighborRow, PeerRow, Report

ANSWER_S = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("broker")
    process = Process(folder, "north", *FREE, "--status", "127.0.0.1:0")
    with running(process):
        yield process


def called(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


def listener(broker: Process, *arguments: str) -> subprocess.Popen[str]:
    """Returns when it has subscribed: its session shows what it wants."""
    command = [sys.executable, "-m", "godwit", "sub", *arguments, "--broker", broker.at("mqtt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    name = arguments[arguments.index("--client") + 1]
    wait_for(broker, name)
    return process


def wait_for(broker: Process, client: str) -> None:
    while True:
        report = fetched(f"{broker.at('status')}/status")
        if any(row.client == client and row.subscriptions for row in report.clients):
            return


def test_a_listener_gets_what_its_filter_wants_and_nothing_else(broker: Process) -> None:
    with listener(broker, "pm25 > 150", "--topic", "air/#", "--json", "--count", "1", "--client", "desk") as desk:
        for value in (20, 163.5):
            assert called("pub", "air/x", json.dumps({"pm25": value}), "-b", broker.at("mqtt")).exit_code == 0
        out, _ = desk.communicate(timeout=ANSWER_S)
    (line,) = out.splitlines()
    assert json.loads(line)["attributes"]["pm25"] == 163.5


def test_every_line_of_a_file_is_published_in_its_order(broker: Process, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"line {n}\n" for n in range(100)))
    with listener(broker, "--topic", "lines", "--count", "100", "--client", "reader") as reader:
        assert called("pub", "lines", "--lines", str(lines), "-b", broker.at("mqtt")).exit_code == 0
        out, _ = reader.communicate(timeout=ANSWER_S)
    assert out.splitlines() == [f"lines\tline {n}" for n in range(100)]


def test_a_kept_session_misses_nothing(broker: Process) -> None:
    kept = ("--topic", "kept", "--client", "keeper", "--keep", "600", "--count", "1")
    with listener(broker, *kept) as keeper:
        called("pub", "kept", "one", "-b", broker.at("mqtt"))
        keeper.communicate(timeout=ANSWER_S)
    called("pub", "kept", "two", "-b", broker.at("mqtt"))
    with listener(broker, *kept) as keeper:
        out, _ = keeper.communicate(timeout=ANSWER_S)
    assert out == "kept\ttwo\n"


def test_a_bad_filter_is_refused_with_its_reason(broker: Process) -> None:
    refused = called("sub", "pm25 >", "-b", broker.at("mqtt"))
    assert refused.exit_code == 2
    assert "filter" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("command", [["pub", "t", "x"], ["sub"]])
def test_an_address_that_is_none_is_refused(command: list[str]) -> None:
    refused = called(*command, "--broker", "here:and:there")
    assert refused.exit_code == 2
    assert "right would be host:port" in refused.stderr


def test_top_shows_clients_and_counts_once(broker: Process) -> None:
    called("pub", "air/x", "{}", "-b", broker.at("mqtt"))
    shown = called("top", broker.at("status").removeprefix("http://"), "--once")
    assert shown.exit_code == 0
    assert "north" in shown.stdout
    assert "published" in shown.stdout


def test_top_can_be_read_by_programs(broker: Process) -> None:
    shown = called("top", broker.at("status").removeprefix("http://"), "--json")
    assert json.loads(shown.stdout)["name"] == "north"


def test_top_is_left_with_q_and_leaves_the_terminal_as_it_was(broker: Process) -> None:
    terminal, other = pty.openpty()
    before = termios.tcgetattr(other)
    command = [sys.executable, "-m", "godwit", "top", broker.at("status").removeprefix("http://")]
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"}) as top:
        seen = b""
        while b"q quit" not in seen:
            seen += os.read(terminal, 65_536)
        os.write(terminal, b"s")
        while b"clients by dropped" not in seen:
            seen += os.read(terminal, 65_536)
        os.write(terminal, b"q")
        while top.poll() is None:
            if select.select([terminal], [], [], 0.05)[0]:
                os.read(terminal, 65_536)
        assert top.returncode == 0
    assert termios.tcgetattr(other) == before
    os.close(terminal)
    os.close(other)


def test_top_at_a_terminal_says_that_it_goes_on_trying_until_it_is_told_how_long() -> None:
    terminal, other = pty.openpty()
    command = [sys.executable, "-m", "godwit", "top", "127.0.0.1:1", "--every", "0.1", "--wait", "0.2"]
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=subprocess.PIPE, text=True) as top:
        _, said = top.communicate(timeout=ANSWER_S)
    os.close(terminal)
    os.close(other)
    assert top.returncode == 2
    first, last = said.splitlines()
    assert first.endswith("; trying again")
    assert "is a broker with `--status` listening there?" in last


def test_rates_are_what_has_come_since(broker: Process) -> None:
    before = fetched(f"{broker.at('status')}/status")
    called("pub", "air/x", "{}", "-b", broker.at("mqtt"))
    after = fetched(f"{broker.at('status')}/status")
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(page(after, before, 0.5, rows=5))
    assert "2/s" in console.export_text()


def test_top_shows_where_clients_go_what_copies_did_and_what_bounds_cost() -> None:
    report = Report(
        name="north",
        version="0",
        uptime_s=5.0,
        peers=[PeerRow(name="south", linked=True, clients=1200, events_per_s=3400.0)],
        handoff=HandoffReport(
            scheme="proactive",
            handoffs=50,
            hit_rate=0.96,
            copies_each=2.25,
            copies_held=7,
            copies_bytes=3 << 20,
            copies_bytes_max=64 << 20,
            copies_made=90,
            copies_refused=3,
        ),
        neighbors=[NeighborRow(peer="south", share=0.75, uses=40, copied=True), NeighborRow(peer="west", share=0.25)],
        clients=[ClientRow(client="van", connected=True), ClientRow(client="bus", connected=False, dropped=1234)],
        counts={"redirected": 17},
    )
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(page(report, None, 0.0, rows=5))
    text = console.export_text()
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.split()}
    assert "50 left, 96% found a copy, 2.2 copies each" in text
    assert "7 held in 3.0 of 64 MB, 90 made, 0 used, 3 refused; 17 clients sent elsewhere" in text
    assert lines["west"][1] == "25.0%"
    assert (lines["van"][1], lines["bus"][1], lines["bus"][-1]) == ("here", "away", "1,234")
    assert ["1,200", "3,400"] in [line.split()[-2:] for line in text.splitlines()]


def test_top_says_where_nobody_answers() -> None:
    missing = called("top", "127.0.0.1:1")
    assert missing.exit_code == 2
    assert "is a broker with `--status` listening there?" in missing.stderr


def test_a_password_becomes_a_hash() -> None:
    assert called("password", text="secret\n").stdout.startswith("$argon2id$")


@pytest.mark.usefixtures("started_truly")
def test_lines_of_a_pipe_are_published_as_they_come(broker: Process) -> None:
    """The next line is written only after the last one has arrived."""
    command = [sys.executable, "-m", "godwit", "pub", "live", "--lines", "-", "-b", broker.at("mqtt")]
    with (
        listener(broker, "--topic", "live", "--client", "live", "--count", "3") as live,
        subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as pipe,
    ):
        assert live.stdout is not None
        assert pipe.stdin is not None
        for number in range(3):
            pipe.stdin.write(f"{number}\n")
            pipe.stdin.flush()
            assert live.stdout.readline() == f"live\t{number}\n"
        pipe.stdin.close()
        assert (pipe.wait(ANSWER_S), live.wait(ANSWER_S)) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["pub", "air/x"], "an empty message; right would be: godwit pub air/x"),
        (["pub", "air/x", "{pm25: 1}"], "this looks like JSON and is none"),
    ],
)
def test_a_message_that_looks_like_a_mistake_gets_a_hint(broker: Process, arguments: list[str], hint: str) -> None:
    said = called(*arguments, "-b", broker.at("mqtt"))
    assert said.exit_code == 0
    assert hint in said.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["pub", "air/#", "x"], "topic 'air/#' has a wildcard"),
        (["pub", "", "x"], "the topic is empty"),
        (["sub", "--topic", "a#"], "'#' must be a whole level"),
        (["sub", "--keep", "5"], "--keep needs --client"),
        (["pub", "big", "--lines", "-"], "1,048,576 at most"),
    ],
)
def test_what_cannot_be_is_one_line_and_no_traceback(broker: Process, arguments: list[str], complaint: str) -> None:
    refused = called(*arguments, "-b", broker.at("mqtt"), text="x" * ((1 << 20) - 1) + "\n")
    assert refused.exit_code == 2
    assert complaint in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_double_quotes_are_explained(broker: Process) -> None:
    desk = ["--client", "quotes", "--count", "1", "--topic", "quotes", "-b", broker.at("mqtt")]
    command = [sys.executable, "-m", "godwit", "sub", 'kind = "taxi"', *desk]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        wait_for(broker, "quotes")
        called("pub", "quotes", '{"kind": "a", "taxi": "a"}', "-b", broker.at("mqtt"))
        _, said = one.communicate(timeout=ANSWER_S)
    assert "a text stands in single quotes: 'taxi'" in said
    assert "single quotes: 'taxi'" in called("filter", "explain", 'kind = "taxi"').stderr


@pytest.mark.parametrize("command", [["pub", "t", "x"], ["sub"]])
def test_where_nobody_listens_it_is_told_and_bounded(command: list[str]) -> None:
    vain = called(*command, "--broker", "127.0.0.1:1", "--wait", "0.5")
    assert vain.exit_code == 2
    assert vain.stderr.splitlines()[-1].endswith("given up after 0.5 s")


def test_a_listener_without_a_name_leaves_no_session_behind(broker: Process) -> None:
    before = {row.client for row in fetched(f"{broker.at('status')}/status").clients}
    command = [sys.executable, "-m", "godwit", "sub", "--topic", "once", "--count", "1", "-b", broker.at("mqtt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as one:
        while one.poll() is None:
            called("pub", "once", "now", "-b", broker.at("mqtt"))
    while {row.client for row in fetched(f"{broker.at('status')}/status").clients} - before:
        pass


def test_a_question_that_is_asked_once_ends_though_what_has_changed_is_not_told(broker: Process) -> None:
    """Something that the program knows has changed, and with --quiet it is not told so."""
    asked = ["query", "once = 1", "--client", "once", "--keep", "60", "--once", "--quiet", "-b", broker.at("mqtt")]
    for payload in ('{"once": 1, "n": 1}', '{"once": 1, "n": 2}'):
        assert called("pub", "once/a", payload, "--retain", "-b", broker.at("mqtt")).exit_code == 0
        told = called(*asked, *(["--resume"] if "2" in payload else []))
        assert told.exit_code == 0, told.output
        assert ("once/a" in told.stdout) == ("2" not in payload)


def test_a_question_that_is_asked_once_ends_where_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        told = called("query", "--once", "--wait", "0.5", "-b", f"127.0.0.1:{deaf.getsockname()[1]}")
    assert told.exit_code == 2
    assert "no answer" in told.output or "timed out" in told.output or "0.5 s" in told.output


def test_a_question_that_is_asked_once_says_where_that_may_not_be_all(
    broker: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has said that there is more to come, and does not say it."""

    async def never(query: Query) -> dict[str, Change]:
        await asyncio.sleep(60)
        return {}

    assert called("pub", "slow/a", '{"slow": 1}', "--retain", "-b", broker.at("mqtt")).exit_code == 0
    monkeypatch.setattr(Query, "now", never)
    told = called("query", "slow = 1", "--once", "--wait", "1", "-b", broker.at("mqtt"))
    assert told.exit_code == 2
    assert "slow/a" in told.stdout
    assert "has not said that this is all" in told.output


def test_whoever_subscribes_where_no_ring_is_hears_what_it_waits_for_and_why_it_is_refused(tmp_path: Path) -> None:
    ring = ("--fabric", "dht", "--place", "38.72,-9.14", "--peer", "127.0.0.1:9")
    process = Process(tmp_path, "lost", *FREE, "--status", "127.0.0.1:0", *ring)
    with running(process):
        at = process.at("status").removeprefix("http://")
        ready, top = called("ready", at), called("top", at, "--once")
        told = called("sub", "--topic", "air/#", "--broker", process.at("mqtt"))
    assert told.exit_code == 2
    *_, waits, refused = told.stderr.splitlines()
    assert waits == "godwit: not subscribed yet: waiting for the brokers that may match this"
    assert refused == "godwit: some brokers that would match it do not answer; try again"
    assert ready.exit_code == 1
    assert "this broker has no cell yet: no broker of a ring has answered yet" in ready.stderr
    assert "ring: cell none yet" in top.stdout
