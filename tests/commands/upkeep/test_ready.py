"""`godwit ready`, as scripts and containers ask it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from godwit.cli import app


class Answers(BaseHTTPRequestHandler):
    told: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        self.send_response(status if self.path == "/ready" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not on the screen."""


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_broker_that_is_ready_is_status_0(address: str) -> None:
    Answers.told = [(200, b"ok\n")]
    told = CliRunner().invoke(app, ["ready", address])
    assert (told.exit_code, told.stdout) == (0, "ok\n")


def test_one_that_is_not_says_why_and_is_status_1(address: str) -> None:
    Answers.told = [(503, b"store: the disk is full\n")]
    told = CliRunner().invoke(app, ["ready", address])
    assert (told.exit_code, told.stderr) == (1, f"godwit: http://{address}/ready: store: the disk is full\n")


def test_one_that_becomes_ready_is_waited_for(address: str) -> None:
    Answers.told = [(503, b"starting\n"), (200, b"ok\n")]
    assert CliRunner().invoke(app, ["ready", address, "--wait", "60"]).exit_code == 0


def test_nobody_there_is_status_1_and_one_line() -> None:
    told = CliRunner().invoke(app, ["ready", "127.0.0.1:1"])
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)


def test_in_a_container_it_asks_where_the_environment_tells_the_broker_to_answer(address: str) -> None:
    Answers.told = [(200, b"ok\n")]
    told = CliRunner(env={"GODWIT_LISTEN__STATUS": address}).invoke(app, ["ready"])
    assert (told.exit_code, told.stdout) == (0, "ok\n")
