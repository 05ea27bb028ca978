"""What a program publishes: a nested dict is treated as the same JSON payload is."""

from __future__ import annotations

import json

import pytest

from godwit.client.errors import ClientError
from godwit.client.payload import Content, check_qos, check_topic, check_topics, encoded
from godwit.events import EventError, Place
from godwit.protocols.broker.publication import Properties, Publication

NESTED: dict[str, Content] = {"engine": {"rpm": 900, "oil": {"c": 80.5}}, "doors": [1, 2], "driver": None, "on": True}


def test_a_filter_sees_the_same_of_attributes_and_of_the_same_json() -> None:
    body, properties = encoded(NESTED, None, None)
    beside, told = encoded(NESTED, b"\xff picture", None)
    seen = Publication("", 0, "t", json.dumps(NESTED).encode()).values()
    assert {"engine.rpm", "engine.oil.c", "on"} <= seen.keys()
    assert Publication("", 0, "t", body, properties=Properties(user=tuple(properties))).values() == seen
    assert Publication("", 0, "t", beside, properties=Properties(user=tuple(told))).values() == seen
    assert json.loads(body) == NESTED


def test_a_place_is_attributes() -> None:
    assert json.loads(encoded({}, None, Place(1.5, 2.5))[0]) == {"lat": 1.5, "lon": 2.5}


@pytest.mark.parametrize(
    "attributes",
    [{"a": {"b": float("nan")}}, {"a": [float("inf")]}, {"a": {"b": 2**70}}, {"": 1}, {"a": {"b": b"bytes"}}],
)
def test_what_json_or_a_filter_cannot_say_is_refused(attributes: dict[str, Content]) -> None:
    with pytest.raises(EventError):
        encoded(attributes, None, None)


@pytest.mark.parametrize("topic", ["", "air/#", "air/+/x", "a\0b", "x" * 70_000, "\udcff"])
def test_a_topic_that_is_none_is_refused_before_it_leaves(topic: str) -> None:
    with pytest.raises(ClientError, match="topic"):
        check_topic(topic)


@pytest.mark.parametrize("topics", ["", "air#", "#/air", "a+/b"])
def test_a_topic_filter_that_is_none_is_refused_before_it_leaves(topics: str) -> None:
    with pytest.raises(ClientError, match="topic filter"):
        check_topics(topics)


def test_a_quality_of_service_that_is_none_is_refused() -> None:
    with pytest.raises(ClientError, match="right would be 0, 1 or 2"):
        check_qos(3)
