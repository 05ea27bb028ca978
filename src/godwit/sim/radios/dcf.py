"""802.11's way of sharing the air for broadcasts: slots, a counter that stops while others speak, and deaf moments.

`Radio` senses at once, so that of two who hear each other one always waits. Here a station notices a transmission only
a slot after it began. Two neighbors whose counters end in the same slot therefore collide, and after a frame that many
have heard, many counters start at the same moment.
"""

from __future__ import annotations

import msgspec

from godwit.sim.radio import Frame, Profile, Radio, Station, added
from godwit.sim.world import World


class Slots(msgspec.Struct, frozen=True, kw_only=True):
    """Times of 802.11 with DSSS; a broadcast is sent once, so that the window never grows."""

    slot_s: float = 20e-6
    difs_s: float = 50e-6
    window: int = 32


class Countdown:
    """One station's wait: so many slots are left since `since_s`; `token` tells a newer wait from an older one."""

    __slots__ = ("frame", "since_s", "slots", "token")

    def __init__(self, frame: Frame, slots: int) -> None:
        self.frame = frame
        self.slots = slots
        self.since_s: float | None = None
        """None while the air is busy."""
        self.token = 0


class SlottedRadio(Radio):
    """The same signals and receptions as `Radio`; only who speaks when is 802.11's."""

    def __init__(self, world: World, profile: Profile, slots: Slots = Slots()) -> None:  # noqa: B008
        super().__init__(world, profile)
        self.slots = slots
        self.collided = 0
        """Frames that began in a slot in which another station in range had begun."""
        self._waiting: dict[Station, Countdown] = {}
        self._heard_from: dict[int, Frame] = {}
        """Transmissions that others have had time to notice, by the node that sends."""
        self._noisy: list[bool] | None = None
        """By node: whether the air is busy there; None where `_heard_from` has changed since."""

    def _next(self, station: Station) -> None:
        self._waiting[station] = Countdown(station.queue[0], station.mac_dice.randrange(self.slots.window))
        self._count(station)

    def _count(self, station: Station) -> None:
        """Let the counter run, unless somebody is heard; it goes on when the air is free again."""
        wait = self._waiting[station]
        wait.token += 1
        if self._hears(station.node):
            wait.since_s = None
            return
        engine, token = self.world.engine, wait.token
        wait.since_s = engine.now
        fires_s = engine.now + self.slots.difs_s + wait.slots * self.slots.slot_s
        engine.at(fires_s, lambda: self._fire(station, wait, token))

    def _fire(self, station: Station, wait: Countdown, token: int) -> None:
        if self._waiting.get(station) is not wait or wait.token != token:
            return
        del self._waiting[station]
        if not station.queue or station.queue[0] is not wait.frame:
            return
        if station.node in self._active:  # what this node sent before a crash is still on the air
            self._next(station)
            return
        self.collided += bool(self._active) and self._is_busy(station.node)
        self._begin(station, wait.frame)

    def _begin(self, station: Station, frame: Frame) -> None:
        super()._begin(station, frame)
        engine = self.world.engine
        engine.at(engine.now + self.slots.slot_s, lambda: self._noticed(station, frame))

    def _noticed(self, sender: Station, frame: Frame) -> None:
        """A slot later, whoever hears it and still counts stops; what was counted down stays so."""
        if self._active.get(sender.node) is not frame:
            return
        self._heard_from[sender.node] = frame
        self._noisy = None
        for station, wait in self._waiting.items():
            if wait.since_s is not None and self._hears(station.node):
                self._freeze(wait)

    def _freeze(self, wait: Countdown) -> None:
        """The slot in which the transmission began is not counted."""
        assert wait.since_s is not None
        began_s = self.world.engine.now - self.slots.slot_s
        counted = int(max(0.0, began_s - wait.since_s - self.slots.difs_s) / self.slots.slot_s + 1e-6)
        wait.slots = max(0, wait.slots - counted)
        wait.since_s = None
        wait.token += 1

    def _hears(self, node: int) -> bool:
        """Whether a transmission that has had time to be noticed is strong enough here."""
        if not self._heard_from:
            return False
        if self._noisy is None:
            # Many wait for the end of a frame and all ask then: the powers are added up once for all of them.
            noisy = added(frame.reach for frame in self._heard_from.values()) > self._busy_mw
            noisy[list(self._heard_from)] = True
            self._noisy = noisy.tolist()
        return self._noisy[node]

    def _end(self, station: Station, frame: Frame) -> None:
        self._heard_from.pop(station.node, None)
        self._noisy = None
        super()._end(station, frame)
        for other, wait in self._waiting.items():
            if wait.since_s is None and not self._hears(other.node):
                self._count(other)

    def silence(self, name: str, /) -> None:
        super().silence(name)
        self._waiting.pop(self._stations[name], None)

    def withdraw(self, sender: str, message: object, /) -> bool:
        """As `Radio`; a wait for a frame that was taken back ends."""
        station = self._stations[sender]
        taken = super().withdraw(sender, message)  # type: ignore[arg-type]
        if taken and not station.queue:
            self._waiting.pop(station, None)
        return taken
