"""A client that roams, and remembers what it was told and what it had: the witness that judges hear.

It knows MQTT and its own conversations, and nothing of how brokers work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, cast

import msgspec

from godwit.protocols.broker.api import Delivery, Reason, Subscription
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client, Connection
from godwit.sim.brokers.cluster import Cluster, Machine

Token = Literal["own", "none", "old"]
"""What a client shows: what it has, nothing, or what it was given the time before."""

EXPIRY_S = 1e7
RETRY_S = 0.5
"""How often a client that is out tries again."""
SPREAD_S = 5.0
"""Where nothing is wrong, all brokers know by then where a client is."""
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
    times: int = 1
    """How often MQTT made its publisher say it."""
    blind: bool = False
    """It was said again where nobody could know that it had been said: see `Roamer`."""
    accepted: bool = False
    given_up: bool = False
    """Its session was lost before it knew that the broker has it: nobody can say whether that is so."""

    def copies(self, qos: int) -> int:
        """How often somebody may get it at this QoS: at QoS 2 all that was said is one. Below, deliveries wait for no
        disk, so that a broker may crash after them and before it knows what it was told; then it is told again."""
        return 1 if self.qos == 2 and qos == 2 and not self.blind else self.times

    @property
    def payload(self) -> bytes:
        return msgspec.json.encode({"n": self.n, **self.attributes})


def number_of(payload: bytes) -> int:
    return int(msgspec.json.decode(payload)["n"])


class Admission(msgspec.Struct, kw_only=True):
    """One time that the client was let in, as far as it knows."""

    at: NodeId
    time_s: float
    present: bool
    disturbed: bool
    """Something was wrong since it was let in the time before."""
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


class Scene(Protocol):
    """Where clients roam: what they are told there, and who wants to hear from them."""

    cluster: Cluster
    said: dict[int, Said]

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
        self, scene: Scene, name: str, wishes: Mapping[str, Subscription], *, delay_s: float = 0.02, extra_qos: int = 2
    ) -> None:
        dice = scene.cluster.streams.stream("client", name)
        super().__init__(cast(Any, scene.cluster), name, dice=dice, delay_s=delay_s)
        self.scene = scene
        self.engine = scene.cluster.engine
        self.wishes = dict(wishes)
        self.extra_qos = extra_qos
        self.keeps_token = True
        self.goal: NodeId | None = None
        """Where it wants to be in."""
        self.admissions: list[Admission] = []
        self.order: list[int] = []
        """What its application got, in that order."""
        self.counts: Counter[int] = Counter()
        self.twins: list[Twin] = []
        self.flights: dict[int, tuple[Said, bool]] = {}
        """By packet id: what is not finished, and whether the broker has it (QoS 2)."""
        self.excused: set[int] = set()
        """What may come again, since nobody can tell that it has come."""
        self._unknown: dict[int, int] = {}
        """By packet id, what it has and does not know that its broker knows (QoS 2)."""
        self._unsettled: Counter[int] = Counter()
        """QoS 1: it was acknowledged, and that is on no disk yet."""
        self._ungranted: dict[str, Subscription | None] = {}
        """Subscriptions that it has not heard to be granted; None: given up."""
        self._extra = False
        self._blind = False
        self._tokens: list[str] = []
        self._here: dict[Connection, Counter[int]] = {}
        self.engine.after(RETRY_S, self._retry)

    def note(self, to: str, text: str) -> None:
        self.scene.note(self.name, to, text)

    def say(self, connection: Connection, call: Callable[[], object]) -> None:
        when = max(self.engine.now + self.dice.uniform(0, self.delay_s), connection.said_s)
        connection.said_s = when
        self.engine.at(when, lambda: call() if connection.works and connection.session is not None else None)

    # Coming and going.

    def come(self, to: NodeId, notice_s: float | None = None, token: Token = "own") -> None:
        if self.connection is not None:
            self.drop(notice_s=notice_s)
        self.goal = to
        if self.scene.cluster.sites[to].up:
            self._knock(to, token)

    def vanish(self, notice_s: float | None = None) -> None:
        self.goal = None
        if self.connection is not None:
            self.note(self.connection.site.name, "vanishes")
        self.drop(notice_s=notice_s)

    def _retry(self) -> None:
        self.engine.after(RETRY_S, self._retry)
        if self.connection is not None and not self.connection.works:
            self.connection = None
        if self.goal is not None and self.connection is None and self.scene.cluster.sites[self.goal].up:
            self._knock(self.goal, "own")

    def _knock(self, at: NodeId, token: Token) -> None:
        shown = {"own": self.token, "none": "", "old": self._tokens[-2] if len(self._tokens) > 1 else self.token}[token]
        if token == "none":
            self._blind = self._is_unheard_of()
        elif token == "old":
            # It says that it was nowhere since, which is not true: it may get again what it had.
            self._blind = True
        if self._blind:
            self.excused.update(*(one.got for one in self.admissions))
        self.note(at, f"CONNECT {'token ' + shown if shown else 'no token'}")
        self.connect(at, expiry_s=EXPIRY_S, token=shown)
        self.token = self.token and f"?{self.token.removeprefix('?')}"

    def _is_unheard_of(self) -> bool:
        """Whether some broker may not know yet where this client was last: it shows nothing that would tell."""
        return any(self.scene.disturbed(one.time_s) for one in self.admissions[-3:]) or (
            bool(self.admissions) and self.engine.now < self.admissions[-1].time_s + SPREAD_S
        )

    def on_opened(self, connection: Connection, present: bool) -> None:
        assert connection.session is not None
        token = connection.session.carried.token
        self.later(connection, partial(self._on_admitted, connection, present, token))

    def _on_admitted(self, connection: Connection, present: bool, token: str) -> None:
        if connection is not self.connection:
            return
        here = connection.site.name
        self.scene.note(here, self.name, f"CONNACK {'session present' if present else 'new session'}")
        self._tokens.append(token)
        self.token = token
        since_s = self.admissions[-1].time_s if self.admissions else 0.0
        disturbed = bool(self.admissions) and (self.scene.disturbed(since_s) or self._blind)
        now_s = self.engine.now
        self.admissions.append(Admission(at=here, time_s=now_s, present=present, disturbed=disturbed))
        self.scene.admitted(self, here)
        if not present:
            self._start_anew()
        connection.resumed = True
        for number, (said, received) in list(self.flights.items()):
            if received:
                self.say(connection, partial(self._release, connection, number))
            else:
                said.times += 1
                said.blind = said.blind or self._blind
                self._offer_said(connection, number, said)
        for key in list(self._ungranted):
            self._ask(connection, key)

    def _start_anew(self) -> None:
        for said, received in self.flights.values():
            said.given_up = not received
        self.flights.clear()
        self.incoming.clear()
        self.excused.update(self._unknown.values())
        self._unknown.clear()
        self._extra = False
        self._ungranted = dict(self.wishes)

    def on_closed(self, connection: Connection, reason: Reason) -> None:
        self.scene.note(connection.site.name, self.name, f"DISCONNECT {reason.name.lower()}")
        super().on_closed(connection, reason)

    # What it wants.

    def want(self) -> None:
        """All its wishes, over the connection that it has."""
        self._ungranted = dict(self.wishes)
        if self.connection is not None:
            for key in self._ungranted:
                self._ask(self.connection, key)

    def change(self) -> None:
        if self.inside:
            self._extra = not self._extra
            assert self.connection is not None
            self._ungranted[EXTRA] = Subscription(EXTRA, EXTRA, qos=self.extra_qos) if self._extra else None
            self._ask(self.connection, EXTRA)

    def _ask(self, connection: Connection, key: str) -> None:
        wish = self._ungranted[key]

        def arrive() -> None:
            broker, session = connection.site.broker, connection.session
            assert session is not None
            if wish is None:
                broker.unsubscribe(session, [key])
            else:
                granted = broker.subscribe(session, [wish])
                assert granted[0].reason is Reason.OK, granted
            broker.store.settled(lambda: self.later(connection, lambda: self._granted(connection, key, wish)))

        self.note(connection.site.name, f"{'UNSUBSCRIBE' if wish is None else 'SUBSCRIBE'} {key}")
        self.say(connection, arrive)

    def _granted(self, connection: Connection, key: str, wish: Subscription | None) -> None:
        if connection is self.connection and self._ungranted.get(key, self) == wish:
            del self._ungranted[key]

    @property
    def at_rest(self) -> bool:
        """It is in, and nothing of its own is unfinished."""
        return self.inside and not self.flights and not self._ungranted

    # What it says.

    def speak(self, topic: str, attributes: Mapping[str, Any], qos: int) -> Said | None:
        """Publish, unless it is not in."""
        if not self.inside:
            return None
        assert self.connection is not None
        said = Said(
            n=len(self.scene.said) + 1,
            topic=topic,
            attributes=attributes,
            qos=qos,
            publisher=self.name,
            at=self.connection.site.name,
            time_s=self.engine.now,
        )
        self.scene.said[said.n] = said
        number = 0
        if qos:
            number = next(one for one in range(1, 65536) if one not in self.flights)
            self.flights[number] = (said, False)
        self._offer_said(self.connection, number, said)
        return said

    def _offer_said(self, connection: Connection, number: int, said: Said) -> None:
        def arrive() -> None:
            session, broker = connection.session, connection.site.broker
            assert session is not None
            made = Publication(
                self.name, session.next_sequence(), said.topic, said.payload, said.qos, time=broker.clock()
            )
            broker.publish(session, [(made, number)])

        self.note(connection.site.name, f"PUBLISH {said.n} {said.topic} QoS {said.qos}")
        self.say(connection, arrive)

    def on_accepted(self, connection: Connection, number: int, qos: int, reason: Reason) -> None:
        if connection is not self.connection or number not in self.flights:
            return
        said, _ = self.flights[number]
        self.scene.note(connection.site.name, self.name, f"{'PUBACK' if qos == 1 else 'PUBREC'} {said.n}")
        said.accepted = True
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
        n, number = number_of(delivery.publication.payload), delivery.number
        self.scene.note(connection.site.name, self.name, f"PUBLISH {n} QoS {delivery.qos} id {number}")
        if delivery.qos < 2 or number not in self.incoming:
            self._take(connection, n, delivery.qos)
        if delivery.qos == 2:
            self.incoming.add(number)
            self._unknown[number] = n
            self.say(connection, partial(self._received, connection, number))
        elif delivery.qos == 1:
            self._unsettled[n] += 1
            self.say(connection, partial(self._acknowledge, connection, number, n))

    def _take(self, connection: Connection, n: int, qos: int) -> None:
        self.counts[n] += 1
        self.order.append(n)
        said, here = self.scene.said[n], self._here.setdefault(connection, Counter())
        here[n] += 1
        same = here[n] > said.copies(qos)
        if self.counts[n] > said.copies(qos) and n not in self.excused and not (self._unsettled[n] and not same):
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
        self._unknown.pop(number, None)
        self.incoming.discard(number)
        self.say(connection, partial(self._complete, connection, number))

    @staticmethod
    def _complete(connection: Connection, number: int) -> None:
        assert connection.session is not None
        connection.site.broker.acknowledged(connection.session, number)

    @property
    def certain(self) -> bool:
        """Whether all that it wants it wants once."""
        return all(wish.qos == 2 for wish in self.wishes.values())
