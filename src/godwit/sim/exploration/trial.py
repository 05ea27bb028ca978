"""A plan carried out: first safety while things go wrong, then liveness when nothing does any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from traceback import extract_tb
from typing import Any, cast

import msgspec

from godwit.protocols.broker.api import Lasting, Subscription
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import EPOCH_S, Cluster
from godwit.sim.brokers.fabric_kinds import FABRICS
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import SPREAD_S, Admission, Roamer, Said, number_of
from godwit.sim.brokers.station import Station
from godwit.sim.engine import Engine
from godwit.sim.exploration import judges
from godwit.sim.exploration import plan as p
from godwit.sim.exploration.findings import Finding
from godwit.sim.exploration.generator import SHARED

READY_S = 12.0
"""Until brokers know each other and what their clients want."""
CALM_MAX_S = 400.0
"""By then everything must have arrived, once nothing is wrong."""
LOOK_S = 5.0
QUIET_S = 15.0
"""How long it is listened afterwards: what comes twice may come late."""
PROBE_MAX_S = 60.0
AFTERMATH_S = 3.0
"""For so long after a fault its consequences may be under way."""
NOBODY = "z/nobody"
CALLS_MAX = 2_000_000
"""More than a minute of any world takes."""


class EndlessError(Exception):
    """Somebody is busy without end."""


class Note(msgspec.Struct, frozen=True):
    """A line of the story: somebody says something to somebody, or something happens to somebody (no `to`)."""

    time_s: float
    who: str
    to: str
    text: str


class Verdict(msgspec.Struct, kw_only=True):
    seed: int
    findings: list[Finding]
    done: dict[str, int]
    """What went wrong, by kind, as far as it really happened."""
    published: int
    delivered: int
    simulated_s: float
    executed: int

    @property
    def failed(self) -> bool:
        return bool(self.findings)


class Trial:
    """`run` once. `watched` keeps the story; `tamper` is called with each broker that starts, for tests of judges."""

    def __init__(self, plan: p.Plan, *, watched: bool = False, tamper: Callable[[Station], None] | None = None) -> None:
        self.plan = plan
        self.story: list[Note] | None = [] if watched else None
        self.tamper = tamper
        self.said: dict[int, Said] = {}
        self.done: Counter[str] = Counter()
        self.wiped = False
        self.crashed = False
        self.probing_from = 0
        """The first publication after everything had calmed down; 0: it has not."""
        self.looks: dict[NodeId, dict[str, int]] = {}
        """What is retained at each broker in the end, by topic."""
        self.recalled_s: dict[str, float] = {}
        """By client: from when on it wants what was published, where it has asked for that."""
        self.paced: dict[str, list[tuple[float, Admission, Said]]] = {}
        """By client that wants topics now and then: what it got and when, and how it had been let in."""
        self.strays: list[str] = []
        """Links over which something travelled that nobody wants."""
        self._wrong: list[tuple[float, float]] = []
        self.promises = FABRICS[plan.fabric].promises
        options = StationOptions(
            fabric=plan.fabric,
            handoff=plan.handoff,
            session_wait_s=plan.session_wait_s,
            foresight=plan.foresight,
            sites=plan.site_of,
            gateways=plan.gateways,
            archives=any(card.recalls for card in plan.clients),
            replay_per_s=plan.replay_per_s,
        )
        self.cluster = Cluster(
            plan.brokers, plan.links, plan.seed, options, latency_s=_uneven(plan.latency_s), write_s=plan.write_s
        )
        for name in plan.late:
            self.cluster.crash(name)
            self.cluster.sites[name].node.disk.clear()
        if tamper is not None:
            for machine in self.cluster.sites.values():
                if machine.up:
                    tamper(machine.station)
        if watched:
            self.cluster.cables.spy = self._overhear
        self.cards = {card.name: card for card in plan.clients}
        self.roamers = {card.name: self._roamer(card) for card in plan.clients}
        self.done["rate"] += any(card.paced for card in plan.clients)

    def _roamer(self, card: p.Card) -> Roamer:
        wishes = {
            one.key: Subscription(one.key, f"{one.topic}/#", one.condition, group=one.group, qos=one.qos)
            for one in card.wishes
            if one.since_s is None
        }
        wishes |= {one.key: one for one in (_question(number, ask) for number, ask in enumerate(card.asks, 1))}
        will = None if card.will_qos is None else (card.will_qos, card.will_delay_s)
        return Roamer(self, card.name, wishes, delay_s=card.delay_s, extra_qos=card.extra_qos, last_will=will)

    def wants(self, roamer: Roamer, said: Said) -> bool:
        """By the plan, without any filter."""
        return bool(self.wishes_for(roamer, said))

    def wishes_for(self, roamer: Roamer, said: Said) -> list[str]:
        """The keys of the subscriptions that want it."""
        cards, warm = self.cards[roamer.name].wishes, said.attributes["warm"]
        return [wish.key for wish in cards if wish.wants(said.topic, warm)]

    @property
    def follows(self) -> bool:
        return self.promises.follows

    @property
    def is_straight(self) -> bool:
        """Nothing went wrong with brokers and links, and from each broker to each other one there is one way."""
        return not self._wrong and len(self.plan.links) == len(self.plan.brokers) - 1

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None:
        if self.cards[roamer.name].paced:
            self.paced.setdefault(roamer.name, []).append((self.engine.now, roamer.admissions[-1], said))

    @property
    def engine(self) -> Engine:
        return self.cluster.engine

    @property
    def subscribers(self) -> list[Roamer]:
        return [one for one in self.roamers.values() if self._wants_something(one)]

    @property
    def publishers(self) -> list[Roamer]:
        return [one for one in self.roamers.values() if not self._wants_something(one)]

    def _wants_something(self, roamer: Roamer) -> bool:
        card = self.cards[roamer.name]
        return bool(card.wishes or card.asks)

    @property
    def groups(self) -> dict[str, list[Roamer]]:
        """Clients of which each publication is for one."""
        found: dict[str, list[Roamer]] = {}
        for card in self.plan.clients:
            if card.group:
                found.setdefault(card.group, []).append(self.roamers[card.name])
        return found

    def note(self, who: str, to: str, text: str) -> None:
        if self.story is not None:
            self.story.append(Note(self.engine.now, who, to, text))

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels):
            for run in message.runs:
                receivers = ", ".join(leg.to for leg in run.legs)
                for item in decode_items(run):
                    self.note(sender, to, f"{told(item.content)} #{item.number} {message.origin} > {receivers}")

    def disturbed(self, since_s: float) -> bool:
        """Whether something was wrong since then, or had just been."""
        return any(until_s + AFTERMATH_S >= since_s for from_s, until_s in self._wrong)

    def calm_after(self, time_s: float) -> float:
        """By then all brokers have heard what was said at one of them at that time."""
        calm_s = time_s + SPREAD_S
        for from_s, until_s in sorted(self._wrong):
            if from_s <= calm_s and until_s + AFTERMATH_S >= time_s:
                calm_s = max(calm_s, until_s + AFTERMATH_S + SPREAD_S)
        return calm_s

    def run(self) -> Verdict:
        findings: list[Finding] = []
        try:
            self._get_ready()
            self._go_wrong()
            self._calm_down()
            findings = judges.all_findings(self)
        except Exception as error:
            # A core must not fail, whatever happens; an assertion in it counts as much.
            findings = [Finding("error", "", _where(error))]
        return Verdict(
            seed=self.plan.seed,
            findings=findings,
            done=dict(self.done),
            published=len(self.said),
            delivered=sum(sum(one.counts.values()) for one in self.roamers.values()),
            simulated_s=self.engine.now,
            executed=self.engine.executed,
        )

    def _get_ready(self) -> None:
        self._pass(3.0)
        for roamer in self.roamers.values():
            roamer.come(self.cards[roamer.name].home)
        self._pass(2.0)
        for roamer in self.subscribers:
            roamer.want()
        self._pass(READY_S)
        assert all(roamer.at_rest for roamer in self.roamers.values()), "nobody has hindered them"

    def _go_wrong(self) -> None:
        begin_s = self.engine.now
        for step in self.plan.steps:
            self.engine.at(begin_s + step.at_s, partial(self._do, step))
        last_s = max((step.at_s for step in self.plan.steps), default=0.0)
        self._pass(last_s + 0.001)
        ends_s = max((until_s for _, until_s in self._wrong), default=0.0)
        if ends_s > self.engine.now:
            self._pass(ends_s + 0.001 - self.engine.now)

    def _calm_down(self) -> None:
        """Nothing is wrong any more: whoever is down comes back, whoever is away returns, and all must end well."""
        for name, machine in self.cluster.sites.items():
            machine.wear.strike_in = 0
            if not machine.up:
                self._start(name)
        for roamer in self.roamers.values():
            if roamer.goal is None:
                roamer.come(self.cards[roamer.name].home)
        self._wait(CALM_MAX_S, lambda: not judges.unfinished(self))
        self._pass(QUIET_S)
        self._probe()
        if not self.follows:
            self._visit_all()
        if self.promises.retains and any(said.retain for said in self.said.values()):
            self._look_round()

    def _visit_all(self) -> None:
        """Where sessions stay, what waits for a client waits wherever it was: it goes there twice more, and home. By
        the first visit some brokers learn that an earlier connection is over, and say its will, and publishers say
        again there what was not acknowledged."""
        for at in self.plan.brokers * 2:
            self._gather(at, [one for one in self.roamers.values() if at in one.bonds])
        for roamer in self.roamers.values():
            roamer.vanish(goodbye=True)
            roamer.come(self.cards[roamer.name].home)
        self._wait(PROBE_MAX_S, lambda: not judges.unfinished(self))

    def _gather(self, at: NodeId, some: list[Roamer]) -> None:
        for roamer in some:
            roamer.vanish(goodbye=True)  # else its will would wait wherever somebody was
            roamer.come(at)
        self._wait(PROBE_MAX_S, lambda: all(one.inside and one.bond.is_settled for one in some))
        self._pass(LOOK_S)

    def _probe(self) -> None:
        """Everybody says something that somebody wants, and something that nobody does."""
        self.probing_from = len(self.said) + 1
        marks: list[bytes] = []
        self.cluster.cables.spy = partial(self._look_for, marks, self.cluster.cables.spy)
        shared = ((f"{SHARED}/x", True),) if self.groups else ()
        for roamer in self.publishers:
            for topic, warm in (("a/x", True), ("a/y", False), ("b/x", False), ("b/y", True), *shared):
                # Of one topic what was retained before is replaced, of the others it must stay.
                roamer.speak(topic, {"warm": warm}, 2, retain=topic == "a/x")
            stray = roamer.speak(NOBODY, {"warm": True}, 1)
            if stray is not None:
                marks.append(stray.payload)
        self._wait(PROBE_MAX_S, lambda: not judges.unfinished(self))
        self._pass(LOOK_S)

    def _look_round(self) -> None:
        """Somebody who has never been here asks each broker what it keeps; at all of them at once, since to look at one
        after the other took a third of the time of a world."""
        lookers = {
            at: Client(cast(Any, self.cluster), f"look at {at}").connect(at, clean=True, expiry_s=0.0)
            for at in self.plan.brokers
        }
        self._pass(LOOK_S)
        for looker in lookers.values():
            looker.subscribe("#", qos=0)
        self._pass(LOOK_S)
        for at, looker in lookers.items():
            got = [
                one.publication for one in looker.got if one.retain and one.publication.topic.startswith(judges.PLAIN)
            ]
            self.looks[at] = {one.topic: number_of(one.payload) for one in got}
            looker.drop(will=False)
        self._pass(LOOK_S)

    def _look_for(
        self,
        marks: list[bytes],
        before: Callable[[NodeId, NodeId, Message], None] | None,
        sender: NodeId,
        to: NodeId,
        message: Message,
    ) -> None:
        if before is not None:
            before(sender, to, message)
        if isinstance(message, Parcels) and any(mark in bytes(run.items) for run in message.runs for mark in marks):
            self.strays.append(f"{sender} to {to}")

    def _pass(self, for_s: float) -> None:
        """Let time pass; it must, whatever timers ask for."""
        until_s = self.engine.now + for_s
        self.engine.run(until_s, calls=CALLS_MAX)
        if self.engine.now < until_s:
            raise EndlessError(f"time stands still at {self.engine.now:.6f} s: a timer asks for no time at all")

    def _wait(self, at_most_s: float, until: Callable[[], bool]) -> None:
        end_s = self.engine.now + at_most_s
        while not until() and self.engine.now < end_s:
            self._pass(LOOK_S)

    # Steps.

    def _do(self, step: p.AnyStep) -> None:
        match step:
            case p.Publish(client=client, topic=topic, warm=warm, qos=qos, retain=retain):
                said = self.roamers[client].speak(topic, {"warm": warm}, qos, retain=retain)
                self.done["retain"] += retain and said is not None
                self.done["share"] += topic.startswith(f"{SHARED}/") and said is not None
            case p.Put():
                self._put(step)
            case p.Recall(client=client):
                self._recall(client)
            case p.Come(client=client, to=to, notice_s=notice_s, token=token, clean=clean):
                self.roamers[client].come(to, notice_s, token, clean=clean)
                self.done[token] += token != "own"
                self.done["clean"] += clean
                self.done["will"] += self.cards[client].will_qos is not None
            case p.Twice(client=client, first=first, to=to):
                self.roamers[client].come(first)
                self.roamers[client].come(to)
            case p.Vanish(client=client, notice_s=notice_s, goodbye=goodbye):
                self.roamers[client].vanish(notice_s, goodbye=goodbye)
                self.done["goodbye"] += goodbye
            case p.Change(client=client):
                self.roamers[client].change()
            case p.Join(broker=broker):
                if not self.cluster.sites[broker].up:
                    self._start(broker)
            case p.Leave(broker=broker):
                if self.cluster.sites[broker].up:
                    ring = self.cluster.sites[broker].station.fabric
                    assert isinstance(ring, RingFabric)
                    if ring.replicas.nearest():
                        ring.leave()
            case _:
                self._fail(step)
                return
        self.done[step.kind] += 1

    def _put(self, step: p.Put) -> None:
        content, profile = None if step.clear else {"warm": step.warm, **_place(step)}, ""
        if content is not None and step.width:
            profile = f"x >= {step.x or 0} AND x < {(step.x or 0) + step.width}"
        self.roamers[step.client].put(step.topic, content, step.qos, step.expiry_s, profile)
        self.done["lasting"] += 1

    def _recall(self, client: str) -> None:
        (wish,) = (one for one in self.cards[client].wishes if one.since_s is not None)
        if client not in self.recalled_s and wish.since_s is not None:
            self.recalled_s[client] = self.engine.now - wish.since_s
            since = EPOCH_S + self.recalled_s[client]
            self.roamers[client].take_up(
                Subscription(wish.key, f"{wish.topic}/#", wish.condition, qos=wish.qos, since=max(0.0, since))
            )
            self.done["since"] += 1

    def _fail(self, step: p.AnyStep) -> None:
        cluster = self.cluster
        match step:
            case p.Crash(broker=broker, down_s=down_s, notice_s=notice_s):
                self._crash(step.kind, broker, down_s, notice_s)
            case p.Strike(broker=broker, writes=writes, after=after, down_s=down_s, notice_s=notice_s):
                wear = cluster.sites[broker].wear
                wear.strike_in, wear.strike_after = writes, after
                wear.on_strike = lambda: self._crash(step.kind, broker, down_s, notice_s)
            case p.Wipe(broker=broker, down_s=down_s):
                self._crash(step.kind, broker, down_s, 0.0, keep_disk=False)
            case p.Slow(broker=broker, write_s=write_s, for_s=for_s):
                wear = cluster.sites[broker].wear
                wear.slow_s, wear.slow_until_s = write_s, self.engine.now + for_s
                self._happened(step.kind, broker, f"slow disk, {write_s:g} s a write", for_s)
            case p.Full(broker=broker, for_s=for_s):
                cluster.sites[broker].wear.full_until_s = self.engine.now + for_s
                self._happened(step.kind, broker, "disk full", for_s)
            case p.Cut(a=a, b=b, for_s=for_s, notice_s=notice_s):
                self._cut(step.kind, [(a, b)], for_s, notice_s)
            case p.Partition(side=side, for_s=for_s, notice_s=notice_s):
                self._cut(step.kind, cluster.between(side), for_s, notice_s)
            case p.Stall(a=a, b=b, for_s=for_s):
                cluster.cables.stall(a, b, self.engine.now + for_s)
                self._happened(step.kind, a, f"link to {b} stalls", for_s)
            case p.Skew(broker=broker, rate=rate, for_s=for_s):
                cluster.skew(broker, rate)
                self.engine.after(for_s, lambda: cluster.skew(broker, 1.0))
                self._happened(step.kind, broker, f"clock runs at {rate:g}", for_s)
            case p.Jump(broker=broker, by_s=by_s):
                cluster.sites[broker].offset_s += by_s
                self._happened(step.kind, broker, f"calendar set by {by_s:+g} s", 0.0)

    def _happened(self, kind: str, who: str, text: str, for_s: float) -> None:
        self.done[kind] += 1
        self._wrong.append((self.engine.now, self.engine.now + for_s))
        self.note(who, "", f"{text} for {for_s:g} s" if for_s else text)

    def _crash(self, kind: str, broker: NodeId, down_s: float, notice_s: float, *, keep_disk: bool = True) -> None:
        machine = self.cluster.sites[broker]
        if not machine.up:
            return  # it is down already, or has yet to join
        self.cluster.crash(broker, notice_s)
        life = machine.lives
        self._happened(kind, broker, "crashes" if keep_disk else "crashes and loses its disk", down_s)
        self.crashed, self.wiped = True, self.wiped or not keep_disk
        for said in () if self.promises.prompt else self.said.values():
            said.rematched += self.calm_after(said.time_s) >= self.engine.now
        if not keep_disk:
            machine.node.disk.clear()
        self.engine.after(down_s, lambda: self._start(broker) if machine.lives == life and not machine.up else None)

    def _start(self, broker: NodeId) -> None:
        """Whoever starts a broker knows its site: it begins a ring only where no other one there knows of a ring."""
        sites, machines = self.plan.site_of, self.cluster.sites
        fellows = [one for name, one in machines.items() if name != broker and sites.get(name) == sites.get(broker)]
        machines[broker].founds = not any(one.is_of_ring for one in fellows)
        self.cluster.start(broker)
        self.note(broker, "", "is back")
        if self.tamper is not None:
            self.tamper(self.cluster.sites[broker].station)

    def _cut(self, kind: str, links: list[tuple[NodeId, NodeId]], for_s: float, notice_s: float) -> None:
        for a, b in links:
            self.cluster.cut(a, b, notice_s)
            self.engine.after(for_s, partial(self.cluster.heal, a, b))
            self._happened(kind, a, f"link to {b} is cut", for_s)


def _uneven(latency_s: float) -> Callable[[Random], float]:
    """Each link has its own pace, which changes all the time."""
    return lambda dice: latency_s * dice.choice((0.2, 1.0, 1.0, 5.0)) * dice.random()


def _place(step: p.Put) -> dict[str, float]:
    """Where it is: a place on the equator, unless it may be anywhere in a range."""
    if step.x is None or step.width:
        return {}
    return {"x": step.x, "lat": 0.0, "lon": step.x * p.STEP_DEGREES}


def _question(number: int, ask: p.Ask) -> Subscription:
    return Subscription(
        f"q{number}",
        f"{ask.topic}/#",
        ask.condition,
        qos=ask.qos,
        identifier=number,
        lasting=Lasting.COVER if ask.cover else Lasting.OVERLAP,
        quiet=ask.quiet,
    )


def told(content: object) -> str:
    """A content in a few words."""
    words = [type(content).__name__]
    for name in ("client", "publisher", "epoch", "copy", "origin"):
        value = getattr(content, name, None)
        if value not in (None, "", 0):
            words.append(f"{name}={value}" if name not in ("client", "publisher") else str(value))
    return " ".join(words)


def _where(error: Exception) -> str:
    frames = [frame for frame in extract_tb(error.__traceback__) if "godwit" in frame.filename]
    places = [f"{frame.filename.rpartition('godwit/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-4:]]
    return f"{type(error).__name__}: {error} at {' < '.join(reversed(places))}"
