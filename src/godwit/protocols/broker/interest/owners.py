"""Whose each of very many conditions is, in one array: so a batch of matches is parted by receiver in one go.

Kept while clients come, go and subscribe: with a hundred thousand conditions it takes a tenth of a second to find out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from godwit.protocols.broker.session.state import Session, Sub

if TYPE_CHECKING:
    from godwit.protocols.broker.interest.subscribers import Group

NUMBERED_MAX = 1 << 22
"""Conditions with numbers up to it: each number takes four bytes, whether it is in use or not."""

NOBODY = -1


class Owners:
    """An owner is a session, for all its conditions that nothing else tells apart, or else who asked for one."""

    def __init__(self, asked: Iterable[tuple[int, Sub | Group]] = ()) -> None:
        self.of = array("i")
        """By the number of a condition the number of its owner, or NOBODY."""
        self._owners: list[Session | Sub | Group | None] = []
        self._counts: list[int] = []
        """How many conditions each has."""
        self._known: dict[Session | Sub | Group, int] = {}
        self._free: list[int] = []
        for number, asked_by in asked:
            self.add(number, asked_by)

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, owner: int) -> Session | Sub | Group:
        found = self._owners[owner]
        assert found is not None
        return found

    def add(self, number: int, asked_by: Sub | Group) -> None:
        """A condition, by its number, which is at most NUMBERED_MAX."""
        mine: Session | Sub | Group = asked_by
        if isinstance(asked_by, Sub) and not asked_by.wanted.no_local and not asked_by.wanted.identifier:
            mine = asked_by.session
        owner = self._known.get(mine)
        if owner is None:
            owner = self._known[mine] = self._free.pop() if self._free else self._made()
            self._owners[owner] = mine
        self._counts[owner] += 1
        of = self.of
        while len(of) <= number:
            of.append(NOBODY)
        of[number] = owner

    def _made(self) -> int:
        self._owners.append(None)
        self._counts.append(0)
        return len(self._owners) - 1

    def remove(self, number: int) -> None:
        """An owner without conditions is forgotten, and its number given to another."""
        owner, self.of[number] = self.of[number], NOBODY
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._known[self[owner]]
            self._owners[owner] = None
            self._free.append(owner)
