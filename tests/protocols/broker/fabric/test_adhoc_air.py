"""What is on the air: everything that was encoded comes back, and nothing else gets in."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.adhoc.digest import digest_of
from godwit.protocols.adhoc.messages import Beacon, Data, Hint
from godwit.protocols.broker.fabric.adhoc import ALL_TOPICS, aired, decode, encode, field_options
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.host import RemoteError

pytestmark = pytest.mark.feature("manet-cbr F5")

publications = st.builds(
    Publication,
    publisher=st.text(max_size=20),
    sequence=st.integers(0, 2**60),
    topic=st.text(min_size=1, max_size=20),
    payload=st.binary(max_size=100),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    properties=st.builds(Properties, user=st.tuples(st.tuples(st.text(max_size=5), st.text(max_size=5)))),
    passage=st.tuples(st.text(min_size=1, max_size=10), st.integers(0, 2**60)),
)


@given(publications, st.integers(0, 255), st.dictionaries(st.text(max_size=5), st.integers(0, 100), max_size=4))
def test_an_event_comes_back_as_it_was(publication: Publication, credit: int, destinations: dict[str, int]) -> None:
    said = Data(aired(publication), credit, destinations, age_s=1.5)
    heard = decode(encode(said))
    assert heard == said
    assert isinstance(heard, Data)
    assert heard.event.id == publication.passage
    assert heard.event.values() == publication.values()


def test_a_beacon_comes_back_as_it_was() -> None:
    hints = (Hint("b", 10, 2.0, ALL_TOPICS),)
    said = Beacon(ALL_TOPICS, 2.0, digest_of([("a/1", 1), ("a/1", 3)], 9), hints)
    assert decode(encode(said)) == said


@given(st.binary(max_size=300))
def test_noise_is_refused(noise: bytes) -> None:
    with contextlib.suppress(RemoteError):
        assert isinstance(decode(noise), Beacon | Data)


@given(st.binary(max_size=60))
def test_an_event_without_a_publication_in_it_is_refused(payload: bytes) -> None:
    said = msgspec.msgpack.encode({"type": "Data", "event": {"publisher": "a/1", "sequence": 1, "payload": payload}})
    try:
        heard = decode(said)
    except RemoteError:
        return
    assert isinstance(heard, Data)
    assert heard.event.values()


@pytest.mark.parametrize("room_b", [400, 512, 1_355, 9_000])
def test_there_are_options_for_every_size_of_frame(room_b: int) -> None:
    assert field_options(beacon_max_b=room_b).beacon_max_b == room_b
