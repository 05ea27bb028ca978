"""What operators do in the browser: to a client, to a broker, to all brokers; and the view of an archive."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.brokers import START_S, own_ports, running
from tests.console.eyes import CHROMIUM, Eyes, chromium
from tests.console.scene import Scene
from tests.console.test_rolling import broker, knows_where_all_are_told
from tests.net.servers import parts, port
from tests.net.stations import until

import godwit
from godwit.net.access import hashed
from godwit.net.address import Address
from godwit.net.archive.client import RemoteArchive
from godwit.net.archive.log import Piece

pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="Debian's chromium is not here"),
    pytest.mark.xdist_group("console"),
]


@contextmanager
def looking_at(url: str) -> Iterator[Eyes]:
    with chromium() as browser:
        eyes = Eyes(browser, url)
        yield eyes
        # A browser complains of each question that a broker does not answer; of brokers that restart some are.
        assert [one for one in eyes.complaints if "502 (Bad Gateway)" not in one] == []
        assert eyes.hosts == {"127.0.0.1"}


def test_an_operator_ends_a_session_reloads_users_and_drains_a_broker_and_all_of_it_is_audited(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    async def come() -> godwit.Client:
        async with godwit.connect(scene.at("east"), client="sleeper") as sleeper:
            await sleeper.subscribe("pm25 > 0")
        return await scene.enter(godwit.connect(scene.at("east"), client="van-7"))

    try:
        van = scene.call(come())
        with looking_at(scene.url) as eyes:
            eyes.see("client/sleeper", "Where it is")
            eyes.page.get_by_role("button", name="End session").click()
            eyes.confirm("End session")
            eyes.told("sleeper: ")
            eyes.page.get_by_text("No session").wait_for()
            assert "sleeper" not in parts(scene.server("east")).broker.sessions

            users = tmp_path / "users.toml"
            secret = hashed("pass", "low")
            users.write_text(users.read_text() + f'\n[users.carol]\npassword = "{secret}"\nsubscribe = ["air/#"]\n')
            eyes.see("cluster", "delivered a second")
            eyes.page.get_by_role("region", name="north").get_by_role("button", name="Reload").click()
            eyes.told("users and grants are read again")
            eyes.see("users", "carol")

            eyes.see("cluster", "delivered a second")
            east = eyes.page.get_by_role("region", name="east")
            east.get_by_role("button", name="Drain").click()
            eyes.confirm("Drain")
            eyes.told("its clients are sent to other brokers")
            scene.call(until(lambda: str(van.broker) != scene.at("east")))
            scene.call(until(lambda: not parts(scene.server("east")).broker.counts.connected))
            east.get_by_role("button", name="Uncordon").click()
            east.get_by_text("well").wait_for()

            for action in ("end", "reload", "drain", "uncordon"):
                eyes.see("audit", action)
            eyes.shoot("audit-of-actions")
    finally:
        scene.stop()


def test_a_browser_restarts_one_broker_and_then_all_one_after_the_other(tmp_path: Path) -> None:
    with own_ports(6) as ports:
        a, status = broker(tmp_path, "a", ports[:3])
        b, other = broker(tmp_path, "b", ports[3:], "--peer", a.at("peers"))
        with running(a, b), console(status, other) as url, looking_at(url) as eyes:
            while not knows_where_all_are_told(status):
                time.sleep(0.05)
            eyes.see("cluster", "delivered a second")
            eyes.page.get_by_role("region", name="b").get_by_role("button", name="Restart").click()
            eyes.confirm("Restart")
            wait_for_starts(b.log, 2)
            eyes.page.get_by_role("region", name="b").get_by_text("well").wait_for()
            eyes.page.get_by_role("button", name="Rolling restart").click()
            eyes.confirm("Restart all")
            wait_for_starts(a.log, 2)
            wait_for_starts(b.log, 3)
            eyes.page.locator("#health").get_by_text("2 brokers well").wait_for()
            assert (a.process.poll(), b.process.poll()) == (None, None)


def wait_for_starts(log: Path, count: int) -> None:
    """Until the broker has begun to serve so often. It is asked to restart once for each but the first."""
    while log.read_text().count("restart this broker by") < 2 * (count - 1):
        time.sleep(0.05)


@contextmanager
def console(*brokers: str) -> Iterator[str]:
    command = [sys.executable, "-m", "godwit", "console", "--listen", "127.0.0.1:0", "--brokers", ",".join(brokers)]
    told = {**os.environ, "PYTHONUNBUFFERED": "1"}
    one = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=told)
    try:
        assert one.stdout is not None
        yield one.stdout.readline().split()[3].rstrip(";")
        assert one.poll() is None
    finally:
        ended = one.poll()
        one.terminate()
        print("the console said:", one.communicate(timeout=START_S)[0], f"and had ended: {ended}")  # noqa: T201


def test_the_view_of_archives_shows_files_their_size_and_who_is_how_far_behind(tmp_path: Path) -> None:
    scene = Scene(tmp_path, archive__folder=tmp_path / "kept", archive__listen="127.0.0.1:0", archive__batch_s=0.02)

    async def publish() -> None:
        async with godwit.connect(scene.at("north"), client="station") as station:
            for number in range(4):
                await station.publish({"n": number}, topic="air/x", qos=1)

    try:
        scene.call(publish())
        with looking_at(scene.url) as eyes:
            eyes.see("archive", "on the disk")
            eyes.page.get_by_text("Nobody follows").wait_for()
            remote = RemoteArchive(Address("127.0.0.1", port(scene.server("north"), "archive")))
            while not (files := [one for one in remote.files() if one.rows == 4]):
                time.sleep(0.05)
            eyes.page.locator("#main td", has_text=files[0].name).first.wait_for()
            list(remote.read(Piece(files[0].name, 0, 3)))
            row = eyes.page.get_by_role("row", name="127.0.0.1")
            row.wait_for()
            assert row.locator("td").last.inner_text() == "1"
            eyes.shoot("archive-with-files")
    finally:
        scene.stop()
