"""A simulated disk: rows that outlive their broker, writes that take their time, and what goes wrong with disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from godwit.filters.filters import FilterSet
from godwit.protocols.broker.lasting.past import Stretch
from godwit.protocols.broker.messages import Position
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Changes, Disk, MemoryStore
from godwit.protocols.host import Host
from godwit.sim.world import Node

ROOM_S = 0.25
"""How often a full disk is tried again."""


class Wear:
    """What is wrong with the disk of one machine; times are those of the world. It outlives the brokers there."""

    def __init__(self, write_s: float, dice: Random) -> None:
        self.write_s = write_s
        """The longest that half a write takes while nothing is wrong."""
        self.dice = dice
        self.slow_s = 0.0
        self.slow_until_s = 0.0
        self.full_until_s = 0.0
        self.strike_in = 0
        """The machine fails at so many writes from now; 0: at none."""
        self.strike_after = False
        """It fails once that write is durable, and not before."""
        self.on_strike: Callable[[], None] = lambda: None
        self.writes = 0

    def delay_s(self, now_s: float) -> float:
        slow_s = self.slow_s if now_s < self.slow_until_s else 0.0
        return self.dice.uniform(0, self.write_s) + slow_s

    def strikes(self) -> bool:
        """Count a write; True where the machine fails at this one."""
        self.writes += 1
        if not self.strike_in:
            return False
        self.strike_in -= 1
        return not self.strike_in


class SimStore(MemoryStore):
    """The store of one life of a broker. A turn is durable as a whole or not at all, in the order of turns."""

    def __init__(self, rows: Disk, node: Node, wear: Wear) -> None:
        super().__init__(rows, lambda call: node.after(wear.delay_s(node.world.engine.now), call))
        self._node = node
        self._wear = wear
        self._durable: list[Callable[[], None]] = []

    def when_durable(self, then: Callable[[], None]) -> None:
        """For a witness outside: call it once what is written by now is durable. Unlike `settled` it starts no write,
        so that whoever looks changes nothing; a crash before forgets it."""
        if self._written or self._touched or self._writing:
            self._durable.append(then)
        else:
            then()

    def _write(self) -> None:
        written, waiting = self._gathered()
        durable, self._durable = self._durable, []
        wear = self._wear

        def done() -> None:
            if self._node.world.engine.now < wear.full_until_s:
                self._node.after(ROOM_S, done)
                return
            strikes = wear.strikes()
            if strikes and not wear.strike_after:
                wear.on_strike()
                return
            _apply(self.disk, written)
            for seen in durable:
                seen()
            if strikes:
                wear.on_strike()
                return
            self._writing = False
            if self._has_more:
                self._begin()
            for then in waiting:
                then()

        self.later(done)


def _apply(disk: Disk, written: Changes) -> None:
    for table, owner, number, value in written:
        rows = disk.setdefault(table, {})
        if value is None:
            rows.pop((owner, number), None)
        else:
            rows[owner, number] = value


FILE_ROWS, READ_ROWS, FINAL_ROWS = 50, 7, 20
"""Of a simulated archive: rows in a file, rows that are read at once, and as many as may come behind them."""
DISK_FILES = 1_000_000
"""Files of a new disk have numbers above all that the lost one had."""


class Shelf:
    """The rows of an archive, which outlive the broker. `first` counts the disks of the machine."""

    def __init__(self, first: int = 0) -> None:
        self.first = first * DISK_FILES
        self.rows: list[Publication] = []

    def __iter__(self) -> Iterator[Publication]:
        return iter(self.rows)


class SimArchive:
    """An archive whose rows outlive the broker; reading takes its time. It is a `Past`."""

    def __init__(self, shelf: Shelf, host: Host, clock: Callable[[], float], dice: Random) -> None:
        self.shelf = shelf
        self.host = host
        self.clock = clock
        self.dice = dice
        self.reads = 0

    def add(self, publication: Publication) -> None:
        self.shelf.rows.append(publication)

    def read(
        self, since: float, position: Position, wanted: FilterSet, final: bool, then: Callable[[Stretch], None]
    ) -> None:
        self.host.after(self.dice.uniform(0, 0.05), lambda: then(self._read(since, position, wanted, final)))

    def _read(self, since: float, position: Position, wanted: FilterSet, final: bool) -> Stretch:
        self.reads += 1
        first, rows = self.shelf.first, self.shelf.rows
        file, row = int(position[0] or 0), position[1]
        if row == FILE_ROWS:
            file, row = file + 1, 0
        if file < first:
            file, row = first, 0
        begin = (file - first) * FILE_ROWS
        start = begin + row
        is_all = final and len(rows) - start <= FINAL_ROWS
        end = len(rows) if is_all else min(start + READ_ROWS, begin + FILE_ROWS, len(rows))
        found = tuple(
            (at - begin + 1, rows[at])
            for at in range(start, end)
            if rows[at].time >= since and wanted.matches(rows[at].values())
        )
        until = self.clock() if end == len(rows) else 0.0
        return Stretch(found, (str(file), end - begin), until, is_all)
