"""Every message survives the wire: the definition is the format."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from godwit.filters import areas
from godwit.protocols.gathering import messages as m
from godwit.protocols.gathering.areas import Disc, Zone
from godwit.protocols.gathering.space import Boundary, Cell
from godwit.protocols.topology.pastry.keys import padded
from godwit.protocols.topology.pastry.messages import Cast, Destination, Hop
from godwit.protocols.topology.pastry.peers import Peer

KEY = padded("0110")
PEER = Peer("b1", KEY, (1.0, 2.0))
CELL = Cell("01", (Boundary(0, 5.0, False), Boundary(1, 2.0, True)))
SUBSCRIPTION = m.Subscription("a#1", "fire", Disc((1.0, 2.0), 3.0), "a", (m.Condition("x", (1, 2), "in"),), KEY, 7, 9.5)
ON_GLOBE = m.Subscription("a#2", "fire", Zone(areas.Circle(1.0, 179.0, 5000.0)), "a")
ITEM = m.Item(("p", 3), "fire", (1.0, 2.0), 5.5, {"celsius": 21.5, "room": "lab"})
NOTICE = m.Notice(ITEM, KEY, 2)
REPLICA = m.Replica(
    KEY, PEER, CELL, (SUBSCRIPTION,), (m.CareOf("a", KEY, 1),), (m.Waiting("a", 1, ((NOTICE, ("a#1",)),)),)
)

BODIES: list[Any] = [
    m.Sub(SUBSCRIPTION, 2, "01", 3),
    m.Sub(ON_GLOBE),
    m.Unsub("a#1", Disc((1.0, 2.0), 3.0), "a", 1, "0"),
    m.Pub(ITEM, 1, "0"),
    m.Locate("new", (3.0, 4.0)),
    m.Matched(NOTICE),
    m.Forward(NOTICE, "a", ("a#1",)),
    m.Register("a", KEY, 1),
    m.Registered("a", 1),
    m.Lookup("a", KEY),
    m.LookupAnswer("a"),
    m.Handover("a", KEY, 2),
    m.HandoverAnswer("a", 2, 5),
    m.Update("a", KEY, 2, KEY),
    m.UpdateAnswer("a", 2),
    m.Assigned(PEER, KEY, CELL, (SUBSCRIPTION,)),
    m.Ready(PEER),
    m.State((SUBSCRIPTION,), ("a#3",), ("a#4",)),
    m.Refused("no room", True),
    m.CareOfMoved((m.CareOf("a", KEY, 1),)),
    REPLICA,
    m.Entrusted(REPLICA),
    m.Stored("a#1", CELL),
    m.Change(KEY, PEER, 3, SUBSCRIPTION, base=REPLICA),
    m.Copied(3, whole=False),
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_what_is_sent_is_what_arrives_in_a_hop_and_in_a_cast(body: Any) -> None:
    decoder = msgspec.msgpack.Decoder(Hop[m.Body | Cast[m.Body]])
    cast = Cast((Destination(KEY, (("a", ("a#1",)),)),), body, 2)
    for sent in (Hop(5, body), Hop(6, cast)):
        assert decoder.decode(msgspec.msgpack.encode(sent)) == sent


def test_no_kind_of_body_is_left_out_here() -> None:
    assert {type(body) for body in BODIES} == set(m.Body.__args__)
