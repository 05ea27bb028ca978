"""Matching by covering (spec 2.9, Algorithm 6): below a filter that refuses an event, nothing can accept it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, KeysView
from itertools import chain
from typing import Protocol, TypeVar

from godwit.filters.language import Language
from godwit.tables.table import Interface

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)
N = TypeVar("N")

Expired = Callable[[], bool]
"""Asked before each test of a filter; once it says yes, everything not yet tested counts as matching."""


class Matchable(Protocol[F_co]):
    """A node of a forest or poset; `used_below` is None where no interface index is kept."""

    @property
    def filter(self) -> F_co: ...
    @property
    def interfaces(self) -> set[Interface]: ...
    @property
    def used_below(self) -> KeysView[Interface] | None: ...
    @property
    def children(self) -> Iterable[Matchable[F_co]]: ...


def match(
    tops: Iterable[Matchable[F]], event: N, language: Language[F, N], enough: int, expired: Expired | None = None
) -> set[Interface]:
    """The interfaces at or below `tops` that want the event; `enough` is how many there can be.

    With a budget the answer may name too many interfaces, never too few.
    """
    found: set[Interface] = set()
    seen: set[Matchable[F]] = set()
    queue = deque([iter(tops)])
    while queue and len(found) < enough:
        level = queue.popleft()
        for node in level:
            if node in seen:
                continue
            seen.add(node)
            if node.interfaces <= found:
                below = node.used_below
                if below is None or not below <= found:
                    queue.append(iter(node.children))
            elif expired is not None and expired():
                return _all_of(chain((node,), level, *queue), seen - {node}, found, enough)
            elif language.matches(node.filter, event):
                queue.append(iter(node.children))
                found |= node.interfaces
                if len(found) >= enough:
                    break
    return found


def after_tests(count: int) -> Expired:
    """A budget of so many tests of filters."""
    left = count

    def expired() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return expired


def _all_of(
    untested: Iterable[Matchable[F]], seen: set[Matchable[F]], found: set[Interface], enough: int
) -> set[Interface]:
    stack = [iter(untested)]
    while stack and len(found) < enough:
        for node in stack.pop():
            if node not in seen:
                seen.add(node)
                found |= node.interfaces
                stack.append(iter(node.children))
    return found
