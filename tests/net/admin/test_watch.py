"""What is kept of publications while somebody watches: bounded, and nothing afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from godwit.net.admin import watch
from godwit.net.admin.watch import Watch, place_in
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Publication


class Listened:
    """As much of a broker as is watched."""

    def __init__(self) -> None:
        self.on_published: Callable[[Publication], None] | None = None

    def clock(self) -> float:
        return 100.0

    def say(self, number: int, payload: bytes = b"") -> None:
        assert self.on_published is not None
        self.on_published(Publication("hub", number, "t", payload or b'{"id": %d, "lat": 1, "lon": 2}' % number))


class World:
    def __init__(self) -> None:
        self.broker, self.now, self.timers = Listened(), 0.0, list[tuple[float, Callable[[], None]]]()
        self.watch = Watch(cast(Broker, self.broker), lambda: self.now, self._later)

    def _later(self, seconds: float, call: Callable[[], None]) -> Any:
        self.timers.append((self.now + seconds, call))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self.timers if at <= self.now]
        self.timers = [one for one in self.timers if one[0] > self.now]
        for call in due:
            call()


def test_it_looks_while_it_is_asked_and_puts_back_who_listened_before() -> None:
    world, heard = World(), list[int]()
    world.broker.on_published = before = lambda one: heard.append(one.sequence)
    world.watch.things(0)
    world.broker.say(1)
    assert (heard, world.watch.things(0).total) == ([1], 1)
    world.wait(watch.WATCH_S - 1)
    world.watch.things(0)
    world.wait(2)
    assert world.watch.on
    world.wait(watch.WATCH_S)
    assert not world.watch.on
    assert world.broker.on_published is before


def test_what_is_too_much_in_a_second_is_counted_and_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PER_SECOND", 3)
    world = World()
    world.watch.look()
    for number in range(5):
        world.broker.say(number)
    assert (world.watch.seen, world.watch.skipped) == (3, 2)
    world.now += 1
    world.broker.say(9)
    assert world.watch.seen == 4


def test_everything_that_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THINGS_MAX", "LASTS_MAX", "NAMES_MAX", "VALUES_MAX"):
        monkeypatch.setattr(watch, name, 4)
    world = World()
    world.watch.look()
    for number in range(20):
        world.broker.say(number)
        world.broker.say(number, b'{"name-%d": %d}' % (number, number))
    assert [one.name for one in world.watch.things(0).things] == ["19", "18", "17", "16"]
    assert len(world.watch.lasts(None, 100)) == 4
    assert len(world.watch.attributes().attributes) <= 4
    assert all(len(one.common) <= 4 for one in world.watch.attributes().attributes)
    assert len(world.watch.recent(None, 1000)) == 40


def test_only_what_changed_is_told_again() -> None:
    world = World()
    world.watch.look()
    for number in (1, 2, 3):
        world.broker.say(number)
    serial = world.watch.things(0).serial
    world.broker.say(2)
    assert [one.name for one in world.watch.things(serial).things] == ["2"]
    assert len(world.watch.things(serial + 1000).things) == 3  # of a broker that has started again


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"lat": 1, "lon": 2.5}, (1.0, 2.5)),
        ({"latitude": 1, "longitude": 2}, (1.0, 2.0)),
        ({"lat": 91, "lon": 2}, None),
        ({"lat": "1", "lon": 2}, None),
        ({"lat": True, "lon": 2}, None),
        ({"lat": 1}, None),
    ],
)
def test_a_place_is_two_numbers_on_the_earth(values: dict[str, Any], place: tuple[float, float] | None) -> None:
    assert place_in(values) == place
