"""What is published: a typed set of attributes with an identity, and perhaps a place, a time and a payload."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from godwit.errors import GodwitError

Value = int | float | str | bool

VALUE_TYPES = (int, float, str, bool)
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
NAME_MAX = 255


class EventError(GodwitError, ValueError):
    """An event that cannot be: the message names the field and what would be right."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Degrees north and east; `lon` may be given in -180..360 by a careless device and is kept as it is."""

    lat: float
    lon: float


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One publication. `(publisher, sequence)` names it for ever: a copy of it can be recognised anywhere.

    Attributes are what filters see. The fields `type`, `time` and `place` are seen as the attributes `type`, `time`,
    `lat` and `lon`, and win over attributes of those names. The payload is carried, never looked at.
    """

    publisher: str
    sequence: int
    type: str = ""
    attributes: dict[str, Value] = {}
    place: Place | None = None
    time: float | None = None
    payload: bytes = b""

    def __post_init__(self) -> None:
        if not self.publisher:
            raise EventError("event: publisher is empty; it must name who published")
        if not 0 <= self.sequence <= INT_MAX:
            raise EventError(f"event: sequence {self.sequence} is outside 0..2^63-1")
        for name, value in self.attributes.items():
            check_attribute(name, value)
        if self.place is not None:
            check_place(self.place)
        if self.time is not None and not math.isfinite(self.time):
            raise EventError(f"event: time {self.time} is not a finite number of seconds")

    @property
    def id(self) -> tuple[str, int]:
        return (self.publisher, self.sequence)

    def values(self) -> Mapping[str, Value]:
        """What a filter sees: every attribute by name, the well-known fields included."""
        if not self.type and self.place is None and self.time is None:
            return self.attributes
        seen = dict(self.attributes)
        if self.type:
            seen["type"] = self.type
        if self.time is not None:
            seen["time"] = self.time
        if self.place is not None:
            seen["lat"] = self.place.lat
            seen["lon"] = self.place.lon
        return seen


def check_attribute(name: str, value: object) -> None:
    """Raise `EventError` unless `name` and `value` can be an attribute."""
    if type(name) is not str or not 0 < len(name) <= NAME_MAX:
        raise EventError(f"event: attribute name {name!r} must be a text of 1 to {NAME_MAX} characters")
    kind = type(value)
    if kind not in VALUE_TYPES:
        raise EventError(
            f"event: attribute {name!r} is of type {kind.__name__}; only int, float, str and bool can be matched"
        )
    if kind is int and not INT_MIN <= value <= INT_MAX:  # type: ignore[operator]
        raise EventError(f"event: attribute {name!r} = {value} does not fit 64 bits")


def check_place(place: Place) -> None:
    if not -90 <= place.lat <= 90:
        raise EventError(f"event: latitude {place.lat} is outside -90..90")
    if not -180 <= place.lon <= 360:
        raise EventError(f"event: longitude {place.lon} is outside -180..360")
