"""What the people of the demo's city subscribe to: a few filters in text, each with constants of everybody's own.

A text is parsed once. What differs from person to person is put into the parsed filter, clause by clause, so that a
hundred thousand subscriptions take a second and are the same as if each had been written and parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from godwit.commands.city import world
from godwit.commands.city.world import DISTRICTS
from godwit.events import Value
from godwit.filters.areas import Box, Circle, distance_m
from godwit.filters.clauses import AttributeFilter, Clause
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import AnyPredicate, Within, contains, equ, gr, gre, lte, rng
from godwit.filters.text import parse

PLACE = "lat,lon"

Own = dict[str, Clause]
"""One person's clauses by attribute; they take the place of those in the text."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A filter as text, how many of a thousand people have one like it, their own constants, and what they hear."""

    text: str
    per_mille: int
    own: Callable[[np.random.Generator, int], Iterator[Own]]
    news: str


def wishes(random: np.random.Generator, people: int) -> Iterator[tuple[Wish, FilterSet]]:
    """So many subscriptions, the kinds mixed as they stand in `WISHES`."""
    counts = np.floor(np.array([wish.per_mille for wish in WISHES]) * people / 1000).astype(int)
    counts[0] += people - counts.sum()
    for wish, count in zip(WISHES, counts, strict=True):
        written = parse(wish.text)
        for own in wish.own(random, count):
            yield wish, with_clauses(written, own)


def with_clauses(filters: FilterSet, own: Own) -> FilterSet:
    """The same filters with other clauses on some attributes; they must be canonical and of the same kinds."""
    return FilterSet(tuple(Filter(tuple(_with_clause(one, own) for one in alternative)) for alternative in filters))


def _with_clause(attribute: AttributeFilter, own: Own) -> AttributeFilter:
    clause = own.get(attribute.name)
    return attribute if clause is None else AttributeFilter(attribute.name, attribute.kind, clause)


def _own(**clauses: AnyPredicate | Clause) -> Own:
    named = {PLACE if name == "place" else name: clause for name, clause in clauses.items()}
    return {name: clause if isinstance(clause, tuple) else (clause,) for name, clause in named.items()}


def _homes(random: np.random.Generator, count: int) -> Iterator[tuple[float, float]]:
    lat, lon = world.degrees_at(*world.places(random, count, 1300.0))
    yield from zip(lat.tolist(), lon.tolist(), strict=True)


def _taxi_here(random: np.random.Generator, count: int) -> Iterator[Own]:
    radii = random.integers(10, 40, count) * 10
    for (lat, lon), radius_m in zip(_homes(random, count), radii.tolist(), strict=True):
        yield _own(place=Within(Circle(lat, lon, radius_m)))


def _large_taxi(random: np.random.Generator, count: int) -> Iterator[Own]:
    companies = random.integers(len(world.COMPANIES), size=count)
    for (lat, lon), company in zip(_homes(random, count), companies.tolist(), strict=True):
        yield _own(company=equ(world.COMPANIES[company]), place=Within(Circle(lat, lon, 800)))


def _one_taxi(random: np.random.Generator, count: int) -> Iterator[Own]:
    plates = world.plates()
    for taxi in random.integers(len(plates), size=count).tolist():
        yield _own(plate=equ(plates[taxi]))


def _bad_air_here(random: np.random.Generator, count: int) -> Iterator[Own]:
    limits = random.integers(12, 32, count) * 5
    for (lat, lon), limit in zip(_homes(random, count), limits.tolist(), strict=True):
        yield _own(pm25=gr(limit), place=Within(Circle(lat, lon, 1500)))


def _some_stations(random: np.random.Generator, count: int) -> Iterator[Own]:
    names = world.stations()
    for low, *chosen in random.integers(world.SENSORS, size=(count, 4)).tolist():
        stations = sorted({names[at] for at in chosen})
        yield _own(no2=rng(60 + low // 10, 400), station=tuple(equ(name) for name in stations))


def _heat(random: np.random.Generator, count: int) -> Iterator[Own]:
    for limit, district in zip(random.uniform(23, 27, count), random.integers(len(DISTRICTS), size=count), strict=True):
        yield _own(temp_c=gre(round(float(limit), 1)), district=equ(DISTRICTS[district]))


def _bargain(random: np.random.Generator, count: int) -> Iterator[Own]:
    for price, district in random.integers((5, 0), (60, len(DISTRICTS)), (count, 2)).tolist():
        yield _own(price_eur=lte(price), district=equ(DISTRICTS[district]))


def _word(random: np.random.Generator, count: int) -> Iterator[Own]:
    words = sorted({thing.split()[-1] for things, _ in world.MESSAGES.values() for thing in things})
    for word, district in random.integers((0, 0), (len(words), len(DISTRICTS)), (count, 2)).tolist():
        yield _own(text=contains(words[word]), district=equ(DISTRICTS[district]))


def _danger(random: np.random.Generator, count: int) -> Iterator[Own]:
    sizes = random.uniform(0.004, 0.012, count)
    for (lat, lon), half in zip(_homes(random, count), sizes.tolist(), strict=True):
        box = Box(round(lat - half, 4), round(lon - 2 * half, 4), round(lat + half, 4), round(lon + 2 * half, 4))
        yield _own(place=Within(box))


def heard(wish: Wish, filters: FilterSet, event: Mapping[str, Value]) -> str:
    """What this person is told by an event that matched."""
    return wish.news.format(**event, away=_away(filters, event))


def _away(filters: FilterSet, event: Mapping[str, Value]) -> str:
    for alternative in filters:
        for attribute in alternative:
            match attribute.clause:
                case (Within(Circle(lat, lon)),):
                    return f"{distance_m(lat, lon, float(event['lat']), float(event['lon'])):.0f} m away"
    return ""


WISHES = (
    Wish(
        "kind = 'taxi' AND free = TRUE AND within(lat, lon, 53.0896, 5.3861, 250m)",
        330,
        _taxi_here,
        "a free taxi of {company}, {away}",
    ),
    Wish(
        "kind = 'taxi' AND company = 'Dunlin' AND seats >= 6 AND within(lat, lon, 53.0821, 5.4137, 800m)",
        70,
        _large_taxi,
        "a {company} taxi with {seats} seats, {away}",
    ),
    Wish("kind = 'taxi' AND plate = 'L-0421'", 80, _one_taxi, "taxi {plate} is in {district} at {speed_kmh} km/h"),
    Wish(
        "kind = 'air' AND pm25 > 75 AND within(lat, lon, 53.0966, 5.4428, 1500m)",
        180,
        _bad_air_here,
        "pm25 is {pm25} at {station}, {away}",
    ),
    Wish(
        "kind = 'air' AND no2 BETWEEN 80 AND 400 AND station IN ('roof-110', 'street-007', 'street-211')",
        60,
        _some_stations,
        "no2 is {no2} at {station}",
    ),
    Wish(
        "kind = 'air' AND temp_c >= 24.5 AND district = 'Heath' AND station NOT LIKE 'roof-%'",
        60,
        _heat,
        "{temp_c} degrees in {district}",
    ),
    Wish(
        "kind = 'message' AND topic LIKE 'sale/%' AND price_eur <= 25 AND district = 'Harbour'",
        90,
        _bargain,
        "for sale in {district}: {text}, {price_eur} EUR",
    ),
    Wish(
        "kind = 'message' AND text LIKE '%violin%' AND district = 'Old Town'",
        80,
        _word,
        "{topic} in {district}: {text}",
    ),
    Wish(
        "kind = 'alert' AND severity >= 3 AND within_box(lat, lon, 53.07, 5.4, 53.09, 5.44)",
        50,
        _danger,
        "{what} in {district}, severity {severity}",
    ),
)
