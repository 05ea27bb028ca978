"""What is near to a thing that moves, in the text of a condition."""

from __future__ import annotations

from godwit.protocols.broker.session.near import anchors_of, anywhere, place_in, placed

TEXT = "kind = 'near(''x'', 1m)' AND (near('vans/1', 200m) OR NEAR( 'it''s' , 2km ))"


def test_texts_are_left_alone_and_things_are_named() -> None:
    assert anchors_of(TEXT) == ("vans/1", "it's")
    assert anchors_of("nearest('x', 1m) = 1 AND \"near('x', 1m)\" = 2") == ()


def test_it_is_a_condition_on_places_and_nothing_where_the_thing_is_nowhere() -> None:
    said = placed(TEXT, lambda topic: (52.0, 4.5) if topic == "vans/1" else None)
    within = "(within(lat, lon, 52.0, 4.5, 200m) AND topic <> 'vans/1')"
    assert said == f"kind = 'near(''x'', 1m)' AND ({within} OR FALSE)"
    assert "near" not in anywhere("near('a', 1m)")


def test_a_place_has_two_numbers_on_the_globe() -> None:
    assert place_in({"lat": 1, "lon": 359.5}) == (1.0, 359.5)
    assert place_in({"lat": "1", "lon": 2}) is None
    assert place_in({"lat": 91, "lon": 2}) is None
