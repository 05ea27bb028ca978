"""The simulated world: nodes with protocol cores on one engine, and the media that carry their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from godwit.protocols.host import Core, Message, NodeId, Record, RemoteError
from godwit.protocols.routing.courier import Numbered
from godwit.sim.engine import Engine, Timer
from godwit.sim.streams import Streams

Deliver = Callable[[NodeId, NodeId, Message], None]


class Medium(Protocol):
    """Carries messages between nodes by calling `world.deliver(sender, to, message)` when they arrive."""

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None: ...
    def broadcast(self, sender: NodeId, message: Message, /) -> None: ...
    def silence(self, name: NodeId, /) -> None:
        """The node has crashed: whatever of its messages has not left it is gone."""


class Traffic:
    """What a medium has carried: messages and bytes by sender, and how often somebody received one."""

    def __init__(self) -> None:
        self.sent: Counter[tuple[NodeId, str]] = Counter()
        self.sent_b: Counter[NodeId] = Counter()
        self.received = 0

    def count(self, sender: NodeId, message: Message) -> int:
        """Note one message sent; its size."""
        size = message.size_b
        self.sent[sender, kind_of(message)] += 1
        self.sent_b[sender] += size
        return size


def kind_of(message: Message) -> str:
    """Its type; of an acknowledged message, the type of what it carries."""
    return type(message.message if isinstance(message, Numbered) else message).__name__


class Recorder(Protocol):
    def record(self, time_s: float, node: NodeId, record: Record, /) -> None: ...


class Forgetful:
    """Records nothing: for runs in which only the end state matters."""

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        pass


class Node:
    """One node and the `Host` its core sees. What a crash takes away is the core and its timers; `disk` stays."""

    def __init__(self, world: World, name: NodeId, start: Callable[[Node], Core]) -> None:
        self.world = world
        self.name = name
        self.start = start
        self.random: Random = world.streams.stream("node", name)
        self.disk: dict[str, Any] = {}
        self.clock_rate = 1.0
        self.clock_offset_s = 0.0
        self.life = 0
        self.core: Core | None = start(self)

    @property
    def alive(self) -> bool:
        return self.core is not None

    def now(self) -> float:
        return self.world.engine.now * self.clock_rate + self.clock_offset_s

    def send(self, to: NodeId, message: Message) -> None:
        self.world.medium.send(self.name, to, message)

    def broadcast(self, message: Message) -> None:
        self.world.medium.broadcast(self.name, message)

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """The delay is in this node's own seconds; a call from before a crash never fires."""
        timer = NodeTimer(call, self)
        engine = self.world.engine
        engine.at(engine.now + delay_s / self.clock_rate, timer)
        return timer

    def trace(self, record: Record) -> None:
        self.world.recorder.record(self.world.engine.now, self.name, record)

    def crash(self) -> None:
        self.core = None
        self.life += 1
        self.world.medium.silence(self.name)

    def restart(self, *, keep_disk: bool = True) -> None:
        """A new core, as at first boot but for what is on the disk. A node that is up goes down first."""
        self.crash()
        if not keep_disk:
            self.disk.clear()
        self.core = self.start(self)


class NodeTimer(Timer):
    """A timer that a crash of its node ends."""

    __slots__ = ("_life", "_node")

    def __init__(self, call: Callable[[], None], node: Node) -> None:
        self._call = call
        self._node = node
        self._life = node.life

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None and self._node.life == self._life:
            call()


class World:
    """Everything that one seed decides."""

    def __init__(self, seed: int, medium: Callable[[World], Medium], recorder: Recorder | None = None) -> None:
        self.engine = Engine()
        self.streams = Streams(seed)
        self.recorder: Recorder = recorder or Forgetful()
        self.nodes: dict[NodeId, Node] = {}
        self.medium = medium(self)

    def add(self, name: NodeId, start: Callable[[Node], Core]) -> Node:
        """A node whose core is made by `start(host)`, now and after every restart."""
        if name in self.nodes:
            raise ValueError(f"there is a node {name!r} already")
        node = self.nodes[name] = Node(self, name, start)
        return node

    def deliver(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Hand a message that has arrived to its node; a dead node hears nothing, a peer that lies is noted."""
        node = self.nodes[to]
        if node.core is None:
            return
        try:
            node.core.receive(sender, message)
        except RemoteError as error:
            node.trace(Record("refused", peer=sender, message=type(message).__name__, note=str(error)))

    def run(self, until: float = float("inf")) -> None:
        self.engine.run(until)
