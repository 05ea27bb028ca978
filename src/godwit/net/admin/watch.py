"""What clients of this broker publish, looked at while somebody watches, and only then.

It costs nothing while nobody asks: the first question begins it, and some seconds after the last it ends. Of more than
`PER_SECOND` publications in a second the rest are counted and not looked at, and everything that is kept is bounded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.net.admin.rows import AttributeRow, Attributes, EventRow, Thing, Things
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Publication, is_topic_attribute

WATCH_S = 20.0
PER_SECOND = 2_000
THINGS_MAX = 20_000
LASTS_MAX = 2_000
RECENT_MAX = 500
NAMES_MAX = 300
VALUES_MAX = 40
"""Different values of one attribute that are told apart."""
TOPICS_MAX = 8
TEXT_MAX = 200
ATTRIBUTES_MAX = 64
"""Of one publication."""

LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "lng", "longitude")
NAMES = ("id", "name", "vehicle", "device")
"""How a publication says what it is about; else it is about its publisher and topic."""


class Seen:
    """What was seen of one attribute."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.low: float | None = None
        self.high: float | None = None
        self.values: Counter[str] = Counter()
        self.topics: dict[str, None] = {}

    def add(self, value: Value, topic: str) -> None:
        kind = "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        self.kinds[kind] += 1
        if kind == "number":
            number = float(value)
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)
        text = str(value).lower() if kind == "boolean" else str(value)[:TEXT_MAX]
        if text in self.values or len(self.values) < VALUES_MAX:
            self.values[text] += 1
        if len(self.topics) < TOPICS_MAX:
            self.topics[topic] = None


class Watch:
    """Ask it something, and it looks for a while. `later(seconds, call)` is the loop's."""

    def __init__(self, broker: Broker, now: Callable[[], float], later: Callable[[float, Callable[[], None]], Any]):
        self._broker = broker
        self._now = now
        """Of a clock that only goes on."""
        self._later = later
        self._until = 0.0
        self._on = False
        self._before: Callable[[Publication], None] | None = None
        self._second, self._left = -1, 0
        self._clear()

    def _clear(self) -> None:
        self.seen = self.skipped = self.serial = 0
        self.since = self._broker.clock()
        self._things: dict[str, tuple[int, Thing]] = {}
        self._attributes: dict[str, Seen] = {}
        self._lasts: dict[str, EventRow] = {}
        self._recent: deque[EventRow] = deque(maxlen=RECENT_MAX)

    @property
    def on(self) -> bool:
        return self._on

    def look(self, seconds: float = WATCH_S) -> None:
        """From now on for so long."""
        self._until = max(self._until, self._now() + seconds)
        if not self._on:
            self._on = True
            self._clear()
            self._before = self._broker.on_published
            self._broker.on_published = self._take
            self._later(seconds, self._review)

    def _review(self) -> None:
        left_s = self._until - self._now()
        if self._on and left_s > 0:
            self._later(left_s, self._review)
        else:
            self.stop()

    def stop(self) -> None:
        if self._on:
            self._on = False
            self._broker.on_published = self._before
            self._before = None

    def _take(self, publication: Publication) -> None:
        if self._before is not None:
            self._before(publication)
        second = int(self._now())
        if second != self._second:
            self._second, self._left = second, PER_SECOND
        if not self._left:
            self.skipped += 1
            return
        self._left -= 1
        self.seen += 1
        row = event_row(publication)
        self._recent.append(row)
        for name, value in row.values.items():
            if not is_topic_attribute(name):
                seen = self._attributes.get(name)
                if seen is None and len(self._attributes) < NAMES_MAX:
                    seen = self._attributes[name] = Seen()
                if seen is not None:
                    seen.add(value, publication.topic[:TEXT_MAX])
        about = name_of(row)
        _renew(self._lasts, about, row, LASTS_MAX)
        place = place_in(row.values)
        if place is not None:
            self.serial += 1
            thing = Thing(about, *place, row.time, row.topic, row.publisher)
            _renew(self._things, about, (self.serial, thing), THINGS_MAX)

    def things(self, since: int) -> Things:
        self.look()
        # The newest stand last, so that what is old need not be looked at.
        changed: list[Thing] = []
        for serial, thing in reversed(self._things.values()):
            if serial <= since <= self.serial:
                break
            changed.append(thing)
        return Things(serial=self.serial, total=len(self._things), skipped=self.skipped, things=changed)

    def attributes(self) -> Attributes:
        self.look()
        rows = [
            AttributeRow(
                name=name,
                kinds=dict(seen.kinds),
                low=seen.low,
                high=seen.high,
                common=seen.values.most_common(10),
                topics=list(seen.topics),
            )
            for name, seen in sorted(self._attributes.items())
        ]
        return Attributes(seen=self.seen, skipped=self.skipped, since=self.since, attributes=rows)

    def lasts(self, wanted: FilterSet | None, most: int) -> list[EventRow]:
        """The last of each thing that was seen, the newest first."""
        self.look()
        return _matching(reversed(self._lasts.values()), wanted, most)

    def recent(self, wanted: FilterSet | None, most: int) -> list[EventRow]:
        """The last publications, the newest first."""
        self.look()
        return _matching(reversed(self._recent), wanted, most)

    def found(self, event: str) -> EventRow | None:
        return next((one for one in reversed(self._recent) if one.event == event), None)


def _renew(kept: dict[str, Any], key: str, value: object, most: int) -> None:
    """As the newest; the oldest goes where there are too many."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


def _matching(rows: Iterable[EventRow], wanted: FilterSet | None, most: int) -> list[EventRow]:
    found: list[EventRow] = []
    for row in rows:
        if wanted is None or wanted.matches(row.values):
            found.append(row)
            if len(found) == most:
                break
    return found


def event_row(publication: Publication, retained: bool = False) -> EventRow:
    """As filters see it, and not too much of it."""
    values: dict[str, Value] = {}
    for name, value in publication.values().items():
        if len(values) == ATTRIBUTES_MAX:
            break
        values[name[:TEXT_MAX]] = value[:TEXT_MAX] if isinstance(value, str) else value
    if not any(not is_topic_attribute(name) for name in values) and publication.payload:
        values["payload"] = publication.payload[:TEXT_MAX].decode("utf-8", "replace")
    return EventRow(
        event=named(publication.id),
        time=publication.time,
        topic=publication.topic,
        publisher=publication.publisher,
        retained=retained,
        values=values,
    )


def named(event: tuple[str, int]) -> str:
    return f"{event[0]}:{event[1]}"


def name_of(row: EventRow) -> str:
    for name in NAMES:
        value = row.values.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return f"{row.publisher} {row.topic}"


def place_in(values: Mapping[str, Any]) -> tuple[float, float] | None:
    """Latitude and longitude, where they can be some."""
    lat = next((values[name] for name in LATITUDES if name in values), None)
    lon = next((values[name] for name in LONGITUDES if name in values), None)
    for one in (lat, lon):
        if not isinstance(one, int | float) or isinstance(one, bool):
            return None
    assert lat is not None
    assert lon is not None
    return (float(lat), float(lon)) if -90 <= lat <= 90 and -180 <= lon <= 180 else None
