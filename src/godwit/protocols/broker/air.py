"""Publications as brokers without infrastructure carry them, and the protocol's options as the product uses them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from godwit.events import Event, Value
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.messages import Beacon, Data, Frame
from godwit.protocols.adhoc.options import Carry, Options
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.topics import meaning
from godwit.protocols.host import RemoteError

ALL_TOPICS = FilterSet((meaning("#"),))

EVENT_OVERHEAD_B = 2_048
"""What topic, properties and names may take beside the payload before somebody notices."""

_encode = msgspec.msgpack.Encoder().encode
_frames: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)
_publications: msgspec.msgpack.Decoder[Publication] = msgspec.msgpack.Decoder(Publication)


class Aired(Event, frozen=True, dict=True):
    """An event whose payload is a publication; its id is its passage, and filters see what the publication shows."""

    @cached_property
    def publication(self) -> Publication:
        return _publications.decode(self.payload)

    @cached_property
    def _values(self) -> Mapping[str, Value]:
        return self.publication.values()

    def values(self) -> Mapping[str, Value]:
        return self._values


def aired(publication: Publication) -> Aired:
    """It as an event that has the name of its passage."""
    assert publication.passage is not None
    return Aired(*publication.passage, payload=_encode(msgspec.structs.replace(publication, passage=None)))


def encode(frame: Beacon | Data) -> bytes:
    return _encode(frame)


def decode(data: bytes) -> Frame:
    """What came over the air; `RemoteError` says what is wrong with it."""
    try:
        frame = _frames.decode(data)
        return frame if isinstance(frame, Beacon) else _with_publication(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RemoteError(f"no frame of the air: {error}") from error


def _with_publication(data: Data) -> Data:
    event = data.event
    inside = Aired(event.publisher, event.sequence, payload=event.payload)
    if not inside.publication.topic:
        raise ValueError("a publication without topic")
    return msgspec.structs.replace(data, event=inside)


def field_options(
    *,
    period_s: float = 2.0,
    credit: int = 2,
    carry_s: float = 600.0,
    carry_events: int = 4_096,
    carry_bytes: int = 4 * 1024 * 1024,
    beacon_max_b: int = 1_200,
) -> Options:
    """Proximity-driven routing with all that matters where nodes stand still for a while, part and meet again.

    Everybody beacons, so that a node that wants nothing itself relays; hints travel as far as their age allows; what
    is carried crosses a gap as soon as it closes, through nodes that do not want it.
    """
    return Options(
        period_s=period_s,
        period_jitter=0.05,
        credits=credit,
        thrifty=True,
        delay_max_s=min(0.2, period_s / 4),
        beacon_when_empty=True,
        tell_period=True,
        prompt=True,
        mindful=True,
        in_order=True,
        hints_max=64,
        hints_relayed=True,
        hint_max_b=min(160, beacon_max_b // 4),
        summary_max_b=min(384, beacon_max_b // 3),
        beacon_max_b=beacon_max_b,
        destinations_max=24,
        seen_max=65_536,
        seen_s=1.5 * carry_s + 60.0,
        carry=Carry(
            age_max_s=carry_s, count_max=carry_events, bytes_max=carry_bytes, batch_max=64, tries=8, relay=True
        ),
    )
