"""A hierarchical network in which some clients move, and what its links carry on their account.

The text quotes a study without saying how large its network was, how many clients a broker had, or how long they were
away (content-routing 4.3, C30). So the network here is the plainest of its kind: a binary tree, in which every event
goes up to the root and down to whom it interests, over each link at most once. Who is away has its events stored where
it was; when it appears elsewhere they follow it one by one, as unicasts. What is counted are messages on links.
"""

from __future__ import annotations

import time
from random import Random
from typing import NamedTuple

import msgspec
import numpy as np

from godwit.sim.streams import Streams

RELOCATION = 2
"""A subscription goes to the broker that has the store, and its answer comes back."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Times are counted in events. `clients` are at each broker, of whom `mobile` move."""

    seed: int
    clients: int
    away: float
    """The share of its time that a mobile client is away."""
    mobile: float = 0.1
    interest: float = 0.1
    """The chance that a client wants an event."""
    levels: int = 5
    """Of the tree: 31 brokers."""
    events: int = 1200
    round_events: int = 400
    """From one appearance of a mobile client to the next."""

    def __post_init__(self) -> None:
        for name in ("mobile", "interest", "away"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} {getattr(self, name):g}: a share, from 0 to 1")
        if min(self.clients, self.levels, self.events, self.round_events) < 1:
            raise ValueError("clients, levels, events and round_events: at least 1 each")

    @property
    def brokers(self) -> int:
        return int(2**self.levels) - 1


class Result(msgspec.Struct, kw_only=True):
    """Messages on links, all of them and on the busiest one."""

    carried: int
    """What the links would carry if nobody moved."""
    stored: int
    """What follows those who have moved."""
    control: int
    carried_busiest: int
    all_busiest: int
    cpu_s: float

    @property
    def factor(self) -> float:
        """How much more the network carries."""
        return (self.carried + self.stored + self.control) / self.carried

    @property
    def factor_busiest(self) -> float:
        return self.all_busiest / self.carried_busiest


def path(one: int, other: int) -> list[int]:
    """The links between two brokers; a link has the number of its lower end, the root is 0."""
    links = []
    while one != other:
        lower = max(one, other)
        links.append(lower)
        one, other = min(one, other), (lower - 1) // 2
    return links


class Network:
    """The tree, and what each of its links has carried."""

    def __init__(self, brokers: int) -> None:
        self.carried = np.zeros(brokers, np.int64)
        self.moved = np.zeros(brokers, np.int64)
        self.paths = [[path(one, other) for other in range(brokers)] for one in range(brokers)]

    def publish(self, broker: int, interested: list[int]) -> None:
        links = set(self.paths[broker][0])
        for other in interested:
            links.update(self.paths[0][other])
        self.carried[list(links)] += 1

    def unicast(self, one: int, other: int, messages: int) -> int:
        links = self.paths[one][other]
        self.moved[links] += messages
        return messages * len(links)


class Move(NamedTuple):
    """From one broker to another; events from `left` on, up to `came`, were stored."""

    old: int
    new: int
    left: int
    came: int


class Walk:
    """Where a mobile client's subscription is, event by event, and its appearances elsewhere."""

    def __init__(self, configuration: Configuration, dice: Random) -> None:
        events, every = configuration.events, configuration.round_events
        self.places: list[int] = []
        self.moves: list[Move] = []
        at = dice.randrange(configuration.brokers)
        until = dice.randrange(every)
        while len(self.places) < events:
            self.places += [at] * until
            new = dice.randrange(configuration.brokers)
            now = len(self.places)
            if now < events:
                self.moves.append(Move(at, new, max(0, now - round(every * configuration.away)), now))
            at, until = new, every
        del self.places[events:]


def run(configuration: Configuration) -> Result:
    began = time.process_time()
    streams = Streams(configuration.seed)
    dice, numbers = streams.stream("walks"), np.random.default_rng(streams.stream("wishes").getrandbits(63))
    network = Network(configuration.brokers)
    walkers = [Walk(configuration, dice) for _ in range(round(configuration.mobile * _all(configuration)))]
    wishes = numbers.random((len(walkers), configuration.events)) < configuration.interest
    stored = control = 0
    for walker, wants in zip(walkers, wishes, strict=True):
        for move in walker.moves:
            stored += network.unicast(move.old, move.new, int(wants[move.left : move.came].sum()))
            control += network.unicast(move.old, move.new, RELOCATION)
    _carry(configuration, network, numbers, wishes, walkers, dice)
    busiest = int(network.carried.argmax())
    return Result(
        carried=int(network.carried.sum()),
        stored=stored,
        control=control,
        carried_busiest=int(network.carried[busiest]),
        all_busiest=int((network.carried + network.moved).max()),
        cpu_s=time.process_time() - began,
    )


def _all(configuration: Configuration) -> int:
    return configuration.clients * configuration.brokers


def _carry(
    configuration: Configuration,
    network: Network,
    numbers: np.random.Generator,
    wishes: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    walkers: list[Walk],
    dice: Random,
) -> None:
    """Every event up to the root, and down to all brokers where somebody wants it or is to have it stored."""
    resting = round(configuration.clients * (1 - configuration.mobile))
    somebody = 1 - (1 - configuration.interest) ** resting
    wanted = numbers.random((configuration.events, configuration.brokers)) < somebody
    for walker, wants in zip(walkers, wishes, strict=True):
        for event in np.flatnonzero(wants):
            wanted[event, walker.places[event]] = True
    for row in wanted:
        network.publish(dice.randrange(configuration.brokers), np.flatnonzero(row).tolist())
