"""A machine with a disk, and the lives of the broker that runs on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random
from typing import TYPE_CHECKING

from godwit.filters.filters import Filter
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.base import Fabric
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.host import Message, NodeId, Record
from godwit.sim.brokers.disk import Shelf, SimArchive
from godwit.sim.brokers.links import Wire
from godwit.sim.engine import Engine, Timer

if TYPE_CHECKING:
    from godwit.sim.brokers.world import World


class SimHost:
    """The host of one life of a broker: after a crash its timers do not fire."""

    def __init__(self, name: NodeId, engine: Engine, dice: Random) -> None:
        self.name = name
        self.engine = engine
        self.random = dice
        self.alive = True
        self.carry: Callable[[NodeId | None, Message], None] = lambda to, message: None
        self.records: list[Record] = []

    def now(self) -> float:
        return self.engine.now

    def send(self, to: NodeId, message: Message) -> None:
        self.carry(to, message)

    def broadcast(self, message: Message) -> None:
        self.carry(None, message)

    def after(self, delay_s: float, call: Callable[[], None]) -> Timer:
        return self.engine.after(delay_s, lambda: call() if self.alive else None)

    def trace(self, record: Record) -> None:
        self.records.append(record)


class Everybody:
    """Sends copies to all other brokers, or to those given; remembers where sessions went, and who had copies."""

    def __init__(self, likely: tuple[NodeId, ...]) -> None:
        self.brokers = likely
        self.moves: list[tuple[NodeId, tuple[NodeId, ...]]] = []
        self.befores: list[NodeId] = []
        """Where those had come from, in the same order."""

    def likely(self, before: NodeId) -> tuple[NodeId, ...]:
        return self.brokers

    def went(self, to: NodeId, copied: Collection[NodeId], before: NodeId) -> None:
        self.moves.append((to, tuple(copied)))
        self.befores.append(before)

    def came(self, source: NodeId) -> None: ...


class Site:
    """A machine: its disk outlives the brokers that run on it."""

    def __init__(self, world: World, name: NodeId) -> None:
        self.world = world
        self.name = name
        self.disk: Disk = {}
        self.known: set[NodeId] = set()
        self.heard: dict[NodeId, tuple[int, tuple[Filter, ...]]] = {}
        self.statement: tuple[int, tuple[Filter, ...]] = (0, ())
        self.lives = 0
        self.archive = Shelf() if world.archives else None
        """What clients published here; None where nobody keeps it."""
        self.offset_s = 0.0
        """How much its calendar is wrong."""
        self.host: SimHost
        self.fabric: Fabric
        self._broker: Broker | None = None

    @property
    def wire(self) -> Wire:
        assert isinstance(self.fabric, Wire)
        return self.fabric

    @property
    def up(self) -> bool:
        return self._broker is not None

    @property
    def broker(self) -> Broker:
        assert self._broker is not None, f"{self.name} is down"
        return self._broker

    def start(self) -> None:
        world = self.world
        self.lives += 1
        self.host = host = SimHost(self.name, world.engine, world.dice.stream("host", self.name, self.lives))
        slow = world.dice.stream("disk", self.name, self.lives)
        store = MemoryStore(self.disk, lambda call: host.after(world.write_s(slow), call))
        self.fabric = world.fabric(self, host, store)
        likely = world.likely.get(self.name, tuple(name for name in world.names if name != self.name))
        self.neighbors = Everybody(likely)
        self._broker = Broker(
            self.host,
            store,
            self.fabric,
            self.clock,
            session_wait_s=world.session_wait_s,
            handoff=world.handoff,
            neighbors=self.neighbors,
            copies_bytes_max=world.copies_bytes_max,
            directory=world.directory(self, host, self.fabric),
            tracing=world.tracing,
        )
        if self.archive is not None:
            past = SimArchive(self.archive, host, self.clock, world.dice.stream("archive", self.name, self.lives))
            self._broker.past, self._broker.on_published = past, past.add
        world.started(self)

    def clock(self) -> float:
        """The calendar of this machine."""
        return self.world.clock() + self.offset_s

    def crash(self) -> None:
        self.host.alive = False
        self._broker = None
        self.world.crashed(self)
