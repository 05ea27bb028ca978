"""Every publication has one matching broker, and every filter reaches it: an oracle asks the filters themselves."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from godwit.filters.filters import Filter, attribute
from godwit.filters.predicates import equ
from godwit.filters.text import parse
from godwit.protocols.broker.fabric.ring.targets import Targets, homes_of, of_level
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.gathering.areas import Anywhere, Keyed, Reach, Spot, Zone, meets
from godwit.protocols.gathering.space import WHOLE, Cell, cut_between

TARGETS = Targets(("cars/#",))


def filters(topics: str, condition: str = "") -> tuple[Filter, ...]:
    return wanted_filters(topics, parse(condition) if condition else None).filters


def said(topic: str, **values: object) -> Publication:
    return Publication("p", 1, topic, msgspec.json.encode(values))


def test_a_located_publication_is_matched_where_it_happened() -> None:
    assert TARGETS.of_publication(said("cars/1", lat=38.7, lon=-9.1)) == Spot((-9.1, 38.7))


@pytest.mark.parametrize("one", [said("cars/1"), said("cars/1", lat=95.0, lon=0.0), said("cars/1", lat="x", lon=0.0)])
def test_without_a_place_its_first_level_decides(one: Publication) -> None:
    assert TARGETS.of_publication(one) == TARGETS.of_publication(said("cars/2"))
    assert isinstance(TARGETS.of_publication(one), Keyed)


def test_topics_with_the_same_first_level_have_the_same_broker() -> None:
    assert TARGETS.of_publication(said("home/a")) == TARGETS.of_publication(said("home/b/c"))
    assert TARGETS.of_publication(said("home/a")) != TARGETS.of_publication(said("office/a"))


@pytest.mark.parametrize("topics", ["#", "+/x", "+/+/y"])
def test_whoever_does_not_name_a_first_level_asks_everywhere(topics: str) -> None:
    assert TARGETS.of_filters(filters(topics)) == (Anywhere(),)


def test_merged_filters_ask_for_each_level_that_they_name() -> None:
    both = (Filter((attribute("topic_1", equ("a"), equ("b")),)),)
    assert set(TARGETS.of_filters(both)) == {of_level("a"), of_level("b")}


def test_an_area_on_a_located_topic_asks_only_there() -> None:
    (zone,) = TARGETS.of_filters(filters("cars/+", "within(lat, lon, 38.7, -9.1, 500)"))
    assert isinstance(zone, Zone)


def test_a_located_topic_without_area_is_asked_for_everywhere() -> None:
    assert TARGETS.of_filters(filters("cars/#")) == (Anywhere(),)


def test_a_client_has_three_homes_that_differ() -> None:
    assert len(set(homes_of("c", 3))) == 3


CELLS = [WHOLE]
for _place in ((10.0, 50.0), (-100.0, 40.0), (20.0, -30.0), (11.0, 51.0)):
    _cut = cut_between((0.0, 0.0), _place)
    CELLS += [Cell("1", (_cut,)), Cell("0", (_cut.opposite(),))]


@pytest.mark.feature("data-gathering F6")
def test_whatever_a_filter_accepts_is_matched_where_the_filter_is_kept() -> None:
    dice = Random(1)
    wishes = [
        filters(topics, condition)
        for topics in ("#", "cars/#", "cars/+", "home/#", "+/x", "home/+/z")
        for condition in ("", "warm = TRUE", "within(lat, lon, 50, 10, 900000)", "warm = TRUE OR lat > 3")
    ]
    for _ in range(300):
        topic = dice.choice(("cars/x", "home/x", "home/y/z", "cars/1/2", "z"))
        one = said(topic, lat=dice.uniform(-80, 80), lon=dice.uniform(-180, 180), warm=dice.random() < 0.5)
        target: Reach = TARGETS.of_publication(one)
        for wish in wishes:
            if any(each.matches(one.values()) for each in wish):
                reaches = TARGETS.of_filters(wish)
                for cell in CELLS:
                    if meets(cell, target):
                        assert any(meets(cell, reach) for reach in reaches), (topic, wish)
