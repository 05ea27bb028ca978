"""A plan: everything that one exploration does, as data. It can be replayed, shrunk, saved as JSON and read.

A fault carries its own end, so that leaving it out of a plan leaves out all of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.host import NodeId
from godwit.sim.brokers.roamer import Token


class Step(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    at_s: float

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class Publish(Step, frozen=True, kw_only=True, tag="publish"):
    client: str
    topic: str
    warm: bool
    qos: int
    retain: bool = False


class Put(Step, frozen=True, kw_only=True, tag="put"):
    """Something retained: a thing says how it is, or is cleared. `expiry_s` later it counts no more; None: never. It is
    at `x`, where it says so, or may be anywhere from there over `width`."""

    client: str
    topic: str
    warm: bool = False
    clear: bool = False
    qos: int = 1
    expiry_s: float | None = None
    x: int | None = None
    width: int = 0


class Recall(Step, frozen=True, kw_only=True, tag="recall"):
    """The client asks for what it wishes of the past, and for what comes."""

    client: str


class Come(Step, frozen=True, kw_only=True, tag="come"):
    """The client leaves where it is, and appears here. Its old broker notices after a while, or never (None)."""

    client: str
    to: NodeId
    notice_s: float | None = None
    token: Token = "own"
    clean: bool = False
    """It wants nothing of what was."""


class Twice(Step, frozen=True, kw_only=True, tag="twice"):
    """The client asks one broker to be let in and, before it has heard anything, another."""

    client: str
    first: NodeId
    to: NodeId


class Vanish(Step, frozen=True, kw_only=True, tag="vanish"):
    client: str
    notice_s: float | None = None
    goodbye: bool = False
    """It says that it leaves."""


class Change(Step, frozen=True, kw_only=True, tag="change"):
    """The client takes up a second subscription, or gives it up."""

    client: str


class Crash(Step, frozen=True, kw_only=True, tag="crash"):
    """Power fails: what is not durable is gone. The others notice after a while."""

    broker: NodeId
    down_s: float
    notice_s: float = 0.0


class Strike(Step, frozen=True, kw_only=True, tag="strike"):
    """The broker crashes at the so-manieth write from now: just before it is durable, or just after."""

    broker: NodeId
    writes: int
    after: bool
    down_s: float
    notice_s: float = 0.0


class Wipe(Step, frozen=True, kw_only=True, tag="wipe"):
    """The machine fails and comes back with an empty disk."""

    broker: NodeId
    down_s: float


class Slow(Step, frozen=True, kw_only=True, tag="slow"):
    """Each write takes so much longer."""

    broker: NodeId
    write_s: float
    for_s: float


class Full(Step, frozen=True, kw_only=True, tag="full"):
    broker: NodeId
    for_s: float


class Cut(Step, frozen=True, kw_only=True, tag="cut"):
    a: NodeId
    b: NodeId
    for_s: float
    notice_s: float = 0.0


class Stall(Step, frozen=True, kw_only=True, tag="stall"):
    a: NodeId
    b: NodeId
    for_s: float


class Partition(Step, frozen=True, kw_only=True, tag="partition"):
    side: tuple[NodeId, ...]
    for_s: float
    notice_s: float = 0.0


class Skew(Step, frozen=True, kw_only=True, tag="skew"):
    broker: NodeId
    rate: float
    for_s: float


class Jump(Step, frozen=True, kw_only=True, tag="jump"):
    """The broker's calendar is set forwards or back."""

    broker: NodeId
    by_s: float


class Join(Step, frozen=True, kw_only=True, tag="join"):
    """A broker starts that was not there before."""

    broker: NodeId


class Leave(Step, frozen=True, kw_only=True, tag="leave"):
    """A broker of a ring gives its cells away for good, and goes on without."""

    broker: NodeId


AnyStep = (
    Publish
    | Put
    | Recall
    | Come
    | Twice
    | Vanish
    | Change
    | Crash
    | Strike
    | Wipe
    | Slow
    | Full
    | Cut
    | Stall
    | Partition
    | Skew
    | Jump
    | Join
    | Leave
)

FAULTS = ("crash", "strike", "wipe", "slow", "full", "cut", "stall", "partition", "skew", "jump")
"""What goes wrong with brokers, disks, links and clocks."""
MOVES = (
    *("come", "vanish", "twice", "old", "none", "change", "goodbye", "clean", "retain", "will", "share"),
    *("lasting", "since", "rate"),
)
"""What clients do; `old` and `none` are tokens, `will` is a connection with one, `share` a publication to a group.
`lasting` is a thing that says something of itself, `since` a question for the past, `rate` a bounded subscription."""


class Wish(msgspec.Struct, frozen=True):
    """A topic, and perhaps a condition: only what is warm. A judge needs no filters to tell what it means."""

    topic: str
    warm: bool = False
    qos: int = 2
    group: str = ""
    """Each that matches is for one of the group."""
    interval_s: float = 0.0
    """Of each topic one in so long at most; 0: all."""
    since_s: float | None = None
    """How far back it wants the past; None: only what comes. It is subscribed to by a step of its own."""

    @property
    def key(self) -> str:
        """What it is subscribed under."""
        return f"$share/{self.group}/{self.topic}/#" if self.group else f"{self.topic}/#"

    @property
    def condition(self) -> str:
        return " AND ".join(self._terms())

    def _terms(self) -> list[str]:
        warm = ["warm = TRUE"] if self.warm else []
        return [*warm, f"rate({1 / self.interval_s:g})"] if self.interval_s else warm

    def wants(self, topic: str, warm: bool) -> bool:
        return topic.startswith(f"{self.topic}/") and (warm or not self.warm)


class Ask(Wish, frozen=True):
    """A question that lasts: perhaps for things whose place is from `low` up to `high`, or that are near another."""

    low: int | None = None
    high: int = 0
    cover: bool = False
    """Things that may be anywhere in a range must be inside with all of it; else some of it is enough."""
    near: str = ""
    """The topic of the other thing."""
    reach: int = 0
    quiet: bool = False
    """Only who comes and who goes."""

    def _terms(self) -> list[str]:
        range_ = [f"x >= {self.low} AND x < {self.high}"] if self.low is not None else []
        near = [f"near('{self.near}', {metres(self.reach):.0f}m)"] if self.near else []
        return [*super()._terms(), *range_, *near]


STEP_DEGREES = 0.001
"""How far things one apart are from each other, on the equator."""


def metres(steps: int) -> float:
    """A distance that so many steps are within, and one more is not."""
    return (steps + 0.5) * STEP_DEGREES * 111_195


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A client. Without wishes it only publishes."""

    name: str
    home: NodeId
    wishes: tuple[Wish, ...] = ()
    asks: tuple[Ask, ...] = ()
    """What it asks for and is told as long as it lasts."""
    delay_s: float = 0.02
    extra_qos: int = 2
    will_qos: int | None = None
    """None: it has no will."""
    will_delay_s: float = 0.0

    @property
    def group(self) -> str:
        """Of which it is a member; such a client has no other wishes."""
        return next((wish.group for wish in self.wishes if wish.group), "")

    @property
    def recalls(self) -> bool:
        """It wants the past too; such a client has no other wishes."""
        return any(wish.since_s is not None for wish in self.wishes)

    @property
    def paced(self) -> bool:
        """It wants each topic now and then; such a client has no other wishes."""
        return any(wish.interval_s for wish in self.wishes)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    fabric: str = "tree"
    handoff: Handoff = "proactive"
    foresight: Literal["everybody", "habits"] = "everybody"
    session_wait_s: float = 10.0
    write_s: float = 0.005
    latency_s: float = 0.005
    replay_per_s: float = 2_000.0
    brokers: tuple[NodeId, ...]
    late: tuple[NodeId, ...] = ()
    """Those that start with a step of their own; nobody is at home there."""
    links: tuple[tuple[NodeId, NodeId], ...]
    sites: tuple[tuple[NodeId, ...], ...] = ()
    """The brokers of each site, where there are several; links between sites are uplinks."""
    clients: tuple[Card, ...]
    steps: tuple[AnyStep, ...]

    @property
    def site_of(self) -> dict[NodeId, str]:
        """By broker, where there are sites."""
        return {broker: f"site{number}" for number, site in enumerate(self.sites, 1) for broker in site}

    @property
    def gateways(self) -> tuple[NodeId, ...]:
        """Those with links to other sites, in the order of brokers."""
        where = self.site_of
        found = {one for a, b in self.links if where.get(a) != where.get(b) for one in (a, b)}
        return tuple(broker for broker in self.brokers if broker in found)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which faults and moves it has, in the order in which they are listed."""
        found = {step.kind for step in self.steps}
        for step in self.steps:
            match step:
                case Come(token=token, clean=clean):
                    found |= {token, "clean"} if clean else {token}
                case Vanish(goodbye=True):
                    found.add("goodbye")
                case Publish(retain=True):
                    found.add("retain")
                case Put():
                    found.add("lasting")
                case Recall():
                    found.add("since")
        found |= {"will" for card in self.clients if card.will_qos is not None}
        found |= {"share" for card in self.clients if card.group}
        found |= {"rate" for card in self.clients if card.paced}
        return tuple(kind for kind in (*FAULTS, *MOVES) if kind in found)


class PlanError(ValueError):
    """A file that is no plan; the text says what is wrong with it."""


def save(plan: Plan, path: Path) -> None:
    """Readable: one step a line would be, were it not for JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=1))


def load(path: Path) -> Plan:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}") from None
    except msgspec.DecodeError as error:
        raise PlanError(f"{path}: not a plan of an exploration: {error}") from None
