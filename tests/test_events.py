"""Events: identity, what may be in them, what filters see of them, and the wire."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.events import INT_MAX, INT_MIN, NAME_MAX, Event, EventError, Place, Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import attribute as on
from godwit.filters.filters import filter_of
from godwit.filters.predicates import EXISTS, Kind, equ, gr, neq, rng

pytestmark = pytest.mark.feature("content-routing F1")


def through_json(event: Event) -> Event:
    return msgspec.json.decode(msgspec.json.encode(event), type=Event)


def through_msgpack(event: Event) -> Event:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=Event)


Wire = Callable[[Event], Event]
both_wires = pytest.mark.parametrize("sent", [through_json, through_msgpack])

names = st.text(min_size=1, max_size=NAME_MAX).filter(lambda name: name.isprintable())
finite = st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Value] = st.one_of(
    st.integers(INT_MIN, INT_MAX), finite, st.booleans(), st.text(st.characters(exclude_categories=["Cs"]))
)
events = st.builds(
    Event,
    publisher=names,
    sequence=st.integers(0, INT_MAX),
    type=st.just("") | names,
    attributes=st.dictionaries(names, values, max_size=4),
    place=st.none() | st.builds(Place, st.floats(-90, 90), st.floats(-180, 360)),
    time=st.none() | finite,
    payload=st.binary(max_size=20),
)


def test_an_event_is_named_by_its_publisher_and_sequence_and_by_nothing_else() -> None:
    first = Event("bus 7", 1, attributes={"speed": 40})
    copy = Event("bus 7", 1, attributes={"speed": 40}, payload=b"again")
    assert first.id == copy.id == ("bus 7", 1)
    assert Event("bus 7", 2).id != first.id
    assert Event("bus 8", 1).id != first.id


@both_wires
@given(events)
def test_an_event_comes_back_from_the_wire_as_it_was(sent: Wire, event: Event) -> None:
    back = sent(event)
    assert back == event
    assert {name: type(value) for name, value in back.attributes.items()} == {
        name: type(value) for name, value in event.attributes.items()
    }


@both_wires
@pytest.mark.parametrize("value", [INT_MIN, INT_MAX, 2**53 + 1, -(2**53) - 1, 1, 1.0, True, "1", 2.0**63, 0.1])
def test_numbers_keep_every_bit_and_types_stay_what_they_are(sent: Wire, value: Value) -> None:
    back = sent(Event("p", 0, attributes={"v": value})).attributes["v"]
    assert (type(back), back) == (type(value), value)


def test_nan_and_infinity_travel_in_msgpack() -> None:
    back = through_msgpack(Event("p", 0, attributes={"nan": math.nan, "high": math.inf, "low": -math.inf})).attributes
    assert math.isnan(float(back["nan"]))
    assert (back["high"], back["low"]) == (math.inf, -math.inf)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"publisher": ""}, "publisher is empty"),
        ({"sequence": -1}, "sequence -1 is outside"),
        ({"sequence": 2**63}, "outside 0..2^63-1"),
        ({"attributes": {"": 1}}, "attribute name '' must be a text of 1 to 255"),
        ({"attributes": {"n" * 256: 1}}, "must be a text of 1 to 255"),
        ({"attributes": {7: 1}}, "attribute name 7"),
        ({"attributes": {"v": 2**63}}, "'v' = 9223372036854775808 does not fit 64 bits"),
        ({"attributes": {"v": INT_MIN - 1}}, "does not fit 64 bits"),
        ({"attributes": {"v": None}}, "'v' is of type NoneType; only int, float, str and bool"),
        ({"attributes": {"v": [1]}}, "of type list"),
        ({"attributes": {"v": b"1"}}, "of type bytes"),
        ({"attributes": {"v": np.float64(1.5)}}, "of type float64"),
        ({"attributes": {"v": np.int64(1)}}, "of type int64"),
        ({"attributes": {"v": Colour.RED}}, "of type Colour"),
        ({"place": Place(90.1, 0)}, "latitude 90.1 is outside -90..90"),
        ({"place": Place(math.nan, 0)}, "latitude nan"),
        ({"place": Place(0, 361)}, "longitude 361 is outside -180..360"),
        ({"time": math.inf}, "time inf is not a finite number of seconds"),
        ({"time": math.nan}, "time nan"),
    ],
)
def test_an_event_that_cannot_be_is_refused_with_the_field_and_the_reason(
    fields: dict[str, object], complaint: str
) -> None:
    with pytest.raises(EventError) as refused:
        Event(**({"publisher": "p", "sequence": 0} | fields))  # type: ignore[arg-type]
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    "sent",
    [
        b'{"publisher": "p"}',
        b'{"publisher": "p", "sequence": "1"}',
        b'{"publisher": "p", "sequence": 1, "attributes": {"v": null}}',
        b'{"publisher": "p", "sequence": 1, "attributes": {"v": 9223372036854775808}}',
        b'{"publisher": "", "sequence": 1}',
        b'{"publisher": "p", "sequence": 1, "place": [91, 0]}',
    ],
)
def test_what_arrives_is_validated_by_being_decoded(sent: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(sent, type=Event)


def test_type_time_and_place_are_seen_as_attributes_and_win_over_them() -> None:
    forged: dict[str, Value] = {"pm25": 12, "type": "forged", "time": "never", "lat": "x"}
    event = Event("p", 0, "reading", forged, place=Place(39.9, 116.4), time=5.0)
    assert event.values() == {"type": "reading", "pm25": 12, "time": 5.0, "lat": 39.9, "lon": 116.4}
    assert event.attributes["type"] == "forged"


def test_fields_that_are_not_given_are_not_seen() -> None:
    assert Event("p", 0, attributes={"a": 1}).values() == {"a": 1}
    assert Event("p", 0).values() == {}
    assert Event("p", 0, "alarm").values() == {"type": "alarm"}
    assert Event("p", 0, time=0.0).values() == {"time": 0.0}


def test_filters_see_type_and_time() -> None:
    wanted = filter_of(on("type", equ("reading")), on("time", rng(0, 10)))
    assert wanted.matches(Event("p", 0, "reading", time=10.0).values())
    assert not wanted.matches(Event("p", 0, "reading", time=10.5).values())
    assert not wanted.matches(Event("p", 0, "reading").values())


@pytest.mark.parametrize(
    "wanted",
    [
        on("v", EXISTS),
        on("v", EXISTS, kind=Kind.NUMBER),
        on("v", neq(3)),
        on("v", gr(-math.inf)),
        on("v", equ("nan")),
    ],
)
def test_nan_matches_nothing(wanted: AttributeFilter) -> None:
    assert not filter_of(wanted).matches(Event("p", 0, attributes={"v": math.nan}).values())
