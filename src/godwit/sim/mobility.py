"""Where everybody is: straight legs at constant speed, drawn from each node's own dice.

A model says where the next leg goes; the `Field` keeps all nodes' legs in arrays, so that the positions of everybody at
one moment cost a few array operations whatever the models are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from random import Random
from typing import Any, Protocol

import msgspec
import numpy as np

from godwit.protocols.host import NodeId
from godwit.sim.streams import Streams

Array = np.ndarray[Any, np.dtype[np.float64]]


class Leg(msgspec.Struct, frozen=True):
    """From where the node is, with this velocity, for so long. `jump` puts it somewhere else first."""

    duration_s: float
    vx_mps: float = 0.0
    vy_mps: float = 0.0
    jump: tuple[float, float] | None = None


class Model(Protocol):
    """How a node moves. `start` places it, `next` is asked whenever a leg has ended; NaN is no heading yet."""

    def start(self, dice: Random, /) -> tuple[float, float]: ...
    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg: ...


class Still(msgspec.Struct, frozen=True):
    """Stays where it is put."""

    x_m: float
    y_m: float

    def start(self, dice: Random, /) -> tuple[float, float]:
        return self.x_m, self.y_m

    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg:
        return Leg(math.inf)


class Waypoint(msgspec.Struct, frozen=True, kw_only=True):
    """Random waypoint: a uniform target in the area, straight there, a pause where one is given, and again."""

    width_m: float
    height_m: float
    speed_mps: tuple[float, float]
    pause_s: float = 0.0

    def start(self, dice: Random, /) -> tuple[float, float]:
        return dice.uniform(0, self.width_m), dice.uniform(0, self.height_m)

    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg:
        if self.pause_s and not math.isnan(heading):
            return Leg(self.pause_s)
        target_x, target_y = self.start(dice)
        distance = math.hypot(target_x - x_m, target_y - y_m)
        speed = dice.uniform(*self.speed_mps)
        if speed <= 0 or distance == 0:
            return Leg(1.0)
        return Leg(distance / speed, (target_x - x_m) / distance * speed, (target_y - y_m) / distance * speed)


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """Random walk: a new direction every tick, turned back at the edge. Clusters, and covers an area badly."""

    width_m: float
    height_m: float
    speed_mps: tuple[float, float]
    tick_s: float = 1.0

    def start(self, dice: Random, /) -> tuple[float, float]:
        return dice.uniform(0, self.width_m), dice.uniform(0, self.height_m)

    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg:
        angle, speed = dice.uniform(0, 2 * math.pi), dice.uniform(*self.speed_mps)
        return inside(self.width_m, self.height_m, x_m, y_m, angle, speed, self.tick_s)


class Mass(msgspec.Struct, frozen=True, kw_only=True):
    """Mass mobility: bodies with momentum, which turn a little now and then and bounce off the edge."""

    width_m: float
    height_m: float
    speed_mps: tuple[float, float]
    change_s: tuple[float, float] = (5.0, 1.0)
    turn_rad: float = 0.5
    uniform: bool = False
    """Drawn evenly: `change_s` is then the shortest and the longest leg, and `turn_rad` the largest turn."""

    def start(self, dice: Random, /) -> tuple[float, float]:
        return dice.uniform(0, self.width_m), dice.uniform(0, self.height_m)

    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg:
        if self.uniform:
            turn, duration = dice.uniform(-self.turn_rad, self.turn_rad), dice.uniform(*self.change_s)
            angle = dice.uniform(0, 2 * math.pi) if math.isnan(heading) else heading + turn
        else:
            angle = dice.uniform(0, 2 * math.pi) if math.isnan(heading) else dice.gauss(heading, self.turn_rad)
            duration = max(0.1, dice.gauss(*self.change_s))
        return inside(self.width_m, self.height_m, x_m, y_m, angle, dice.uniform(*self.speed_mps), duration)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A recording, straight between its fixes. In a gap of more than `gap_max_s` the node is nowhere, out of reach."""

    times_s: tuple[float, ...]
    xs_m: tuple[float, ...]
    ys_m: tuple[float, ...]
    gap_max_s: float = 300.0

    def __post_init__(self) -> None:
        if not self.times_s or len({len(self.times_s), len(self.xs_m), len(self.ys_m)}) != 1:
            raise ValueError("a recording needs as many times as places, and at least one")
        if not all(map(math.isfinite, (*self.times_s, *self.xs_m, *self.ys_m))) or not self.gap_max_s > 0:
            raise ValueError("times, places and the longest gap of a recording must be finite numbers")
        if any(b <= a for a, b in zip(self.times_s, self.times_s[1:], strict=False)):
            raise ValueError("the times of a recording must increase")

    def start(self, dice: Random, /) -> tuple[float, float]:
        return (self.xs_m[0], self.ys_m[0]) if self.times_s[0] <= 0 else NOWHERE

    def next(self, dice: Random, time_s: float, x_m: float, y_m: float, heading: float, /) -> Leg:
        after = bisect_right(self.times_s, time_s)
        if after == len(self.times_s):
            return Leg(math.inf, jump=NOWHERE)
        wait = self.times_s[after] - time_s
        if after == 0 or self.times_s[after] - self.times_s[after - 1] > self.gap_max_s:
            return Leg(wait, jump=NOWHERE)
        span = self.times_s[after] - self.times_s[after - 1]
        vx = (self.xs_m[after] - self.xs_m[after - 1]) / span
        vy = (self.ys_m[after] - self.ys_m[after - 1]) / span
        late = time_s - self.times_s[after - 1]
        return Leg(wait, vx, vy, (self.xs_m[after - 1] + vx * late, self.ys_m[after - 1] + vy * late))


NOWHERE = (math.nan, math.nan)
EDGE_M = 1e-6


def inside(
    width_m: float, height_m: float, x_m: float, y_m: float, angle: float, speed_mps: float, duration_s: float
) -> Leg:
    """A leg that starts inwards, mirrored at an edge it stands on, and ends where it would cross another."""
    vx = _inwards(speed_mps * math.cos(angle), x_m, width_m)
    vy = _inwards(speed_mps * math.sin(angle), y_m, height_m)
    for position, velocity, size in ((x_m, vx, width_m), (y_m, vy, height_m)):
        if velocity:
            room = (size - position if velocity > 0 else -position) / velocity
            duration_s = min(duration_s, room)
    return Leg(duration_s, vx, vy)


def _inwards(velocity: float, position: float, size: float) -> float:
    # A leg that ended at the edge ends a rounding error beside it.
    if position < EDGE_M:
        return abs(velocity)
    return -abs(velocity) if position > size - EDGE_M else velocity


class Field:
    """The positions of all nodes. Times asked for must not go back; each node's legs come from a stream of its own."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.names: list[NodeId] = []
        self.index: dict[NodeId, int] = {}
        self._models: list[Model] = []
        self._dice: list[Random] = []
        self._legs = np.zeros((6, 0))
        self.moving = False
        """Whether anybody may be elsewhere later; known as of the last time asked for."""

    def add(self, name: NodeId, model: Model) -> None:
        if name in self.index:
            raise ValueError(f"{name!r} has its place already")
        dice = self.streams.stream("mobility", name)
        x, y = model.start(dice)
        self.index[name] = len(self.names)
        self.names.append(name)
        self._models.append(model)
        self._dice.append(dice)
        leg = np.array([[x], [y], [0.0], [0.0], [0.0], [0.0]])
        self._legs = np.hstack([self._legs, leg])
        self.moving = True

    def positions(self, time_s: float) -> tuple[Array, Array]:
        """x and y of every node, in the order in which they were added; NaN for a node that is nowhere."""
        x, y, vx, vy, start, end = self._legs
        ended = np.flatnonzero(end <= time_s)
        for node in ended:
            self._advance(int(node), time_s)
        if len(ended):
            self.moving = bool(np.isfinite(end).any() or vx.any() or vy.any())
        late = time_s - start
        return x + vx * late, y + vy * late

    def _advance(self, node: int, time_s: float) -> None:
        x, y, vx, vy, start, end = self._legs[:, node].tolist()
        while end <= time_s:
            x, y = x + vx * (end - start), y + vy * (end - start)
            heading = math.atan2(vy, vx) if vx or vy else math.nan
            leg = self._models[node].next(self._dice[node], end, x, y, heading)
            if not leg.duration_s > 0:
                raise ValueError(f"{self.names[node]!r} would stand still in time: a leg of {leg.duration_s} s")
            if leg.jump is not None:
                x, y = leg.jump
            vx, vy, start, end = leg.vx_mps, leg.vy_mps, end, end + leg.duration_s
        self._legs[:, node] = x, y, vx, vy, start, end
