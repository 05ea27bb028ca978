"""A client that roams, and remembers what it was told and what it had: the witness that judges hear.

It knows MQTT and its own conversations, and nothing of how brokers work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, Literal, Protocol, cast

import msgspec

from godwit.protocols.broker.api import Delivery, Reason, RetainHandling, Subscription, Will
from godwit.protocols.broker.lasting.profiles import PROFILE
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client, Connection
from godwit.sim.brokers.cluster import Cluster, Machine
from godwit.sim.brokers.picture import Picture, told

Token = Literal["own", "none", "old"]
"""What a client shows: what it has, nothing, or what it was given the time before."""

EXPIRY_S = 1e7
RETRY_S = 0.5
"""How often a client that is out tries again."""
SPREAD_S = 5.0
"""Where nothing is wrong, all brokers know by then where a client is."""
WILL = "a/w"
"""Where wills are published."""
EXTRA = "+/x"
"""What a client may want beside its wishes."""


class Said(msgspec.Struct, kw_only=True):
    """One publication, as its publisher knows it; `n` is in its payload, and no other has it."""

    n: int
    topic: str
    attributes: Mapping[str, Any]
    qos: int
    publisher: str
    at: NodeId
    time_s: float
    retain: bool = False
    clear: bool = False
    """It says that the thing is no more."""
    expiry_s: float | None = None
    profile: str = ""
    """In which subspace the thing is, where it is in one."""
    times: int = 1
    """How often MQTT made its publisher say it."""
    is_will: bool = False
    is_due: bool = True
    """It is certain to be published, once its publisher has said it; of a will see `Roamer`."""
    taken_back: bool = False
    """A will whose client said goodbye, as its broker knows."""
    blind: bool = False
    """It was said again where nobody could know that it had been said: see `Roamer`."""
    accepted: bool = False
    accepted_s: float = inf
    given_up: bool = False
    """Its session was lost before it knew that the broker has it: nobody can say whether that is so."""
    rematched: int = 0
    """How often a broker crashed that may have matched it, and archived it, without its disk knowing so."""

    def copies(self, qos: int) -> int:
        """How often somebody may get it at this QoS: of what is said at QoS 2 all that was said is one, and at QoS 0
        nothing is said twice. But deliveries at QoS 1 wait for no disk, so that a broker may crash after them and
        before it knows what it was told; then it is told again."""
        return 1 if self.qos == 2 and qos != 1 and not self.blind else self.times

    @property
    def archived(self) -> int:
        """How often it may be in archives: a broker that crashes may have archived what its disk does not know, and is
        told it again by its publisher or by another broker, or says a will again."""
        return self.times + self.is_will + self.rematched

    @property
    def payload(self) -> bytes:
        return b"" if self.clear else msgspec.json.encode({"n": self.n, **self.attributes})


def number_of(payload: bytes) -> int:
    return int(msgspec.json.decode(payload)["n"])


class Admission(msgspec.Struct, kw_only=True):
    """One time that the client was let in, as far as it knows."""

    at: NodeId
    time_s: float
    present: bool
    disturbed: bool
    """Something was wrong since it was let in the time before."""
    opened_s: float = 0.0
    """When its broker let it in, which it heard later."""
    away_s: float = inf
    """Since when brokers knew that it was away; inf where one did not, or has crashed."""
    got: set[int] = msgspec.field(default_factory=set)


class Twin(msgspec.Struct, frozen=True):
    """Something that came again without excuse."""

    n: int
    qos: int
    time_s: float
    at: NodeId
    same_connection: bool

    def __str__(self) -> str:
        where = f"{self.at}{', over the same connection' if self.same_connection else ''}"
        return f"{self.n} (QoS {self.qos} at {where}, {self.time_s:.3f} s)"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One change of what lasts, as it came."""

    n: int
    """What the thing says, where it is not gone; else 0."""
    topic: str
    at: NodeId
    opened_s: float
    """When its broker let the client in."""
    away_s: float
    """Since when brokers had known before that the client was away."""


class Gap(msgspec.Struct):
    """A time in which the client had no such subscription, as it was told: its session was new."""

    key: str
    from_s: float
    until_s: float = inf
    clean: bool = False
    """It wanted to start clean, so that no older session collects until all brokers know of this one."""


class Bond(msgspec.Struct):
    """What a client keeps of its session with whoever serves it, over its connections."""

    flights: dict[int, tuple[Said, bool]] = msgspec.field(default_factory=dict)
    """By packet id: what is not finished, and whether the broker has it (QoS 2)."""
    incoming: set[int] = msgspec.field(default_factory=set)
    """Packet ids of QoS 2 that it has and that are not released."""
    unknown: dict[int, int] = msgspec.field(default_factory=dict)
    """By packet id, what it has and does not know that its broker knows (QoS 2)."""
    ungranted: dict[str, Subscription | None] = msgspec.field(default_factory=dict)
    """Subscriptions that it has not heard to be granted; None: given up."""
    gaps: list[Gap] = msgspec.field(default_factory=list)
    extra: bool = False
    counts: Counter[int] = msgspec.field(default_factory=Counter)
    """How often its application got what, under this bond."""

    @property
    def is_settled(self) -> bool:
        return not self.flights and not self.ungranted


class Scene(Protocol):
    """Where clients roam: what they are told there, and who wants to hear from them."""

    cluster: Cluster
    said: dict[int, Said]

    @property
    def follows(self) -> bool:
        """Whether all brokers are one server to their clients, with one session for each."""

    def note(self, who: str, to: str, text: str) -> None: ...

    def disturbed(self, since_s: float) -> bool:
        """Whether something was wrong since then, or had just been."""

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None:
        """Its application has got this."""


class Roamer(Client):
    """Everything it says takes a while to arrive, in order, unless the connection ends before.

    `wishes` are what it always subscribes to, by their keys; `extra_qos` is that of the one it may take up beside them.
    """

    def __init__(
        self,
        scene: Scene,
        name: str,
        wishes: Mapping[str, Subscription],
        *,
        delay_s: float = 0.02,
        extra_qos: int = 2,
        last_will: tuple[int, float] | None = None,
    ) -> None:
        dice = scene.cluster.streams.stream("client", name)
        super().__init__(cast(Any, scene.cluster), name, dice=dice, delay_s=delay_s)
        self.scene = scene
        self.engine = scene.cluster.engine
        self.wishes = dict(wishes)
        self.extra_qos = extra_qos
        self.last_will = last_will
        """QoS and delay."""
        self.clean_s = -inf
        """When it wanted last to start clean."""
        self.forfeited_s = -inf
        """When it was told that its session is new, after it had shown an old token."""
        self._lied = False
        self.shown: Counter[int] = Counter()
        """What it was given as retained."""
        self.wrong: list[str] = []
        """What it was told that cannot be."""
        self._clean = False
        self._testament: dict[Connection, Said] = {}
        """Connections in which it was let in, and what is to be said when they break."""
        self.keeps_token = True
        self.goal: NodeId | None = None
        """Where it wants to be in."""
        self.admissions: list[Admission] = []
        self.order: list[int] = []
        """What its application got, in that order."""
        self.counts: Counter[int] = Counter()
        self.twins: list[Twin] = []
        self.bonds: dict[NodeId, Bond] = {}
        """One for each server: for all brokers together, or for each where sessions stay."""
        self.bond = Bond()
        self.excused: set[int] = set()
        """What may come again, since nobody can tell that it has come."""
        self._unsettled: Counter[int] = Counter()
        """QoS 1: it was acknowledged, and that is on no disk yet."""
        self.pictures: dict[tuple[NodeId, int], Picture] = {}
        """What it makes of the changes that each server tells it, by question."""
        self.changes: list[Told] = []
        """All that it was told of what lasts."""
        self.was_blind = False
        """It came once with less than it had been given, or with something older."""
        self._blind = False
        self._asked_anew = False
        """A broker was asked for all of the past, and nothing that came is known to be behind that."""
        self._opened: set[Connection] = set()
        """Connections in which brokers take it to be, whether or not it has heard so."""
        self._away_s = inf
        """Since when no broker takes it to be in."""
        self._tokens: list[str] = []
        self._new_unheard_s = inf
        """Since when it has a new session of which it has not heard."""
        self.unheard_of: set[tuple[NodeId, int]] = set()
        """New sessions that it was given and has not heard of, though it wanted its older one: where, and after how
        many admissions. If the next is there, it may be told of that one."""
        self._shows_nothing = False
        self._here: dict[Connection, Counter[int]] = {}
        self._server: NodeId = ""
        self.engine.after(RETRY_S, self._retry)

    def _bond_with(self, at: NodeId) -> Bond:
        server = "" if self.scene.follows else at
        return self.bonds.setdefault(server, Bond())

    @property
    def flights(self) -> dict[int, tuple[Said, bool]]:
        """What is not finished, with whoever serves it now."""
        return self.bond.flights

    def note(self, to: str, text: str) -> None:
        self.scene.note(self.name, to, text)

    def say(self, connection: Connection, call: Callable[[], object]) -> None:
        when = max(self.engine.now + self.dice.uniform(0, self.delay_s), connection.said_s)
        connection.said_s = when
        self.engine.at(when, lambda: call() if connection.works and connection.session is not None else None)

    # Coming and going.

    def come(self, to: NodeId, notice_s: float | None = None, token: Token = "own", *, clean: bool = False) -> None:
        if self.connection is not None:
            self.drop(notice_s=notice_s)
        self.goal = to
        self._clean = self._clean or clean
        if self.scene.cluster.sites[to].up:
            self._knock(to, token)

    def vanish(self, notice_s: float | None = None, *, goodbye: bool = False) -> None:
        self.goal = None
        connection = self.connection
        if goodbye and connection is not None and self.inside:
            self.note(connection.site.name, "DISCONNECT")
            self.drop(will=False, notice_s=0.0)
            will = self._testament.pop(connection, None)
            if will is not None:
                # DISCONNECT is not answered: a broker that crashes before its disk knows may never have heard it.
                cast(Machine, connection.site).station.store.when_durable(lambda: setattr(will, "taken_back", True))
            return
        if connection is not None:
            self.note(connection.site.name, "vanishes")
        self.drop(notice_s=notice_s)

    def _noticed(self, connection: Connection, will: bool, expiry_s: float | None) -> None:
        super()._noticed(connection, will, expiry_s)
        self._ended(connection)

    def _ended(self, connection: Connection) -> None:
        """Its broker knows that this connection is over."""
        if connection in self._opened:
            self._opened.discard(connection)
            self._away_s = self.engine.now

    def _away_since(self) -> float:
        """A broker that crashes knows so when it is back, at a time that nobody saw."""
        away_s = inf if self._opened else self._away_s
        self._opened = {one for one in self._opened if one.site.up and one.site.lives == one.life}
        return away_s

    def _retry(self) -> None:
        self.engine.after(RETRY_S, self._retry)
        if self.connection is not None and not self.connection.works:
            self.connection = None
        if self.goal is not None and self.connection is None and self.scene.cluster.sites[self.goal].up:
            self._knock(self.goal, "own")

    def _knock(self, at: NodeId, token: Token) -> None:
        shown = {"own": self.token, "none": "", "old": self._tokens[-2] if len(self._tokens) > 1 else self.token}[token]
        self._shows_nothing = not shown
        if token == "none":
            self._blind = self._is_unheard_of()
        elif token == "old":
            # It says that it was nowhere since, which is not true: it may get again what it had.
            self._blind = True
            self._lied = self._lied or shown != self.token.removeprefix("?")
        elif shown and not shown.startswith("?"):
            self._blind = False  # it shows where it was last, and has asked nobody since
        self.was_blind = self.was_blind or self._blind
        self._server = "" if self.scene.follows else at
        if self._blind:
            self.excused.update(*(one.got for one in self.admissions))
        self.bond = self._bond_with(at)
        if self._clean:
            self.clean_s = self.engine.now
            self.excused.update(*(one.got for one in self.admissions))
        self.note(at, f"CONNECT {'clean' if self._clean else 'token ' + shown if shown else 'no token'}")
        will = self._new_will()
        said = None if will is None else Will(self._published(will), self.last_will[1] if self.last_will else 0.0)
        self.connect(at, expiry_s=EXPIRY_S, token=shown, clean=self._clean, will=said)
        if will is not None and self.connection is not None:
            self._testament[self.connection] = will
        self.token = self.token and f"?{self.token.removeprefix('?')}"

    def _new_will(self) -> Said | None:
        if self.last_will is None:
            return None
        will = self._said(WILL, {"warm": True}, self.last_will[0], "")
        will.is_will, will.is_due = True, False
        return will

    def _published(self, said: Said) -> Publication:
        return Publication(
            self.name,
            0,
            said.topic,
            said.payload,
            said.qos,
            retain=said.retain,
            time=self.scene.cluster.clock(),
            properties=Properties(user=((PROFILE, said.profile),)) if said.profile else Properties(),
        )

    def _execute(self, connection: Connection) -> None:
        """It is in again: its wills of before are due, unless they are to wait for a while, or were on no disk."""
        for before, will in list(self._testament.items()):
            if before is not connection:
                del self._testament[before]
                if will.accepted and self.last_will is not None and not self.last_will[1]:
                    will.is_due, will.time_s, will.accepted_s = True, before.begun_s, self.engine.now
        mine = self._testament.get(connection)
        if mine is not None:
            store = cast(Machine, connection.site).station.store
            store.when_durable(lambda: setattr(mine, "accepted", True))

    def _is_unheard_of(self) -> bool:
        """Whether some broker may not know yet where this client was last: it shows nothing that would tell."""
        return any(self.scene.disturbed(one.time_s) for one in self.admissions[-3:]) or (
            bool(self.admissions) and self.engine.now < self.admissions[-1].time_s + SPREAD_S
        )

    def on_opened(self, connection: Connection, present: bool) -> None:
        assert connection.session is not None
        token = connection.session.carried.token
        now_s, away_s = self.engine.now, self._away_since()
        self._opened.add(connection)
        if not present:
            self._new_unheard_s = min(self._new_unheard_s, now_s)
            if not self._clean:
                self.unheard_of.add((connection.site.name, len(self.admissions)))
        self.hear_safely(connection, partial(self._on_admitted, connection, present, token, now_s, away_s))

    def _on_admitted(self, connection: Connection, present: bool, token: str, opened_s: float, away_s: float) -> None:
        if connection is not self.connection:
            return
        here = connection.site.name
        self.scene.note(here, self.name, f"CONNACK {'session present' if present else 'new session'}")
        self._tokens.append(token)
        self.token = token
        self.unheard_of.discard((here, len(self.admissions)))
        since_s = self.admissions[-1].time_s if self.admissions else 0.0
        disturbed = bool(self.admissions) and (self.scene.disturbed(since_s) or self._blind)
        now_s = self.engine.now
        admission = Admission(
            at=here, time_s=now_s, present=present, disturbed=disturbed, opened_s=opened_s, away_s=away_s
        )
        self.admissions.append(admission)
        self.scene.admitted(self, here)
        connection.begun_s = now_s
        self._execute(connection)
        if self._clean and present:
            self.wrong.append(f"started clean at {here}, and was told that its session is present")
        clean, self._clean = self._clean, False
        if not present:
            self.forfeited_s = now_s if self._lied else self.forfeited_s
            self._start_anew(clean=clean)
        else:
            self._take_for_older()
            self._ask_again()
        self._lied, self._new_unheard_s = False, inf
        if self._asked_anew:
            self._count_anew()  # over a connection that broke before anything could come
        connection.resumed = True
        for number, (said, received) in list(self.flights.items()):
            if received:
                self.say(connection, partial(self._release, connection, number))
            else:
                said.times += 1
                said.blind = said.blind or self._blind
                self._offer_said(connection, number, said)
        for key in list(self.bond.ungranted):
            self._ask(connection, key)

    def _start_anew(self, *, clean: bool) -> None:
        for said, received in self.flights.values():
            said.given_up = not received
        bond = self.bond
        bond.flights.clear()
        bond.incoming.clear()
        self.excused.update(bond.unknown.values())
        bond.unknown.clear()
        bond.extra = False
        bond.ungranted = dict(self.wishes)
        since_s = self.clean_s if clean else self.engine.now
        bond.gaps += [Gap(key, since_s, clean=clean) for key in self.wishes]

    def _take_for_older(self) -> None:
        """It has not heard that its session is new, shows nothing that would tell, and is told that it is present, as
        MQTT demands. Had it heard so, and only its first words been lost, the broker would see the same."""
        if self._shows_nothing and self._new_unheard_s < inf:
            self.bond.gaps += [Gap(key, self._new_unheard_s) for key in self.wishes]

    def _ask_again(self) -> None:
        """Whether what lasts is told of the same as before. Of the past it wants nothing again."""
        for key, wish in self.wishes.items():
            is_open = key in self.bond.ungranted
            if (wish.lasting and not is_open) or (wish.since is not None and is_open):
                self.bond.ungranted[key] = msgspec.structs.replace(wish, retain_handling=RetainHandling.IF_NEW)

    def on_closed(self, connection: Connection, reason: Reason) -> None:
        self.scene.note(connection.site.name, self.name, f"DISCONNECT {reason.name.lower()}")
        super().on_closed(connection, reason)
        self._ended(connection)

    # What it wants.

    def want(self) -> None:
        """All its wishes, over the connection that it has."""
        self.bond.ungranted = dict(self.wishes)
        if self.connection is not None:
            for key in self.bond.ungranted:
                self._ask(self.connection, key)

    @property
    def recalls(self) -> bool:
        """It asks for the past."""
        return any(wish.since is not None for wish in self.wishes.values())

    def take_up(self, wanted: Subscription) -> None:
        """From now on, as soon as it is in."""
        self.wishes[wanted.key] = self.bond.ungranted[wanted.key] = wanted
        if self.inside and self.connection is not None:
            self._ask(self.connection, wanted.key)

    def change(self) -> None:
        if self.inside:
            self.bond.extra = not self.bond.extra
            assert self.connection is not None
            wanted = Subscription(EXTRA, EXTRA, qos=self.extra_qos) if self.bond.extra else None
            self.bond.ungranted[EXTRA] = wanted
            self._ask(self.connection, EXTRA)

    def _ask(self, connection: Connection, key: str) -> None:
        wish = self.bond.ungranted[key]

        def arrive() -> None:
            broker, session, view = connection.site.broker, connection.session, ""
            assert session is not None
            if wish is None:
                broker.unsubscribe(session, [key])
            else:
                granted = broker.subscribe(session, [wish])
                assert granted[0].reason is Reason.OK, granted
                view = dict(granted[0].properties).get("lasting-view", "")
                if wish.since is not None and wish.retain_handling is RetainHandling.ALWAYS:
                    self._asked_anew = True
                    self.later(connection, self._count_anew)
            broker.store.settled(lambda: self.later(connection, lambda: self._granted(connection, key, wish, view)))

        self.note(connection.site.name, f"{'UNSUBSCRIBE' if wish is None else 'SUBSCRIBE'} {key}")
        self.say(connection, arrive)

    def _count_anew(self) -> None:
        """All of the past comes again behind this, as it has asked for."""
        self._asked_anew = False
        self.bond.counts.clear()
        self._here.clear()

    def _granted(self, connection: Connection, key: str, wish: Subscription | None, view: str) -> None:
        if view and wish is not None and connection is self.connection:
            self._picture(wish.identifier).begin(view)
        if connection is self.connection and self.bond.ungranted.get(key, self) == wish:
            del self.bond.ungranted[key]
            for gap in self.bond.gaps:
                if gap.key == key:
                    gap.until_s = min(gap.until_s, self.engine.now)

    @property
    def at_rest(self) -> bool:
        """It is in, and nothing of its own is unfinished."""
        return self.inside and all(bond.is_settled for bond in self.bonds.values())

    # What it says.

    def put(
        self, topic: str, content: Mapping[str, Any] | None, qos: int, expiry_s: float | None, profile: str = ""
    ) -> None:
        """Publish it as what is retained of the topic, unless it is not in; None clears."""
        self.speak(
            topic,
            content or {"warm": False},
            qos,
            retain=True,
            clear=content is None,
            expiry_s=expiry_s,
            profile=profile,
        )

    def speak(self, topic: str, attributes: Mapping[str, Any], qos: int, **more: Any) -> Said | None:
        """Publish, unless it is not in."""
        if not self.inside:
            return None
        assert self.connection is not None
        said = self._said(topic, attributes, qos, self.connection.site.name, **more)
        number = 0
        if qos:
            number = next(one for one in range(1, 65536) if one not in self.flights)
            self.flights[number] = (said, False)
        self._offer_said(self.connection, number, said)
        return said

    def _said(self, topic: str, attributes: Mapping[str, Any], qos: int, at: NodeId, **more: Any) -> Said:
        said = Said(
            n=len(self.scene.said) + 1,
            topic=topic,
            attributes=attributes,
            qos=qos,
            publisher=self.name,
            at=at,
            time_s=self.engine.now,
            **more,
        )
        self.scene.said[said.n] = said
        return said

    def _offer_said(self, connection: Connection, number: int, said: Said) -> None:
        def arrive() -> None:
            session, broker = connection.session, connection.site.broker
            assert session is not None
            expires = None if said.expiry_s is None else broker.steady() + said.expiry_s
            made = msgspec.structs.replace(
                self._published(said), sequence=session.next_sequence(), time=broker.clock(), expires=expires
            )
            broker.publish(session, [(made, number)])

        self.note(connection.site.name, f"PUBLISH {said.n} {said.topic} QoS {said.qos}")
        self.say(connection, arrive)

    def on_accepted(self, connection: Connection, number: int, qos: int, reason: Reason) -> None:
        if connection is not self.connection or number not in self.flights:
            return
        said, _ = self.flights[number]
        self.scene.note(connection.site.name, self.name, f"{'PUBACK' if qos == 1 else 'PUBREC'} {said.n}")
        said.accepted, said.accepted_s = True, min(said.accepted_s, self.engine.now)
        if qos == 1:
            del self.flights[number]
        else:
            self.flights[number] = (said, True)
            self.say(connection, partial(self._release, connection, number))

    @staticmethod
    def _release(connection: Connection, number: int) -> None:
        assert connection.session is not None
        connection.site.broker.released(connection.session, number)

    def on_completed(self, connection: Connection, number: int) -> None:
        if connection is self.connection:
            self.flights.pop(number, None)

    # What it gets.

    def on_delivery(self, connection: Connection, delivery: Delivery) -> None:
        if connection is not self.connection:
            return
        n, number = 0 if delivery.view else number_of(delivery.publication.payload), delivery.number
        self.scene.note(
            connection.site.name, self.name, f"PUBLISH {n or told(delivery)} QoS {delivery.qos} id {number}"
        )
        if delivery.view:
            (question,) = delivery.identifiers
            self._picture(question).take(delivery)
            self._note_change(connection, delivery)
        elif delivery.retain:
            self.shown[n] += 1
        elif delivery.qos < 2 or number not in self.bond.incoming:
            self._take(connection, n, delivery.qos)
        if delivery.qos == 2:
            self.bond.incoming.add(number)
            self.bond.unknown[number] = n
            self.say(connection, partial(self._received, connection, number))
        elif delivery.qos == 1:
            self._unsettled[n] += 1
            self.say(connection, partial(self._acknowledge, connection, number, n))

    def _note_change(self, connection: Connection, delivery: Delivery) -> None:
        said = delivery.publication
        told = Told(
            n=number_of(said.payload) if said.payload else 0,
            topic=said.topic,
            at=connection.site.name,
            opened_s=self.admissions[-1].opened_s,
            away_s=self.admissions[-1].away_s,
        )
        self.changes.append(told)

    def _picture(self, question: int) -> Picture:
        return self.pictures.setdefault((self._server, question), Picture())

    def _take(self, connection: Connection, n: int, qos: int) -> None:
        self.counts[n] += 1
        self.bond.counts[n] += 1
        self.order.append(n)
        said, here = self.scene.said[n], self._here.setdefault(connection, Counter())
        here[n] += 1
        copies = said.archived if self.recalls else said.copies(qos)
        same = here[n] > copies
        if self.bond.counts[n] > copies and n not in self.excused and not (self._unsettled[n] and not same):
            self.twins.append(Twin(n, qos, self.engine.now, connection.site.name, same))
        self.admissions[-1].got.add(n)
        self.scene.taken(self, said)
        if self._blind:
            self.excused.add(n)

    @staticmethod
    def _received(connection: Connection, number: int) -> None:
        assert connection.session is not None
        connection.site.broker.received(connection.session, number)

    def _acknowledge(self, connection: Connection, number: int, n: int) -> None:
        """Until the acknowledgement is on the disk a crash may make the broker forget it."""
        assert connection.session is not None
        connection.site.broker.acknowledged(connection.session, number)
        machine = cast(Machine, connection.site)
        machine.station.store.when_durable(lambda: self._unsettled.subtract((n,)))

    def on_release(self, connection: Connection, number: int) -> None:
        if connection is not self.connection:
            return
        self.bond.unknown.pop(number, None)
        self.bond.incoming.discard(number)
        self.say(connection, partial(self._complete, connection, number))

    @staticmethod
    def _complete(connection: Connection, number: int) -> None:
        assert connection.session is not None
        connection.site.broker.acknowledged(connection.session, number)

    @property
    def certain(self) -> bool:
        """Whether all that it wants it wants once."""
        return all(wish.qos == 2 for wish in self.wishes.values() if not wish.lasting)
