"""What travels when a client moves, beside the messages of routing (spec 2.11.4).

| message | way | meaning |
|---|---|---|
| `TransferRequest` | destination to source, out of band | send me what you keep for this client |
| `Transfer` | source to destination, out of band | here it is, and what the client has had of late |
| `Late` | source to destination, out of band | something that came after the transfer |
| marker `update` | destination to source, behind the SUB | whatever was routed the old way is with you: hand over |
| marker `search`, `back` | destination, by content | the same without an address: to adverts, back to subscribers |
| marker `advert` | destination to source, behind the ADV | the publisher has moved: acknowledge, withdraw |
| marker `ack` | source (or rendezvous point) to destination | whoever wants it has said so: publish |
| marker `trigger` | source to destination | make before break: take the client in while I serve it |
| marker `path`, `advert path` | source to destination | the same in one direction, as published |
| marker `check`, `checked` | to a rendezvous point and back | the subscription is complete up to there |
| ping, pong | as events | generic mobility |
"""

from __future__ import annotations

from enum import StrEnum

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import Message, NodeId

EventId = tuple[str, int]


class Mark(StrEnum):
    """What a marker means."""

    UPDATE = "update"
    SEARCH = "search"
    BACK = "back"
    ADVERT = "advert"
    ACK = "ack"
    TRIGGER = "trigger"
    PATH = "path"
    ADVERT_PATH = "advert path"
    CHECK = "check"
    CHECKED = "checked"


class TransferRequest(Message, frozen=True):
    """`hop` is that of the stay here; the answer goes to `to`, to the sender unless given."""

    client: str
    hop: int
    to: NodeId = ""


class Transfer(Message, frozen=True):
    """For the stay with this `hop`. `seen` are events that the client has had and that may come again."""

    client: str
    hop: int
    events: tuple[Event, ...] = ()
    seen: tuple[EventId, ...] = ()


class Late(Message, frozen=True):
    client: str
    hop: int
    event: Event


OUT_OF_BAND = (TransferRequest, Transfer, Late)
"""What goes beside the overlay, also between neighbors: it keeps no order with what goes over links."""

PING, PONG = "ping", "pong"


def handover(kind: str, client: str, hop: int) -> Filter:
    """Who wants the pings or pongs of one handover, and who sends them."""
    return filter_of(attribute("type", equ(kind)), attribute("of", equ(f"{client}#{hop}")))


def signal(kind: str, client: str, hop: int, sequence: int) -> Event:
    return Event(f"{kind} {client}#{hop}", sequence, type=kind, attributes={"of": f"{client}#{hop}"})
