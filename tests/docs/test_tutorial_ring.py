"""docs/tutorial-ring.md as a stranger does it: five brokers on a map, of which one leaves and one is killed, and a
sixth."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.pages import blocks, page
from tests.shells import WAIT_S, Shell, shell, until

import godwit
from godwit.client.client import Client

PAGE = page("docs/tutorial-ring.md")
NAMES = ("lisbon", "porto", "madrid", "paris", "berlin", "rome")
"""In the order of the page; the sixth is like the fifth."""
PORTS = {name: (f"{1882 + at}", f"{7000 + at}", f"{9000 + at}") for at, name in enumerate(NAMES, 1)}
BOXES = {
    "lisbon": [[-180.0, 180.0], [-90.0, 39.9]],
    "porto": [[-180.0, -6.2], [39.9, 90.0]],
    "madrid": [[-6.2, 180.0], [39.9, 44.6]],
    "paris": [[-6.2, 7.9], [44.6, 90.0]],
    "berlin": [[7.9, 180.0], [44.6, 90.0]],
}
"""As the page draws them: longitudes, and latitudes."""
LEVELS = tuple(f"level-{number}" for number in range(24))
"""So many first levels that each cell has some."""


def commands(number: int) -> list[str]:
    return blocks(PAGE, "sh")[number].strip().splitlines()


class Brokers:
    """They are started by the lines of the page, and known by their names."""

    def __init__(self, made: Shell) -> None:
        self.made = made
        lines = [*commands(0), *commands(1)]
        self.lines = dict(zip(NAMES, (*lines, self._sixth(lines[-1])), strict=True))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def _sixth(self, fifth: str) -> str:
        """The fifth was let in by one that has left by then; this one asks the first."""
        line = fifth.replace("berlin", "rome").replace("52.52,13.40", "41.90,12.50").replace("7004", "7001")
        for old, new in zip(PORTS["berlin"], PORTS["rome"], strict=True):
            line = line.replace(old, new)
        return line

    def start(self, name: str, more: str = "") -> None:
        self.running[name] = self.made.start(f"{self.lines[name]} {more}", f"{name}.log")
        until(lambda: self.cells(name))

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        self.running[name].send_signal(number)
        return self.running[name].wait(WAIT_S)

    def cells(self, name: str) -> list[list[list[float]]]:
        """Nothing where it does not answer yet."""
        try:
            told = json.loads(self.made.got(PORTS[name][2], "/status"))
        except OSError:
            return []
        return [[[round(at, 1) for at in side] for side in one["box"]] for one in told["ring"]["cells"]]

    def client(self, name: str, called: str) -> Client:
        return godwit.connect(f"127.0.0.1:{self.made.ports[PORTS[name][0]]}", client=called, keep_s=3600)


class Readers:
    """One client that wants each level by itself, and somebody who publishes under each."""

    def __init__(self, reader: godwit.SyncClient, writer: godwit.SyncClient) -> None:
        self.writer = writer
        self.wanted = {level: reader.subscribe(topics=f"{level}/#", qos=1) for level in LEVELS}

    def publish(self, payload: bytes, *, retain: bool = False) -> None:
        for level in LEVELS:
            self.writer.publish(topic=f"{level}/x", payload=payload, qos=1, retain=retain)

    def have(self, payload: bytes) -> None:
        """Once each, behind all that came before."""
        for level, one in self.wanted.items():
            found = one.next(WAIT_S)
            assert found is not None
            assert found.payload == payload, level
            found.ack()

    def have_no_more(self) -> None:
        for one in self.wanted.values():
            with pytest.raises(TimeoutError):
                one.next(0.02)


def test_the_page_leads_through_a_ring_of_five(tmp_path: Path) -> None:
    with shell(tmp_path, [port for ports in PORTS.values() for port in ports]) as made:
        brokers = Brokers(made)
        for name in BOXES:
            brokers.start(name)
        assert {name: brokers.cells(name) for name in BOXES} == {name: [box] for name, box in BOXES.items()}
        (top,) = commands(2)
        assert "39.9 to 44.6 N, -6.2 to 180.0 E" in made.run(top)
        assert "cell 1 is this broker's, by lisbon" in made.said("porto.log")
        _publish_and_roam(made)
        _restart_with_places(made, brokers)
        with brokers.client("berlin", "reader") as reader, brokers.client("madrid", "writer") as writer:
            readers = Readers(reader, writer)
            _let_one_go(made, brokers, readers)
            _kill_one_and_add_one(brokers, readers)


def _publish_and_roam(made: Shell) -> None:
    listen, publish = commands(3)
    made.start(listen, "sub")
    until(lambda: made.says_after(publish, 'air/porto\t{"pm25": 163.5}', "sub"))
    (desk,) = commands(4)
    at_lisbon = made.start(desk, "desk")
    until(lambda: made.says_after(publish, '{"pm25": 163.5}', "desk"))
    at_lisbon.send_signal(signal.SIGINT)
    at_lisbon.wait(WAIT_S)
    made.run(publish.replace("163.5", "171"))
    made.start(desk.replace("1883", "1886"), "desk")
    until(lambda: '{"pm25": 171}' in made.said("desk"))


def _restart_with_places(made: Shell, brokers: Brokers) -> None:
    for name in BOXES:
        assert brokers.stop(name) == 0
    for name in BOXES:
        brokers.start(name, "--located 'taxi/#'")
    assert {name: brokers.cells(name) for name in BOXES} == {name: [box] for name, box in BOXES.items()}
    near, taxi = commands(5)
    made.start(near, "near")
    until(lambda: made.says_after(taxi, "taxi/7", "near"))


def _let_one_go(made: Shell, brokers: Brokers, readers: Readers) -> None:
    """What it had in its book, what it retained and whose home it was are its neighbors' then."""
    readers.publish(b"1", retain=True)
    readers.have(b"1")
    (leave,) = commands(6)
    assert "neighbors'" in made.run(leave)
    until(lambda: not brokers.cells("paris"))
    assert "ring: cell none yet" in made.run("godwit top 127.0.0.1:9004 --once")
    assert sum(map(_area, (box for name in BOXES for box in brokers.cells(name)))) == pytest.approx(360 * 180)
    _, publish = commands(3)
    made.run(publish.replace("163.5", "172"))
    until(lambda: '{"pm25": 172}' in made.said("desk"))
    made.run("godwit admin drain --broker 127.0.0.1:9004 --yes")
    until(lambda: not json.loads(made.got("9004", "/status"))["sessions"])
    assert brokers.stop("paris") == 0
    made.run(publish.replace("163.5", "173"))
    until(lambda: '{"pm25": 173}' in made.said("desk"))
    readers.publish(b"2")
    readers.have(b"2")
    with brokers.client("lisbon", "late") as late:
        kept = [late.subscribe(topics=f"{level}/#", qos=1).next(WAIT_S) for level in LEVELS]
        assert [one.payload for one in kept if one is not None] == [b"1"] * len(LEVELS)


def _area(box: list[list[float]]) -> float:
    (west, east), (south, north) = box
    return (east - west) * (north - south)


def _kill_one_and_add_one(brokers: Brokers, readers: Readers) -> None:
    before = brokers.cells("porto")
    brokers.stop("porto", signal.SIGKILL)
    readers.publish(b"3")
    brokers.start("porto", "--located 'taxi/#'")
    assert brokers.cells("porto") == before
    readers.have(b"3")
    brokers.start("rome", "--located 'taxi/#'")
    readers.publish(b"4")
    readers.have(b"4")
    readers.have_no_more()
