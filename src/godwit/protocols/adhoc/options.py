"""The constants and rules of proximity-driven routing (spec manet-cbr 2.1, 2.6): published, inferred, and beyond.

Every default is the spec's. What the spec marks as inferred or as its own choice is an option, so that a result can be
told from a reading of the text.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from godwit.protocols.adhoc.table import Estimate

BEACON_LEAST_B = 96
"""What a beacon needs beside its summary."""


class Delay(StrEnum):
    """What decides how long a broker waits before it sends on."""

    PROXIMITY = "proximity"
    """The closer to somebody who wants the event, the sooner: the published rule."""
    RANDOM = "random"
    """For comparison: anything up to the longest delay."""


class Adaptive(msgspec.Struct, frozen=True, kw_only=True):
    """A beacon period that follows how long brokers stay in range of each other, as seen by the sender itself."""

    share: float = 0.3
    """Of the mean stay as it is seen: beacons miss the shortest ones. At the published speeds and ranges this gives
    about the published period."""
    shortest_s: float = 1.0
    longest_s: float = 15.0


class Carry(msgspec.Struct, frozen=True, kw_only=True):
    """Store, carry and forward: events are kept for brokers that may still be met."""

    age_max_s: float = 60.0
    """Since it was published, however many have carried it."""
    count_max: int = 512
    bytes_max: int = 262_144
    batch_max: int = 16
    """Events sent after one beacon; the others wait for the next."""
    tries: int = 2
    """Offers of one event to one broker: not all who hear somebody are heard by it."""
    publishers_max: int = 64
    """In the digest of a beacon."""
    relay: bool = False
    """Ask also for what those want whom this broker tells of in hints: without it an event that was published while two
    parts of the network were apart crosses only with somebody who moves, or wants it."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    period_s: float = 5.0
    missed_max: int = 10
    credits: int = 0
    thrifty: bool = False
    """Credit is spent only on an event of which nobody knows yet who wants it."""
    delay_max_s: float = 0.3
    """The wait at proximity 1; a tenth of it must exceed the time a frame takes, or nobody can be silenced."""
    jitter: float = 0.1
    """Added to every wait, as a share of the longest: from nothing up to this."""
    period_jitter: float = 0.0
    """How far each beacon may be off its period, either way, as a share of it."""
    beacon_when_empty: bool = False
    """Brokers without subscriptions beacon too: what the published text says and its figures exclude (2.6a)."""
    publish_to_nobody: bool = True
    """An event goes out also where its source knows nobody who wants it (2.6b)."""
    farewell: bool = True
    """One last empty beacon after the last subscription has gone."""
    withdraw: bool = True
    """Hearing a copy takes back one's own from the queue of the radio too."""
    suppress: bool = True
    """False never cancels: for comparison."""
    mindful: bool = False
    """A copy silences only who knows nobody that it does not list as close: else two who stand near each other, each
    beside another broker that wants the event, would bring it to one of them."""
    delay: Delay = Delay.PROXIMITY
    estimate: Estimate = Estimate.MISSED
    seen_max: int = 4096
    seen_s: float = 90.0
    summary_max_b: int = 512
    hints_max: int = 0
    """Others told of in a beacon."""
    hints_relayed: bool = False
    """Hints tell also of those whom the sender only was told of. They age on the way, one step for each teller, so that
    nobody stays known for longer than had it been met."""
    prompt: bool = False
    """News of who is there and what is wanted brings the next beacon forward, up to a quarter of the period after the
    last one."""
    destinations_max: int | None = None
    """The closest are listed in a message where there are more."""
    hint_max_b: int = 512
    """What a hint may take to say what somebody wants; it is widened to fit."""
    hints_in_data: bool = False
    """Destinations that the sender has met are told of with every event."""
    adaptive: Adaptive | None = None
    tell_period: bool = False
    """Beacons say when the next is due: nodes may differ in it."""
    carry: Carry | None = None
    in_order: bool = False
    """Nothing overtakes, in one broker's hands, what the same publisher said before."""
    beacon_max_b: int | None = None
    """Beacons are no longer: hints and digest take turns in what the summary leaves."""

    def __post_init__(self) -> None:
        for name in ("period_s", "missed_max", "delay_max_s", "seen_max", "seen_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0")
        if not 0 <= self.credits <= 255:
            raise ValueError(f"credits {self.credits}: from 0 to 255")
        if not 0 <= self.period_jitter < 1:
            raise ValueError(f"period_jitter {self.period_jitter:g}: from 0 to below 1")
        if self.beacon_max_b is not None and self.beacon_max_b < self.summary_max_b + BEACON_LEAST_B:
            least = self.summary_max_b + BEACON_LEAST_B
            raise ValueError(f"beacon_max_b {self.beacon_max_b}: at least {least}, for a summary and some hints")
        if self.carry is not None and self.carry.age_max_s > self.seen_s - self.delay_max_s:
            raise ValueError(
                f"carry.age_max_s {self.carry.age_max_s:g}: less than seen_s, {self.seen_s:g}, or events come twice"
            )


PUBLISHED = Options()
