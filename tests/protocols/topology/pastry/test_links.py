"""Per-hop acknowledgement: taken once, repeated until confirmed, given up in the end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import Hop, HopAck
from godwit.sim.engine import Engine, Timer

pytestmark = pytest.mark.feature("data-gathering F18")


class Desk:
    """A host that keeps what is sent."""

    name = "a"

    def __init__(self) -> None:
        self.engine = Engine()
        self.random = Random(1)
        self.sent: list[tuple[str, Any]] = []

    def now(self) -> float:
        return self.engine.now

    def send(self, to: str, message: Any) -> None:
        self.sent.append((to, message))

    def broadcast(self, message: Any) -> None: ...

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        return self.engine.after(delay_s, call)

    def trace(self, record: Any) -> None: ...


def test_a_hop_is_repeated_under_its_number_until_it_is_confirmed() -> None:
    desk = Desk()
    links = Links(desk, ack_s=1.0, tries=5)
    links.send("b", "x")
    desk.engine.run(2.5)
    numbers = [hop.number for _, hop in desk.sent]
    assert len(numbers) == 3
    assert len(set(numbers)) == 1
    links.confirm(HopAck(numbers[0]))
    desk.engine.run(20.0)
    assert len(desk.sent) == 3
    assert links.unconfirmed == 0


def test_after_the_last_try_the_sender_is_told_once() -> None:
    desk = Desk()
    failed: list[str] = []
    links = Links(desk, ack_s=1.0, tries=3)
    links.send("b", "x", lambda: failed.append("x"))
    links.send("c", "y", lambda: failed.append("y"))
    desk.engine.run(20.0)
    assert failed == ["x", "y"]
    assert len(desk.sent) == 6


def test_a_repetition_is_confirmed_again_and_taken_once() -> None:
    desk = Desk()
    links = Links(desk)
    assert [links.opened("b", Hop(7, "x")), links.opened("b", Hop(7, "x")), links.opened("c", Hop(7, "x"))] == [
        True,
        False,
        True,
    ]
    assert desk.sent == [("b", HopAck(7)), ("b", HopAck(7)), ("c", HopAck(7))]
