"""The replicas of other brokers' books that this one keeps, and how it stands in for an owner that is silent.

Only both holders together stand in: the first one takes nothing more from the owner, the second neither, and sends what
it has. So whatever the owner has granted is in one of the two. Everybody in the book then agrees, as where a cell is
divided (`membership`), and the cell has a new owner. The old one gives way when it hears of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.replicas import HOLDERS
from godwit.protocols.broker.messages import (
    Amended,
    Awake,
    BookEntry,
    Region,
    Replica,
    Standin,
    Undivided,
    Unfit,
    Watched,
)
from godwit.protocols.host import NodeId, Record

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric

COPIES, ENTRIES = "copy ", "entry "
WATCHES_MAX = 4
"""An owner that speaks by itself is told all the same, each so many times that a holder looks."""


class Held(msgspec.Struct, array_like=True):
    """The row of one owner; the entries of its book have rows of their own."""

    owner: NodeId
    version: int
    regions: tuple[Region, ...]
    holders: tuple[NodeId, ...]
    fenced_by: NodeId = ""
    """Who stands in for the owner, or tries to: nothing more is taken from that."""


class Standins:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self.host = fabric.host
        self.held: dict[NodeId, Held] = {}
        self.books: dict[NodeId, dict[NodeId, BookEntry]] = {}
        self._heard_s: dict[NodeId, float] = {}
        self._tried_s: dict[NodeId, float] = {}
        self._said: dict[NodeId, tuple[int, float]] = {}
        """By owner: the version that it was last told is kept here, and when."""
        for owner, _, row in fabric.store.load(TABLE):
            if owner.startswith(COPIES):
                held = msgspec.msgpack.decode(row, type=Held)
                self.held[held.owner] = held
            elif owner.startswith(ENTRIES):
                entry = msgspec.msgpack.decode(row, type=BookEntry)
                self.books.setdefault(owner.removeprefix(ENTRIES).partition("\0")[0], {})[entry.broker] = entry

    def start(self) -> None:
        for held in list(self.held.values()):
            if held.fenced_by == self.host.name:
                self._abandon(held, "this broker has restarted")
        self.host.after(self.fabric.options.watch_s, self._watch)

    # Keeping

    def on_replica(self, origin: NodeId, replica: Replica) -> None:
        if replica.owner == self.host.name:
            self.fabric.replicas.on_returned(origin, replica)
        elif replica.owner != origin:
            self._on_joined(origin, replica)
        elif not self._is_fenced(origin):
            self.fabric.learn(replica.cells, said_by=origin)
            if not self._is_overruled(replica):
                self._keep_whole(replica)

    def _is_overruled(self, replica: Replica) -> bool:
        """Whether it names a cell that is another's by now, or a part of one: somebody has stood in for its owner,
        which has not heard of it. Once this is confirmed the owner grants something there, or gives a part away."""
        rivals = (one for region in replica.regions for one in self.fabric.atlas.rivals(region))
        return any(one.owner != replica.owner for one in rivals)

    def _is_fenced(self, owner: NodeId) -> bool:
        held = self.held.get(owner)
        return held is not None and bool(held.fenced_by)

    def _keep_whole(self, replica: Replica) -> None:
        before = self.held.get(replica.owner)
        fenced_by = "" if before is None else before.fenced_by
        self._drop(replica.owner)
        if replica.regions:
            held = Held(replica.owner, replica.version, replica.regions, replica.holders, fenced_by)
            self.held[replica.owner] = held
            self._keep(held)
            for entry in replica.book:
                self._keep_entry(replica.owner, entry)
        if replica.holders and not fenced_by:
            self._answer(replica.owner, replica.version)

    def on_amended(self, origin: NodeId, amended: Amended) -> None:
        held = self.held.get(origin)
        if held is None or held.fenced_by:
            return
        if amended.version == held.version + 1:
            held.version = amended.version
            self._keep(held)
            self._keep_entry(origin, amended.entry)
        self._answer(origin, held.version)

    def _answer(self, owner: NodeId, version: int) -> None:
        """Once it is on the disk."""
        self.fabric.store.settled(partial(self._say_version, owner, version))

    def _say_version(self, owner: NodeId, version: int) -> None:
        self._said[owner] = version, self.host.now()
        self.fabric.send((owner,), Watched(version), durable=False)

    def _keep(self, held: Held) -> None:
        self.fabric.store.put(TABLE, COPIES + held.owner, 0, msgspec.msgpack.encode(held))

    def _keep_entry(self, owner: NodeId, entry: BookEntry) -> None:
        row = f"{ENTRIES}{owner}\0{entry.broker}"
        book = self.books.setdefault(owner, {})
        if entry.filters:
            book[entry.broker] = entry
            self.fabric.store.put(TABLE, row, 0, msgspec.msgpack.encode(entry))
        elif book.pop(entry.broker, None) is not None:
            self.fabric.store.delete(TABLE, row, 0)

    def _drop(self, owner: NodeId) -> None:
        if self.held.pop(owner, None) is not None:
            self.fabric.store.delete(TABLE, COPIES + owner, 0)
        for broker in self.books.pop(owner, {}):
            self.fabric.store.delete(TABLE, f"{ENTRIES}{owner}\0{broker}", 0)

    def review(self) -> None:
        """Cells that have other owners by now are none to stand in for."""
        for held in list(self.held.values()):
            left = tuple(one for one in held.regions if not self._has_gone(held.owner, one))
            if not left:
                self._drop(held.owner)
            elif left != held.regions:
                held.regions = left
                self._keep(held)

    def _has_gone(self, owner: NodeId, region: Region) -> bool:
        known = self.fabric.atlas.regions.get(region.prefix)
        return known is not None and known.owner != owner and known.term > region.term

    # Watching

    def heard(self, owner: NodeId) -> None:
        """It has said something, so it is there."""
        self._heard_s[owner] = self.host.now()
        held = self.held.get(owner)
        if held is not None and held.fenced_by == self.host.name:
            self._abandon(held, "it is back")

    def silent_s(self, broker: NodeId) -> float:
        return self.host.now() - self._heard_s.setdefault(broker, self.host.now())

    def _is_owed_word(self, held: Held) -> bool:
        """Whether the owner is to be told what is kept of its book, and so asked whether it is there. Whoever leaves
        something unconfirmed is asked by its stream. Whoever has just spoken is there, and has heard this broker."""
        if self.fabric.unconfirmed.get(held.owner):
            return False
        version, said_s = self._said.get(held.owner, (-1, 0.0))
        watch_s, now_s = self.fabric.options.watch_s, self.host.now()
        is_new = version != held.version or now_s - said_s >= WATCHES_MAX * watch_s
        return is_new or self.silent_s(held.owner) >= watch_s

    def _watch(self) -> None:
        fabric = self.fabric
        for held in list(self.held.values()):
            if self._is_owed_word(held):
                self._say_version(held.owner, held.version)
            if self._is_due(held):
                self._begin(held)
        fabric.replicas.ask()
        for holder in fabric.replicas.holders:
            others = [name for name in fabric.replicas.holders if name != holder]
            if self.silent_s(holder) > fabric.options.replace_s and all(self.silent_s(one) < 5 for one in others):
                fabric.replicas.replace(holder)
        self.host.after(fabric.options.watch_s, self._watch)

    def _is_due(self, held: Held) -> bool:
        """The second holder leaves the first one time."""
        if held.fenced_by or len(held.holders) < HOLDERS or self.host.name not in held.holders:
            return False
        if not self.fabric.is_member or self.fabric.membership.division is not None:
            return False
        wait_s = self.fabric.options.absent_s * (1 + held.holders.index(self.host.name) / 2)
        tried_s = self.host.now() - self._tried_s.get(held.owner, -wait_s)
        return self.silent_s(held.owner) >= wait_s and tried_s >= wait_s

    # Standing in

    def _begin(self, held: Held) -> None:
        held.fenced_by = self.host.name
        self._keep(held)
        self._tried_s[held.owner] = self.host.now()
        self.fabric.send(self._fellows(held), Standin(held.owner, held.version), durable=False)
        self.host.after(self.fabric.options.agree_s, partial(self._give_up, held, self.host.now()))

    def _fellows(self, held: Held) -> Iterable[NodeId]:
        return tuple(name for name in held.holders if name != self.host.name)

    def _give_up(self, held: Held, since_s: float) -> None:
        division = self.fabric.membership.division
        is_dividing = division is not None and division.owner == held.owner
        is_same = self.held.get(held.owner) is held and self._tried_s.get(held.owner) == since_s
        if is_same and held.fenced_by == self.host.name and not is_dividing:
            self._abandon(held, "the other holder does not answer")

    def on_standin(self, origin: NodeId, asked: Standin) -> None:
        held = self.held.get(asked.owner)
        if held is None or self._is_outdated(origin, asked, held):
            self.fabric.send((origin,), Unfit(asked.owner, stale=held is not None), durable=False)
        elif self.silent_s(asked.owner) < self.fabric.options.absent_s / 2 or held.fenced_by not in ("", origin):
            self.fabric.send((origin,), Unfit(asked.owner), durable=False)
        else:
            held.fenced_by = origin
            self._keep(held)
            for region in held.regions:
                self.fabric.on_cede(origin, region.cell)
            self.fabric.send((origin,), self._whole(held))

    @staticmethod
    def _is_outdated(origin: NodeId, asked: Standin, held: Held) -> bool:
        return origin not in held.holders and held.version > asked.version

    def _whole(self, held: Held) -> Replica:
        book = tuple(self.books.get(held.owner, {}).values())
        return Replica(held.owner, held.version, held.regions, held.holders, book)

    def on_unfit(self, origin: NodeId, unfit: Unfit) -> None:
        held = self.held.get(unfit.owner)
        if held is None or held.fenced_by != self.host.name:
            return
        if unfit.stale:
            self._drop(unfit.owner)
        else:
            self._abandon(held, f"{origin} does not agree")

    def _on_joined(self, origin: NodeId, replica: Replica) -> None:
        """The other holder's replica: the newer of the two is what the owner has granted."""
        held = self.held.get(replica.owner)
        if held is None or held.fenced_by != self.host.name or origin not in held.holders:
            self.fabric.send((origin,), Undivided(0, replica.owner))
            return
        if replica.version > held.version:
            self._keep_whole(replica)
            held = self.held[replica.owner]
        membership = self.fabric.membership
        if self.host.name not in held.holders or membership.division is not None or not self.fabric.is_member:
            self._abandon(held, "this broker cannot stand in now")
        else:
            asked = {self.host.name, *held.holders, *self.books.get(held.owner, {})} - {held.owner}
            membership.stand_in(held.owner, held.regions[0], asked)

    def _abandon(self, held: Held, why: str) -> None:
        self.host.trace(Record("undivided", peer=held.owner, note=why))
        self.abandon(held.owner)
        self.fabric.send(self._fellows(held), Undivided(0, held.owner))
        self.fabric.membership.break_off(held.owner)

    def abandon(self, owner: NodeId) -> None:
        """This broker does not stand in for that one. It tries again after a while."""
        self._tried_s[owner] = self.host.now()
        self.unfence(owner, self.host.name)

    def unfence(self, owner: NodeId, by: NodeId) -> None:
        held = self.held.get(owner)
        if held is not None and held.fenced_by == by:
            held.fenced_by = ""
            self._keep(held)

    def succeeded(self, owner: NodeId, by: NodeId) -> None:
        """Another stands in for the owner by its own word, and for what else that has it asks again. The word may be so
        late that the owner has the cell back. So what is known of the cell does not tell when the fence has to go."""
        self.review()  # first: nothing more is taken from the owner for a cell that the other has
        self.unfence(owner, by)

    def reborn(self, broker: NodeId) -> None:
        """It has lost its disk, and does not know for whom it was to stand in."""
        for owner in list(self.held):
            self.unfence(owner, broker)

    def assumed(self, owner: NodeId) -> list[BookEntry]:
        """A cell of this owner is this broker's: what its book says. Other cells of it follow one by one."""
        held = self.held.get(owner)
        book = list(self.books.get(owner, {}).values())
        if held is not None:
            held.fenced_by = ""
            self._tried_s.pop(owner, None)
            self._keep(held)
        return book

    def on_awake(self, origin: NodeId, awake: Awake) -> None:
        """The owner has restarted, or does not know for another reason what is kept of its book. If it has lost its
        disk it gets that back."""
        held = self.held.get(origin)
        if awake.lost:
            self._return(origin, held)
        else:
            self._answer(origin, 0 if held is None else held.version)

    def _return(self, owner: NodeId, held: Held | None) -> None:
        """All holders may have lost their disks, too. Whoever wants something keeps what is retained of it as well."""
        if held is None:
            for region in [one for one in self.fabric.atlas.regions.values() if one.owner == owner]:
                self.fabric.on_lost(owner, region.cell)
            return
        for region in held.regions:
            self.fabric.on_cede(owner, region.cell)
        self.fabric.send((owner,), self._whole(held))
