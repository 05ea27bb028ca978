"""Deliveries in every form are what the package would have written, and one encoding serves all of a form."""

from __future__ import annotations

import mqtt5
from hypothesis import given
from hypothesis import strategies as st
from tests.net.mqtt.packetstrategies import numbers, texts, topics

from godwit.net.mqtt import codec3 as packets3
from godwit.net.mqtt.encode import Forms
from godwit.protocols.broker.api import Delivery
from godwit.protocols.broker.publication import Properties, Publication

NOW = 1000.0

properties = st.builds(
    Properties,
    st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    st.none() | texts,
    st.none() | topics,
    st.none() | st.binary(max_size=20),
    st.none() | st.booleans(),
)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    publication = Publication(
        "somebody",
        1,
        draw(topics),
        draw(st.binary(max_size=300)),
        expires=draw(st.none() | st.integers(1, 100).map(lambda left_s: NOW + left_s)),
        properties=draw(properties),
    )
    qos = draw(st.integers(0, 2))
    identifiers = tuple(draw(st.lists(st.integers(1, 268_435_455), max_size=3)))
    again = bool(qos) and draw(st.booleans())
    return Delivery(publication, qos, draw(st.booleans()), identifiers, draw(numbers) if qos else 0, again)


def expected(delivery: Delivery, topic: str, alias: int | None) -> mqtt5.PublishPacket:
    publication, said = delivery.publication, delivery.publication.properties
    return mqtt5.PublishPacket(
        topic,
        publication.payload,
        qos=mqtt5.QoS(delivery.qos),
        retain=delivery.retain,
        packet_id=delivery.number or None,
        duplicate=delivery.again,
        payload_format_indicator=int(bool(said.payload_is_text)),
        message_expiry_interval=None if publication.expires is None else int(publication.expires - NOW),
        content_type=said.content_type,
        response_topic=said.response_topic,
        correlation_data=said.correlation_data,
        subscription_ids=list(delivery.identifiers),
        topic_alias=alias,
        user_properties=list(said.user),
    )


@given(st.lists(deliveries(), min_size=1, max_size=4), st.integers(0, 5), st.booleans())
def test_a_delivery_is_written_as_the_package_would(sent: list[Delivery], alias: int, known: bool) -> None:
    forms = Forms(lambda: NOW)
    for delivery in sent:
        for _ in range(2):
            written = forms.packet(delivery, 5, alias, known=bool(alias) and known)
            topic = "" if alias and known else delivery.publication.topic
            assert mqtt5.read(memoryview(written))[0] == expected(delivery, topic, alias or None)
            old = packets3.read(forms.packet(delivery, 4))
            assert isinstance(old, mqtt5.PublishPacket)
            assert (old.topic, old.payload) == (delivery.publication.topic, delivery.publication.payload)
            assert (old.qos, old.retain, old.packet_id) == (delivery.qos, delivery.retain, delivery.number or None)


def test_all_who_get_the_same_form_share_one_encoding() -> None:
    forms, publication = Forms(lambda: NOW), Publication("somebody", 1, "t", b"x" * 100)
    assert forms.packet(Delivery(publication, 0), 5) is forms.packet(Delivery(publication, 0), 5)
    assert forms.packet(Delivery(publication, 0), 4) is forms.packet(Delivery(publication, 0), 3)


def test_what_is_left_of_a_life_counts_down() -> None:
    now = [NOW]
    forms, publication = Forms(lambda: now[0]), Publication("somebody", 1, "t", expires=NOW + 60)
    for passed_s in (0, 20, 59, 70):
        now[0] = NOW + passed_s
        forms.forget()
        packet, _ = mqtt5.read(memoryview(forms.packet(Delivery(publication, 0), 5)))
        assert isinstance(packet, mqtt5.PublishPacket)
        assert packet.message_expiry_interval == max(1, 60 - passed_s)
