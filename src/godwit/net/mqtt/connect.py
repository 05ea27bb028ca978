"""CONNECT and its answers: what a client asks for, what it is told of the broker's limits."""

from __future__ import annotations

import secrets
import ssl
from functools import partial
from math import inf

import mqtt5
from mqtt5 import ConnAckReasonCode

from godwit.net.access import Admitted, Credentials
from godwit.net.mqtt import codec3
from godwit.net.mqtt.codec3 import FOREVER
from godwit.net.mqtt.options import Options
from godwit.protocols.broker.api import HANDOFF_WAIT, TOKEN, Opening, Will
from godwit.protocols.broker.publication import PLAIN, Properties, Publication

PREVIOUS = "previous"
"""The user property in which a client names the broker where it was before."""

CLIENT_ID_NOT_VALID = 0x85
BAD_AUTHENTICATION_METHOD = 0x8C
USE_ANOTHER_SERVER = 0x9C


def refusal_of(packet: mqtt5.ConnectPacket, version: int, options: Options) -> tuple[int, str] | None:
    """Why this client cannot even ask, if so: a reason code of CONNACK, and words."""
    if packet.authentication_method is not None:
        text = f"authentication method {packet.authentication_method!r}: none is known; user names and certificates are"
        return BAD_AUTHENTICATION_METHOD, text
    if not packet.client_id and version < 5 and not packet.clean_start:
        return CLIENT_ID_NOT_VALID, "no client identifier, and no clean session"
    if len(packet.client_id.encode()) > options.client_id_bytes_max:
        return CLIENT_ID_NOT_VALID, f"a client identifier of more than {options.client_id_bytes_max} bytes"
    return None


def assigned_name() -> str:
    return f"auto-{secrets.token_hex(10)}"


def credentials_of(client: str, packet: mqtt5.ConnectPacket, peer: object, tls: object) -> Credentials:
    """`peer` and `tls` are what the transport says under `peername` and `ssl_object`."""
    return Credentials(
        client=client,
        user=packet.username,
        password=packet.password,
        certificate=_common_name(tls) if isinstance(tls, ssl.SSLObject | ssl.SSLSocket) else None,
        peer=str(peer[0]) if isinstance(peer, tuple) and peer else "",
    )


def _common_name(tls: ssl.SSLObject | ssl.SSLSocket) -> str | None:
    subject = (tls.getpeercert() or {}).get("subject", ())
    pairs = [pair for names in subject for pair in names if isinstance(pair, tuple)]
    return next((str(pair[1]) for pair in pairs if pair[0] == "commonName"), None)


def opening_of(
    client: str, packet: mqtt5.ConnectPacket, admitted: Admitted, options: Options, now: float, is_text: bool | None
) -> Opening:
    """`is_text`: what the will says of its payload."""
    return Opening(
        client=client,
        clean=packet.clean_start,
        expiry_s=expiry_of(packet.session_expiry_interval, options),
        inflight_max=min(packet.receive_max, options.inflight_out_max),
        will=will_of(client, packet.will, now, is_text) if packet.will is not None else None,
        previous=_property(packet, PREVIOUS),
        token=_property(packet, TOKEN),
        grant=admitted.grant,
        limits=admitted.limits,
    )


def _property(packet: mqtt5.ConnectPacket, wanted: str) -> str:
    return next((value for name, value in packet.user_properties if name == wanted), "")


def expiry_of(interval_s: int, options: Options) -> float:
    """What becomes of the session expiry that a client asks for."""
    return min(inf if interval_s == FOREVER else float(interval_s), options.session_expiry_max_s)


def will_of(client: str, will: mqtt5.Will, now: float, is_text: bool | None) -> Will:
    """Its message expiry counts from `now`; whoever publishes it moves that on, as it moves `time`."""
    interval_s = will.message_expiry_interval
    publication = Publication(
        client,
        0,
        will.topic,
        will.payload or b"",
        int(will.qos),
        will.retain,
        now,
        None if interval_s is None else now + interval_s,
        properties_of(will, is_text),
    )
    return Will(publication, float(will.will_delay_interval))


def properties_of(said: mqtt5.Will | mqtt5.PublishPacket, is_text: bool | None) -> Properties:
    properties = Properties(
        tuple(said.user_properties),
        said.content_type,
        said.response_topic,
        said.correlation_data,
        is_text,
    )
    return PLAIN if properties == PLAIN else properties


def keep_alive_of(packet: mqtt5.ConnectPacket, version: int, options: Options) -> int:
    """Seconds, 0 for none; a client of 3.1.1 cannot be told another one than it asked for."""
    most = options.keep_alive_max_s
    if version < 5 or most == 0xFFFF:
        return packet.keep_alive
    return min(packet.keep_alive or most, most)


def welcome(
    packet: mqtt5.ConnectPacket, version: int, options: Options, client: str, broker: str, token: str, *, present: bool
) -> bytes:
    """The CONNACK that lets a client in and tells it the limits, and what to show at the next broker."""
    if version < 5:
        # MQTT 3.1 has no word for it: the byte is reserved.
        return codec3.write(mqtt5.ConnAckPacket(session_present=present and version > 3))
    keep_alive_s = keep_alive_of(packet, version, options)
    expiry_s = expiry_of(packet.session_expiry_interval, options)
    asked_s = expiry_of(packet.session_expiry_interval, Options())
    said = partial(
        mqtt5.ConnAckPacket,
        session_present=present,
        session_expiry_interval=None if expiry_s == asked_s else int(expiry_s),
        assigned_client_id=None if packet.client_id else client,
        server_keep_alive=None if keep_alive_s == packet.keep_alive else keep_alive_s,
        receive_max=options.inflight_max,
        topic_alias_max=options.topic_alias_max,
        max_packet_size=options.packet_bytes_max,
    )
    kept = [(TOKEN, token), (HANDOFF_WAIT, f"{options.handoff_wait_s:g}")] if token else []
    forms = (
        said(user_properties=[("broker", broker), *kept]).write(),
        said().write(),
        mqtt5.ConnAckPacket(session_present=present, assigned_client_id=None if packet.client_id else client).write(),
    )
    # A client that takes no packet of even the last size is told nothing (MQTT-3.1.2-24), and hung up on.
    return next((one for one in forms if len(one) <= (packet.max_packet_size or len(one))), b"")


def farewell(code: int, text: str, version: int, packet_max: int) -> bytes:
    """The CONNACK that does not let a client in; nothing where it takes no packet so large."""
    if version < 5:
        return bytes((0x20, 2, 0, codec3.return_code(code)))
    reference = text if code == USE_ANOTHER_SERVER else None
    try:
        reason = ConnAckReasonCode(code)
    except ValueError:
        reason = ConnAckReasonCode.UNSPECIFIED_ERROR
    forms = (
        mqtt5.ConnAckPacket(reason_code=reason, reason_str=shortened(text), server_reference=reference).write(),
        mqtt5.ConnAckPacket(reason_code=reason).write(),
    )
    return next((one for one in forms if len(one) <= packet_max), b"")


def shortened(text: str) -> str | None:
    """A reason string that fits anywhere; None for none."""
    return text[:1000] or None
