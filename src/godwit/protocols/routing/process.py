"""Processes and devices: a broker is an election and a router, and a device may be several things at once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from godwit.protocols.host import Core, Host, LocalError, Message, NodeId, Record, Timer
from godwit.protocols.routing.courier import Carried, Numbered
from godwit.protocols.routing.messages import Ack
from godwit.protocols.topology.election import Election, ElectionOptions, Heartbeat
from godwit.protocols.topology.tree import Tree


class BrokerProcess:
    """Heartbeats go to the election, everything else to the router."""

    def __init__(
        self,
        host: Host,
        router: Callable[[Host, Tree], Core],
        options: ElectionOptions = ElectionOptions(),  # noqa: B008
        *,
        incarnation: int = 0,
    ) -> None:
        self.election = Election(host, options, incarnation=incarnation)
        self.router = router(host, self.election)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, Heartbeat):
            self.election.receive(sender, message)
        else:
            self.router.receive(sender, message)


class Enclosed(Message, frozen=True):
    """What one process says to another, or to all that hear it: the world knows devices only. It costs nothing more."""

    sender: NodeId
    message: Heartbeat | Numbered | Ack | Carried
    to: NodeId = ""

    @property
    def size_b(self) -> int:
        return self.message.size_b


class Device:
    """A node with any of the three roles, each a process of its own that can come and go.

    On device 7 the processes are b7, s7 and p7. They speak to one another without the air, and a client beside a broker
    should be given that as its `home`.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.processes: dict[NodeId, Core] = {}
        self._inside: dict[NodeId, _Inside] = {}

    def play(self, role: str, start: Callable[[Host], Core]) -> NodeId:
        """Take on a role, now; returns the name of the process."""
        name = role + self.host.name
        if name in self.processes:
            raise LocalError(f"device {self.host.name} plays {role!r} already")
        inside = self._inside[name] = _Inside(self, name)
        self.processes[name] = start(inside)
        return name

    def stop(self, role: str) -> None:
        """Give a role up; its process hears nothing more and none of its timers fires."""
        name = role + self.host.name
        if name not in self.processes:
            raise LocalError(f"device {self.host.name} does not play {role!r}")
        del self.processes[name], self._inside[name]

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, Enclosed):
            for name in [message.to] if message.to else list(self.processes):
                self.hand(message.sender, name, message.message)

    def hand(self, sender: NodeId, to: NodeId, message: Message) -> None:
        process = self.processes.get(to)
        if process is not None:
            process.receive(sender, message)

    def is_running(self, inside: _Inside) -> bool:
        return self._inside.get(inside.name) is inside


class _Inside:
    """The host that a process on a device sees."""

    def __init__(self, device: Device, name: NodeId) -> None:
        self.device = device
        self.name = name

    @property
    def random(self) -> Random:
        return self.device.host.random

    def now(self) -> float:
        return self.device.host.now()

    def send(self, to: NodeId, message: Message) -> None:
        host = self.device.host
        if to[1:] == host.name:
            host.after(0.0, lambda: self.device.hand(self.name, to, message))
        else:
            host.send(to[1:], Enclosed(self.name, message, to))  # type: ignore[arg-type]

    def broadcast(self, message: Message) -> None:
        self.device.host.broadcast(Enclosed(self.name, message))  # type: ignore[arg-type]

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        def fire() -> None:
            if self.device.is_running(self):
                call()

        return self.device.host.after(delay_s, fire)

    def trace(self, record: Record) -> None:
        self.device.host.trace(record)
