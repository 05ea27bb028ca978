"""What travels between brokers: the frames of streams, those that keep the tree, and what brokers tell of their load.

A frame of a stream crosses several links and is decoded as far as each broker needs it: whoever passes it on reads who
it is for, and only the receiver what is in it. Over sockets everything is msgpack; `decode` is the one door for
it and refuses whatever is none of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import isfinite
from typing import Annotated

import msgspec

from godwit.filters.filters import Filter, problem_of
from godwit.protocols.broker.messages import (
    Amended,
    Ceded,
    Content,
    Dealt,
    Divided,
    Dividing,
    Enter,
    Noted,
    Offered,
    Outlook,
    Owned,
    Recalled,
    Region,
    Replica,
    Routed,
    Seek,
    Wanted,
    filters_in,
)
from godwit.protocols.broker.publication import NUMBER_MAX, Count, Publication, Time
from godwit.protocols.broker.topics import problem_of_name
from godwit.protocols.gathering.areas import Disc, Reach, Spot
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Message, NodeId, RemoteError
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Bsub, Filters, Sub, Uns
from godwit.protocols.routing.process import Enclosed
from godwit.protocols.topology.pastry.keys import BITS

Number = Annotated[int, msgspec.Meta(ge=1, le=NUMBER_MAX)]


class Item(msgspec.Struct, frozen=True, array_like=True):
    """One content of a stream. `durable`: the sender keeps it until it is on the receiver's disk."""

    number: Number
    durable: bool
    content: Content


class Leg(msgspec.Struct, frozen=True, array_like=True):
    """One receiver of a run: the life of it that the sender knows, and the number before the run's first in its stream.

    Nothing that lies between `previous` and that first number will ever come.
    """

    to: NodeId
    life: Count
    previous: Count


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Items that follow one another in the streams to all these receivers."""

    legs: tuple[Leg, ...]
    items: msgspec.Raw
    """`tuple[Item, ...]`, encoded."""


class Parcels(Message, frozen=True):
    """Runs of the origin's stream; `stream` names the disk on which it keeps what is not confirmed."""

    origin: NodeId
    stream: Count
    runs: tuple[Run, ...]
    hops: Count = 0
    sent: Time = 0.0
    """What the origin's steady clock shows as this leaves it: the receiver needs no other to tell how old things are.
    0: it says nothing of ages."""


class Ask(Message, frozen=True):
    """How far has my stream come? It follows whatever was sent before it, so the answer says what of that was lost."""

    origin: NodeId
    stream: Count
    to: NodeId
    serial: Count = 0
    hops: Count = 0


class Taken(Message, frozen=True):
    """From `by` to the origin of a stream: everything up to `number` is done with, up to `given` has arrived.

    `life` is drawn anew at each start of the receiver, and what is sent to another life is not taken. `serial` is that
    of the question, where this answers one; `gap`: something has arrived that leaves one.
    """

    by: NodeId
    life: Count
    origin: NodeId
    stream: Count
    number: Count
    given: Count
    serial: Count = 0
    gap: bool = False
    hops: Count = 0
    disk: Count = 0
    """The disk that has it, named as the receiver's own stream is. 0: a broker that does not say so."""


TEXT_MAX = 1_024
Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]


class Transport(StrEnum):
    """How a client is connected; a client that is sent elsewhere is told where it can be so there."""

    MQTT = "mqtt"
    MQTTS = "mqtts"
    WS = "ws"
    WSS = "wss"


class Load(Message, frozen=True):
    """What I have to do. `address` is where clients reach me, and with TLS `address_tls`, as host:port; within
    WebSocket `address_ws` and `address_wss`, as URLs. Empty: nowhere."""

    clients: Count
    events_per_s: Annotated[float, msgspec.Meta(ge=0, le=1e15)]
    address: Text = ""
    address_tls: Text = ""
    open: bool = True
    """I take more clients."""
    address_ws: Text = ""
    address_wss: Text = ""
    address_http: Text = ""
    """Where operators reach me, as a URL."""

    def at(self, over: Transport) -> str:
        """Where clients of this kind reach me."""
        match over:
            case Transport.MQTT:
                return self.address
            case Transport.MQTTS:
                return self.address_tls
            case Transport.WS:
                return self.address_ws
            case Transport.WSS:
                return self.address_wss


class Told(msgspec.Struct, frozen=True, array_like=True):
    """What another broker said of itself, so many seconds ago."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_MAX)]
    age_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    load: Load


class Loads(Message, frozen=True):
    """What some of those have to do with whom you may have no link."""

    told: Annotated[tuple[Told, ...], msgspec.Meta(max_length=64)]


class Sent(Message, frozen=True):
    """I have told this client to go to you, or, where it says so, to another one that you may know a way to."""

    client: Text
    to: Text = ""
    hops: Count = 0


Frame = Enclosed | Parcels | Ask | Taken | Load | Loads | Sent
"""Everything that may come over a link: what `TreeFabric.receive` understands, and those of `broker.balance`."""

_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)
_items = msgspec.msgpack.Decoder(tuple[Item, ...])

encode = msgspec.msgpack.Encoder().encode


def decode(data: bytes | bytearray | memoryview) -> Frame:
    """A frame as it came over a socket; `RemoteError` says what is wrong with it."""
    try:
        frame = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteError(f"no frame between brokers: {error}") from error
    if isinstance(frame, Enclosed):
        _check_filters(frame)
    return frame


def _check_filters(enclosed: Enclosed) -> None:
    """A filter that fails when it is asked would stop every publication, here and wherever it is passed on to."""
    message = enclosed.message
    for part in message.parts if isinstance(message, Numbered) else (message,):
        match part:
            case Bsub(subscriber, filters):
                found = filters
            case Sub(wanted, subscriber) | Uns(wanted, subscriber):
                found = (wanted,)
            case Filters(filters):
                subscriber, found = enclosed.sender, filters
            case _:
                continue
        for wanted in found:
            if problem := problem_of(wanted):
                raise RemoteError(f"what {subscriber} is said to want is no filter: {problem}")


def decode_items(run: Run) -> tuple[Item, ...]:
    """The items of a run, at its receiver."""
    try:
        items = _items.decode(run.items)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteError(f"no items of a stream: {error}") from error
    last = 0
    for one in items:
        if one.number <= last:
            raise RemoteError("the numbers of a stream must grow")
        last = one.number
        if problem := _problem_of(one.content):
            raise RemoteError(f"no items of a stream: {problem}")
    return items


def _problem_of(content: Content) -> str:
    """What would fail, or never match, where it is used; empty where nothing would."""
    match content:
        case Publication():
            return problem_of_name(content.topic) or ""
        case Routed(publication) | Dealt(publication):
            return problem_of_name(publication.topic) or ""
        case Recalled(rows=rows):
            return next((problem for _, one in rows if (problem := problem_of_name(one.topic))), "")
        case Wanted(filters=filters):
            return _problem_of_filters(filters or ())
        case Outlook() | Offered():
            return _problem_of_filters(filters_in(content))
        case Ceded(region, book, contacts=contacts):
            wanted = (one for entry in book for one in entry.filters)
            return _problem_of_filters(wanted) or _problem_of_regions((region, *contacts))
        case Replica(regions=regions, book=book, cells=cells):
            wanted = (one for entry in book for one in entry.filters)
            return _problem_of_filters(wanted) or _problem_of_regions((*regions, *cells))
        case Amended(entry=entry):
            return _problem_of_filters(entry.filters)
        case Noted(regions=regions) | Owned(regions=regions) | Divided(regions=regions):
            return _problem_of_regions(regions)
        case Dividing(region=region):
            return _problem_of_regions((region,))
        case Enter(place=place):
            return "" if _is_point(place) else f"{place} is no place"
        case Seek(reaches=reaches, prefix=prefix):
            is_known = all(map(_can_be_sought, reaches))
            return "" if is_known and _is_prefix(prefix) else f"nobody can look for {reaches} in {prefix!r}"
    return ""


def _can_be_sought(reach: Reach) -> bool:
    return not isinstance(reach, Disc) and (not isinstance(reach, Spot) or _is_point(reach.place))


def _problem_of_filters(filters: Iterable[Filter]) -> str:
    return next((problem for one in filters if (problem := problem_of(one))), "") or ""


def _problem_of_regions(regions: Iterable[Region]) -> str:
    for one in regions:
        cell = one.cell
        cuts = all(cut.dimension in (0, 1) and isfinite(cut.coordinate) for cut in cell.boundaries)
        if not one.owner or not _is_prefix(cell.prefix) or len(cell.prefix) != len(cell.boundaries) or not cuts:
            return f"{cell.prefix!r} of {one.owner!r} is no cell"
    return ""


def _is_prefix(prefix: str) -> bool:
    return len(prefix) <= BITS and not prefix.strip("01")


def _is_point(place: Point) -> bool:
    return len(place) == 2 and all(map(isfinite, place))


def spoken_by(sender: NodeId, to: NodeId, message: Message) -> Parcels | Ask | Taken:
    """The same, where it is what a broker beyond may say to this one: for itself only."""
    match message:
        case Parcels(origin) if origin == sender:
            return message
        case Ask(origin, _, receiver) if origin == sender and receiver == to:
            return message
        case Taken(by, _, origin) if by == sender and origin == to:
            return message
    raise RemoteError(f"{type(message).__name__} is nothing that gateways say to one another")
