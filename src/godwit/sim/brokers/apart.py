"""Random worlds in which sessions are often out of reach: clients that do not wait, brokers that crash and links that
are cut. Whatever happens, nothing is lost and nothing comes twice."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from random import Random

from godwit.protocols.broker.api import Delivery
from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.publication import Publication
from godwit.sim.brokers.chaos import Chaos
from godwit.sim.brokers.client import Client, Connection

EventId = tuple[str, int]


class Apart(Chaos):
    """Clients wait as long as the dice say, mostly less than brokers are away, and subscribe again where they get a new
    session. Some take up and give up a second subscription meanwhile, some have theirs at QoS 1."""

    def __init__(self, seed: int, handoff: Handoff = "reactive", *, cuts: bool = True, tokens: float = 0.7) -> None:
        self.tokens = tokens
        super().__init__(seed, handoff=handoff)
        self.cuts = cuts
        self.world.session_wait_s = self.dice.choice((0.3, 1.0, 1.0, 4.0))
        for site in self.world.sites.values():
            site.crash()
            site.start()

    def _client(self, name: str) -> Hasty:
        dice = self.world.dice.stream("client", name)
        return Hasty(self, name, dice=dice, delay_s=0.02, keeps_token=dice.random() < self.tokens)

    def _crash(self) -> None:
        if self.cuts and self.dice.random() < 0.5:
            one, other = self.dice.sample(self.names, 2)
            (self.world.heal if self.world.is_cut(one, other) else self.world.cut)(one, other)
        else:
            super()._crash()

    def _hop(self) -> None:
        client = self.dice.choice(self.subscribers)
        if client.inside and self.dice.random() < 0.3:
            assert isinstance(client, Hasty)
            client.change_mind()
        else:
            super()._hop()

    def _calm(self) -> None:
        self.world.heal_all()
        super()._calm()

    def check(self) -> None:
        given_up = {one for publisher in self.publishers for one in publisher.given_up}
        for client in self.subscribers:
            assert isinstance(client, Hasty)
            wanted = [one for one, _ in self.published if any(wish.wants(one) for wish in self.wishes[client.name])]
            counts = Counter(delivery.publication.id for delivery in client.got)
            lost = [one.id for one in wanted if not counts[one.id] and one.id not in given_up]
            assert not lost, f"{client.name} lost {lost} of {len(wanted)}"
            twice = [one.id for one in client.twice if one.qos == 2]
            assert not twice, f"{client.name} got twice {twice}"
            self._check_parts(client)
        for site in self.world.sites.values():
            assert not site.broker.shadows, f"{site.name} has shadows {site.broker.shadows}"
            for session in site.broker.sessions.values():
                assert session.carried.memory is None, (
                    f"{site.name} still waits for an older session of {session.client}"
                )
                assert not session.inflow.upstreams

    def _check_parts(self, client: Hasty) -> None:
        """What one publisher says through one broker comes in as many parts as the client had sessions or copies of
        them, each in its order: so at most that many of them can come in the opposite order."""
        home, parts = {one.id: at for one, at in self.published}, client.parts
        seen: dict[tuple[str, str], list[int]] = defaultdict(list)
        for delivery in client.got:
            one = delivery.publication
            if one.qos == 2 and one.id not in client.excused:
                seen[one.publisher, home[one.id]].append(one.sequence)
        for way, sequences in seen.items():
            assert _longest_fall(sequences) <= parts, f"{client.name} got {sequences} from {way} in {parts} sessions"


class Hasty(Client):
    """Two things may come again, since nobody can tell. One is what it has when it learns that its session is new, as
    far as it does not know that its broker knows. The other is what it got at its last broker, where it shows no token
    at one that has not heard of that."""

    def __init__(self, chaos: Apart, name: str, *, dice: Random, delay_s: float, keeps_token: bool) -> None:
        super().__init__(chaos.world, name, dice=dice, delay_s=delay_s)
        self.chaos = chaos
        self.keeps_token = keeps_token
        self.qos = dice.choice((1, 2, 2))
        self.excused: set[EventId] = set()
        self.parts = 0
        """How often it was let in while its session, or the rest of it, was out of reach."""
        self.twice: list[Publication] = []
        self._had: set[EventId] = set()
        self._lots: list[tuple[At, set[EventId]]] = []
        """What it got each time it was in, and where that was."""
        self._blind = False
        self._unsure: dict[int, EventId] = {}
        self._more = False

    def connect(self, at: str, *, clean: bool = False, expiry_s: float = 3600.0, **more: object) -> Client:
        broker = self.world.sites[at].broker
        session, place = broker.sessions.get(self.name), broker._moves.places.known.get(self.name)
        known = max(place or At(0, ""), At(session.epoch, at) if session is not None else At(0, ""))
        unheard = [] if self.keeps_token else [lot for place, lot in self._lots if known < place]
        self.excused.update(*unheard)
        self._blind = bool(unheard)
        return super().connect(at, clean=clean, expiry_s=expiry_s, **more)

    def change_mind(self) -> None:
        """About something beside what it always wants."""
        assert self.connection is not None
        if self._more:
            self.connection.site.broker.unsubscribe(self.session, ["+/x"])
        else:
            self.subscribe("+/x", qos=self.qos)
        self._more = not self._more

    def on_opened(self, connection: Connection, present: bool) -> None:
        assert connection.session is not None
        self._lots.append((At(connection.session.epoch, connection.site.name), set()))
        self.parts += not present or any(way.copy for way in connection.session.inflow.upstreams)
        if connection is self.connection and not present:
            self.excused.update(self._unsure.values())
            self._unsure.clear()
            self._more = False
        super().on_opened(connection, present)

    def _resume(self, connection: Connection, unfinished: list[int]) -> None:
        super()._resume(connection, unfinished)
        for wish in self.chaos.wishes.get(self.name, ()) if not self.presents[-1] else ():
            self.subscribe(f"{wish.topic}/#", wish.condition, qos=self.qos)

    def on_delivery(self, connection: Connection, delivery: Delivery) -> None:
        before, number, event = len(self.got), delivery.number, delivery.publication.id
        super().on_delivery(connection, delivery)
        if len(self.got) > before:
            if event in self._had and event not in self.excused:
                self.twice.append(delivery.publication)
            self._had.add(event)
            self._lots[-1][1].add(event)
            if self._blind:
                self.excused.add(event)
        if delivery.qos == 2:
            self._unsure[number] = event
        else:
            # A broker that crashes before it has written an acknowledgement has not heard it.
            self.excused.add(event)
            connection.site.broker.store.settled(lambda: None if self._blind else self.excused.discard(event))

    def on_release(self, connection: Connection, number: int) -> None:
        self._unsure.pop(number, None)
        super().on_release(connection, number)


def _longest_fall(sequences: list[int]) -> int:
    """The length of the longest part that falls: into so many rising parts the whole can be divided, and no fewer."""
    ends: list[int] = []
    for one in sequences:
        at = bisect_left(ends, -one)
        ends[at : at + 1] = [-one]
    return len(ends)
