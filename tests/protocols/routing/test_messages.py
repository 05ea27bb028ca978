"""What each message weighs (spec mft-pubsub 2.10), and that its definition is its wire format."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.overlay import topic

from godwit.events import Event
from godwit.protocols.host import Message
from godwit.protocols.routing.courier import Bundle, Carried, Numbered
from godwit.protocols.routing.messages import (
    Ack,
    Bask,
    Bmig,
    Bquery,
    Bsub,
    Btab,
    Claim,
    Doubt,
    Filters,
    Fmig,
    Mig,
    Pub,
    Rbmig,
    Rep,
    Row,
    Sub,
    Uns,
)
from godwit.protocols.topology.election import Heartbeat

F = topic("f")
EVENT = Event("p", 1, attributes={"topic": "f"}, payload=bytes(16))
CLAIMS = tuple(Claim(f"s{i}", 1, 1) for i in range(32))

SIZES = [
    (Sub(F, "s", 1), 12),
    (Uns(F, "s", 1, 3), 12),
    (Mig("s", "b", 1), 10),
    (Bmig(CLAIMS[:3], CLAIMS[:4]), 4 + 7 * 7),
    (Bmig(CLAIMS), 228),
    (Bquery("s", 1, 1), 8),
    (Bsub("s", (F, topic("g")), 1, 1), 18),
    (Bsub("s", (F,), 1, 1, 0, "b1", 7), 14 + 6),
    (Btab((Row(F, "b", "s"),) * 5), 41),
    (Fmig(), 1),
    (Rbmig(("s1", "s2"), "b"), 7),
    (Heartbeat("b1", 1, 1, 0), 15),
    (Pub(EVENT), 23),
    (Rep((EVENT,), "s"), 25),
    (Rep((EVENT, EVENT), "s"), 25 + 22),
    (Filters((F, F)), 10),
    (Ack(1), 7),
    (Pub(EVENT, 0, 1.5), 31),
    (Pub(EVENT, to=("s1", "s2")), 27),
    (Rep((EVENT,), "s", 0, 1.5), 33),
    (Mig("s", "b", last=1.5), 13),
    (Sub(F, "s"), 7),
    (Uns(F, "s"), 7),
    (Mig("s", "b"), 5),
    (Bask((Doubt("s", 1), Doubt("s2", 1))), 14),
]


@pytest.mark.feature("mft-pubsub F35")
@pytest.mark.parametrize(("message", "size_b"), SIZES, ids=[type(message).__name__ for message, _ in SIZES])
def test_a_message_weighs_what_the_table_says(message: Message, size_b: int) -> None:
    assert message.size_b == size_b


@pytest.mark.feature("mft-pubsub F35")
@given(st.integers(0, 200))
def test_an_event_weighs_its_payload_more(payload_b: int) -> None:
    event = Event("p", 1, payload=bytes(payload_b))
    assert Pub(event).size_b == 7 + payload_b
    assert Rep((event,), "s").size_b == 9 + payload_b


@pytest.mark.feature("mft-pubsub F1")
@pytest.mark.parametrize("message", [message for message, _ in SIZES], ids=lambda message: type(message).__name__)
def test_whatever_is_sent_can_be_read_back(message: Message) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) == message


@pytest.mark.feature("mft-pubsub F1")
def test_what_a_neighbor_sends_is_told_apart_by_its_tag_alone() -> None:
    carried = [message for message, _ in SIZES if isinstance(message, Carried)]
    for message in carried:
        numbered = Numbered(7, message)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(numbered), type=Numbered) == numbered
    together = Numbered(8, Bundle(tuple(carried)))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(together), type=Numbered) == together
    assert together.size_b == sum(message.size_b for message in carried)
    assert {type(message) for message in carried} == set(Carried.__args__)
