"""Packets of 3.1.1 as hypothesis draws them."""

from __future__ import annotations

import mqtt5
from hypothesis import strategies as st

from godwit.net.mqtt.codec import Packet, Subscribe, Unsubscribe, Wish
from godwit.net.mqtt.codec3 import FOREVER, RETURN_CODES

numbers = st.integers(1, 0xFFFF)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
topics = st.text(st.characters(exclude_characters="\0#+", exclude_categories=["Cs"]), min_size=1, max_size=40)
qualities = st.integers(0, 2).map(mqtt5.QoS)
wishes = st.builds(Wish, texts, st.integers(0, 2))
wills = st.builds(mqtt5.Will, topics, payload=st.binary(max_size=300), qos=qualities, retain=st.booleans())
codes = st.sampled_from(RETURN_CODES).map(mqtt5.ConnAckReasonCode)


@st.composite
def connects(draw: st.DrawFn) -> mqtt5.ConnectPacket:
    clean, user = draw(st.booleans()), draw(st.none() | texts)
    return mqtt5.ConnectPacket(
        draw(texts),
        username=user,
        password=None if user is None else draw(st.none() | st.binary(max_size=300)),
        clean_start=clean,
        will=draw(st.none() | wills),
        keep_alive=draw(st.integers(0, 0xFFFF)),
        session_expiry_interval=0 if clean else FOREVER,
    )


@st.composite
def publishes(draw: st.DrawFn) -> mqtt5.PublishPacket:
    qos = draw(qualities)
    return mqtt5.PublishPacket(
        draw(topics),
        draw(st.binary(max_size=300)),
        qos=qos,
        retain=draw(st.booleans()),
        packet_id=draw(numbers) if int(qos) else None,
        duplicate=int(qos) > 0 and draw(st.booleans()),
    )


packets3: st.SearchStrategy[Packet] = st.one_of(
    connects(),
    publishes(),
    st.builds(mqtt5.ConnAckPacket, session_present=st.booleans(), reason_code=codes),
    *(
        st.builds(kind, numbers)
        for kind in (mqtt5.PubAckPacket, mqtt5.PubRecPacket, mqtt5.PubRelPacket, mqtt5.PubCompPacket)
    ),
    st.builds(Subscribe, numbers, st.lists(wishes, min_size=1, max_size=5).map(tuple)),
    st.builds(
        mqtt5.SubAckPacket, numbers, st.lists(st.sampled_from([0, 1, 2, 128]).map(mqtt5.SubAckReasonCode), max_size=5)
    ),
    st.builds(Unsubscribe, numbers, st.lists(texts, min_size=1, max_size=5).map(tuple)),
    st.builds(mqtt5.UnsubAckPacket, numbers, st.just([])),
    st.builds(mqtt5.PingReqPacket),
    st.builds(mqtt5.PingRespPacket),
    st.builds(mqtt5.DisconnectPacket),
)
