"""The one small interface of all routing tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from godwit.filters.language import FILTERS, Language

F = TypeVar("F")
N = TypeVar("N")
N_contra = TypeVar("N_contra", contravariant=True)

Interface = str
"""A neighboring router or a local client: whoever a filter came from and an event goes to."""

DEFAULT: Language[Any, Any] = FILTERS
"""The language of a table that is not given another one."""


class Table(Protocol[F, N_contra]):
    """Filters and the interfaces that asked for them."""

    def add(self, wanted: F, interface: Interface, /) -> bool:
        """Note that the interface wants it; False where that changes nothing (known, or covered for that interface)."""

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        """Forget exactly what was added; False where it was not there."""

    def match(self, event: N_contra, /) -> set[Interface]:
        """The interfaces that want this event."""

    def roots(self) -> list[F]:
        """The filters that no other filter here covers: all that somebody else needs to know."""

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        """Who asked for exactly this filter; empty where nobody did."""

    def __iter__(self) -> Iterator[F]: ...
    def __len__(self) -> int: ...
    def __contains__(self, wanted: object, /) -> bool: ...


class Forwarding(Table[F, N_contra], Protocol[F, N_contra]):
    """A table that also knows what its neighbors must be told (spec 2.3)."""

    neighbors: frozenset[Interface]

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        """The neighbors that hold, or must be sent, this filter."""

    def heads(self) -> list[F]:
        """The filters on levels 1 and 2, the only ones with a non-empty forwards set (spec theorem 3.4)."""

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        """Add it, and name the neighbors that must now be told of it."""

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        """Remove it; for each neighbor that must forget it, the filters that the neighbor must learn in its place."""


def drop(table: Table[F, Any], interface: Interface) -> list[F]:
    """Forget all that an interface wanted, as when it is gone for good; what that was comes back."""
    held = [wanted for wanted in table if interface in table.interfaces(wanted)]
    for wanted in held:
        table.remove(wanted, interface)
    return held
