"""A client as MQTT wants it to be: it acknowledges what it gets, remembers what it must, and keeps that over
connections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from godwit.protocols.broker.api import Delivery, Opening, Reason, Subscription
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.state import Session
from godwit.sim.brokers.site import Site
from godwit.sim.brokers.world import World


class Connection:
    """One connection of a client: an `Outlet`."""

    def __init__(self, client: Client, site: Site) -> None:
        self.client = client
        self.site = site
        self.life = site.lives
        self.session: Session | None = None
        self.resumed = False
        """The client has repeated what was not acknowledged: only then may it say something new."""
        self.open = True
        """From the client's side."""
        self.begun_s = 0.0
        """When the client was let in."""
        self.last_s = 0.0
        """When the last that the broker has said arrives."""
        self.said_s = 0.0
        """When the last that the client has said does."""
        self.gate: list[Callable[[], object]] | None = None
        """What waits until the disk has what the client was told first; None where nothing has to."""

    @property
    def works(self) -> bool:
        return self.open and self.site.up and self.site.lives == self.life

    def opened(self, session: Session, present: bool) -> None:
        self.session = session
        self.client.on_opened(self, present)

    def refused(self, reason: Reason, text: str) -> None:
        self.client.on_closed(self, reason)

    def takes_more(self) -> bool:
        return True

    def deliver(self, delivery: Delivery) -> None:
        self.client.later(self, lambda: self.client.on_delivery(self, delivery))

    def release(self, number: int) -> None:
        self.client.later(self, lambda: self.client.on_release(self, number))

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        self.client.later(self, lambda: self.client.on_accepted(self, number, qos, reason))

    def completed(self, number: int) -> None:
        self.client.later(self, lambda: self.client.on_completed(self, number))

    def closed(self, reason: Reason, text: str) -> None:
        self.client.on_closed(self, reason)


class Client:
    """Subscribes, publishes and takes what comes. `got` is what its application sees."""

    def __init__(self, world: World, name: str, *, dice: Random | None = None, delay_s: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.dice = dice or Random(0)
        self.delay_s = delay_s
        self.connection: Connection | None = None
        self.got: list[Delivery] = []
        self.all: list[Delivery] = []
        """Repetitions included, as they came over the wire."""
        self.presents: list[bool] = []
        self.closed: list[Reason] = []
        self.accepts: list[tuple[int, Reason]] = []
        self.holding = False
        """Do not acknowledge anything."""
        self.incoming: set[int] = set()
        self.outgoing: dict[int, tuple[Publication, bool]] = {}
        """Packet id: the publication, and whether the broker has it (QoS 2)."""
        self.given_up: list[tuple[str, int]] = []
        """Not known to be taken when a new session began."""
        self.number = 0
        self.sent = 0
        self.opening = Opening(client=name)
        self.home = ""
        """Where it connected first."""
        self.keeps_token = False
        self.token = ""
        """What its session's was when it was in last; with a question mark once it has been shown."""

    def hear_safely(self, connection: Connection, call: Callable[[], object]) -> None:
        """As the front of MQTT does it: whoever is told that its session is kept finds it so after a crash. What the
        broker says next comes behind that."""
        connection.gate = [call]
        connection.site.broker.store.settled(partial(self._ungate, connection))

    def _ungate(self, connection: Connection) -> None:
        waiting, connection.gate = connection.gate, None
        for call in waiting or ():
            self.later(connection, call)

    def later(self, connection: Connection, call: Callable[[], object]) -> None:
        """What the broker says arrives after a while, in order."""
        if connection.gate is not None:
            connection.gate.append(call)
            return
        when = max(self.world.engine.now + self.dice.uniform(0, self.delay_s), connection.last_s)
        connection.last_s = when
        self.world.engine.at(when, lambda: call() if connection.works else None)

    def connect(self, at: str, *, clean: bool = False, expiry_s: float = 3600.0, **more: object) -> Client:
        site = self.world.sites[at]
        self.home = self.home or at
        if self.keeps_token and not clean:
            more.setdefault("token", self.token)
            self.token = self.token and f"?{self.token.removeprefix('?')}"
        self.opening = Opening(client=self.name, clean=clean, expiry_s=expiry_s, **more)  # type: ignore[arg-type]
        self.connection = Connection(self, site)
        site.broker.open(self.opening, self.connection)
        return self

    def drop(self, *, will: bool = True, notice_s: float | None = 0.0, expiry_s: float | None = None) -> Client:
        """The connection breaks; the broker notices after a while, or never."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.open = False
            if notice_s == 0.0:
                self._noticed(connection, will, expiry_s)
            elif notice_s is not None:
                self.world.engine.after(notice_s, lambda: self._noticed(connection, will, expiry_s))
        return self

    def _noticed(self, connection: Connection, will: bool, expiry_s: float | None) -> None:
        if connection.site.up and connection.site.lives == connection.life:
            if connection.session is not None:
                connection.site.broker.close(connection.session, connection, will=will, expiry_s=expiry_s)
            else:
                connection.site.broker.give_up(self.opening, connection)

    @property
    def session(self) -> Session:
        assert self.connection is not None
        assert self.connection.session is not None
        return self.connection.session

    @property
    def inside(self) -> bool:
        return self.connection is not None and self.connection.works and self.connection.resumed

    def subscribe(self, topics: str = "#", condition: str = "", **more: object) -> Client:
        assert self.connection is not None
        key = str(more.pop("key", f"{more.get('group', '')}{topics}"))
        wanted = Subscription(key, topics, condition, **more)  # type: ignore[arg-type]
        granted = self.connection.site.broker.subscribe(self.session, [wanted])
        assert granted[0].reason is Reason.OK, granted
        return self

    @property
    def _broker(self) -> Broker:
        assert self.connection is not None
        return self.connection.site.broker

    def publish(self, topic: str, payload: bytes = b"x", qos: int = 0, **more: object) -> Publication:
        made = Publication(
            self.name,
            self.session.next_sequence(),
            topic,
            payload,
            qos,
            time=self._broker.clock(),
            **more,  # type: ignore[arg-type]
        )
        self.sent += 1
        if qos:
            while True:
                self.number = self.number % 65535 + 1
                if self.number not in self.outgoing:
                    break
            self.outgoing[self.number] = (made, False)
        self._offer(made, self.number if qos else 0)
        return made

    def _offer(self, publication: Publication, number: int) -> None:
        assert self.connection is not None
        self.connection.site.broker.publish(self.session, [(publication, number)])

    def on_opened(self, connection: Connection, present: bool) -> None:
        assert connection.session is not None
        self.on_admitted(connection, present, connection.session.carried.token)

    def on_admitted(self, connection: Connection, present: bool, token: str) -> None:
        """It hears that it is in."""
        if connection is not self.connection:
            return
        self.presents.append(present)
        self.token = token
        if not present:
            self.given_up += [one.id for one, received in self.outgoing.values() if not received]
            self.incoming.clear()
            self.outgoing.clear()
        unfinished = list(self.outgoing)
        self.later(connection, lambda: self._resume(connection, unfinished))

    def _resume(self, connection: Connection, unfinished: list[int]) -> None:
        assert connection.session is not None
        connection.resumed = True
        for number in unfinished:
            publication, received = self.outgoing[number]
            if received:
                connection.site.broker.released(connection.session, number)
            else:
                connection.site.broker.publish(connection.session, [(publication, number)])

    def on_closed(self, connection: Connection, reason: Reason) -> None:
        connection.open = False
        self.closed.append(reason)
        if connection is self.connection:
            self.connection = None

    def on_delivery(self, connection: Connection, delivery: Delivery) -> None:
        broker, session, number = connection.site.broker, connection.session, delivery.number
        assert session is not None
        self.all.append(delivery)
        if delivery.qos < 2 or number not in self.incoming:
            self.got.append(delivery)
        if delivery.qos == 2:
            self.incoming.add(number)
            if not self.holding:
                assert broker.received(session, number)
        elif delivery.qos == 1 and not self.holding:
            assert broker.acknowledged(session, number)

    def on_release(self, connection: Connection, number: int) -> None:
        assert connection.session is not None
        self.incoming.discard(number)
        if not self.holding:
            connection.site.broker.acknowledged(connection.session, number)

    def on_accepted(self, connection: Connection, number: int, qos: int, reason: Reason) -> None:
        self.accepts.append((number, reason))
        if number not in self.outgoing:
            return
        if qos == 1 or reason >= Reason.UNSPECIFIED:
            del self.outgoing[number]
        else:
            publication, _ = self.outgoing[number]
            self.outgoing[number] = (publication, True)
            assert connection.session is not None
            connection.site.broker.released(connection.session, number)

    def on_completed(self, connection: Connection, number: int) -> None:
        self.outgoing.pop(number, None)

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.publication.payload for delivery in self.got]
