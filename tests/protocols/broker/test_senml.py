"""SenML by the examples of RFC 8428, and packs in a publication as filters see them."""

from __future__ import annotations

import json
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.text import parse
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.senml import SenmlError, decoded, resolved

NOW_S = 1.7e9
DEVICE = "urn:dev:ow:10e2073a01080063"

CURRENTS = """[
  {"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},
  {"n":"current","t":-5,"v":1.2}, {"n":"current","t":-4,"v":1.3}, {"n":"current","t":-3,"v":1.4},
  {"n":"current","t":-2,"v":1.5}, {"n":"current","t":-1,"v":1.6}, {"n":"current","v":1.7}]"""
"""Section 5.1.2."""

CURRENTS_CBOR = bytes.fromhex(
    "87a721781b75726e3a6465763a6f773a3130653230373361303130383030363a22fb41d303a15b001062236141200500"
    "67766f6c7461676501615602fb405e066666666666a3006763757272656e74062402fb3ff3333333333333a3006763757272656e74"
    "062302fb3ff4cccccccccccda3006763757272656e74062202fb3ff6666666666666a3006763757272656e74062102f93e00"
    "a3006763757272656e74062002fb3ff999999999999aa3006763757272656e74060002fb3ffb333333333333"
)
"""Section 6: the same in CBOR."""

WALK = f"""[
  {{"bn":"{DEVICE}","bt":1.320067464e+09,"bu":"%RH","v":20}},
  {{"u":"lon","v":24.30621}}, {{"u":"lat","v":60.07965}}, {{"t":60,"v":20.3}},
  {{"u":"lon","t":60,"v":24.30622}}, {{"u":"lat","t":60,"v":60.07965}}, {{"t":120,"v":20.7}},
  {{"u":"lon","t":120,"v":24.30623}}, {{"u":"lat","t":120,"v":60.07966}}, {{"u":"%EL","t":150,"v":98}},
  {{"t":180,"v":21.2}}, {{"u":"lon","t":180,"v":24.30628}}, {{"u":"lat","t":180,"v":60.07967}}]"""
"""Section 5.1.3, and resolved in 5.1.4."""

WALK_RESOLVED = [
    *(("%RH", 1320067464.0, 20), ("lon", 1320067464.0, 24.30621), ("lat", 1320067464.0, 60.07965)),
    *(("%RH", 1320067524.0, 20.3), ("lon", 1320067524.0, 24.30622), ("lat", 1320067524.0, 60.07965)),
    *(("%RH", 1320067584.0, 20.7), ("lon", 1320067584.0, 24.30623), ("lat", 1320067584.0, 60.07966)),
    ("%EL", 1320067614.0, 98),
    *(("%RH", 1320067644.0, 21.2), ("lon", 1320067644.0, 24.30628), ("lat", 1320067644.0, 60.07967)),
]

KINDS = f"""[
  {{"bn":"{DEVICE}:","n":"temp","u":"Cel","v":23.1}}, {{"n":"label","vs":"Machine Room"}},
  {{"n":"open","vb":false}}, {{"n":"nfv-reader","vd":"aGkgCg"}}]"""
"""Section 5.1.5."""

COLLECTION = """[
  {"bn":"2001:db8::2/","bt":1.320078429e+09,"n":"temperature","u":"Cel","v":25.2}, {"n":"humidity","u":"%RH","v":30},
  {"bn":"2001:db8::1/","n":"temperature","u":"Cel","v":12.3}, {"n":"humidity","u":"%RH","v":67}]"""
"""Section 5.1.6."""


def test_a_reading_without_a_time_was_made_now() -> None:
    (record,) = decoded(f'[{{"n":"{DEVICE}","u":"Cel","v":23.1}}]'.encode(), NOW_S)
    assert (record.name, record.unit, record.value, record.time_s) == (DEVICE, "Cel", 23.1, NOW_S)


@pytest.mark.parametrize("payload", [CURRENTS.encode(), CURRENTS_CBOR], ids=["json", "cbor"])
def test_base_values_hold_to_the_end_of_the_pack_in_both_formats(payload: bytes) -> None:
    records = decoded(payload, NOW_S)
    currents = [(round(r.time_s - 1276020076.001, 6), r.unit, r.value) for r in records if r.name.endswith("current")]
    assert currents == [(-5, "A", 1.2), (-4, "A", 1.3), (-3, "A", 1.4), (-2, "A", 1.5), (-1, "A", 1.6), (0, "A", 1.7)]
    assert [r.unit for r in records if r.name == "urn:dev:ow:10e2073a0108006:voltage"] == ["V"]


def test_the_long_example_resolves_as_the_rfc_prints_it() -> None:
    assert [(r.unit, r.time_s, r.value) for r in decoded(WALK.encode(), NOW_S)] == WALK_RESOLVED


def test_every_type_of_value_is_read() -> None:
    assert [r.value for r in decoded(KINDS.encode(), NOW_S)] == [23.1, "Machine Room", False, b"hi \n"]


def test_a_later_base_name_takes_the_place_of_the_first_and_the_base_time_stays() -> None:
    records = decoded(COLLECTION.encode(), NOW_S)
    assert [r.name for r in records][-1] == "2001:db8::1/humidity"
    assert {r.time_s for r in records} == {1.320078429e9}


def test_base_value_and_base_sum_are_added() -> None:
    first, second = resolved([{"bn": "meter", "bv": 100, "bs": 7, "v": 1}, {"s": 2}], NOW_S)
    assert (first.value, first.sum) == (101, 7)
    assert (second.value, second.sum) == (100, 9)


def test_decimal_fractions_of_cbor_are_numbers() -> None:
    (record,) = decoded(bytes.fromhex("81a200617402c48221196ab3"), NOW_S)
    assert record.value == 273.15


@pytest.mark.parametrize(
    ("pack", "told"),
    [
        ([], "one record or more"),
        ({"n": "a", "v": 1}, "one record or more"),
        ([{"v": 1}], "record 1: name ''"),
        ([{"n": "-a", "v": 1}], "after a letter or digit"),
        ([{"n": "a", "v": 1}, {"n": "a b", "v": 1}], "record 2: name 'a b'"),
        ([{"n": "a", "v": 1, "vs": "x"}], "one value is allowed"),
        ([{"n": "a"}], "neither a value"),
        ([{"n": "a", "v": "1"}], "'v' is '1'; it must be a finite number"),
        ([{"n": "a", "v": True}], "must be a finite number"),
        ([{"n": "a", "v": 1, "heed_": 1}], "'heed_' must be understood"),
        ([{"n": "a", "v": 1, "bver": 11}], "the newest known is 10"),
        ([{"n": "a", "vd": "*"}], "URL-safe base64"),
    ],
)
def test_what_the_rfc_forbids_is_refused_by_the_record(pack: object, told: str) -> None:
    with pytest.raises(SenmlError, match=told):
        resolved(pack, NOW_S)


numbers = st.floats(-1e6, 1e6)
names = st.text("abc:./_-9", min_size=1, max_size=5).map(lambda name: "x" + name)
values = st.one_of(
    numbers.map(lambda v: {"v": v}), st.text().map(lambda v: {"vs": v}), st.booleans().map(lambda v: {"vb": v})
)
records = st.builds(
    lambda own, value, name: own | value | {"n": name},
    st.fixed_dictionaries({}, optional={"bn": names, "bt": numbers, "bu": st.text(), "bv": numbers, "t": numbers}),
    values,
    names,
)
LABELS = {"bn": -2, "bt": -3, "bu": -4, "bv": -5, "n": 0, "v": 2, "vs": 3, "vb": 4, "t": 6}


@given(st.lists(records, min_size=1, max_size=30))
def test_json_and_cbor_of_one_pack_mean_the_same(pack: list[dict[str, Any]]) -> None:
    binary = cbor2.dumps([{LABELS[label]: value for label, value in record.items()} for record in pack])
    assert decoded(binary, NOW_S, "application/senml+cbor") == decoded(
        json.dumps(pack).encode(), NOW_S, "application/senml+json"
    )


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x81\xa1", b"\x9f\xbf", b"[{", b"\x82\xa2\x00\x61x\x02"]))
def test_no_payload_of_whatever_bytes_breaks_a_broker(rest: bytes, beginning: bytes) -> None:
    assert Publication("p", 1, "t", beginning + rest, time=NOW_S).values()["topic"] == "t"


def is_wanted(payload: bytes, condition: str, content_type: str | None = None) -> bool:
    made = Publication("p", 1, "plant/7", payload, time=NOW_S, properties=Properties(content_type=content_type))
    seen = made.values()
    return any(one.matches(seen) for one in parse(condition))


@pytest.mark.parametrize("payload", [CURRENTS.encode(), CURRENTS_CBOR], ids=["json", "cbor"])
@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("voltage > 120", True),
        ("voltage > 121", False),
        ("current = 1.7 AND current.u = 'A'", True),
        ("current = 1.2", False),
        ("\"urn:dev:ow:10e2073a0108006:voltage\" BETWEEN 120 AND 121 AND topic = 'plant/7'", True),
        ("bn = 'urn:dev:ow:10e2073a0108006:' AND voltage IS NOT NULL", True),
    ],
)
def test_a_pack_can_be_filtered_by_name_and_newest_value(payload: bytes, condition: str, wanted: bool) -> None:
    assert is_wanted(payload, condition) is wanted


def test_a_pack_with_a_place_can_be_filtered_by_area() -> None:
    assert is_wanted(WALK.encode(), "within(lat, lon, 60.08, 24.31, 1km)")
    assert not is_wanted(WALK.encode(), "within(lat, lon, 60.08, 25.31, 1km)")


def test_a_single_record_is_also_seen_by_the_labels() -> None:
    assert is_wanted(f'[{{"n":"{DEVICE}","u":"Cel","v":23.1}}]'.encode(), f"n = '{DEVICE}' AND v > 23 AND u = 'Cel'")


def test_other_lists_have_no_attributes_and_other_content_types_are_left_alone() -> None:
    assert not is_wanted(b'[{"a": 1}]', "a = 1")
    assert not is_wanted(b'[{"n": "a", "v": 1}]', "a = 1", "application/senml+xml")
