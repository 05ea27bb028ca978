"""Clients that move among brokers, each as its itinerary says, while others publish; then the account.

Whatever listens at the ports may be asked, as long as it speaks MQTT 5. Subscribers have said what they want before
anybody publishes, so that all that fits is owed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from godwit.lab.deployed.account import Event, Heard, Move, Outcome, Story, outcome
from godwit.lab.deployed.phone import Phone, PhoneError

TOPIC = "crowd"
RETRY_S = 0.02


class Step(NamedTuple):
    """Stay, be out of reach, appear at the broker with this number."""

    stay_s: float
    away_s: float
    to: int


Itinerary = Iterator[Step]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    subscribers: int
    seconds: float
    warmup_s: float = 0.0
    """What happens so early counts for nothing."""
    publishers: int = 1
    events_per_s: float = 0.0
    """Of all publishers; 0: each says the next when its broker has the last."""
    sleep_s: float = 0.0
    """How long each rests between, where it waits for its broker."""
    values: int = 100
    span: int = 20
    """Each event has one of so many values, and each subscriber wants this many of them, side by side."""
    payload_b: int = 0
    qos: int = 2
    unacknowledged_max: int = 500
    keep_s: int = 3600
    """How long brokers keep a session; 0: not at all."""
    by_content: bool = True
    """Filters are sent to the brokers; else all is, and `span` must be `values`."""
    drain_s: float = 20.0
    """Something is missing, and so long nothing came: it is lost."""
    quiet_s: float = 1.0
    """All that is owed is there, and so long nothing came a second time."""
    seed: int = 1


class Said(msgspec.Struct):
    """An event as it travels."""

    p: int
    n: int
    k: int
    pad: str = ""


class Member:
    """A subscriber: its phone, what it wants, and its story."""

    def __init__(self, crowd: Crowd, number: int, at: int) -> None:
        plan = crowd.plan
        self.phone = Phone(f"walker-{number}", self._hear, keep_s=plan.keep_s)
        self.at = at
        low = Random(f"{plan.seed}/{number}").randint(0, plan.values - plan.span)
        self.wanted = range(low, low + plan.span)
        self.story = Story([], [], [])

    @property
    def pattern(self) -> str:
        condition = f"k BETWEEN {self.wanted[0]} AND {self.wanted[-1]}"
        return f"$filter/{quote(condition, safe='')}/{TOPIC}/#"

    def _hear(self, payload: bytes) -> None:
        said = decode(payload)
        self.story.heard.append(Heard(time.monotonic(), said.p, said.n))


decode = msgspec.json.Decoder(Said).decode
encode = msgspec.json.Encoder().encode


class Crowd:
    """`settled` is awaited when all have subscribed: it returns when the brokers know it of each other."""

    def __init__(
        self,
        plan: Plan,
        ports: Sequence[int],
        itinerary: Callable[[int], Itinerary],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        self.plan = plan
        self.ports = ports
        self.itinerary = itinerary
        self.settled = settled
        self.members = [Member(self, number, number % len(ports)) for number in range(plan.subscribers)]
        self.publishers = [Phone(f"publisher-{number}", _ignore) for number in range(plan.publishers)]
        self.published_s: dict[Event, float] = {}
        self.took_s = 0.0
        self.measured = 0
        """How many events count."""
        self._values: dict[Event, int] = {}
        self._publishing = True

    async def run(self) -> Outcome:
        async with asyncio.TaskGroup() as group:
            for member in self.members:
                group.create_task(self._enter(member))
            for number, publisher in enumerate(self.publishers):
                group.create_task(publisher.attach(self.ports[number % len(self.ports)]))
        await self.settled()
        walking = [asyncio.create_task(self._walk(number, one)) for number, one in enumerate(self.members)]
        begun_s = time.monotonic()
        try:
            await asyncio.gather(*(self._publish(number) for number in range(len(self.publishers))))
            self.took_s = time.monotonic() - begun_s
            self._publishing = False
            await asyncio.gather(*walking)
            await self._drained()
        finally:
            for task in walking:
                task.cancel()
            await asyncio.gather(*walking, return_exceptions=True)
            for phone in (*self.publishers, *(member.phone for member in self.members)):
                phone.vanish()
        since_s = begun_s + self.plan.warmup_s
        self.measured = sum(time_s >= since_s for time_s in self.published_s.values())
        return outcome([self._counted(member.story, since_s) for member in self.members], self.published_s)

    def _counted(self, story: Story, since_s: float) -> Story:
        """Without what was published, or done, before."""
        published_s = self.published_s
        return Story(
            [event for event in story.wanted if published_s[event] >= since_s],
            [heard for heard in story.heard if published_s[heard.publisher, heard.number] >= since_s],
            [move for move in story.moves if move.asked_s >= since_s],
        )

    async def _enter(self, member: Member) -> None:
        await member.phone.attach(self.ports[member.at])
        await self._subscribe(member)

    async def _subscribe(self, member: Member) -> None:
        pattern = member.pattern if self.plan.by_content else f"{TOPIC}/#"
        await member.phone.subscribe(pattern, self.plan.qos)

    async def _walk(self, number: int, member: Member) -> None:
        for step in self.itinerary(number):
            if not await self._stay(step.stay_s):
                return
            member.phone.vanish()
            await asyncio.sleep(step.away_s)
            member.at = step.to
            await self._arrive(member)

    async def _stay(self, stay_s: float) -> bool:
        """Whether anything is still published afterwards: who moves later would wait for nothing."""
        end_s = time.monotonic() + stay_s
        while self._publishing and time.monotonic() < end_s:
            await asyncio.sleep(min(0.1, max(0.0, end_s - time.monotonic())))
        return self._publishing

    async def _arrive(self, member: Member) -> None:
        asked_s = time.monotonic()
        while True:
            try:
                known = await member.phone.attach(self.ports[member.at])
                break
            except (OSError, TimeoutError, PhoneError):
                member.phone.vanish()
                await asyncio.sleep(RETRY_S)
        member.story.moves.append(Move(asked_s, time.monotonic(), known))
        if not known:
            await self._subscribe(member)

    async def _publish(self, number: int) -> None:
        dice = Random(f"{self.plan.seed}/publisher/{number}")
        pad = "x" * self.plan.payload_b
        if self.plan.events_per_s:
            await self._publish_by_the_clock(number, dice, pad)
            return
        end_s, n = time.monotonic() + self.plan.warmup_s + self.plan.seconds, 0
        while time.monotonic() < end_s:
            await self._say(number, n, dice.randrange(self.plan.values), pad)
            await asyncio.sleep(self.plan.sleep_s)
            n += 1

    async def _publish_by_the_clock(self, number: int, dice: Random, pad: str) -> None:
        rate_per_s = self.plan.events_per_s / self.plan.publishers
        begun_s, room = time.monotonic(), asyncio.Semaphore(self.plan.unacknowledged_max)
        async with asyncio.TaskGroup() as group:
            for n in range(round(rate_per_s * (self.plan.warmup_s + self.plan.seconds))):
                early_s = begun_s + n / rate_per_s - time.monotonic()
                if early_s > 0:
                    await asyncio.sleep(early_s)
                await room.acquire()
                task = group.create_task(self._say(number, n, dice.randrange(self.plan.values), pad))
                task.add_done_callback(lambda _: room.release())

    async def _say(self, number: int, n: int, value: int, pad: str) -> None:
        event = number, n
        self.published_s[event] = time.monotonic()
        self._values[event] = value
        await self.publishers[number].publish(f"{TOPIC}/{number}", encode(Said(number, n, value, pad)), self.plan.qos)

    async def _drained(self) -> None:
        """Wait for the rest."""
        by_value: dict[int, list[Event]] = {}
        for event, value in self._values.items():
            by_value.setdefault(value, []).append(event)
        for member in self.members:
            member.story.wanted = [event for value in member.wanted for event in by_value.get(value, ())]
        await drained([member.story for member in self.members], self.plan.drain_s)
        await asyncio.sleep(self.plan.quiet_s)


async def drained(stories: Sequence[Story], drain_s: float) -> None:
    """Return when everybody has what it wants, or nothing has come for so long."""
    heard, since_s = -1, time.monotonic()
    while any(_lacks(story) for story in stories) and time.monotonic() < since_s + drain_s:
        now = sum(len(story.heard) for story in stories)
        if now != heard:
            heard, since_s = now, time.monotonic()
        await asyncio.sleep(0.1)


def _lacks(story: Story) -> bool:
    if len(story.heard) < len(story.wanted):
        return True
    return len({(one.publisher, one.number) for one in story.heard}) < len(story.wanted)


def _ignore(payload: bytes) -> None: ...
