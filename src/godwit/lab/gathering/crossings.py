"""Experiment M (spec data-gathering 4.4): phones that drift over the whole space while a sensor publishes to all.

Who is attached where follows from places alone, so it is worked out beforehand; everything else is messages.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.messages import Item
from godwit.protocols.gathering.phone import Phone
from godwit.protocols.host import NodeId
from godwit.sim.mobility import Array, Field, Mass
from godwit.sim.ring.gathering import Gathering

if TYPE_CHECKING:
    from godwit.lab.gathering.runs import Configuration, Result

SIDE = 100.0
SPEED = 0.1
RANGE = 25.0
START_S = 200.0
PERIOD_S = 10.0
DRAIN_S = 60.0
WINDOW_S = (200.0, 1200.0)
SAMPLE_S = 5.0
SHOWN_BROKERS = 24
LATE_S = 5.0
"""What takes longer was buffered: the longest way through 64 brokers takes less than a second."""

INSTALLED_S = 0.5
"""After so long a subscription is everywhere; events from then on are wanted."""

EVERYTHING = Disc((50.0, 50.0), 100.0)
HANDOVER = ("Handover", "HandoverAnswer", "Lookup", "LookupAnswer", "Update", "UpdateAnswer")
REGISTERING = ("Register", "Registered")
SUBSCRIBING = ("Sub", "Unsub")

Move = tuple[float, NodeId | None]
"""When, and to which broker; None is out of everybody's range."""


class Drift(Mass, frozen=True, kw_only=True):
    """Mass mobility that begins at a place of the map."""

    at: tuple[float, float]

    def start(self, dice: Any, /) -> tuple[float, float]:
        return self.at


def moves(configuration: Configuration, until_s: float) -> dict[NodeId, list[Move]]:
    """Every second: out of range is absent; who is absent associates with the nearest broker in range (2.15)."""
    from godwit.sim.streams import Streams

    chart = configuration.chart()
    field = Field(Streams(configuration.seed).child("drift"))
    names = [f"p{at:02d}" for at in range(len(chart.starts))]
    for name, (x, y) in zip(names, chart.starts, strict=True):
        drift = Drift(
            width_m=SIDE,
            height_m=SIDE,
            speed_mps=(SPEED, SPEED),
            change_s=(100.0, 200.0),
            turn_rad=math.pi / 6,
            uniform=True,
            at=(x, y),
        )
        field.add(name, drift)
    places = np.array([np.stack(field.positions(float(second)), axis=1) for second in range(int(until_s) + 1)])
    brokers = np.array([site.place for site in chart.sites])
    known = [site.name for site in chart.sites]
    return {name: attachments(_squares(places[:, at], brokers), known) for at, name in enumerate(names)}


def _squares(places: Array, brokers: Array) -> Array:
    """Of the distances to each broker, second by second."""
    across = np.subtract.outer(places[:, 0], brokers[:, 0])
    down = np.subtract.outer(places[:, 1], brokers[:, 1])
    squares: Array = across * across + down * down
    return squares


def attachments(squares: Array, brokers: Sequence[NodeId]) -> list[Move]:
    nearest, within = squares.argmin(axis=1), squares <= RANGE**2
    found: list[Move] = []
    attached: int | None = None
    for second, (closest, reached) in enumerate(zip(nearest.tolist(), within.tolist(), strict=True)):
        if attached is not None and reached[attached]:
            continue
        following = closest if reached[closest] else None
        if following != attached or following is not None:
            found.append((float(second), None if following is None else brokers[following]))
        attached = following
    return found


class Crossings:
    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.end_s = START_S + PERIOD_S * configuration.requests
        self.moves = moves(configuration, self.end_s)
        self.chart = configuration.chart()
        self.gathering = Gathering(configuration.seed, configuration.rules)
        self.gathering.deploy(self.chart.sites)
        self.subscribed_s: dict[NodeId, float] = {}
        self.latencies: dict[NodeId, list[tuple[float, float]]] = {}
        self.samples: list[tuple[float, dict[NodeId, tuple[int, int]]]] = []
        self.relocations = 0
        self.associations = 0
        self.relocated: dict[NodeId, list[float]] = {}

    def run(self) -> Result:
        gathering = self.gathering
        for name, some in self.moves.items():
            self._add(name, some)
        self._add_sensor()
        gathering.run(START_S)
        before = gathering.underlay.sent.copy()
        at_start = self.relocations
        if self.configuration.brokers == SHOWN_BROKERS:
            for step in range(int((WINDOW_S[1] - WINDOW_S[0]) / SAMPLE_S)):
                gathering.world.engine.at(WINDOW_S[0] + step * SAMPLE_S, self._sample)
        gathering.run(self.end_s + DRAIN_S)
        return self._result(gathering.underlay.sent - before, self.relocations - at_start)

    def _add(self, name: NodeId, some: Sequence[Move]) -> None:
        phone = self.gathering.phone(name, history_max=0)
        self.latencies[name] = []
        self.relocated[name] = []
        phone.on_notification = partial(self._received, name)
        for when_s, broker in some:
            self.gathering.world.engine.at(when_s, partial(self._move, phone, broker))

    def _move(self, phone: Phone, broker: NodeId | None) -> None:
        self.gathering.detach(phone.client)
        if broker is None:
            return
        self.associations += 1
        last, key = phone.last, self.gathering.brokers[broker].key
        if last not in (b"", key):
            self.relocations += 1
            self.relocated[phone.client].append(self.gathering.world.engine.now)
        self.gathering.attach(phone.client, broker)
        if phone.client not in self.subscribed_s:
            self._subscribe(phone)
        elif self.configuration.scheme == "resubscribing" and last not in (b"", key):
            self.gathering.world.engine.after(0.1, partial(self._resubscribe, phone))

    def _subscribe(self, phone: Phone) -> None:
        self.subscribed_s[phone.client] = self.gathering.world.engine.now
        phone.subscribe("any", EVERYTHING)

    def _resubscribe(self, phone: Phone) -> None:
        """The client's burden without a handover: cancel everything, ask for everything again."""
        if phone.broker is not None:
            for sid in list(phone.subscriptions):
                phone.unsubscribe(sid)
            phone.subscribe("any", EVERYTHING)

    def _add_sensor(self) -> None:
        nearest = min(self.chart.sites, key=lambda site: math.dist(site.place, self.chart.publisher))
        sensor = self.gathering.phone("sensor")
        self.gathering.attach("sensor", nearest.name)
        for number in range(self.configuration.requests):
            publish = partial(sensor.publish, "any", self.chart.publisher)
            self.gathering.world.engine.at(START_S + PERIOD_S * number, publish)

    def _counts(self, name: NodeId, item: Item) -> bool:
        return item.time_s >= self.subscribed_s[name] + INSTALLED_S

    def _received(self, name: NodeId, item: Item) -> None:
        if self._counts(name, item):
            self.latencies[name].append((item.time_s, self.gathering.world.engine.now - item.time_s))

    def _sample(self) -> None:
        counts = {
            name: (broker.profiles.count_attached(), broker.profiles.buffered_total())
            for name, broker in self.gathering.brokers.items()
        }
        self.samples.append((self.gathering.world.engine.now, counts))

    def _wanted(self) -> int:
        """Events that were published when the client's subscription was everywhere."""
        begun = [max(0.0, since_s + INSTALLED_S - START_S) / PERIOD_S for since_s in self.subscribed_s.values()]
        return sum(self.configuration.requests - min(self.configuration.requests, math.ceil(first)) for first in begun)

    def _buffered(self) -> int:
        profiles = [profile for broker in self.gathering.brokers.values() for profile in broker.profiles]
        return sum(self._counts(one.client, kept.notice.item) for one in profiles for kept in one.buffer.values())

    def _result(self, sent: Counter[str], relocations: int) -> Result:
        from godwit.lab.gathering.runs import Result

        brokers = self.gathering.brokers.values()
        taken = [late_s for some in self.latencies.values() for _, late_s in some]
        quick = [late_s for late_s in taken if late_s <= LATE_S]
        return Result(
            wanted=self._wanted(),
            received=len(taken),
            buffered=self._buffered(),
            sent=sum(sent.values()) - sent["HopAck"],
            confirmed=sent["HopAck"],
            associations=self.associations,
            relocations=relocations,
            handover_sent=sum(sent[kind] for kind in HANDOVER),
            registering_sent=sum(sent[kind] for kind in REGISTERING),
            subscribing_sent=sum(sent[kind] for kind in SUBSCRIBING),
            redirected=sum(broker.counts["redirected"] for broker in brokers),
            late=len(taken) - len(quick),
            latency_s=sum(quick) / len(quick) if quick else 0.0,
            pointers=max(len(broker.pointers) for broker in brokers),
            care_of_max=max(len(broker.care_of) for broker in brokers),
            stored_max=max(len(broker.store) for broker in brokers),
            series=self._series() if self.samples else "",
        )

    def _series(self) -> str:
        """A client that was never away, one that was away longest, and the broker whose buffers grew most."""
        window = {name: [(t, late) for t, late in some if t <= WINDOW_S[1]] for name, some in self.latencies.items()}
        away = {name: sum(late > LATE_S for _, late in some) for name, some in window.items()}
        moved = {name: [t for t in some if WINDOW_S[0] <= t <= WINDOW_S[1]] for name, some in self.relocated.items()}
        short = max(window, key=lambda name: (-away[name], len(moved[name])))
        long = max(window, key=lambda name: away[name])
        peak = max(self.samples[0][1], key=lambda name: max(counts[name][1] for _, counts in self.samples))
        shown = {
            "short": {"latencies": window[short], "associations": moved[short]},
            "long": {"latencies": window[long], "associations": moved[long]},
            "storage": [(time_s, *counts[peak]) for time_s, counts in self.samples],
        }
        return msgspec.json.encode(shown).decode()
