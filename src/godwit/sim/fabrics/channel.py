"""Ends of streams in a simulated world, over a medium that loses, repeats and overtakes; and a checker beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from random import Random

from godwit.protocols.broker.messages import Content, Place
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.broker.streams.frames import Ask, Frame, Parcels, Taken, decode, encode
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.broker.streams.streams import Streams
from godwit.protocols.host import Message, NodeId
from godwit.sim.world import Node, Traffic, World

DISK_S = 0.005
Sent = tuple[int, bool]
"""What a test sends: a number of its own, and whether it is durable."""


class BadMedium(Traffic):
    """Everybody can speak to everybody; each message takes a time of its own, and some come never or twice."""

    def __init__(self, world: World, *, loss: float = 0.0, duplication: float = 0.0, delay_s: float = 0.02) -> None:
        super().__init__()
        self.world = world
        self.loss = loss
        self.duplication = duplication
        self.delay_s = delay_s
        self.dice: Random = world.streams.stream("chaos")

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self.count(sender, message)
        data = encode(message)
        for _ in range(1 + (self.dice.random() < self.duplication)):
            if self.dice.random() >= self.loss:
                at = self.world.engine.now + self.dice.uniform(0.001, self.delay_s)
                self.world.engine.at(at, partial(self._arrive, sender, to, data))

    def _arrive(self, sender: NodeId, to: NodeId, data: bytes) -> None:
        self.world.deliver(sender, to, decode(data))

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        raise NotImplementedError

    def silence(self, name: NodeId, /) -> None:
        """Frames are on their way whoever crashes."""


class StreamEnd:
    """A broker that does nothing but note, durably beside the mark, what it was given."""

    def __init__(self, node: Node, log: Log, options: StreamOptions) -> None:
        self.node = node
        self.log = log
        disk: Disk = node.disk.setdefault("disk", {})
        self.store = MemoryStore(disk, lambda call: node.after(DISK_S, call))
        self.streams = Streams(node, self.store, options, self._carry, lambda to: True, self._on_content)
        self.store.settled(self._start)

    def _start(self) -> None:
        self.streams.start()
        for name in self.node.world.nodes:
            self.streams.again(name)

    def _carry(self, frame: Parcels | Ask | Taken) -> None:
        match frame:
            case Parcels():
                for to in sorted({leg.to for run in frame.runs for leg in run.legs}):
                    self.node.send(to, frame)
            case Ask():
                self.node.send(frame.to, frame)
            case Taken():
                self.node.send(frame.origin, frame)

    def _on_content(self, origin: NodeId, number: int, content: Content) -> None:
        assert isinstance(content, Place)
        note(self.store, origin, content.epoch)
        self.log.given[self.node.name, origin].append(content.epoch)
        self.streams.taken(origin, number)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        assert isinstance(message, Frame)
        assert isinstance(message, Parcels | Ask | Taken)
        self.streams.receive(message)

    def send(self, to: Iterable[NodeId], mark: int, *, durable: bool) -> None:
        names = list(to)
        self.streams.send(names, Place("x", mark, durable), durable=durable)
        for name in names:
            self.log.sent[name, self.node.name].append((mark, durable))
        if durable:
            self.store.settled(partial(self.log.safe[self.node.name].add, mark))


class Log:
    """Outside of everything that crashes: what was sent, what of it was acknowledged, and what came."""

    def __init__(self) -> None:
        self.sent: dict[tuple[NodeId, NodeId], list[Sent]] = defaultdict(list)
        self.safe: dict[NodeId, set[int]] = defaultdict(set)
        self.given: dict[tuple[NodeId, NodeId], list[int]] = defaultdict(list)


def note(store: MemoryStore, origin: NodeId, mark: int) -> None:
    """Write down, behind what came before, that something has come: twice where it has come twice."""
    position = sum(owner == origin for owner, _, _ in store.load("queues"))
    store.put("queues", origin, position, str(mark).encode())


def on_disk(node: Node, origin: NodeId) -> list[int]:
    """What has come from an origin and is on the disk, in that order."""
    rows: dict[tuple[str, int], bytes] = node.disk.get("disk", {}).get("queues", {})
    return [int(value) for (owner, _), value in sorted(rows.items()) if owner == origin]
