"""What is answered and posted, as JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from godwit.events import Value
from godwit.protocols.broker.lasting.words import BECAUSE, CHANGE, NUMBER, OURS, VIEW
from godwit.protocols.broker.publication import Publication


class EventRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A publication, and where it is told as a change, which."""

    topic: str
    attributes: Mapping[str, Value] = {}
    """What a filter sees."""
    payload: str = ""
    """As text, or in base64 after `base64:`."""
    publisher: str = ""
    time: float = 0.0
    """Seconds since 1970."""
    change: str = ""
    number: int = 0
    view: str = ""
    because: str = ""


class Post(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One publication. Without `payload` the attributes are its content, as a JSON object."""

    topic: str
    attributes: dict[str, Value] = {}
    payload: str | None = None
    retain: bool = False
    expiry_s: float | None = None
    profile: str = ""


def change_row(publication: Publication) -> EventRow:
    told = dict(reversed(publication.properties.user))
    attributes = {name: value for name, value in publication.values().items() if name not in OURS}
    return EventRow(
        topic=publication.topic,
        attributes={} if BECAUSE in told else attributes,
        payload=readable(publication.payload),
        publisher=publication.publisher,
        time=publication.time,
        change=told.get(CHANGE, "") if VIEW in told else "",
        number=int(told.get(NUMBER, 0)) if VIEW in told else 0,
        view=told.get(VIEW, ""),
        because=told.get(BECAUSE, ""),
    )


def readable(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(payload).decode()}"
