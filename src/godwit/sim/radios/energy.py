"""What a radio takes from its battery, and radios that sleep between the rounds (spec mft-pubsub F38).

The published runs keep every radio on. A radio that listens takes as much as one that sends, so that a battery lasts as
long as the radio is awake: what is said hardly matters, when one may sleep decides.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from godwit.protocols.host import NodeId
from godwit.sim.radio import CC2420, Frame, Profile, Radio, Station
from godwit.sim.world import World

DAY_S = 86_400.0


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """Castalia's stock CC2420 at 0 dBm, and its two AA cells."""

    listening_mw: float = 62.0
    sending_mw: float = 57.42
    asleep_mw: float = 1.4
    battery_j: float = 18_720.0


class Rhythm(msgspec.Struct, frozen=True, kw_only=True):
    """All radios are awake at the beginning of every cycle and asleep for the rest of it.

    They must agree on when that is. The rounds of heartbeats reach everybody and are as good as any clock for it; how
    exactly clocks agree is not modelled.
    """

    cycle_s: float = 1.0
    awake: float = 1.0
    """The share of a cycle; 1: always on, as published."""

    def __post_init__(self) -> None:
        if not (self.cycle_s > 0 and 0 < self.awake <= 1):
            raise ValueError(f"awake {self.awake:g} of {self.cycle_s:g} s: a share above 0 and up to 1 of a cycle")

    def sleeps_for_s(self, now_s: float, airtime_s: float) -> float:
        """How long until a frame of this length may begin; 0 where it may now. It must end while everybody listens."""
        if self.awake >= 1:
            return 0.0
        into_s = now_s % self.cycle_s
        return 0.0 if into_s + airtime_s <= self.awake * self.cycle_s else self.cycle_s - into_s


CONTENTION_SHARE = 0.5
"""Of the waking time: what has waited through the night does not all speak at the first moment of the morning."""


class MeteredRadio(Radio):
    """A radio that sleeps in a rhythm and counts what that costs."""

    def __init__(
        self,
        world: World,
        profile: Profile = CC2420,
        rhythm: Rhythm = Rhythm(),  # noqa: B008
        draw: Draw = Draw(),  # noqa: B008
    ) -> None:
        super().__init__(world, profile)
        self.rhythm = rhythm
        self.draw = draw
        self.sending_s: Counter[NodeId] = Counter()

    def _attempt(self, station: Station, frame: Frame) -> None:
        engine = self.world.engine
        sleeps_s = self.rhythm.sleeps_for_s(engine.now, self._airtime_s(frame))
        if not sleeps_s:
            super()._attempt(station, frame)
            return
        spread_s = CONTENTION_SHARE * self.rhythm.awake * self.rhythm.cycle_s
        begins_s = engine.now + sleeps_s + station.mac_dice.random() * spread_s
        engine.at(begins_s, lambda: self._attempt(station, frame))

    def _begin(self, station: Station, frame: Frame) -> None:
        self.sending_s[station.name] += self._airtime_s(frame)  # type: ignore[assignment]
        super()._begin(station, frame)

    def _airtime_s(self, frame: Frame) -> float:
        return frame.size_b * 8 / self.profile.bits_per_s

    def power_mw(self, name: NodeId, elapsed_s: float) -> float:
        """The mean over this time."""
        draw = self.draw
        sending = self.sending_s[name] / elapsed_s
        listening = self.rhythm.awake - sending
        asleep = 1 - self.rhythm.awake
        return sending * draw.sending_mw + listening * draw.listening_mw + asleep * draw.asleep_mw

    def battery_days(self, power_mw: float) -> float:
        return self.draw.battery_j / (power_mw / 1e3) / DAY_S
