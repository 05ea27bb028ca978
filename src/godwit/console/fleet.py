"""Which brokers there are: those that were named, and those that these tell of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from godwit.net.admin.client import NOBODY, AskError, Login, Operator, portal_of, report_at

REFRESH_S = 5.0
LOOK_S = 3.0
FORGOTTEN_S = 600.0
"""A broker that nobody has told of for so long is not shown any more."""


class Member(msgspec.Struct, kw_only=True):
    """One broker, as far as the console knows it."""

    name: str
    url: str
    """Where operators log in; empty: it has none, or cannot be reached."""
    problem: str = ""
    seen_s: float = 0.0


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker answered, or why it did not."""

    ok: bool
    body: Any = None
    status: int = 0
    text: str = ""


Source = Callable[[], Mapping[str, str]]
"""Names and URLs of brokers that are known without asking."""


class Fleet:
    """Asks all brokers at once; `seeds` are addresses of `/status`, or URLs where operators log in. `shown` has, for
    brokers by name, the file of the one certificate that is believed of them."""

    def __init__(
        self,
        seeds: Sequence[str] = (),
        source: Source | None = None,
        authority: str | None = None,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        self.seeds = tuple(seeds)
        self.authority = authority
        self.shown = dict(shown or {})
        self.members: dict[str, Member] = {}
        self.websockets: set[str] = set()
        """Where pages speak MQTT with brokers: what the page may connect to."""
        self._source = source
        self._names: dict[str, str] = {}
        """By seed: who answered there last."""
        self._looked_s = 0.0
        self._looking = asyncio.Lock()

    async def refresh(self, *, now: bool = False) -> None:
        """Look who is there, unless that was done a moment ago."""
        async with self._looking:
            if not now and time.monotonic() - self._looked_s < REFRESH_S:
                return
            await asyncio.gather(*(asyncio.to_thread(self._look, seed) for seed in self.seeds))
            for name, url in (self._source() if self._source is not None else {}).items():
                self._note(name, url)
            self._forget()
            self._looked_s = time.monotonic()

    def _look(self, seed: str) -> None:
        try:
            name, url = portal_of(seed, LOOK_S, self.authority)
            self._names[seed] = name = name or _name_at(url, self.authority)
            self._note(name, url, seed)
            if not seed.startswith("http"):
                self._hear(seed)
        except AskError as error:
            known = self.members.get(self._names.get(seed, seed))
            if known is None:
                known = self.members[seed] = Member(name=seed, url="")
            known.problem, known.seen_s = str(error), time.monotonic()

    def _hear(self, seed: str) -> None:
        """Of the others, from one. Nobody knows the host of a broker that listens everywhere and does not say."""
        report = report_at(seed, LOOK_S)
        if report.websocket:
            self.websockets.add(report.websocket)
        for peer in report.peers:
            if urlsplit(peer.http).hostname:
                self._note(peer.name, peer.http)
            elif peer.http and not (peer.name in self.members and self.members[peer.name].url):
                problem = "it does not say at which host; name it with --brokers, or give it listen.advertise_http"
                self.members[peer.name] = Member(name=peer.name, url="", problem=problem, seen_s=time.monotonic())

    def _note(self, name: str, url: str, seed: str = "") -> None:
        if seed:
            self.members.pop(seed, None)
        self.members[name] = Member(name=name, url=url, seen_s=time.monotonic())

    def _forget(self) -> None:
        oldest_s = time.monotonic() - FORGOTTEN_S
        self.members = {name: one for name, one in self.members.items() if one.seen_s > oldest_s}

    def operator(self, name: str, login: Login) -> Operator:
        member = self.members.get(name)
        if member is None:
            raise AskError(f"no broker {name!r} is known", 404)
        if not member.url:
            raise AskError(member.problem or f"{name} has nowhere to log in")
        return Operator(member.url, login, self.authority, self.shown.get(name))

    async def one(self, name: str, login: Login, path: str, query: Mapping[str, str], body: object = None) -> Told:
        try:
            operator = self.operator(name, login)
            if body is None:
                answer = await asyncio.to_thread(operator.get, path, query)
            else:
                answer = await asyncio.to_thread(operator.post, path, body)
        except AskError as error:
            return Told(ok=False, status=error.status, text=str(error))
        self.members[name].seen_s = time.monotonic()
        if path == "broker" and answer.get("websocket"):
            self.websockets.add(str(answer["websocket"]))
        return Told(ok=True, body=answer)

    async def all(
        self, login: Login, path: str, query: Mapping[str, str] | None = None, body: object = None
    ) -> dict[str, Told]:
        await self.refresh()
        names = sorted(self.members)
        answers = await asyncio.gather(*(self.one(name, login, path, query or {}, body) for name in names))
        return dict(zip(names, answers, strict=True))

    async def admit(self, login: Login) -> dict[str, Any]:
        """Who this is at the first broker that knows; `AskError` where none lets it in."""
        answers = await self.all(login, "me")
        good = [told.body for told in answers.values() if told.ok]
        if good:
            # The most that it may anywhere: each broker decides for itself in the end.
            return dict(max(good, key=lambda one: ("none", "viewer", "operator").index(one["role"])))
        refused = [told for told in answers.values() if told.status]
        first = refused[0] if refused else next(iter(answers.values()), Told(ok=False, text="no broker is known"))
        raise AskError(first.text, first.status)


def _name_at(url: str, authority: str | None) -> str:
    """What a broker calls itself needs no login to hear, unless it lets nobody in without one."""
    try:
        return str(Operator(url, NOBODY, authority).get("me", answer_s=LOOK_S)["broker"])
    except AskError as error:
        if error.status in (401, 403):
            return urlsplit(url).netloc
        raise
