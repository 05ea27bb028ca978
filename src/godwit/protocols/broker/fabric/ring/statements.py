"""What this broker tells the owners of cells that it wants, each what concerns its cells, and who has noted it.

Whoever is told is on the disk: these are the brokers that may send something (`sources`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.ring.atlas import TABLE, Atlas
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Noted, Region, Wanted
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.sequence import Numbers
from godwit.protocols.gathering.areas import Reach, meets
from godwit.protocols.host import Host, NodeId, Timer

ROWS = "stated "


class Stated(msgspec.Struct, frozen=True, array_like=True):
    """What a broker was told last, and under which number these filters were first told."""

    statement: int
    filters: tuple[Filter, ...]
    since: int
    late: bool = False
    """Another broker stands in for it, and it may not know that yet: it may still match there."""
    less: bool = False
    """These are fewer than before. That is not durable on its way: it is said again when one of the two restarts."""
    cells: tuple[str, ...] = ()
    """What the filters were chosen for."""
    asked: int = 0
    """Of one that is late: from this statement on its answer says whether it knows by now."""


UNSTATED = Stated(0, (), 0)


class Expected(msgspec.Struct):
    """Somebody waits until these filters are covered."""

    filters: tuple[Filter, ...]
    then: Callable[[bool], None]
    timer: Timer | None = None


class Statements:
    """`say(to, content, durable)`. `heirs` are cells that are about to change hands, by their owners to be."""

    def __init__(
        self,
        host: Host,
        store: Store,
        atlas: Atlas,
        targets: Targets,
        say: Callable[[NodeId, Wanted, bool], None],
        heirs: Mapping[str, Region],
        is_safe: Callable[[], bool],
    ) -> None:
        self.host = host
        self.store = store
        self.atlas = atlas
        self.targets = targets
        self.say = say
        self.heirs = heirs
        self.is_safe = is_safe
        """Whether what this broker wants of its own cells is in the replicas of its book."""
        self.numbers = Numbers(store, "statements", block=4_096)
        self.gateways: Collection[NodeId] = ()
        """Of the site, if it has any: they are told all that is wanted, whatever cells they own."""
        self.filters: tuple[Filter, ...] = ()
        self.stated: dict[NodeId, Stated] = {}
        self.noted: dict[NodeId, int] = {}
        self._certain: dict[str, Region] = {}
        """By prefix: cells whose owners have said themselves that they have them, with this broker in their books. They
        tell it when they give them away."""
        self._claimed: dict[NodeId, tuple[Region, ...]] = {}
        """By broker: the cells that it has called its own last, whether they are believed to be its own yet or not."""
        self._expected: list[Expected] = []
        for owner, _, row in store.load(TABLE):
            if owner.startswith(ROWS):
                self.stated[owner.removeprefix(ROWS)] = msgspec.msgpack.decode(row, type=Stated)

    def start(self) -> None:
        """Who has noted what is not on the disk: ask again."""
        for broker, before in list(self.stated.items()):
            # In full: what was written as stated may not have left.
            number = self.numbers.next()
            self._renew(broker, msgspec.structs.replace(before, less=True, asked=number), number)

    def want(self, filters: Iterable[Filter]) -> int:
        self.filters = tuple(filters)
        statement = self.numbers.next()
        self.review()
        return statement

    def review(self) -> None:
        """Cells, owners or wishes have changed: tell whom it concerns. Nobody is told less here, but for what nobody
        wants any longer: see `_withdraw`."""
        owners = {*self.atlas.owners, *(one.owner for one in self.heirs.values()), *self.gateways}
        for broker in sorted((owners | self.stated.keys()) - {self.atlas.name}):
            wanted, before = self._concerning(broker), self.stated.get(broker)
            if before is not None:
                told = before.filters
                wanted = tuple(one for one in self.filters if broker not in owners or one in wanted or one in told)
            if wanted and (before is None or before.filters != wanted):
                self._state(broker, wanted)
        self._withdraw()
        self.look()

    def _concerning(self, broker: NodeId) -> tuple[Filter, ...]:
        if broker in self.gateways:
            return self.filters
        cells, of_filter = [one.cell for one in self._regions(broker)], self.targets.of_filter
        return tuple(
            one for one in self.filters if any(meets(cell, reach) for reach in of_filter(one) for cell in cells)
        )

    def _regions(self, broker: NodeId) -> list[Region]:
        """The cells that it has, or is to have, as far as it is known here."""
        found = [one for one in (*self.atlas.regions.values(), *self.heirs.values()) if one.owner == broker]
        # It may match there already while somebody else is still asked whether the cell has left it (`doubts`).
        return found + [one for one in self._claimed.get(broker, ()) if not self.atlas.rivals(one)]

    def _cells(self, broker: NodeId) -> tuple[str, ...]:
        return tuple(sorted({one.prefix for one in self._regions(broker)}))

    def _state(self, broker: NodeId, filters: tuple[Filter, ...]) -> None:
        number = self.numbers.last
        if (before := self.stated.get(broker)) is None or before.statement >= number:
            number = self.numbers.next()  # what it was told before, and forgotten here, has a lower one
        cells, known = self._cells(broker), self._last(broker)
        self.stated[broker] = Stated(number, filters, number, known.late, cells=cells, asked=known.asked)
        self._keep(broker)
        self.say(broker, Wanted(number, filters, cells=cells), True)

    @property
    def has_late(self) -> bool:
        """Whether another stands in for anybody who has not said that it knows."""
        return any(one.late for one in self.stated.values())

    def late(self, broker: NodeId) -> None:
        """Another stands in for it. Until it says itself that it knows, it is a source of what it was told."""
        if broker in self.stated:
            self.name((broker,))

    def name(self, brokers: Iterable[NodeId]) -> None:
        """These may be late, and so sources of whatever is wanted: a session has come for which they are by the word of
        the place where it was. They are told all before they turn to anything."""
        for broker in brokers:
            before = self._last(broker)
            if broker == self.atlas.name or before.late:
                continue
            number = self.numbers.next()
            self.stated[broker] = before = msgspec.structs.replace(before, late=True, asked=number)
            self._keep(broker)
            if before.filters:
                self._renew(broker, before, number)

    def settled(self, broker: NodeId) -> None:
        """It has said what its cells are, behind all that it has sent."""
        before = self.stated.get(broker)
        if before is not None and before.late:
            self.stated[broker] = msgspec.structs.replace(before, late=False)
            self._keep(broker)
            self._withdraw()

    def late_of(self, brokers: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """Those of these that may be late, for all that is known here. Who gets a session from here is told of them: it
        may have heard of those only who have the cells now."""
        return tuple(name for name in brokers if self._last(name).late and self._last(name).filters)

    def _last(self, broker: NodeId) -> Stated:
        return self.stated.get(broker, UNSTATED)

    def _withdraw(self) -> None:
        """Only when all owners have noted what is wanted: a cell that this broker has not heard of may be somebody's
        whom it has told all the same."""
        for broker, before in list(self.stated.items()):
            wanted = self._concerning(broker)
            if wanted == before.filters or before.late or not self.is_covered:
                continue
            if not wanted:
                self._doubt(broker)
            number = self.numbers.next()
            self.stated[broker] = Stated(number, wanted, before.since, less=True, cells=self._cells(broker))
            self._keep(broker)
            self._say_less(broker)

    def _say_less(self, broker: NodeId) -> None:
        stated = self.stated[broker]
        self.say(broker, Wanted(stated.statement, stated.filters, cells=stated.cells), False)

    def repeat(self, broker: NodeId) -> None:
        """What it was told may not have come, as far as it was not durable."""
        if broker in self.stated and self.stated[broker].less:
            self._say_less(broker)

    def _forget(self, broker: NodeId) -> None:
        """It knows that nothing is wanted of it."""
        del self.stated[broker]
        self._claimed.pop(broker, None)
        self.store.delete(TABLE, ROWS + broker, 0)

    def _keep(self, broker: NodeId) -> None:
        self.store.put(TABLE, ROWS + broker, 0, msgspec.msgpack.encode(self.stated[broker]))

    def before_turn(self, broker: NodeId, statement: int) -> bool:
        """A broker is to turn to a session: whether it must know of this statement first, and is told. It may have more
        cells than this broker has heard of, or match in one that it has lost: then it is told all, until that is
        certain."""
        before = self.stated.get(broker)
        certain = not self._last(broker).late and self.is_certain(self.filters)
        if certain and (before is None or not before.filters):
            return False  # it matches nothing that is wanted here
        if not certain and (before is None or before.filters != self.filters):
            self._state(broker, self.filters)
        elif before is not None and before.statement < statement:
            self._renew(broker, before, statement)
        return True

    def _renew(self, broker: NodeId, before: Stated, statement: int) -> None:
        """The same under a later number; in full where it may not know that it is less than before."""
        self.stated[broker] = msgspec.structs.replace(before, statement=statement, less=False)
        self._keep(broker)
        self.say(broker, Wanted(statement, before.filters if before.less else None, cells=before.cells), True)

    def is_certain(self, filters: Iterable[Filter]) -> bool:
        """Whether all owners of what these want are known by their own word, with this broker in their books."""
        reaches = self.targets.of_filters(filters)
        known = [one for reach in reaches for one in self.atlas.meeting(reach) if one.owner != self.atlas.name]
        if not all(map(self.atlas.covers, reaches)):
            return False
        told = self._told()
        return all(self._certain.get(one.prefix) == one and one.owner in told for one in known)

    def _doubt(self, broker: NodeId) -> None:
        """It may give away a cell without telling this broker."""
        self._certain = {prefix: one for prefix, one in self._certain.items() if one.owner != broker}

    def on_noted(self, broker: NodeId, noted: Noted) -> None:
        self.noted[broker] = max(self.noted.get(broker, 0), noted.statement)
        if self._last(broker).late and 0 < self._last(broker).asked <= noted.statement and self._knows(broker, noted):
            self.settled(broker)
        stated = self.stated.get(broker)
        if stated is not None and stated.filters:
            claimed = self._claimed[broker] = tuple(one for one in noted.regions if one.owner == broker)
            self._certain.update((one.prefix, one) for one in claimed)
        if stated is not None and stated.less and noted.statement < stated.statement:
            self._say_less(broker)
        elif stated is not None and not stated.filters:
            self._forget(broker)
        self._withdraw()
        self.look()

    def _knows(self, broker: NodeId, noted: Noted) -> bool:
        """Whether it calls nothing its own that is another's by now. Else it hears so, and tells all in its book."""
        own = (one for one in noted.regions if one.owner == broker)
        return all(rival.owner == broker for one in own for rival in self.atlas.rivals(one))

    def lost(self, broker: NodeId) -> None:
        """It has lost its disk, and with it what it was told."""
        self.noted.pop(broker, None)
        self._claimed.pop(broker, None)
        self._doubt(broker)
        self.settled(broker)
        before = self.stated.get(broker)
        if before is not None:
            self._state(broker, self._concerning(broker) or before.filters)

    def sources(self, filters: Iterable[Filter]) -> set[NodeId]:
        """The brokers that may send something that these filters want."""
        reaches = self.targets.of_filters(filters)
        known = [*self.atlas.regions.values(), *self.heirs.values()]
        placed = {one.owner for one in known}
        near = {one.owner for one in known if any(meets(one.cell, reach) for reach in reaches)}
        told = self._told() | {one.owner for one in self.heirs.values()}
        near.update(self.gateways)  # they send nothing, but must know where it is wanted before it moves
        late = {name for name, one in self.stated.items() if one.late}
        return {name for name in told if name in near or name in late or name not in placed} - {self.atlas.name}

    def _told(self) -> set[NodeId]:
        """Those in whose books this broker is."""
        return {name for name, one in self.stated.items() if one.filters}

    # Covered

    def reaches(self) -> tuple[Reach, ...]:
        return self.targets.of_filters(self.filters)

    def missing(self) -> list[Reach]:
        """What is wanted and lies in cells whose owners are not known."""
        return [reach for reach in self.reaches() if not self.atlas.covers(reach)]

    def awaited(self) -> list[Reach]:
        """What somebody waits for until it is covered."""
        return list(dict.fromkeys(reach for one in self._expected for reach in self.targets.of_filters(one.filters)))

    @property
    def is_covered(self) -> bool:
        if self.missing():
            return False
        return all(self._has_noted(name) for name in self.stated)

    def _has_noted(self, broker: NodeId) -> bool:
        if broker == self.atlas.name:
            return self.is_safe()
        stated = self.stated.get(broker)
        return stated is not None and self.noted.get(broker, 0) >= stated.since

    def covers(self, filters: Iterable[Filter]) -> bool:
        """Whether all owners that may match something that these filters want are known, and have noted it."""
        reaches = self.targets.of_filters(filters)
        if not all(map(self.atlas.covers, reaches)):
            return False
        return all(self._has_noted(one.owner) for reach in reaches for one in self.atlas.meeting(reach))

    def expect(self, filters: Iterable[Filter], then: Callable[[bool], None], wait_s: float) -> None:
        """`then(covered)` follows once: when these are covered, which must be wanted by now, or after so long."""
        expected = Expected(tuple(filters), then)
        expected.timer = self.host.after(wait_s, partial(self._late, expected))
        self._expected.append(expected)
        self.look()

    def _late(self, expected: Expected) -> None:
        if expected in self._expected:
            self._expected.remove(expected)
            expected.then(self.covers(expected.filters))

    def look(self) -> None:
        """Whether somebody need not wait any longer."""
        for one in [one for one in self._expected if self.covers(one.filters)]:
            self._expected.remove(one)
            if one.timer is not None:
                one.timer.cancel()
            one.then(True)
