"""Keys of a terminal as they are pressed, and what they do to a list that is longer than the screen."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import msgspec

QUIT, SORT, UP, DOWN, PAGE_UP, PAGE_DOWN = "q", "s", "up", "down", "page up", "page down"
NAMES = {
    "q": QUIT,
    "\x03": QUIT,
    "\x1b": QUIT,
    "s": SORT,
    "k": UP,
    "\x1b[A": UP,
    "j": DOWN,
    "\x1b[B": DOWN,
    "\x1b[5~": PAGE_UP,
    "\x1b[6~": PAGE_DOWN,
    " ": PAGE_DOWN,
}
HELP = "q quit   s sort by {next}   ↑ ↓ scroll"

Pressed = Callable[[float], str]
"""Waits so many seconds for a key: its name, or nothing."""


class View(msgspec.Struct, frozen=True):
    """How a list is looked at: by which of its orders, and from which row."""

    orders: tuple[str, ...]
    order: int = 0
    first: int = 0

    @property
    def by(self) -> str:
        return self.orders[self.order % len(self.orders)]

    @property
    def help(self) -> str:
        return HELP.format(next=self.orders[(self.order + 1) % len(self.orders)])

    def pressed(self, key: str, rows: int, page: int) -> Self:
        """After this key, where there are so many rows and so many fit."""
        if key == SORT:
            return msgspec.structs.replace(self, order=(self.order + 1) % len(self.orders), first=0)
        step = {UP: -1, DOWN: 1, PAGE_UP: -page, PAGE_DOWN: page}.get(key, 0)
        return msgspec.structs.replace(self, first=max(0, min(self.first + step, rows - page)))


@contextmanager
def keyboard() -> Iterator[Pressed | None]:
    """Keys one by one, without Enter; None where nobody sits at a terminal."""
    if not sys.stdin.isatty():
        yield None
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)

    def pressed(wait_s: float) -> str:
        ready, _, _ = select.select([number], [], [], wait_s)
        return NAMES.get(os.read(number, 16).decode(errors="replace"), "") if ready else ""

    try:
        yield pressed
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
