"""`near('vans/7', 200m)`: around a thing that moves, wherever it is. Only what lasts can ask for it.

It is put into the text of a condition as `within(lat, lon, ...)` around the last place of that thing, and the thing
itself is left out. Whoever asks again when the thing has moved has a fence that roams with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from godwit.events import Value

_NEAR = re.compile(
    r"""'(?:[^']|'')*' | "[^"]*" | `[^`]*`      # texts and names stay as they are
      | \b near \s* \( \s* '(?P<topic>(?:[^']|'')*)' \s* , \s* (?P<radius>[^\s,()']+) \s* \)""",
    re.VERBOSE | re.IGNORECASE,
)

Place = tuple[float, float]


def anchors_of(condition: str) -> tuple[str, ...]:
    """The topics of the things that it asks for what is near."""
    found = (match["topic"] for match in _NEAR.finditer(condition) if match["topic"] is not None)
    return tuple(dict.fromkeys(topic.replace("''", "'") for topic in found))


def placed(condition: str, where: Callable[[str], Place | None]) -> str:
    """The same as a condition on places; near to what is nowhere there is nothing."""

    def put(match: re.Match[str]) -> str:
        if match["topic"] is None:
            return match[0]
        place = where(match["topic"].replace("''", "'"))
        if place is None:
            return "FALSE"
        return f"(within(lat, lon, {place[0]!r}, {place[1]!r}, {match['radius']}) AND topic <> '{match['topic']}')"

    return _NEAR.sub(put, condition)


def anywhere(condition: str) -> str:
    """What it asks for at most: things that are somewhere."""
    return _NEAR.sub(
        lambda match: match[0] if match["topic"] is None else "within_box(lat, lon, -90, -180, 90, 180)", condition
    )


def place_in(values: dict[str, Value]) -> Place | None:
    lat, lon = values.get("lat"), values.get("lon")
    if not isinstance(lat, int | float) or not isinstance(lon, int | float):
        return None
    good = -90 <= lat <= 90 and -180 <= lon <= 360
    return (float(lat), float(lon)) if good else None
