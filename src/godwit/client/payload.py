"""What a program publishes, as payload and user properties: checked before it leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Union

import msgspec

from godwit.client.errors import ClientError
from godwit.events import EventError, Place, Value, check_attribute, check_place
from godwit.protocols.broker.publication import ATTRIBUTES
from godwit.protocols.broker.topics import problem_of_filter, problem_of_name

Content = Union[Value, None, "Mapping[str, Content]", "Sequence[Content]"]
"""What can be published: whatever JSON can say. Filters see texts, numbers and truth values, and those of nested
objects as `outer.inner`; lists and nulls are carried and not seen."""


def encoded(
    attributes: Mapping[str, Content], payload: bytes | str | None, place: Place | None
) -> tuple[bytes, list[tuple[str, str]]]:
    """Payload and user properties; `EventError` where the attributes cannot be."""
    told = {name: _checked(name, value) for name, value in attributes.items()}
    if place is not None:
        check_place(place)
        told |= {"lat": place.lat, "lon": place.lon}
    body = msgspec.json.encode(told)
    if payload is None:
        return body, []
    return payload.encode() if isinstance(payload, str) else payload, [(ATTRIBUTES, body.decode())] if told else []


def check_topic(topic: str) -> None:
    """`ClientError` where nothing can be published there: a broker would end the connection for it."""
    _complain(problem_of_name(topic) or _unwritable(topic, "topic"))


def check_topics(topics: str) -> None:
    """`ClientError` where this is no topic filter."""
    _complain(problem_of_filter(topics) or _unwritable(topics, "topic filter"))


def since_text(since: str | datetime) -> str:
    """A time as brokers read it. One without a zone is local, as Python has it."""
    return since.astimezone(UTC).isoformat() if isinstance(since, datetime) else since


def check_qos(qos: int) -> None:
    _complain("" if qos in (0, 1, 2) else f"qos {qos!r}: right would be 0, 1 or 2")


def _complain(problem: str) -> None:
    if problem:
        raise ClientError(problem)


def _unwritable(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"{what} {text[:80]!r} cannot be written as UTF-8"
    return ""


def _checked(name: str, value: Content) -> Content:
    """The value; members of objects are named as filters name them."""
    match value:
        case Mapping():
            check_attribute(name, True)
            return {inner: _checked(f"{name}.{inner}", one) for inner, one in value.items()}
        case None | list() | tuple():
            check_attribute(name, True)
            return None if value is None else [_checked(name, one) for one in value]
        case float() if not math.isfinite(value):
            raise EventError(f"event: attribute {name!r} is {value}, which JSON cannot say")
    check_attribute(name, value)
    return value
