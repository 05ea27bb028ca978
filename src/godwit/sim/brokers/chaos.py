"""A random world of brokers and clients from one seed, and the checkers that stand outside of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial

from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.publication import Publication
from godwit.sim.brokers.client import Client, Connection
from godwit.sim.brokers.world import Trees, World

KINDS = ("warm", "cold")


class Wish:
    """What a subscriber asks for, and by what a checker that knows no filters tells what it must get."""

    def __init__(self, topic: str, kind: str | None) -> None:
        self.topic = topic
        self.kind = kind

    @property
    def condition(self) -> str:
        return f"kind = '{self.kind}'" if self.kind else ""

    def wants(self, one: Publication) -> bool:
        return one.topic.startswith(f"{self.topic}/") and (self.kind is None or self.kind.encode() in one.payload)


class Hopper(Client):
    """Hears that it is in when the disk has it."""

    def on_opened(self, connection: Connection, present: bool) -> None:
        assert connection.session is not None
        token = connection.session.carried.token
        self.hear_safely(connection, partial(self.on_admitted, connection, present, token))


class Chaos:
    """Subscribers hop, publishers publish, brokers crash; then all is quiet, and everything must have arrived."""

    def __init__(
        self,
        seed: int,
        *,
        crashes: bool = True,
        publishers_hop: bool = False,
        trees: bool = False,
        handoff: Handoff = "reactive",
    ) -> None:
        self.world = (Trees if trees else World)(3 + seed % 2, seed, session_wait_s=1e6, handoff=handoff)
        self.dice = self.world.dice.stream("chaos")
        self.crashes = crashes
        self.haste = 0.8 if handoff == "reactive" else 0.3
        """How often a client that leaves is elsewhere at once; copies are made when it is not."""
        self.publishers_hop = publishers_hop
        self.names = list(self.world.sites)
        self.published: list[tuple[Publication, str]] = []
        self.wishes: dict[str, list[Wish]] = {}
        self.subscribers = [self._client(f"s{n}") for n in range(self.dice.randint(1, 3))]
        self.publishers = [self._client(f"p{n}") for n in range(self.dice.randint(1, 3))]

    def _client(self, name: str) -> Client:
        client = Hopper(self.world, name, dice=self.world.dice.stream("client", name), delay_s=0.02)
        client.keeps_token = self.world.dice.stream("token", name).random() < 0.7
        return client

    def run(self, steps: int = 60) -> None:
        self._begin()
        for _ in range(steps):
            self.dice.choice((self._publish, self._publish, self._publish, self._hop, self._crash))()
            self.world.run(self.dice.choice((0.0, 0.01, 0.1, 0.5)))
        self._calm()

    def _begin(self) -> None:
        for client in (*self.subscribers, *self.publishers):
            client.connect(self.dice.choice(self.names), clean=True)
        self.world.run(1)
        for client in self.subscribers:
            wishes = [Wish(topic, self.dice.choice((None, *KINDS))) for topic in self.dice.sample(("a", "b"), 1)]
            if self.dice.random() < 0.3:
                wishes = [Wish("a", None), Wish("b", "warm")]
            self.wishes[client.name] = wishes
            for wish in wishes:
                client.subscribe(f"{wish.topic}/#", wish.condition, qos=2)
        self.world.run(20)

    def _publish(self) -> None:
        client = self.dice.choice(self.publishers)
        if not client.inside:
            self._reconnect(client)
            return
        for _ in range(self.dice.randint(1, 4)):
            topic = f"{self.dice.choice('ab')}/{self.dice.choice('xy')}"
            payload = f'{{"kind": "{self.dice.choice(KINDS)}", "n": {len(self.published)}}}'.encode()
            assert client.connection is not None
            one = client.publish(topic, payload, qos=self.dice.choice((1, 2, 2)))
            self.published.append((one, client.connection.site.name))

    def _hop(self) -> None:
        client = self.dice.choice([*self.subscribers, *self.publishers] if self.publishers_hop else self.subscribers)
        if client.connection is None:
            self._reconnect(client)
            return
        client.drop(notice_s=self.dice.choice((0.0, 0.2, None)))
        if self.dice.random() < self.haste:
            self._reconnect(client)

    def _reconnect(self, client: Client) -> None:
        client.drop(notice_s=None)
        stays = client in self.publishers and not self.publishers_hop
        name = client.home if stays else self.dice.choice(self.names)
        if self.world.sites[name].up:
            client.connect(name)

    def _crash(self) -> None:
        if not self.crashes:
            return
        site = self.world.sites[self.dice.choice(self.names)]
        if site.up:
            site.crash()
        else:
            site.start()

    def _calm(self) -> None:
        """No more faults: everybody is up, every client connects, and time passes."""
        for site in self.world.sites.values():
            if not site.up:
                site.start()
        for _ in range(6):
            self.world.run(30)
            for client in (*self.subscribers, *self.publishers):
                if not client.inside:
                    self._reconnect(client)
        self.world.run(60)

    def check(self) -> None:
        for client in self.subscribers:
            self._check(client)
        for publisher in self.publishers:
            assert not publisher.outgoing, f"{publisher.name} still waits for {sorted(publisher.outgoing)}"
        for site in self.world.sites.values():
            assert not site.broker.shadows, f"{site.name} has shadows {site.broker.shadows}"
            for session in site.broker.sessions.values():
                assert not session.inflow.gates
                assert not session.inflow.upstreams
                assert not session.inflow.held
                assert not session.queue.waiting
                assert not session.queue.flying
                assert not session.standing.reserved_for
            assert not site.broker._moves.places.turns
            assert not site.broker._moves.holding.bytes
            assert not site.broker._registry.copies, f"{site.name} has copies {[*site.broker._registry.copies]}"
        homes = Counter(client for site in self.world.sites.values() for client in site.broker.sessions)
        assert set(homes.values()) == {1}, homes

    def _check(self, client: Client) -> None:
        wanted = [(one, at) for one, at in self.published if any(wish.wants(one) for wish in self.wishes[client.name])]
        counts = Counter(delivery.publication.id for delivery in client.got)
        lost = [one.id for one, _ in wanted if not counts[one.id]]
        assert not lost, f"{client.name} lost {lost} of {len(wanted)}"
        twice = [one.id for one, _ in wanted if one.qos == 2 and counts[one.id] > 1]
        assert not twice, f"{client.name} got twice {twice}"
        unwanted = counts.keys() - {one.id for one, _ in wanted}
        assert not unwanted, f"{client.name} did not ask for {unwanted}"
        assert client.presents == [False] + [True] * (len(client.presents) - 1)
        if not self.publishers_hop:
            self._check_order(client, {one.id: at for one, at in wanted})

    def _check_order(self, client: Client, taken_at: dict[tuple[str, int], str]) -> None:
        """What one publisher says through one broker at QoS 2 arrives in its order. Who hops repeats at another broker
        what the first one may have taken already, or not: then there is no order to speak of."""
        seen: dict[tuple[str, str], list[int]] = defaultdict(list)
        for delivery in client.got:
            one = delivery.publication
            if one.qos == 2:
                seen[one.publisher, taken_at[one.id]].append(one.sequence)
        for way, sequence in seen.items():
            assert sequence == sorted(sequence), f"{client.name} got out of order from {way}: {sequence}"


class Wild(Chaos):
    """Clients that start clean, end with the connection, share, unsubscribe and do not wait; brokers are away long.

    Then sessions come and go, and what must arrive is hard to say. But nothing may break or be left behind, and once
    all is calm everybody gets everything.
    """

    def __init__(self, seed: int, handoff: Handoff = "reactive") -> None:
        super().__init__(seed, publishers_hop=True, handoff=handoff)
        self.world.session_wait_s = 1.0
        for site in self.world.sites.values():
            site.crash()
            site.start()

    def _reconnect(self, client: Client) -> None:
        client.drop(notice_s=None)
        name = self.dice.choice(self.names)
        if self.world.sites[name].up:
            client.connect(name, clean=self.dice.random() < 0.2, expiry_s=self.dice.choice((0.0, 1.0, 3600.0, 3600.0)))

    def _hop(self) -> None:
        client = self.dice.choice([*self.subscribers, *self.publishers])
        if client.inside and self.dice.random() < 0.4:
            topics = self.dice.choice(("a/#", "b/+", "#", "+/x"))
            condition = self.dice.choice(("", "", "kind = 'warm'"))
            client.subscribe(topics, condition, qos=self.dice.choice((0, 1, 2)), group=self.dice.choice(("", "", "g")))
        elif client.inside and self.dice.random() < 0.2:
            assert client.connection is not None
            client.connection.site.broker.unsubscribe(client.session, [*client.session.subscriptions][:1])
        else:
            super()._hop()

    def _publish(self) -> None:
        client = self.dice.choice(self.publishers)
        if client.inside:
            kind, qos = self.dice.choice(KINDS), self.dice.choice((0, 1, 2))
            topic = f"{self.dice.choice('ab')}/{self.dice.choice('xy')}"
            client.publish(topic, f'{{"kind": "{kind}"}}'.encode(), qos, retain=self.dice.random() < 0.2)
        else:
            self._reconnect(client)

    def check(self) -> None:
        for client in (*self.subscribers, *self.publishers):
            client.drop(notice_s=0.0).connect(self.dice.choice(self.names), clean=True)
            self.world.run(30)
        self.wishes = {client.name: [Wish("a", None)] for client in self.subscribers}
        for client in self.subscribers:
            client.subscribe("a/#", qos=2)
        self.world.run(30)
        self.published = []
        for client in self.subscribers:
            client.got.clear()
        for publisher in self.publishers:
            for n in range(3):
                assert publisher.connection is not None
                one = publisher.publish("a/x", b"%d" % n, 2)
                self.published.append((one, publisher.connection.site.name))
        self.world.run(30)
        for client in self.subscribers:
            client.presents = [False]
        super().check()
