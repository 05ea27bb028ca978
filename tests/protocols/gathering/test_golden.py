"""The golden map and its traces, message for message (spec data-gathering 2.16)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.protocols.gathering.golden import Tape, cell, golden, sites

from godwit.protocols.gathering import clients, mobility
from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.messages import Associate, Item, Lookup, Matched, Notice, Pub, Sub, Subscription
from godwit.protocols.gathering.space import Boundary
from godwit.protocols.topology.pastry.keys import Key, padded
from godwit.protocols.topology.pastry.messages import Destination

pytestmark = pytest.mark.feature("data-gathering F42")

AREA = Disc((13.0, 75.0), 12.0)


def _spy(part: Any, method: str, see: Callable[..., None]) -> None:
    """Have a method seen before it does its work."""
    real = getattr(part, method)

    def seen(*given: Any) -> None:
        see(*given)
        real(*given)

    setattr(part, method, seen)


def subscription(sid: str = "a#1") -> Subscription:
    return Subscription(sid, "fire", AREA, "a")


def event(x: float, y: float) -> Item:
    return Item(("sensor", 1), "fire", (x, y), 0.0)


@pytest.mark.feature("data-gathering F6")
def test_the_boundary_list_of_broker_0011_is_the_published_one() -> None:
    assert cell("0011").boundaries == (
        Boundary(0, 56.0, False),
        Boundary(1, 53.0, False),
        Boundary(0, 27.0, True),
        Boundary(1, 20.0, True),
    )
    assert cell("0011").box() == ((27.0, 56.0), (20.0, 53.0))
    assert cell("0011").sibling_prefix(1) == "01"


def test_every_golden_broker_stands_in_its_own_cell() -> None:
    owners = {site.name: [other.name for other in sites() if other.cell.owns_all(site.place)] for site in sites()}
    assert owners == {site.name: [site.name] for site in sites()}


@pytest.mark.feature("data-gathering F13")
def test_t1_a_subscription_from_1000_takes_four_messages_and_is_stored_at_three_brokers() -> None:
    gathering = golden()
    tape = Tape(gathering)
    levels: list[tuple[str, int]] = []
    for name, broker in gathering.brokers.items():
        _spy(broker.dissemination, "take", lambda message, name=name: levels.append((name, message.level)))
    gathering.brokers["1000"].dissemination.take(Sub(subscription()))
    gathering.run_for(5.0)
    assert sorted(tape.rows) == [
        ("Sub", "0011", "0110"),
        ("Sub", "0110", "0100"),
        ("Sub", "0110", "0111"),
        ("Sub", "1000", "0011"),
    ]
    assert dict(levels) == {"1000": 0, "0011": 1, "0110": 2, "0100": 3, "0111": 4}
    stored = sorted(name for name, broker in gathering.brokers.items() if len(broker.store))
    assert stored == ["0100", "0110", "0111"]


@pytest.mark.feature("data-gathering F15")
def test_t2_an_event_seen_at_0100_is_matched_at_0111() -> None:
    gathering = golden()
    tape = Tape(gathering)
    arrived: list[tuple[str, int]] = []
    for name, broker in gathering.brokers.items():
        _spy(broker.dissemination, "matched", lambda message, name=name: arrived.append((name, message.level)))
    gathering.brokers["0100"].dissemination.take(Pub(event(15.0, 87.0)))
    gathering.run_for(5.0)
    assert tape.rows == [("Pub", "0100", "0111")]
    assert arrived == [("0111", 3)]


@pytest.mark.feature("data-gathering F17")
def test_t3_one_notice_for_three_brokers_takes_five_messages() -> None:
    gathering = golden()
    tape = Tape(gathering)
    given: list[tuple[str, str]] = []
    for name, broker in gathering.brokers.items():
        _spy(broker.mobility, "deliver", lambda client, notice, sids=(), name=name: given.append((name, client)))
    wanted = {"1000": "AB", "0010": "C", "0001": "D"}
    destinations = [Destination(padded(key), tuple((one, ()) for one in some)) for key, some in wanted.items()]
    gathering.brokers["0111"].ring.cast(destinations, Matched(Notice(event(15, 87), padded("0111"))))
    gathering.run_for(5.0)
    assert sorted(tape.of("Matched")) == [
        ("0011", "0001"),
        ("0011", "0010"),
        ("0111", "0011"),
        ("0111", "1100"),
        ("1100", "1000"),
    ]
    assert sorted(given) == [("0001", "D"), ("0010", "C"), ("1000", "A"), ("1000", "B")]


def with_homes(monkeypatch: pytest.MonkeyPatch, *homes: str) -> None:
    """The examples give the hashes."""

    def keys(client: str, count: int) -> tuple[Key, ...]:
        return tuple(padded(home) for home in homes)

    for module in (clients, mobility):
        monkeypatch.setattr(module, "home_keys", keys)


@pytest.mark.feature("data-gathering F21")
@pytest.mark.feature("data-gathering F22")
def test_t4_registration_and_look_up_at_one_home(monkeypatch: pytest.MonkeyPatch) -> None:
    with_homes(monkeypatch, "0110")
    gathering = golden()
    tape = Tape(gathering)
    gathering.phone("A")
    gathering.attach("A", "1000")
    gathering.run_for(5)
    assert tape.of("Register") == [("1000", "0011"), ("0011", "0110")]
    assert tape.of("Registered") == [("0110", "1100"), ("1100", "1000")]
    gathering.brokers["1100"].mobility._to_homes("A", Lookup("A", padded("1100")))
    gathering.run_for(5)
    assert tape.of("Lookup") == [("1100", "0110")]
    assert tape.of("LookupAnswer") == [("0110", "1100")]


@pytest.mark.feature("data-gathering F23")
def test_t4_registration_and_look_up_at_three_homes_and_the_nearest_answers_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_homes(monkeypatch, "0110", "1100", "0000")
    gathering = golden()
    tape = Tape(gathering)
    gathering.brokers["1000"].mobility.associate("A", Associate("A", 1))
    gathering.underlay.attached["A"] = None
    gathering.run_for(5)
    assert sorted(tape.of("Register")) == [
        ("0001", "0000"),
        ("0011", "0001"),
        ("0011", "0110"),
        ("1000", "0011"),
        ("1000", "1100"),
    ]
    assert sorted(tape.of("Registered")) == [("0000", "1000"), ("0110", "1100"), ("1100", "1000"), ("1100", "1000")]
    begun = gathering.world.engine.now
    asker = gathering.brokers["0111"]
    answers: list[float] = []
    asker.mobility.found = lambda message: answers.append(gathering.world.engine.now - begun)  # type: ignore[method-assign]
    asker.mobility._to_homes("A", Lookup("A", padded("0111")))
    gathering.run_for(5)
    assert sorted(tape.of("Lookup")) == [
        ("0001", "0000"),
        ("0011", "0001"),
        ("0111", "0011"),
        ("0111", "0110"),
        ("0111", "1100"),
    ]
    assert tape.of("LookupAnswer")[0] == ("0110", "0111")
    assert sorted(tape.of("LookupAnswer")) == [
        ("0000", "0110"),
        ("0110", "0111"),
        ("0110", "0111"),
        ("0110", "0111"),
        ("1100", "0110"),
    ]
    assert [1000 * answer for answer in answers] == pytest.approx([55.8, 108.1, 196.9], abs=0.06)


@pytest.mark.feature("data-gathering F16")
def test_t5_an_event_outside_the_circle_does_not_match_though_its_broker_stores_the_subscription() -> None:
    gathering = golden()
    gathering.brokers["1000"].dissemination.take(Sub(subscription()))
    gathering.run_for(5.0)
    store = gathering.brokers["0111"].store
    assert len(store) == 1
    assert store.match(event(15.0, 87.0)) == []
    assert [one.sid for one in store.match(event(15.0, 86.0))] == ["a#1"]
