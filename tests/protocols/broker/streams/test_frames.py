"""The one decoder of peer traffic: well-formed nonsense is refused, and what is not refused does no harm."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.filters.filters import Filter
from godwit.filters.predicates import Kind, TextOp, VersusOp
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.streams.frames import Item, Run, decode, decode_items, encode
from godwit.protocols.host import RemoteError
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Bsub
from godwit.protocols.routing.process import Enclosed

numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.sampled_from([0, 1, 2, 5, 2**62, 2**63, -1]),
)
texts = st.one_of(st.text(max_size=4), st.sampled_from(["", "a", "a%", "\\", "%\\", "lat,lon", "lat", ",", "topic_1"]))
cuts = st.tuples(numbers, st.integers(-1, 2))
areas = st.one_of(
    st.fixed_dictionaries({"type": st.just("circle"), "lat": numbers, "lon": numbers, "radius_m": numbers}),
    st.fixed_dictionaries(
        {"type": st.just("box"), "south": numbers, "west": numbers, "north": numbers, "east": numbers}
    ),
)
predicates = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["exists", "absent"])}),
    st.fixed_dictionaries({"type": st.just("interval"), "lo": cuts, "hi": cuts}),
    st.fixed_dictionaries({"type": st.just("hole"), "value": numbers}),
    st.fixed_dictionaries({"type": st.just("text"), "op": st.sampled_from(list(TextOp)), "operand": texts}),
    st.fixed_dictionaries({"type": st.just("flag"), "value": st.booleans()}),
    st.fixed_dictionaries({"type": st.just("versus"), "op": st.sampled_from(list(VersusOp)), "other": texts}),
    st.fixed_dictionaries({"type": st.sampled_from(["within", "outside"]), "area": areas}),
    st.fixed_dictionaries({"type": st.just("rate"), "per_s": numbers}),
)
attributes = st.tuples(texts, st.sampled_from(list(Kind)), st.lists(predicates, max_size=3))
filters = st.tuples(st.lists(attributes, max_size=3))
events = st.dictionaries(texts, st.one_of(numbers, texts, st.booleans()), max_size=5)


CIRCLE = {"type": "circle", "lat": 1, "lon": 1, "radius_m": 1}


def said(wanted: Any, *, bundled: bool) -> bytes:
    """What a peer would send to say that a broker wants this, whatever it is."""
    part = {**msgspec.to_builtins(Bsub("sx", (), 1, 0)), "filters": [wanted]}
    message = {**msgspec.to_builtins(Numbered(1, Bsub("sx", (), 1, 0))), "message": part} if bundled else part
    return msgspec.msgpack.encode({**msgspec.to_builtins(Enclosed("bx", Bsub("sx", (), 1, 0))), "message": message})


def heard(data: bytes) -> tuple[Filter, ...]:
    frame = decode(data)
    assert isinstance(frame, Enclosed)
    part = frame.message.parts[0] if isinstance(frame.message, Numbered) else frame.message
    assert isinstance(part, Bsub)
    return part.filters


@settings(max_examples=600, deadline=None)
@given(filters, st.booleans(), st.lists(events, min_size=1, max_size=3))
def test_a_filter_that_is_let_in_never_fails_whatever_event_it_is_asked_about(
    wanted: Any, bundled: bool, asked: list[dict[str, Any]]
) -> None:
    try:
        found = heard(said(wanted, bundled=bundled))
    except RemoteError:
        return
    for one in found:
        for event in asked:
            one.matches(event)
        assert one.covers(one) in (True, False)
        assert one.overlaps(one) in (True, False)


@pytest.mark.parametrize("bundled", [False, True])
@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        (("x", "number", [{"type": "text", "op": "stw", "operand": "a"}]), "is not for values of kind number"),
        (("x", "string", [{"type": "interval", "lo": (1, 0), "hi": (2, 0)}]), "is not for values of kind string"),
        (
            ("x", "place", [{"type": "within", "area": {"type": "circle", "lat": 1, "lon": 1, "radius_m": 1}}]),
            "lat,lon",
        ),
        (("x", "number", [{"type": "interval", "lo": (1, 0), "hi": (2, 7)}]), "neither before nor after"),
        (("x", "number", [{"type": "interval", "lo": (1, 0), "hi": (2**64 - 1, 0)}]), "does not fit 64 bits"),
        (("x", "number", [{"type": "hole", "value": float("nan")}]), "NaN"),
        (("x", "number", []), "no alternative"),
    ],
)
def test_a_filter_that_would_stop_publishing_is_refused(attribute: Any, problem: str, bundled: bool) -> None:
    with pytest.raises(RemoteError, match=problem):
        decode(said(([attribute],), bundled=bundled))


def items(content: Any) -> Run:
    return Run((), msgspec.Raw(msgspec.msgpack.encode([(1, True, content)])))


@pytest.mark.parametrize(
    ("place", "value"),
    [(2, -1), (2, 2**63), (3, ""), (5, 3), (5, -1), (7, float("nan")), (7, 1e300), (8, float("nan"))],
)
def test_a_publication_with_a_number_that_cannot_be_is_refused(place: int, value: Any) -> None:
    sound = Publication("p", 1, "t", b"x", 1, False, 5.0, 6.0)
    assert decode_items(items(msgspec.to_builtins(sound, builtin_types=(bytes,))))[0].content == sound
    fields = [*msgspec.to_builtins(sound, builtin_types=(bytes,))]
    fields[place] = value
    with pytest.raises(RemoteError, match="no items of a stream"):
        decode_items(items(fields))


def test_numbers_of_a_stream_must_grow() -> None:
    one = Item(2, True, Publication("p", 1, "t"))
    with pytest.raises(RemoteError, match="must grow"):
        decode_items(Run((), msgspec.Raw(encode([one, one]))))
