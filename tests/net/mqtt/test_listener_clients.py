"""Clients that nobody here wrote: paho, aiomqtt and mosquitto, in every version, QoS and transport they offer."""

from __future__ import annotations

import asyncio
import queue
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions
from tests.net.certificates import Authority
from tests.net.mqtt.serving import Served, served

from godwit.net.access import Admitted, Credentials
from godwit.protocols.broker.api import ALL, Limits, Reason, RefusedError

Transport = Literal["tcp", "tls", "websockets"]
TRANSPORTS: tuple[Transport, ...] = ("tcp", "tls", "websockets")
VERSIONS = [paho.MQTTv31, paho.MQTTv311, paho.MQTTv5]
WAIT_S = 60.0

mosquitto = pytest.mark.skipif(
    shutil.which("mosquitto_sub") is None or shutil.which("mosquitto_pub") is None,
    reason="mosquitto_pub and mosquitto_sub are not installed (Debian package mosquitto-clients)",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Served]:
    with served(tls=server_context(authority)) as running:
        yield running


def server_context(authority: Authority, *, clients: bool = False) -> ssl.SSLContext:
    """For a broker; `clients` where they must show a certificate too."""
    context = authority.context("broker", server=True)
    context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return context


class Phone:
    """A paho client, and what it has heard."""

    def __init__(self, broker: Served, name: str, version: int, transport: Transport, ca: Path | None = None) -> None:
        session: dict[str, Any] = {} if version == paho.MQTTv5 else {"clean_session": True}
        self.paho = paho.Client(
            CallbackAPIVersion.VERSION2,
            name,
            protocol=version,  # type: ignore[arg-type]
            transport="websockets" if transport == "websockets" else "tcp",
            **session,
        )
        self.heard: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.told: queue.Queue[list[Any]] = queue.Queue()
        self.paho.on_message = lambda client, data, message: self.heard.put(message)
        self.paho.on_subscribe = lambda client, data, mid, codes, said: self.told.put([codes, said])
        self.connected: queue.Queue[Any] = queue.Queue()
        self.paho.on_connect = lambda client, data, flags, code, said: self.connected.put(code)
        if ca is not None and transport == "tls":
            self.paho.tls_set(str(ca))
        self.port = {"tcp": broker.port, "tls": broker.tls_port, "websockets": broker.websocket_port}[transport]

    def __enter__(self) -> Phone:
        self.paho.connect("127.0.0.1", self.port)
        self.paho.loop_start()
        assert not self.connected.get(timeout=WAIT_S).is_failure
        return self

    def __exit__(self, *error: object) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()

    def subscribe(self, topics: Any, **said: Any) -> list[Any]:
        self.paho.subscribe(topics, **said)
        return self.told.get(timeout=WAIT_S)

    def next(self) -> paho.MQTTMessage:
        return self.heard.get(timeout=WAIT_S)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("version", VERSIONS)
def test_paho_hears_paho_at_every_qos(broker: Served, authority: Authority, version: int, transport: Transport) -> None:
    name = f"{version}-{transport}"
    with (
        Phone(broker, f"from-{name}", version, transport, authority.ca) as sender,
        Phone(broker, f"to-{name}", version, transport, authority.ca) as receiver,
    ):
        receiver.subscribe(f"paho/{name}/#", qos=2)
        for qos in (0, 1, 2):
            for size in (0, 1, 100, 20_000):
                payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
                sender.paho.publish(f"paho/{name}/{qos}", payload, qos=qos).wait_for_publish(WAIT_S)
                heard = receiver.next()
                assert (heard.topic, heard.payload, heard.qos) == (f"paho/{name}/{qos}", payload, qos)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_packet_may_be_larger_than_many_reads(broker: Served, authority: Authority, transport: Transport) -> None:
    payload = bytes(range(256)) * 4000
    with Phone(broker, f"large-{transport}", paho.MQTTv5, transport, authority.ca) as phone:
        phone.subscribe(f"large/{transport}", qos=1)
        for qos in (0, 1):
            phone.paho.publish(f"large/{transport}", payload, qos=qos).wait_for_publish(WAIT_S)
            assert phone.next().payload == payload


def test_a_thousand_messages_arrive_in_order(broker: Served) -> None:
    with Phone(broker, "thousand", paho.MQTTv5, "websockets") as phone:
        phone.subscribe("thousand/#", qos=2)
        for number in range(1000):
            phone.paho.publish("thousand/x", str(number), qos=number % 3)
        heard = [phone.next() for _ in range(1000)]
        for qos in (0, 1, 2):
            assert [int(one.payload) for one in heard if one.qos == qos] == list(range(qos, 1000, 3))


def test_retained_messages_and_wills(broker: Served) -> None:
    mortal = Phone(broker, "mortal", paho.MQTTv311, "tcp")
    mortal.paho.will_set("status/mortal", b"gone", qos=1, retain=True)
    with Phone(broker, "watcher", paho.MQTTv5, "tcp") as watcher:
        with mortal:
            mortal.paho.publish("status/mortal", b"here", qos=1, retain=True).wait_for_publish(WAIT_S)
            watcher.subscribe("status/#", qos=1)
            heard = watcher.next()
            assert (heard.payload, heard.retain) == (b"here", True)
            mortal.paho.socket().close()  # type: ignore[union-attr]
        heard = watcher.next()
        assert (heard.payload, heard.retain) == (b"gone", False)
        watcher.paho.publish("status/mortal", b"", retain=True)


def user_property(packet: int, name: str, value: str) -> Properties:
    properties = Properties(packet)  # type: ignore[no-untyped-call]
    properties.UserProperty = (name, value)
    return properties


def test_a_condition_in_a_user_property_chooses_by_content(broker: Served) -> None:
    with Phone(broker, "chooser", paho.MQTTv5, "tcp") as phone:
        wanted = user_property(PacketTypes.SUBSCRIBE, "filter", "pm25 > 150 AND site = 'north'")
        phone.subscribe("air/#", options=SubscribeOptions(qos=1), properties=wanted)
        phone.paho.publish("air/1", b'{"pm25": 100, "site": "north"}', qos=1)
        phone.paho.publish("air/2", b'{"pm25": 200, "site": "south"}', qos=1)
        phone.paho.publish("air/3", b'{"pm25": 200, "site": "north"}', qos=1)
        site = user_property(PacketTypes.PUBLISH, "site", "north")
        phone.paho.publish("air/4", b'{"pm25": 300}', qos=1, properties=site)
        phone.paho.publish("air/5", b"not JSON", qos=1)
        assert [phone.next().topic for _ in range(2)] == ["air/3", "air/4"]


def test_a_condition_in_the_topic_serves_old_clients(broker: Served) -> None:
    with Phone(broker, "old", paho.MQTTv311, "tcp") as phone:
        phone.subscribe("$filter/pm25%20%3E%20150/oldair/+", qos=1)
        phone.paho.publish("oldair/1", b'{"pm25": 100}', qos=1)
        phone.paho.publish("oldair/2", b'{"pm25": 200}', qos=1)
        assert phone.next().topic == "oldair/2"


def test_a_bad_condition_is_refused_with_its_reason_and_the_rest_works(broker: Served) -> None:
    with Phone(broker, "bad", paho.MQTTv5, "tcp") as phone:
        codes, said = phone.subscribe(
            [("$filter/pm25%20%3E%3E%201/x", SubscribeOptions(qos=1)), ("fine", SubscribeOptions(qos=1))]
        )
        assert [code.value for code in codes] == [143, 1]
        assert "column" in said.ReasonString
        phone.paho.publish("fine", b"x")
        assert phone.next().topic == "fine"
    with Phone(broker, "bad-old", paho.MQTTv311, "tcp") as phone:
        codes, _ = phone.subscribe([("$filter/pm25%20%3E%3E%201/x", 1), ("fine", 1)])
        assert [code.value for code in codes] == [128, 1]


def test_a_group_shares_what_comes(broker: Served) -> None:
    with (
        Phone(broker, "worker-1", paho.MQTTv5, "tcp") as first,
        Phone(broker, "worker-2", paho.MQTTv311, "tcp") as second,
        Phone(broker, "boss", paho.MQTTv5, "tcp") as boss,
    ):
        first.subscribe("$share/crew/jobs", qos=1)
        second.subscribe("$share/crew/jobs", qos=1)
        for number in range(10):
            boss.paho.publish("jobs", str(number), qos=1).wait_for_publish(WAIT_S)
        shares = [first.next().payload for _ in range(5)], [second.next().payload for _ in range(5)]
        assert sorted(int(one) for share in shares for one in share) == list(range(10))


def test_what_waited_comes_at_once_when_the_client_is_back(broker: Served) -> None:
    def away() -> Phone:
        phone = Phone(broker, "traveller", paho.MQTTv311, "tcp")
        phone.paho._clean_session = False
        return phone

    with away() as traveller:
        traveller.subscribe("post/#", qos=1)
    with Phone(broker, "postman", paho.MQTTv5, "tcp") as postman:
        for number in range(5):
            postman.paho.publish("post/x", str(number), qos=1).wait_for_publish(WAIT_S)
    with away() as traveller:
        assert [int(traveller.next().payload) for _ in range(5)] == list(range(5))


async def overheard(broker: Served, version: int) -> list[bytes]:
    protocol = aiomqtt.ProtocolVersion(version)
    found = []
    async with (
        aiomqtt.Client("127.0.0.1", broker.port, protocol=protocol, identifier=f"aio-listener-{version}") as listener,
        aiomqtt.Client("127.0.0.1", broker.port, protocol=protocol, identifier=f"aio-speaker-{version}") as speaker,
    ):
        await listener.subscribe(f"aio/{version}/#", qos=2)
        for number in range(30):
            await speaker.publish(f"aio/{version}/{number}", str(number), qos=number % 3)
        async with asyncio.timeout(WAIT_S):
            async for message in listener.messages:
                assert isinstance(message.payload, bytes)
                found.append(message.payload)
                if len(found) == 30:
                    break
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_aiomqtt_hears_aiomqtt(broker: Served, version: int) -> None:
    assert sorted(map(int, asyncio.run(overheard(broker, version)))) == list(range(30))


@contextmanager
def listening(broker: Served, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """mosquitto_sub, from the moment that it is subscribed; it ends by itself or with the block."""
    before = broker.ask(lambda: broker.broker.counts.subscriptions)
    process = subprocess.Popen(["mosquitto_sub", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        broker.until(lambda: broker.broker.counts.subscriptions > before)
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S)


@mosquitto
@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("transport", ["tcp", "tls"])
def test_mosquitto_hears_mosquitto(
    broker: Served, authority: Authority, version: str, qos: int, transport: str
) -> None:
    where = ["-h", "127.0.0.1", "-p", str(broker.port if transport == "tcp" else broker.tls_port), "-V", version]
    if transport == "tls":
        where += ["--cafile", str(authority.ca)]
    topic = f"mosquitto/{version}/{qos}/{transport}"
    with listening(broker, *where, "-t", f"{topic}/#", "-q", str(qos), "-C", "3", "-F", "%t %p %q") as process:
        for number in range(3):
            command = ["mosquitto_pub", *where, "-t", f"{topic}/x", "-m", str(number), "-q", str(qos)]
            subprocess.run(command, check=True, timeout=WAIT_S)
        heard, _ = process.communicate(timeout=WAIT_S)
    assert heard.splitlines() == [f"{topic}/x {number} {qos}" for number in range(3)]


@mosquitto
def test_mosquitto_learns_why_it_is_refused() -> None:
    def refuse(who: Credentials) -> Admitted:
        if who.user != "known":
            raise RefusedError(Reason.NOT_AUTHORIZED, "give a user name and a password")
        return Admitted("known", ALL, Limits())

    with served(authenticate=refuse) as broker:
        command = ["mosquitto_pub", "-p", str(broker.port), "-t", "x", "-m", "y"]
        for version, more, code in (("5", [], 135), ("311", [], 5), ("5", ["-u", "known"], 0)):
            done = subprocess.run([*command, "-V", version, *more], capture_output=True, text=True, timeout=WAIT_S)
            assert done.returncode == code, done.stderr


def test_a_client_certificate_names_its_owner(authority: Authority) -> None:
    seen: list[Credentials] = []

    def note(who: Credentials) -> Admitted:
        seen.append(who)
        return Admitted("", ALL, Limits())

    with served(authenticate=note, tls=server_context(authority, clients=True)) as broker:
        phone = Phone(broker, "certified", paho.MQTTv5, "tls")
        certificate, key = authority.files("van-7")
        phone.paho.tls_set(str(authority.ca), str(certificate), str(key))
        with phone:
            assert (seen[0].certificate, seen[0].peer, seen[0].client) == ("van-7", "127.0.0.1", "certified")
