"""Radios: one sends, whoever is near enough hears it.

`Disc` is the ideal one: everybody within range hears everything. `Radio` has power, noise and contention: signals fade
with distance, add up where they meet, and a sender listens before it speaks. Both count what was sent and received.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from godwit.protocols.host import Message, NodeId
from godwit.sim.mobility import Field, Model

if TYPE_CHECKING:
    from godwit.sim.world import World

Array = np.ndarray[Any, np.dtype[np.float64]]
STEP_S = 0.1
"""Positions, and with them powers, are taken anew this often: at 10 m/s a node moves a metre meanwhile."""


class Air:
    """What all radios share: where the nodes are, and what was sent and heard."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.field = Field(world.streams)
        self.sent: Counter[tuple[NodeId, str]] = Counter()
        self.sent_b: Counter[NodeId] = Counter()
        self.received = 0
        self._rows: dict[int, tuple[int, Any]] = {}

    def place(self, name: NodeId, model: Model) -> None:
        """Put a node of the world somewhere; a node that is nowhere neither sends nor hears."""
        self.field.add(name, model)
        self._rows.clear()

    def count(self, sender: NodeId, message: Message) -> int:
        size = message.size_b
        self.sent[sender, type(message).__name__] += 1
        self.sent_b[sender] += size
        return size

    def _row(self, node: int) -> Any:
        """What `_computed_row` says of a node, kept for one step, or for ever where nobody moves."""
        step = int(self.world.engine.now / STEP_S) if self.field.moving else -1
        known = self._rows.get(node)
        if known is None or known[0] != step:
            known = self._rows[node] = (step, self._computed_row(node))
        return known[1]

    def _computed_row(self, node: int) -> Any:
        raise NotImplementedError

    def _distances(self, node: int) -> Array:
        x, y = self.field.positions(self.world.engine.now)
        distances: Array = np.hypot(x - x[node], y - y[node])
        distances[node] = math.nan
        return distances


class Disc(Air):
    """Everybody within `range_m` hears, after the time the bits take; nobody disturbs anybody."""

    def __init__(self, world: World, *, range_m: float, bits_per_s: float = 250_000.0) -> None:
        super().__init__(world)
        self.range_m = range_m
        self.bits_per_s = bits_per_s

    def _computed_row(self, node: int) -> list[NodeId]:
        return [self.field.names[i] for i in np.flatnonzero(self._distances(node) <= self.range_m)]

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        hearers = self._row(self.field.index[sender])
        self._transmit(sender, hearers, message)

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        hearers = self._row(self.field.index[sender])
        self._transmit(sender, [to] if to in hearers else [], message)

    def _transmit(self, sender: NodeId, hearers: list[NodeId], message: Message) -> None:
        size = self.count(sender, message)
        world = self.world

        def arrive() -> None:
            self.received += len(hearers)
            for name in hearers:
                world.deliver(sender, name, message)

        world.engine.at(world.engine.now + size * 8 / self.bits_per_s, arrive)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a radio, its channel and its way of sharing it."""

    tx_dbm: float
    sensitivity_dbm: float
    noise_dbm: float
    busy_dbm: float
    bits_per_s: float
    overhead_b: int
    back_off_s: float
    """The window of the first back-off; the n-th in a row is n times as wide, or twice the last if `doubling`."""
    doubling: bool = False
    always_back_off: bool = False
    queue_max: int = 32
    noise_bandwidth_ratio: float = 1.0
    """Noise bandwidth over bit rate: how much better a bit is heard than its signal-to-noise ratio says."""
    capture: float | None = None
    """Where given, a frame is heard if it is so many times as strong as everything else; else by its bit errors."""
    path_loss_exponent: float = 2.4
    path_loss_db: float = 55.0
    sigma_db: float = 0.0
    one_way_sigma_db: float = 0.0
    cell_m: float = 5.0
    two_ray_height_m: float | None = None
    wavelength_m: float = 0.125


CC2420 = Profile(
    tx_dbm=0.0,
    sensitivity_dbm=-95.0,
    noise_dbm=-100.0,
    busy_dbm=-95.0,
    bits_per_s=250_000.0,
    overhead_b=15,
    back_off_s=0.016,
    noise_bandwidth_ratio=194 / 250,
    sigma_db=4.0,
    one_way_sigma_db=1.0,
)
"""Castalia's stock CC2420 and CSMA: 2.4 GHz, 0 dBm, log-distance with shadowing, one try, no acknowledgement."""

WIFI_TWO_RAY = Profile(
    tx_dbm=24.5,
    sensitivity_dbm=-64.4,
    noise_dbm=-101.0,
    busy_dbm=-78.0,
    bits_per_s=2_000_000.0,
    overhead_b=58,
    back_off_s=31 * 20e-6,
    always_back_off=True,
    capture=10.0,
    two_ray_height_m=1.5,
    wavelength_m=0.328,
)
"""The classic 914 MHz card: heard to 250 m, sensed to 550 m, two-ray ground, frames without acknowledgement."""


class Frame:
    """A transmission under way: its power everywhere, and the worst that has disturbed it so far."""

    __slots__ = ("disturbance_mw", "message", "power_mw", "sender", "size_b", "to")

    def __init__(self, sender: int, to: NodeId | None, message: Message, size_b: int) -> None:
        self.sender = sender
        self.to = to
        self.message = message
        self.size_b = size_b
        self.power_mw: Array
        self.disturbance_mw: Array


class Radio(Air):
    """CSMA over a shared channel. A frame is heard where its signal is good enough against noise and all other signals.

    Disturbance is additive and taken at its worst over the frame; a node that sends hears nothing meanwhile.
    """

    def __init__(self, world: World, profile: Profile = CC2420) -> None:
        super().__init__(world)
        self.profile = profile
        self.dropped: Counter[NodeId] = Counter()
        self._queues: dict[int, deque[Frame]] = {}
        self._waits: dict[int, int] = {}
        self._active: list[Frame] = []
        self._noise_mw = _mw(profile.noise_dbm)
        self._busy_mw = _mw(profile.busy_dbm)
        self._sensitivity_mw = _mw(profile.sensitivity_dbm)
        self._shadow_seed = world.streams.stream("shadowing").getrandbits(63)
        self._dice = world.streams.stream("reception")
        self._mac_dice: dict[int, Any] = {}

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        self._enqueue(sender, None, message)

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self._enqueue(sender, to, message)

    def _enqueue(self, sender: NodeId, to: NodeId | None, message: Message) -> None:
        node = self.field.index[sender]
        queue = self._queues.setdefault(node, deque())
        if len(queue) >= self.profile.queue_max:
            self.dropped[sender] += 1
            return
        queue.append(Frame(node, to, message, message.size_b + self.profile.overhead_b))
        if len(queue) == 1:
            self._waits[node] = 0
            if self.profile.always_back_off:
                self._back_off(node)
            else:
                self._attempt(node)

    def _attempt(self, node: int) -> None:
        """Listen; speak if nobody is heard, else wait a random time that grows with every disappointment."""
        if not self._queues[node]:
            return
        heard_mw = sum(frame.power_mw[node] for frame in self._active)
        if heard_mw > self._busy_mw:
            self._waits[node] += 1
            self._back_off(node)
        else:
            self._begin(node)

    def _back_off(self, node: int) -> None:
        turns = max(1, self._waits[node])
        window = self.profile.back_off_s * (2 ** min(turns - 1, 5) if self.profile.doubling else turns)
        dice = self._mac_dice.get(node)
        if dice is None:
            dice = self._mac_dice[node] = self.world.streams.stream("mac", self.field.names[node])
        engine = self.world.engine
        engine.at(engine.now + dice.random() * window, lambda: self._attempt(node))

    def _begin(self, node: int) -> None:
        frame = self._queues[node][0]
        name = self.field.names[node]
        self.count(name, frame.message)
        frame.power_mw = self._row(node)
        frame.disturbance_mw = np.zeros(len(frame.power_mw))
        self._active.append(frame)
        if len(self._active) > 1:
            self._disturb()
        engine = self.world.engine
        engine.at(engine.now + frame.size_b * 8 / self.profile.bits_per_s, lambda: self._end(node, frame))

    def _disturb(self) -> None:
        total = sum(frame.power_mw for frame in self._active)
        for frame in self._active:
            frame.disturbance_mw = np.maximum(frame.disturbance_mw, total - frame.power_mw)
            for other in self._active:
                if other is not frame:
                    frame.disturbance_mw[other.sender] = math.inf

    def _end(self, node: int, frame: Frame) -> None:
        self._active.remove(frame)
        queue = self._queues[node]
        queue.popleft()
        sender = self.field.names[node]
        for hearer in self._hearers(frame):
            self.received += 1
            self.world.deliver(sender, hearer, frame.message)
        if queue:
            self._waits[node] = 0
            if self.profile.always_back_off:
                self._back_off(node)
            else:
                self._attempt(node)

    def _hearers(self, frame: Frame) -> list[NodeId]:
        names = self.field.names
        if frame.to is not None:
            candidates = [self.field.index[frame.to]]
        else:
            candidates = np.flatnonzero(frame.power_mw >= self._sensitivity_mw).tolist()
        powers, disturbances = frame.power_mw, frame.disturbance_mw
        heard = []
        for node in candidates:
            power = powers[node]
            if power >= self._sensitivity_mw and self._is_heard(power, disturbances[node], frame.size_b):
                heard.append(names[node])
        return heard

    def _is_heard(self, power_mw: float, disturbance_mw: float, size_b: int) -> bool:
        ratio = power_mw / (self._noise_mw + disturbance_mw)
        if self.profile.capture is not None:
            return ratio >= self.profile.capture
        chance = _frame_success(
            round(100 * math.log10(ratio)) if ratio > 1e-3 else -300, size_b, self.profile.noise_bandwidth_ratio
        )
        return chance > 0.999999 or (chance > 1e-6 and self._dice.random() < chance)

    def _computed_row(self, node: int) -> Array:
        """The power of this node's signal everywhere, in milliwatts; nothing at the node itself and nowhere."""
        distances = np.maximum(self._distances(node), 0.1)
        loss_db = self._path_loss_db(distances)
        if self.profile.sigma_db or self.profile.one_way_sigma_db:
            loss_db = loss_db + self._shadowing_db(node)
        # Rounded, so that the last bit of somebody else's logarithm cannot change a trace.
        power_dbm = np.round(self.profile.tx_dbm - loss_db, 6)
        return np.nan_to_num(10 ** (power_dbm / 10), nan=0.0)

    def _path_loss_db(self, distances_m: Array) -> Array:
        profile = self.profile
        if profile.two_ray_height_m is None:
            return profile.path_loss_db + 10 * profile.path_loss_exponent * np.log10(distances_m)
        height = profile.two_ray_height_m
        crossover = 4 * math.pi * height * height / profile.wavelength_m
        free = 20 * np.log10(4 * math.pi * distances_m / profile.wavelength_m)
        ground = 40 * np.log10(distances_m) - 40 * math.log10(height)
        return np.where(distances_m < crossover, free, ground)

    def _shadowing_db(self, node: int) -> Array:
        """Normal deviates that depend on the two cells the ends are in: the same places have the same shadow always."""
        x, y = self.field.positions(self.world.engine.now)
        width = self.profile.cell_m
        cells = np.nan_to_num(np.floor(x / width)).astype(np.int64) * 1_000_003 + np.nan_to_num(
            np.floor(y / width)
        ).astype(np.int64)
        low, high = np.minimum(cells, cells[node]), np.maximum(cells, cells[node])
        both = _normal(_mixed(self._shadow_seed, low, high)) * self.profile.sigma_db
        here = np.full_like(cells, cells[node])
        return both + _normal(_mixed(self._shadow_seed + 1, here, cells)) * self.profile.one_way_sigma_db


def _mw(dbm: float) -> float:
    return float(10 ** (dbm / 10))


@lru_cache(maxsize=100_000)
def _frame_success(ratio_cdb: int, size_b: int, bandwidth_ratio: float) -> float:
    """The chance that no bit of a PSK frame is wrong, at a signal-to-noise ratio given in tenths of a decibel."""
    ratio = 10 ** (ratio_cdb / 100)
    errors = 0.5 * math.erfc(math.sqrt(ratio * bandwidth_ratio))
    return (1 - errors) ** (8 * size_b)


def _mixed(seed: int, one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A 64-bit hash of pairs, by SplitMix64's finaliser: the same on every machine."""
    with np.errstate(over="ignore"):
        z = one.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + other.astype(np.uint64) + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: np.ndarray[Any, Any] = z ^ (z >> np.uint64(31))
        return mixed


def _normal(hashes: np.ndarray[Any, Any]) -> Array:
    """Standard normal deviates from 64 random bits each (Box and Muller)."""
    first = ((hashes >> np.uint64(32)).astype(np.float64) + 1) / 2**32
    second = (hashes & np.uint64(0xFFFFFFFF)).astype(np.float64) / 2**32
    deviates: Array = np.sqrt(-2 * np.log(first)) * np.cos(2 * math.pi * second)
    return deviates
