"""How the ring grows, to 10,000 brokers and a million clients: hops, links, state, messages a handoff, skew of homes.

Walks are the arrays of `atlas`, which are the real core's hop by hop. Real cores join, fail and hand over in `churn`.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from hashlib import sha1

import msgspec
import numpy as np
from scipy.spatial import cKDTree

from godwit.lab.gathering.beyond.atlas import Atlas, Ints, Names, Reals
from godwit.protocols.gathering.maps import SQUARE, generate
from godwit.sim.streams import Streams

SIZES = (100, 300, 1_000, 3_000, 10_000)
CLIENTS = 1_000_000
WALKS = 100_000
AREAS = 2_000
HOMES = 3
CHUNK = 100_000
STEP = 1.0
"""How far a client moves before it may have another nearest broker."""


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """One size. Home entries count k registrations of every client; a handoff is a client with a new nearest broker."""

    brokers: int
    clients: int
    links_mean: float
    links_max: int
    place_hops: float
    place_hops_max: int
    key_hops: float
    key_hops_max: int
    cells: float
    """Touched by an area of radius 1 in a square of 100."""
    cells_scaled: float
    """By an area as large in proportion to the cells at every size: a hundredth of the square's side at 100 brokers."""
    homes_mean: float
    homes_max: int
    homes_none: float
    """Share of brokers that are nobody's home."""
    handoffs: int
    handover_sent: float
    """HANDOVER and UPDATE with their answers, over overlay hops, for each handoff."""
    register_sent: float
    wall_s: float
    cpu_s: float
    memory_mb: float
    """The most that the process ever had, smaller sizes before it included."""


def grown(brokers: int, clients: int, seed: int = 1, told: Callable[[str], None] = lambda text: None) -> Grown:
    started, busy = time.perf_counter(), time.process_time()
    streams = Streams(seed)
    told(f"{brokers:,} brokers: the map")
    chart = generate(brokers, streams.stream("map", brokers), phones=0)
    atlas = Atlas(chart.sites)
    dice = streams.generator("walks", brokers)
    start, places = dice.integers(0, brokers, WALKS), dice.uniform(0, 100, (WALKS, 2))
    by_place = hops_of(start, atlas.to_places(start, places))
    by_key = hops_of(start, atlas.to_keys(start, names_of(dice.bytes(8 * WALKS))))
    told(f"{brokers:,} brokers: {clients:,} clients")
    crowd = Crowd(atlas, clients, dice, told)
    links = atlas.links()
    return Grown(
        brokers=brokers,
        clients=clients,
        links_mean=float(links.mean()),
        links_max=int(links.max()),
        place_hops=float(by_place.mean()),
        place_hops_max=int(by_place.max()),
        key_hops=float(by_key.mean()),
        key_hops_max=int(by_key.max()),
        cells=float(atlas.cells_of(places[:AREAS], 1.0).mean()),
        cells_scaled=float(atlas.cells_of(places[:AREAS], 10.0 / np.sqrt(brokers)).mean()),
        homes_mean=float(crowd.homes.mean()),
        homes_max=int(crowd.homes.max()),
        homes_none=float((crowd.homes == 0).mean()),
        handoffs=crowd.handoffs,
        handover_sent=crowd.handover_sent / max(1, crowd.handoffs),
        register_sent=crowd.register_sent / max(1, crowd.handoffs),
        wall_s=time.perf_counter() - started,
        cpu_s=time.process_time() - busy,
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def names_of(raw: bytes) -> Names:
    return np.frombuffer(raw, ">u8").astype(np.uint64)


def hops_of(start: Ints, steps: Iterator[Ints]) -> Ints:
    hops, before = np.zeros(len(start), np.int64), start
    for here in steps:
        hops += here != before
        before = here
    return hops


class Crowd:
    """A million clients as arrays: where they are attached, who their homes are, and what a move costs."""

    def __init__(
        self, atlas: Atlas, clients: int, dice: np.random.Generator, told: Callable[[str], None] = lambda text: None
    ) -> None:
        self.atlas = atlas
        self.tree = cKDTree(atlas.places)
        self.homes = np.zeros(atlas.count, np.int64)
        self.handoffs = self.handover_sent = self.register_sent = 0
        publisher = np.array([dice.uniform(low, high) for low, high in SQUARE])
        matcher = int(self.tree.query(publisher)[1])
        for first in range(0, clients, CHUNK):
            count = min(CHUNK, clients - first)
            self._take(first, dice.uniform(0, 100, (count, 2)), dice, matcher)
            told(f"{atlas.count:,} brokers: {first + count:,} of {clients:,} clients")

    def _take(self, first: int, places: Reals, dice: np.random.Generator, matcher: int) -> None:
        keys = home_names(first, len(places))
        old = self.tree.query(places)[1].astype(np.int64)
        for column in range(HOMES):
            self.homes += np.bincount(self._roots(old, keys[:, column]), minlength=self.atlas.count)
        angle = dice.uniform(0, 2 * np.pi, len(places))
        moved = np.clip(places + STEP * np.c_[np.cos(angle), np.sin(angle)], 0, 100)
        new = self.tree.query(moved)[1].astype(np.int64)
        away = np.flatnonzero(new != old)
        self.handoffs += len(away)
        self._hand_over(old[away], new[away], keys[away], matcher)

    def _roots(self, start: Ints, keys: Names) -> Ints:
        here = start
        for here in self.atlas.to_keys(start, keys):  # noqa: B007
            pass
        return here

    def _hand_over(self, old: Ints, new: Ints, keys: Names, matcher: int) -> None:
        """REG to three homes and the answers; HANDOVER to the old broker, UPDATE to the matcher, and their answers."""
        numbers = self.atlas.numbers
        self.register_sent += multicast_sent(self.atlas, new, keys)
        for column in range(HOMES):
            homes = self._roots(new, keys[:, column])
            self.register_sent += int(hops_of(homes, self.atlas.to_keys(homes, numbers[new])).sum())
        at = np.full(len(old), matcher)
        for start, end in ((new, old), (old, new), (old, at), (at, old)):
            self.handover_sent += int(hops_of(start, self.atlas.to_keys(start, numbers[end])).sum())


def multicast_sent(atlas: Atlas, start: Ints, keys: Names) -> int:
    """Transmissions of one multicast to several keys: copies that go the same way are one."""
    count = keys.shape[1]
    here = np.repeat(start[:, None], count, axis=1)
    sent, together = 0, np.ones((count, count, len(start)), bool)
    while True:
        following = atlas.next_hops(here.ravel(), keys.ravel()).reshape(here.shape)
        moving = following != here
        if not moving.any():
            return sent
        for one in range(count):
            fresh = moving[:, one].copy()
            for other in range(one):
                same = together[one, other] & (following[:, one] == following[:, other]) & moving[:, other]
                fresh &= ~same
                together[one, other] &= following[:, one] == following[:, other]
            sent += int(fresh.sum())
        here = following


def home_names(first: int, count: int) -> Names:
    """The hashes of the spec (2.9), of clients named by their numbers."""
    ends = [b"\0" + bytes((index,)) for index in range(HOMES)]
    raw = b"".join(
        sha1(b"%d%s" % (client, end), usedforsecurity=False).digest()[:8]
        for client in range(first, first + count)
        for end in ends
    )
    return names_of(raw).reshape(count, HOMES)
