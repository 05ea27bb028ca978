"""Radios: one sends, whoever is near enough hears it.

`Disc` is the ideal one: everybody within range hears everything. `Radio` has power, noise and contention: signals fade
with distance, add up where they meet, and a sender listens before it speaks. Both count what was sent and received.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from godwit.protocols.host import Message, NodeId
from godwit.sim.mobility import Field, Model
from godwit.sim.streams import Streams
from godwit.sim.world import Traffic, World

Array = np.ndarray[Any, np.dtype[np.float64]]
STEP_S = 0.1
"""Positions, and with them powers, are taken anew this often: at 10 m/s a node moves a metre meanwhile."""


class Air(Traffic):
    """What all radios share: where the nodes are, and what was sent and heard."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.field = Field(world.streams)
        self._rows: dict[int, Any] = {}
        self._places: tuple[int, Array, Array] | None = None

    def place(self, name: NodeId, model: Model) -> None:
        """Put a node of the world somewhere; a node that is nowhere neither sends nor hears."""
        self.field.add(name, model)
        self._places = None

    def silence(self, name: NodeId, /) -> None:
        """Nothing waits inside an ideal radio."""

    def _row(self, node: int) -> Any:
        """What `_computed_row` says of a node, kept for one step, or for ever where nobody moves."""
        step = int(self.world.engine.now / STEP_S) if self.field.moving else -1
        if self._places is None or self._places[0] != step:
            # Taken once for everybody, so that within a step the way there is as long as the way back.
            self._places = (step, *self.field.positions(self.world.engine.now))
            self._rows.clear()
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self._computed_row(node, self._places[1], self._places[2])
        return row

    def _computed_row(self, node: int, x_m: Array, y_m: Array) -> Any:
        raise NotImplementedError


def distances_m(node: int, x_m: Array, y_m: Array) -> Array:
    """From one node to all; NaN to itself, and where an end is nowhere."""
    distances: Array = np.hypot(x_m - x_m[node], y_m - y_m[node])
    distances[node] = math.nan
    return distances


class Disc(Air):
    """Everybody within `range_m` hears, after the time the bits take; nobody disturbs anybody."""

    def __init__(self, world: World, *, range_m: float, bits_per_s: float = 250_000.0) -> None:
        super().__init__(world)
        self.range_m = range_m
        self.bits_per_s = bits_per_s

    def _computed_row(self, node: int, x_m: Array, y_m: Array) -> list[NodeId]:
        near = np.flatnonzero(distances_m(node, x_m, y_m) <= self.range_m)
        return [self.field.names[other] for other in near]

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
    """Frames that wait in a node, the one on the air among them; a message that does not fit in whole is dropped."""
    mtu_b: int | None = None
    """The longest frame, overhead included: a longer message goes in pieces, and only who hears all of them has it."""
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
"""Castalia's stock CC2420 and CSMA: 2.4 GHz, 0 dBm, log-distance with shadowing, one try, no acknowledgement.

Castalia lets a frame be as long as it likes; with `mtu_b=IEEE_802_15_4_B` it is as short as the real one.
"""

IEEE_802_15_4_B = 127 + 6
"""The longest frame of 802.15.4, and the preamble and length before it."""

WIFI_TWO_RAY = Profile(
    tx_dbm=24.5,
    sensitivity_dbm=-64.375,
    noise_dbm=-101.0,
    busy_dbm=-78.072,
    bits_per_s=2_000_000.0,
    overhead_b=58,
    back_off_s=31 * 20e-6,
    always_back_off=True,
    capture=10.0,
    two_ray_height_m=1.5,
    wavelength_m=0.328,
)
"""The classic 914 MHz card: heard to 250 m, sensed to 550 m, two-ray ground, frames without acknowledgement."""


class Parcel:
    """A message on its way, in one frame or several; `heard_by` has everything so far, None before the first frame."""

    __slots__ = ("heard_by", "message", "to")

    def __init__(self, message: Message, to: NodeId | None) -> None:
        self.message = message
        self.to = to
        self.heard_by: list[NodeId] | None = None


class Frame:
    """A transmission: how far it reaches, and with whom it has shared the air so far."""

    __slots__ = ("crowds", "is_first", "is_last", "parcel", "reach", "size_b")

    def __init__(self, parcel: Parcel, size_b: int, is_first: bool, is_last: bool) -> None:
        self.parcel = parcel
        self.size_b = size_b
        self.is_first = is_first
        self.is_last = is_last
        self.reach: Reach
        self.crowds: list[Crowd] = []


class Reach:
    """Where a node's signal goes: its power at every node, and the names of those that hear anything."""

    __slots__ = ("all_mw", "audible", "power_mw", "undisturbed")

    def __init__(self, power_mw: Array, audible: dict[int, NodeId]) -> None:
        self.all_mw = power_mw
        # Read one by one: a view gives plain floats, and many times as fast as the array does.
        self.power_mw = memoryview(power_mw)  # type: ignore[arg-type]
        self.audible = audible
        self.undisturbed: dict[int, Audience] = {}
        """By the length of the frame. Most frames meet no other, and theirs is the same each time."""


class Crowd:
    """Everybody who is on the air at once, in the order in which they began."""

    __slots__ = ("_energy_mw", "reaches")

    def __init__(self, reaches: dict[int, Reach]) -> None:
        self.reaches = reaches
        self._energy_mw: Array | None = None

    @property
    def energy_mw(self) -> Array:
        """What all of them bring to every node. All frames of a crowd ask for it, so that it is added up once."""
        if self._energy_mw is None:
            self._energy_mw = added(self.reaches.values())
        return self._energy_mw


def added(reaches: Iterable[Reach]) -> Array:
    """The powers of all, in the order given: another order could differ in the last bit."""
    first, *others = reaches
    energy_mw: Array = first.all_mw.copy()
    for reach in others:
        energy_mw += reach.all_mw
    return energy_mw


class Audience(NamedTuple):
    """How surely each of those in reach hears a frame; `sure` are all of them where no dice are needed."""

    chances: dict[NodeId, float]
    sure: list[NodeId] | None


class Station:
    """One node's side of the radio: what it has to send, how often in a row it found the air busy, and its dice."""

    __slots__ = ("mac_dice", "name", "node", "queue", "reception_dice", "tx_dbm", "waits")

    def __init__(self, name: NodeId, node: int, tx_dbm: float, streams: Streams) -> None:
        self.name = name
        self.node = node
        self.tx_dbm = tx_dbm
        self.queue: deque[Frame] = deque()
        self.waits = 0
        self.mac_dice = streams.stream("mac", name)
        self.reception_dice = streams.stream("reception", name)


class Radio(Air):
    """CSMA over a shared channel. A frame is heard where its signal is good enough against noise and all other signals.

    Disturbance is additive and taken at its worst over the frame; a node that sends hears nothing meanwhile. Listening
    and turning round take no time, so that of two who are in range only hidden ones collide.
    """

    def __init__(self, world: World, profile: Profile = CC2420) -> None:
        super().__init__(world)
        self.profile = profile
        self.dropped: Counter[NodeId] = Counter()
        self.frames = 0
        self._stations: dict[NodeId, Station] = {}
        self._active: dict[int, Frame] = {}
        """What is on the air, by the node that sends it."""
        self._noise_mw = _mw(profile.noise_dbm)
        self._busy_mw = _mw(profile.busy_dbm)
        self._sensitivity_mw = _mw(profile.sensitivity_dbm)
        self._shadow_seed = world.streams.stream("shadowing").getrandbits(63)

    def place(self, name: NodeId, model: Model, *, tx_dbm: float | None = None) -> None:
        """`tx_dbm` where this node is louder or softer than the profile says."""
        if self._active:
            raise ValueError(f"{name!r} cannot be placed while somebody sends: place everybody first")
        super().place(name, model)
        tx_dbm = self.profile.tx_dbm if tx_dbm is None else tx_dbm
        self._stations[name] = Station(name, self.field.index[name], tx_dbm, self.world.streams)

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        self._enqueue(self._stations[sender], Parcel(message, None))

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self._enqueue(self._stations[sender], Parcel(message, to))

    def silence(self, name: NodeId, /) -> None:
        """Whoever crashes in the middle of a frame is understood by nobody, though it was on the air."""
        station = self._stations[name]
        station.queue.clear()
        if station.node in self._active:
            self._active[station.node].parcel.heard_by = []

    def withdraw(self, sender: NodeId, message: Message, /) -> bool:
        """Take back a message that has not begun to be sent; False where it is too late."""
        station = self._stations[sender]
        queue = station.queue
        frames = [frame for frame in queue if frame.parcel.message is message]
        if not frames or not frames[0].is_first or self._active.get(station.node) is frames[0]:
            return False
        is_next = queue[0] is frames[0]
        for frame in frames:
            queue.remove(frame)
        if is_next and queue:
            self._next(station)
        return True

    def _enqueue(self, station: Station, parcel: Parcel) -> None:
        queue = station.queue
        frames = self._frames(parcel)
        if len(queue) + len(frames) > self.profile.queue_max:
            self.dropped[station.name] += 1
            return
        was_idle = not queue
        queue.extend(frames)
        if was_idle:
            self._next(station)

    def _frames(self, parcel: Parcel) -> list[Frame]:
        size_b, overhead, mtu = parcel.message.size_b, self.profile.overhead_b, self.profile.mtu_b
        if mtu is None or size_b + overhead <= mtu:
            return [Frame(parcel, size_b + overhead, True, True)]
        starts = range(0, size_b, mtu - overhead)
        return [Frame(parcel, min(mtu, size_b - start + overhead), start == 0, start == starts[-1]) for start in starts]

    def _next(self, station: Station) -> None:
        """Start on the first frame of the queue."""
        station.waits = 0
        if self.profile.always_back_off:
            self._back_off(station)
        else:
            self._attempt(station, station.queue[0])

    def _attempt(self, station: Station, frame: Frame) -> None:
        """Listen; speak if nobody is heard, else wait a random time that grows with every disappointment."""
        if not station.queue or station.queue[0] is not frame:
            return
        if self._active and self._is_busy(station.node):
            station.waits += 1
            self._back_off(station)
        else:
            self._begin(station, frame)

    def _is_busy(self, node: int) -> bool:
        """Others are heard, or what this node sent before a crash is still on the air."""
        if node in self._active:
            return True
        energy_mw = 0.0
        for frame in self._active.values():
            energy_mw += frame.reach.power_mw[node]
        return energy_mw > self._busy_mw

    def _back_off(self, station: Station) -> None:
        turns, frame = station.waits or 1, station.queue[0]
        window = self.profile.back_off_s * (2 ** min(turns - 1, 5) if self.profile.doubling else turns)
        engine = self.world.engine
        engine.at(engine.now + station.mac_dice.random() * window, lambda: self._attempt(station, frame))

    def _begin(self, station: Station, frame: Frame) -> None:
        self.frames += 1
        if frame.is_first:
            self.count(station.name, frame.parcel.message)
        frame.reach = self._row(station.node)
        self._active[station.node] = frame
        if len(self._active) > 1:
            crowd = Crowd({node: other.reach for node, other in self._active.items()})
            for other in self._active.values():
                other.crowds.append(crowd)
        engine = self.world.engine
        engine.at(engine.now + frame.size_b * 8 / self.profile.bits_per_s, lambda: self._end(station, frame))

    def _end(self, station: Station, frame: Frame) -> None:
        del self._active[station.node]
        parcel, queue = frame.parcel, station.queue
        heard_by = self._hearers(frame)
        if parcel.heard_by is not None:
            heard_by = [name for name in heard_by if name in parcel.heard_by]
        parcel.heard_by = heard_by
        if frame.is_last:
            self.received += len(heard_by)
            deliver, sender, message = self.world.deliver, station.name, parcel.message
            for name in heard_by:
                deliver(sender, name, message)
        # Until here the frame has kept its place: whatever its hearers make this node say waits behind it.
        if queue and queue[0] is frame:
            queue.popleft()
            if queue:
                self._next(station)

    def _hearers(self, frame: Frame) -> list[NodeId]:
        reach, to = frame.reach, frame.parcel.to
        if to is not None:
            node = self.field.index[to]
            chances = self._chances(frame, {node: to} if node in reach.audible else {})
        elif frame.crowds:
            if self.profile.capture is not None:
                return self._captured(frame, self.profile.capture)
            chances = self._chances(frame, reach.audible)
        else:
            chances, sure = reach.undisturbed.get(frame.size_b) or self._undisturbed(frame)
            if sure is not None:
                return sure
        stations = self._stations
        return [
            name
            for name, chance in chances.items()
            if chance > 0.999999 or (chance > 1e-6 and stations[name].reception_dice.random() < chance)
        ]

    def _captured(self, frame: Frame, capture: float) -> list[NodeId]:
        """Where reception is by strength alone no dice are rolled."""
        clear = (frame.reach.all_mw / (self._noise_mw + _disturbances_mw(frame)) >= capture).tolist()
        return [name for node, name in frame.reach.audible.items() if clear[node]]

    def _undisturbed(self, frame: Frame) -> Audience:
        chances = self._chances(frame, frame.reach.audible)
        is_sure = all(not 1e-6 < chance <= 0.999999 for chance in chances.values())
        sure = [name for name, chance in chances.items() if chance > 0.999999] if is_sure else None
        audience = frame.reach.undisturbed[frame.size_b] = Audience(chances, sure)
        return audience

    def _chances(self, frame: Frame, hearers: dict[int, NodeId]) -> dict[NodeId, float]:
        power_mw, noise_mw, chance = frame.reach.power_mw, self._noise_mw, self._chance
        return {
            name: chance(power_mw[node] / (noise_mw + _disturbance_mw(frame, node)), frame.size_b)
            for node, name in hearers.items()
        }

    def _chance(self, ratio: float, size_b: int) -> float:
        if self.profile.capture is not None:
            return 1.0 if ratio >= self.profile.capture else 0.0
        tenths_db = round(100 * math.log10(max(ratio, 1e-3)))
        return _frame_success(size_b, self.profile.noise_bandwidth_ratio)[min(tenths_db, TENTHS_DB_MAX) - TENTHS_DB_MIN]

    def _computed_row(self, node: int, x_m: Array, y_m: Array) -> Reach:
        """The power of this node's signal everywhere, in milliwatts; nothing at the node itself and nowhere."""
        distances = np.maximum(distances_m(node, x_m, y_m), 0.1)
        loss_db = self.path_loss_db(distances)
        if self.profile.sigma_db or self.profile.one_way_sigma_db:
            loss_db = loss_db + self._shadowing_db(node, x_m, y_m)
        # Rounded, so that the last bit of somebody else's logarithm cannot change a trace.
        power_dbm = np.round(self._stations[self.field.names[node]].tx_dbm - loss_db, 6)
        power_mw = np.fmax(10 ** (power_dbm / 10), 0.0)  # of NaN and 0 the 0
        audible = np.flatnonzero(power_mw >= self._sensitivity_mw).tolist()
        return Reach(power_mw, {other: self.field.names[other] for other in audible})

    def path_loss_db(self, distances_m: Array) -> Array:
        profile = self.profile
        if profile.two_ray_height_m is None:
            return profile.path_loss_db + 10 * profile.path_loss_exponent * np.log10(distances_m)
        height = profile.two_ray_height_m
        crossover = 4 * math.pi * height * height / profile.wavelength_m
        free = 20 * np.log10(4 * math.pi * distances_m / profile.wavelength_m)
        ground = 40 * np.log10(distances_m) - 40 * math.log10(height)
        return np.where(distances_m < crossover, free, ground)

    def _shadowing_db(self, node: int, x_m: Array, y_m: Array) -> Array:
        """Normal deviates that depend on the two cells the ends are in: the same places have the same shadow always."""
        width = self.profile.cell_m
        column, row = (np.nan_to_num(np.floor(at / width)).astype(np.int64) for at in (x_m, y_m))
        cells = column * 1_000_003 + row
        low, high = np.minimum(cells, cells[node]), np.maximum(cells, cells[node])
        both = _normal(_mixed(self._shadow_seed, low, high)) * self.profile.sigma_db
        here = np.full_like(cells, cells[node])
        return both + _normal(_mixed(self._shadow_seed + 1, here, cells)) * self.profile.one_way_sigma_db


def _disturbance_mw(frame: Frame, node: int) -> float:
    """The worst that others bring to a node while the frame lasts; whoever sends hears nothing meanwhile."""
    own_mw, worst_mw = frame.reach.power_mw[node], 0.0
    for crowd in frame.crowds:
        if node in crowd.reaches:
            return math.inf
        energy_mw = 0.0
        for reach in crowd.reaches.values():
            energy_mw += reach.power_mw[node]
        worst_mw = max(worst_mw, energy_mw - own_mw)
    return worst_mw


def _disturbances_mw(frame: Frame) -> Array:
    """The same of every node at once, to the last bit."""
    worst_mw: Array = np.zeros_like(frame.reach.all_mw)
    for crowd in frame.crowds:
        np.maximum(worst_mw, crowd.energy_mw - frame.reach.all_mw, out=worst_mw)
    for crowd in frame.crowds:
        worst_mw[list(crowd.reaches)] = math.inf
    return worst_mw


def _mw(dbm: float) -> float:
    return float(10 ** (dbm / 10))


TENTHS_DB_MIN, TENTHS_DB_MAX = -300, 400


@lru_cache(maxsize=1000)
def _frame_success(size_b: int, bandwidth_ratio: float) -> list[float]:
    """The chance that no bit of a PSK frame is wrong, for each tenth of a decibel of signal-to-noise ratio."""
    ratios = (10 ** (tenths / 100) for tenths in range(TENTHS_DB_MIN, TENTHS_DB_MAX + 1))
    errors = (0.5 * math.erfc(math.sqrt(ratio * bandwidth_ratio)) for ratio in ratios)
    return [(1 - error) ** (8 * size_b) for error in errors]


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
