"""Brokers on the simulator's engine, joined by streams that keep their order and nothing else: each is as slow as its
dice say. Whatever a crash takes from a broker it takes from the streams too; what is on the disk stays."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.base import Fabric
from godwit.protocols.broker.fabric.tree import TreeFabric, TreeOptions
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Handoff
from godwit.protocols.broker.handoff.directory import Directory
from godwit.protocols.broker.handoff.homes import CareOf, Hashed
from godwit.protocols.broker.messages import Content
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.links import Wire
from godwit.sim.brokers.site import SimHost, Site
from godwit.sim.engine import Engine
from godwit.sim.streams import Streams

EPOCH_S = 1_700_000_000.0


class World:
    """Brokers b1 ... bn that all know each other, unless told otherwise."""

    def __init__(
        self,
        count: int = 1,
        seed: int = 0,
        *,
        delay_s: float = 0.05,
        disk_s: float = 0.01,
        session_wait_s: float = 10.0,
        handoff: Handoff = "reactive",
        copies_bytes_max: int = COPIES_BYTES_MAX,
        likely: Mapping[NodeId, tuple[NodeId, ...]] | None = None,
        tracing: bool = False,
        archives: bool = False,
    ) -> None:
        self.engine = Engine()
        self.dice = Streams(seed)
        self.disk_s = disk_s
        self.delay_s = delay_s
        self.session_wait_s = session_wait_s
        self.handoff: Handoff = handoff
        self.copies_bytes_max = copies_bytes_max
        self.likely = likely or {}
        self.names = [f"b{at}" for at in range(1, count + 1)]
        self.tracing = tracing
        self.archives = archives
        """Every broker keeps what its clients publish."""
        self.said: list[tuple[NodeId, tuple[NodeId, ...], Content]] = []
        """Everything that brokers have said to one another, in its order."""
        self.sites: dict[NodeId, Site] = {}
        self.number = 0
        self._moving: set[tuple[NodeId, NodeId]] = set()
        self._times: dict[tuple[NodeId, NodeId], float] = {}
        self._slow: dict[tuple[NodeId, NodeId], Random] = {}
        self._cuts: set[frozenset[NodeId]] = set()
        for name in self.names:
            self.sites[name] = Site(self, name)
        for site in self.sites.values():
            site.known = set(self.sites)
            site.start()

    def fabric(self, site: Site, host: SimHost, store: MemoryStore) -> Fabric:
        return Wire(site, host, store)

    def directory(self, site: Site, host: SimHost, fabric: Fabric) -> Directory | None:
        """None: every broker is told where sessions are."""
        return None

    def started(self, site: Site) -> None:
        for other in self.sites.values():
            if other is not site and other.up:
                self.wake(site.name, other.name)
                self.wake(other.name, site.name)

    def crashed(self, site: Site) -> None: ...

    def write_s(self, dice: Random) -> float:
        """Half of what a disk takes to write."""
        return dice.uniform(0, self.disk_s)

    def clock(self) -> float:
        return EPOCH_S + self.engine.now

    def run(self, duration_s: float = 5.0) -> None:
        self.engine.run(self.engine.now + duration_s)

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def _delay(self, sender: NodeId, receiver: NodeId) -> float:
        """Each stream has its own pace, which changes all the time."""
        dice = self.dice_of(sender, receiver)
        return dice.uniform(0, self.delay_s) * dice.choice((0.1, 1, 1, 10))

    def dice_of(self, sender: NodeId, receiver: NodeId) -> Random:
        key = (sender, receiver)
        if key not in self._slow:
            self._slow[key] = self.dice.stream("wire", *key)
        return self._slow[key]

    def spread_interest(self, site: Site) -> None:
        statement = site.statement
        for other in self.sites.values():
            if other is not site:
                call = partial(self._hear, other, site, statement)
                self.engine.after(self._delay(site.name, other.name), call)

    def _hear(self, site: Site, origin: Site, statement: tuple[int, tuple[Filter, ...]]) -> None:
        """Interest is flooded again and again: whoever was away hears the newest in the end."""
        if not site.up or self.is_cut(site.name, origin.name):
            self.engine.after(0.5, lambda: self._hear(site, origin, origin.statement))
        elif statement[0] > site.heard.get(origin.name, (0, ()))[0]:
            site.heard[origin.name] = statement
            site.wire.on_change()

    def give_up(self, broker: NodeId) -> None:
        """Nobody expects it back."""
        for site in self.sites.values():
            site.known.discard(broker)
            site.heard.pop(broker, None)
            if site.up and site.name != broker:
                site.wire.on_change()

    def cut(self, one: NodeId, other: NodeId) -> None:
        """They do not hear each other any more, nor through others."""
        self._cuts.add(frozenset((one, other)))

    def heal(self, one: NodeId, other: NodeId) -> None:
        self._cuts.discard(frozenset((one, other)))
        self.wake(one, other)
        self.wake(other, one)

    def heal_all(self) -> None:
        for one, other in [tuple(sorted(cut)) for cut in self._cuts]:
            self.heal(one, other)

    def is_cut(self, one: NodeId, other: NodeId) -> bool:
        return frozenset((one, other)) in self._cuts

    def wake(self, sender: NodeId, receiver: NodeId) -> None:
        """Carry the next of a stream, unless one is on its way."""
        if (sender, receiver) not in self._moving:
            self._moving.add((sender, receiver))
            self.engine.after(self._delay(sender, receiver), lambda: self._carry(sender, receiver))

    def _carry(self, sender: NodeId, receiver: NodeId) -> None:
        self._moving.discard((sender, receiver))
        source, target = self.sites[sender], self.sites[receiver]
        if not (source.up and target.up) or self.is_cut(sender, receiver):
            return
        found = source.wire.next_for(receiver, target.wire.given.get(sender, 0))
        if found is not None:
            target.wire.give(sender, *found)
            self.wake(sender, receiver)

    def confirm(self, sender: NodeId, receiver: NodeId, number: int) -> None:
        source = self.sites[sender]
        if source.up and not self.is_cut(sender, receiver):
            source.wire.confirmed(receiver, number)


OPTIONS = TreeOptions(streams=StreamOptions(retry_s=0.5, retry_max_s=4.0), refresh_s=20.0, forget_s=10_000.0)


class Even(World):
    """Every message takes the same time, and the disk none."""

    def __init__(self, count: int, *, delay_s: float = 0.05, **more: Any) -> None:
        super().__init__(count, delay_s=delay_s, disk_s=0.0, **more)

    def _delay(self, sender: NodeId, receiver: NodeId) -> float:
        return self.delay_s


class Slow(Even):
    """Every write takes a second, and messages hardly anything."""

    def __init__(self, count: int, **more: Any) -> None:
        super().__init__(count, delay_s=0.001, **more)

    def write_s(self, dice: Random) -> float:
        return 0.5


class Paced(Even):
    """Every write takes as long as a message."""

    def write_s(self, dice: Random) -> float:
        return self.delay_s / 2


class Homed(World):
    """Brokers of which none knows where all sessions are: they ask the homes of a client."""

    def directory(self, site: Site, host: SimHost, fabric: Fabric) -> Directory | None:
        return CareOf(host, fabric, Hashed(host.name, fabric))


class Trees(World):
    """The same world with the fabric that people run: links in a ring, which break when one end crashes."""

    def fabric(self, site: Site, host: SimHost, store: MemoryStore) -> Fabric:
        def carry(to: NodeId | None, message: Message) -> None:
            for other in self._beside(site):
                if to in (None, other.name):
                    self._link(site, other, message)

        host.carry = carry
        return TreeFabric(host, store, OPTIONS)

    def _link(self, sender: Site, receiver: Site, message: Message) -> None:
        lives, when = (sender.lives, receiver.lives), self._times
        way = (sender.name, receiver.name)
        when[way] = max(self.engine.now + self.dice_of(*way).uniform(0, 0.01), when.get(way, 0.0))
        self.engine.at(when[way], lambda: self._arrive(sender, receiver, lives, message))

    def _arrive(self, sender: Site, receiver: Site, lives: tuple[int, int], message: Message) -> None:
        if sender.up and receiver.up and lives == (sender.lives, receiver.lives):
            receiver.fabric.receive(sender.name, message)

    def _beside(self, site: Site) -> list[Site]:
        sites = list(self.sites.values())
        at = sites.index(site)
        near = dict.fromkeys((sites[at - 1], sites[(at + 1) % len(sites)]))
        return [one for one in near if one is not site and one.up]

    def started(self, site: Site) -> None:
        for other in self._beside(site):
            site.fabric.linked(other.name)
            other.fabric.linked(site.name)

    def crashed(self, site: Site) -> None:
        for other in self._beside(site):
            other.fabric.unlinked(site.name)
