"""Who looks at the console: a cookie for each login, kept in memory only, with the password that brokers are shown."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

import msgspec

from godwit.net.admin.client import Login

LASTS_S = 8 * 3600.0
VISITORS_MAX = 1_000
PAUSE_S, PAUSE_MAX_S, FORGOTTEN_S = 0.5, 15.0, 300.0
"""How long an address waits after a wrong password, at first and at most, and when that is forgotten."""


class Visitor(msgspec.Struct, frozen=True):
    login: Login
    role: str
    until_s: float


class Visitors:
    def __init__(self) -> None:
        self._known: OrderedDict[str, Visitor] = OrderedDict()
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By address: how often it was wrong, and when last."""

    def enter(self, login: Login, role: str) -> str:
        """The cookie."""
        token = secrets.token_urlsafe(32)
        self._known[token] = Visitor(login, role, time.monotonic() + LASTS_S)
        while len(self._known) > VISITORS_MAX:
            self._known.popitem(last=False)
        return token

    def find(self, token: str) -> Visitor | None:
        visitor = self._known.get(token)
        if visitor is not None and visitor.until_s < time.monotonic():
            del self._known[token]
            return None
        return visitor

    def leave(self, token: str) -> None:
        self._known.pop(token, None)

    def waits_s(self, address: str) -> float:
        """How long this address must wait before it may try again."""
        wrong, last_s = self._wrong.get(address, (0, 0.0))
        since_s = time.monotonic() - last_s
        if not wrong or since_s > FORGOTTEN_S:
            return 0.0
        return max(0.0, min(PAUSE_S * float(2 ** min(wrong - 1, 8)), PAUSE_MAX_S) - since_s)

    def was_wrong(self, address: str) -> None:
        wrong = self._wrong.pop(address, (0, 0.0))[0]
        self._wrong[address] = wrong + 1, time.monotonic()
        while len(self._wrong) > VISITORS_MAX:
            self._wrong.popitem(last=False)

    def was_right(self, address: str) -> None:
        self._wrong.pop(address, None)
