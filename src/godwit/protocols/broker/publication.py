"""What a client publishes, as brokers carry and keep it, and what of it a filter can see.

A filter sees, later ones winning over earlier ones of the same name:

    user properties                     as text
    a JSON object in the payload        its members that are text, numbers or booleans; those of objects in it as a.b
    a SenML pack in the payload         each record by its name (RFC 8428, in JSON or CBOR): `senml.seen`
    the property `attributes`           a JSON object: typed attributes beside a payload of another kind
    topic, topic_levels, topic_1 ...    the whole topic, how many levels it has, and each of them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any
from zlib import crc32

import msgspec

from godwit.events import INT_MAX, INT_MIN, NAME_MAX, Value
from godwit.filters.filters import Filter
from godwit.protocols.broker import senml

ATTRIBUTES = "attributes"
"""The user property that carries typed attributes."""

DEPTH_MAX = 8
"""How deep objects in a payload are looked into."""

REMEMBERED_MAX = 256
"""Characters of a topic of which is remembered what a filter sees: nobody may fill the memory with long ones."""


# What is decoded is checked: whoever says something else between brokers is refused, and nothing of it is kept.

NUMBER_MAX = 2**62
Count = Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX)]
Qos = Annotated[int, msgspec.Meta(ge=0, le=2)]
PacketId = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Digest = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Identifier = Annotated[int, msgspec.Meta(ge=1, le=268_435_455)]
"""Of a subscription, as MQTT bounds it."""
TIME_MAX = 1e12
Time = Annotated[float, msgspec.Meta(ge=-TIME_MAX, le=TIME_MAX)]
"""Seconds since 1970; NaN is none."""
Span = Annotated[float, msgspec.Meta(ge=0)]
"""Seconds, perhaps for ever."""


class Properties(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a publisher says beside topic and payload; passed on as it is."""

    user: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    payload_is_text: bool | None = None
    """The payload format indicator, None where there is none."""


PLAIN = Properties()


class Publication(msgspec.Struct, frozen=True, tag="publication", array_like=True, omit_defaults=True):
    """One published message. `(publisher, sequence)` names it for people, archives and audits.

    Between brokers it is told apart by the stream that carries it, so that nothing depends on publishers' names being
    unique or on their clocks.
    """

    publisher: str
    sequence: Count
    topic: str
    payload: bytes = b""
    qos: Qos = 0
    retain: bool = False
    time: Time = 0.0
    """Seconds since 1970, by the calendar of the broker that took it."""
    expires: Time | None = None
    """By the steady clock of the broker that has it."""
    properties: Properties = PLAIN
    passage: tuple[str, Count] | None = None
    """Its name in the air, where it has been there or will be: copies of one name are one, whichever way they came."""
    was_retained: bool = False
    """It comes because somebody has begun to want it, and is no news: whoever gets it is told that it was retained."""
    said_under: tuple[Count, bool] | None = None
    """In a ring, of what is to be retained: the epoch of its publisher's place, and whether what that said at earlier
    places may come later. None where the publisher has not shown that it was at no later place."""

    def is_shown_retained(self, as_published: bool) -> bool:
        """Whether a subscriber gets it marked as retained; `as_published` where it wants the publisher's own mark."""
        return self.retain and (as_published or self.was_retained)

    @property
    def id(self) -> tuple[str, int]:
        return (self.publisher, self.sequence)

    @property
    def digest(self) -> Digest:
        """Of all that a client says again as it was when it repeats a publication; of another it is another one."""
        said = crc32(self.payload, crc32(self.topic.encode()))
        return said if self.properties == PLAIN else crc32(msgspec.msgpack.encode(self.properties), said)

    def values(self) -> dict[str, Value]:
        """What a filter sees. It takes a while: ask only where some subscriber of the topic has a condition."""
        found: dict[str, Value] = dict(self.properties.user)
        _add_content(found, self.payload, self.properties.content_type, self.time)
        typed = found.pop(ATTRIBUTES, None)
        if isinstance(typed, str):
            _add_object(found, typed.encode())
        return _with_topic(found, self.topic)


def plain_values(topic: str, payload: bytes, time_s: float) -> dict[str, Value]:
    """What a filter sees of a publication without properties, taken at that time."""
    found: dict[str, Value] = {}
    _add_content(found, payload, None, time_s)
    typed = found.pop(ATTRIBUTES, None)
    if isinstance(typed, str):
        _add_object(found, typed.encode())
    return _with_topic(found, topic)


def _with_topic(found: dict[str, Value], topic: str) -> dict[str, Value]:
    """With what the topic says. A level that it does not have cannot be made up by the content."""
    for name in [name for name in found if name[:5] == "topic" and is_topic_attribute(name)]:
        del found[name]
    found.update(topic_values(topic))
    return found


def topic_values(topic: str) -> Mapping[str, Value]:
    """What a filter sees of a topic; not to be changed."""
    return _remembered(topic) if len(topic) <= REMEMBERED_MAX else _of_topic(topic)


def _of_topic(topic: str) -> Mapping[str, Value]:
    levels = topic.split("/")
    found: dict[str, Value] = {"topic": topic, "topic_levels": len(levels)}
    for number, level in enumerate(levels, 1):
        found[f"topic_{number}"] = level
    return found


_remembered = lru_cache(maxsize=16_384)(_of_topic)


def is_topic_attribute(name: str) -> bool:
    """Whether the topic alone decides the attribute."""
    if not name.startswith("topic"):
        return False
    rest = name[5:]
    return rest in ("", "_levels") or (rest[0] == "_" and rest[1:].isascii() and rest[1:].isdecimal())


_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_MAX)]
_Integer = Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)]
_decode_flat = msgspec.json.Decoder(dict[_Name, str | bool | float | _Integer]).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def _add_object(found: dict[str, Value], text: bytes) -> None:
    """Add the attributes of a JSON object; whatever is none has none."""
    if text[:1] not in (b"{", b" ", b"\t", b"\r", b"\n"):
        return
    try:
        # Most objects are flat, and all of them is seen: then the decoder has looked at each name and value already.
        found.update(_decode_flat(text))
    except msgspec.ValidationError:
        _add_nested(found, text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return


def _add_nested(found: dict[str, Value], text: bytes) -> None:
    try:
        members = _decode_object(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    _add_members(found, members, "", 0)


def _add_content(found: dict[str, Value], payload: bytes, content_type: str | None, time_s: float) -> None:
    """Add the attributes of a JSON object or of a SenML pack; whatever is neither has none."""
    _add_object(found, payload)
    if senml.looks_like(payload, content_type):
        try:
            records = senml.decoded(payload, time_s, content_type)
        except senml.SenmlError:
            return
        found.update(senml.seen(records))


def _add_members(found: dict[str, Value], members: Mapping[str, Any], prefix: str, depth: int) -> None:
    room = NAME_MAX - len(prefix)
    for key, value in members.items():
        if len(key) > room:
            continue  # before the name is built: keys may be as long as the payload, and nest
        kind = type(value)
        if kind is str or kind is float or kind is bool or (kind is int and INT_MIN <= value <= INT_MAX):
            if prefix or key:
                found[prefix + key] = value
        elif kind is dict and depth < DEPTH_MAX:
            _add_members(found, value, f"{prefix}{key}.", depth + 1)


def wants_topic(filters: Iterable[Filter], topic: str) -> bool:
    """Whether some of them want the topic, for whichever content."""
    values = topic_values(topic)
    return any(all(own.matches(values) for own in one if is_topic_attribute(own.name)) for one in filters)
