"""Real hosts on one machine: network namespaces, joined by segments of a cable in which everybody hears everybody.

A segment is a bridge in a namespace of its own, a host's place in it a pair of virtual interfaces. Cutting a host off
takes its port of the bridge down, so that the host itself does not notice, as with a radio.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

T = TypeVar("T")
CLONE_NEWNET = 0x40000000
GROUP, PORT = "239.255.71.68", 7_885
READY_S, WAIT_S = 90.0, 60.0


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Why hosts cannot be made here; nothing where they can."""
    if shutil.which("ip") is None:
        return "there is no `ip` (iproute2)"
    name = f"gw{os.getpid()}try"
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "name", "seg", "type", "bridge")
            ip("-n", name, "link", "add", "name", "one", "type", "veth", "peer", "name", "other")
        finally:
            ip("netns", "delete", name)
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted: {error.stderr.strip()}"
    return ""


class Host:
    def __init__(self, hosts: Hosts, name: str) -> None:
        self.hosts = hosts
        self.name = name
        self.space = f"{hosts.tag}{name}"
        self.interfaces: dict[str, str] = {}
        """By segment."""
        self.process: subprocess.Popen[bytes] | None = None
        ip("netns", "add", self.space)
        ip("-n", self.space, "link", "set", "lo", "up")

    def inside(self, call: Callable[[], T]) -> T:
        """Call it on this host: threads have namespaces of their own, and sockets stay where they were made."""
        answer: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                with open(f"/run/netns/{self.space}") as space:
                    if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                answer.append(call())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return answer[0]

    def serve(self, *flags: str, air: str = "", **adhoc: Any) -> None:
        """Start a broker, in the air over these segments; it is ready when `ready` returns."""
        folder = self.hosts.folder / self.name
        folder.mkdir(exist_ok=True)
        lines = [f"name = {self.name!r}", 'data = "data"']
        lines += ["[listen]", 'mqtt = ["127.0.0.1:1883"]', 'status = "127.0.0.1:9883"', "[adhoc]"]
        interfaces = [self.interfaces[segment] for segment in air.split()]
        told = {"interfaces": interfaces, "key": "0123456789abcdef", "beacon_s": 0.5, **adhoc}
        lines += [f"{key} = {json.dumps(value)}" for key, value in told.items()]
        (folder / "godwit.toml").write_text("\n".join(lines))
        command = ["ip", "netns", "exec", self.space, sys.executable, "-m", "godwit", "serve"]
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--config", str(folder / "godwit.toml"), *flags], stdout=log, stderr=log
            )

    def ready(self) -> Host:
        ends_s = time.monotonic() + READY_S
        while time.monotonic() < ends_s:
            assert self.process is not None
            assert self.process.poll() is None, (self.hosts.folder / self.name / "log").read_text()
            try:
                self.status()
            except OSError:
                time.sleep(0.2)
            else:
                return self
        raise AssertionError(f"{self.name} is not ready: {(self.hosts.folder / self.name / 'log').read_text()}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def status(self) -> dict[str, Any]:
        answer = self.inside(lambda: urllib.request.urlopen("http://127.0.0.1:9883/status", timeout=WAIT_S).read())
        return dict(json.loads(answer))

    def dropped(self, reason: str) -> int:
        return int(self.status()["counts"]["air_dropped"].get(reason, 0))

    def knows(self, *names: str) -> bool:
        """Whether these are known to want something."""
        nodes = self.status()["air"]["nodes"]
        return {node["name"] for node in nodes if node["filters"]} >= set(names)

    def client(self, name: str, topics: str = "", *, version: Any = paho.MQTTv5) -> Client:
        return Client(self, name, topics, version)

    def antenna(self, segment: str) -> socket.socket:
        """A socket that speaks and hears there like a radio."""
        return self.inside(lambda: antenna(self.interfaces[segment]))


def antenna(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    member = struct.pack("@4s4si", socket.inet_aton(GROUP), bytes(4), socket.if_nametoindex(interface))
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
    opened.bind((GROUP, PORT))
    return opened


class Client:
    """Somebody else's MQTT client, on a host."""

    def __init__(self, host: Host, name: str, topics: str, version: Any) -> None:
        self.got: list[bytes] = []
        self.ended: list[Any] = []
        self.refused: list[Any] = []
        self._in, self._subscribed = threading.Event(), threading.Event()
        self.paho = client = paho.Client(CallbackAPIVersion.VERSION2, name, protocol=version)
        client.on_message = lambda client, data, message: self.got.append(bytes(message.payload))
        client.on_connect = lambda *told: self._in.set()
        client.on_subscribe = lambda *told: self._subscribed.set()
        client.on_disconnect = lambda client, data, flags, reason, more: self.ended.append(reason)
        host.inside(lambda: (client.connect("127.0.0.1"), client.loop_start()))
        assert self._in.wait(WAIT_S)
        if topics:
            client.subscribe(topics, 1)
            assert self._subscribed.wait(WAIT_S)

    def publish(self, topic: str, payload: bytes, qos: int = 1) -> bytes:
        told = self.paho.publish(topic, payload, qos)
        told.wait_for_publish(WAIT_S)
        return payload

    def close(self) -> None:
        self.paho.disconnect()
        self.paho.loop_stop()


class Hosts:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"gw{os.getpid()}x{id(self) % 997}"
        self.hub = f"{self.tag}hub"
        self.all: dict[str, Host] = {}
        self.ports: dict[tuple[str, str], str] = {}
        self.addresses: dict[tuple[str, str], str] = {}
        ip("netns", "add", self.hub)

    def __getitem__(self, name: str) -> Host:
        if name not in self.all:
            self.all[name] = Host(self, name)
        return self.all[name]

    def segment(self, segment: str, *names: str) -> None:
        """Those who hear each other there."""
        number = len({name for name, _ in self.ports}) + 1
        ip("-n", self.hub, "link", "add", "name", segment, "type", "bridge", "mcast_snooping", "0")
        ip("-n", self.hub, "link", "set", "dev", segment, "up")
        for place, name in enumerate(names, 1):
            self[name].interfaces[segment] = f"e{segment}"
            self.ports[segment, name] = f"{segment}-{name}"
            self.addresses[segment, name] = f"10.77.{number}.{place}/24"
            self.plug(segment, name)

    def plug(self, segment: str, name: str) -> None:
        """Give the host its interface there."""
        space, inner, port = self[name].space, self[name].interfaces[segment], self.ports[segment, name]
        ip("-n", self.hub, "link", "add", "name", port, "type", "veth", "peer", "name", inner, "netns", space)
        ip("-n", self.hub, "link", "set", "dev", port, "master", segment, "up")
        ip("-n", space, "address", "add", self.addresses[segment, name], "dev", inner)
        ip("-n", space, "link", "set", "dev", inner, "up")

    def unplug(self, segment: str, name: str) -> None:
        """Take the interface away, as a stick that is pulled out."""
        ip("-n", self[name].space, "link", "delete", "dev", self[name].interfaces[segment])

    def cut(self, segment: str, name: str) -> None:
        ip("-n", self.hub, "link", "set", "dev", self.ports[segment, name], "nomaster")

    def join(self, segment: str, name: str) -> None:
        ip("-n", self.hub, "link", "set", "dev", self.ports[segment, name], "master", segment)

    def close(self) -> None:
        for host in self.all.values():
            if host.process is not None:
                host.process.send_signal(signal.SIGTERM)
        for host in self.all.values():
            host.stop()
            ip("netns", "delete", host.space)
        ip("netns", "delete", self.hub)


@contextmanager
def hosts(folder: Path) -> Iterator[Hosts]:
    if reason := why_not():
        pytest.skip(reason)
    made = Hosts(folder)
    try:
        yield made
    finally:
        made.close()


def until(condition: Callable[[], object], wait_s: float = WAIT_S) -> None:
    ends_s = time.monotonic() + wait_s
    while not condition():
        assert time.monotonic() < ends_s, "waited too long"
        time.sleep(0.1)
