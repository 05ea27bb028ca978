"""Which broker a client is told to use (spec proactive-handoff F48).

Brokers tell those they are linked with what they have to do, now and then and outside of all streams: only the newest
counts. Where each has few links they also pass on some of what they have heard of others, drawn by chance, so that all
hear of all, if a little later. One that has more than its share sends clients that are new to it to one that has less.
It picks the better of two drawn by chance, so that not all run to the same one, and counts each client that it sends
there at once.

Nobody is sent in circles. A broker sends away only while it has `MARGIN` more than the mean, and only to those below
the mean. Whoever is sent is announced there with `Sent` and let in. And nobody is sent away twice by the same broker
within `REMEMBER_S`, so that a client that cannot follow gets in when it tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf

import msgspec

from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.streams.frames import TEXT_MAX, Load, Loads, Sent, Told, Transport
from godwit.protocols.host import Host, NodeId
from godwit.protocols.topology.mesh import LINKS_LEAST

MARGIN = 0.25
CLIENTS_FEW, EVENTS_FEW_PER_S = 10, 1_000.0
"""Below these a mean says nothing: nobody is burdened yet."""

REMEMBER_S = 60.0
REMEMBERED_MAX = 10_000

PASSED_ON = 8
"""Of so many others a broker tells each time what it has heard."""
OTHERS_MAX = 1_024
HEARSAY = 5
"""What others pass on counts so many times longer than what a broker says itself."""
HOPS_MAX = 8


class BalanceOptions(msgspec.Struct, frozen=True, kw_only=True):
    redirect: bool = False
    """Send clients elsewhere while this broker has more than its share."""
    clients_max: int = 0
    """So many clients, and no more that are new; 0: any number."""
    tell_s: float = 2.0
    """How often the others are told; who has been silent for three times as long is not counted on."""


class Burden(msgspec.Struct, frozen=True):
    """What a broker has to do: clients connected, and events that it has handled since its start."""

    clients: int
    events: int


class Mean(msgspec.Struct, frozen=True):
    clients: float
    events_per_s: float


def _strain(load: Load, mean: Mean) -> float:
    """1 where a broker has as much to do as the mean."""
    return max(load.clients / mean.clients, load.events_per_s / mean.events_per_s)


class Remembered:
    """Names, each for a while, and not more than so many."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._until_s: dict[str, float] = {}

    def add(self, name: str) -> None:
        self._until_s.pop(name, None)
        self._until_s[name] = self._host.now() + REMEMBER_S
        while len(self._until_s) > REMEMBERED_MAX or next(iter(self._until_s.values())) <= self._host.now():
            del self._until_s[next(iter(self._until_s))]

    def __contains__(self, name: str) -> bool:
        return self._until_s.get(name, 0.0) > self._host.now()


class Balance:
    """Of one broker. `burden()` says what it has to do, `linked()` who can be told. Call `start` once."""

    def __init__(
        self,
        host: Host,
        options: BalanceOptions,
        burden: Callable[[], Burden],
        linked: Callable[[], Collection[NodeId]],
    ) -> None:
        self.host = host
        self.options = options
        self.address = self.address_tls = self.address_ws = self.address_wss = ""
        """Where clients reach this broker; for the others."""
        self.address_http = ""
        """Where operators do."""
        self.leaving = False
        self.cordoned = False
        """Nobody is let in whose session is not here."""
        self.redirected = 0
        self.loads: dict[NodeId, Load] = {}
        """What the others said last, and the clients that were sent there since."""
        self._burden = burden
        self._linked = linked
        self._heard_s: dict[NodeId, float] = {}
        """When each has said it."""
        self._through: dict[NodeId, NodeId] = {}
        """Of those that are not linked: who has passed it on."""
        self._counted = (host.now(), burden().events)
        self._own = Load(burden().clients, 0.0)
        self._sent, self._expected = Remembered(host), Remembered(host)
        self._started = False

    def start(self) -> None:
        self._started = True
        self._tell()

    def linked(self, peer: NodeId) -> None:
        """A link has come up: who is there hears at once what this broker has to do, and not only when it is time."""
        if self._started:
            self.host.send(peer, self._load())

    def leave(self) -> None:
        """From now on nobody is let in, and the others know."""
        self.leaving = True
        self._say()

    def cordon(self, closed: bool) -> None:
        """Whether clients that are new to this broker are sent elsewhere; the others know. Undoes `leave` too."""
        self.cordoned, self.leaving = closed, False
        self._say()

    def receive(self, sender: NodeId, message: Load | Loads | Sent) -> None:
        match message:
            case Load():
                self.loads[sender] = message
                self._heard_s[sender] = self.host.now()
                self._through.pop(sender, None)
            case Loads():
                for told in message.told:
                    self._hear_of(told, sender)
            case Sent(client, to) if to in ("", self.host.name):
                self._expected.add(client)
            case Sent() if message.hops < HOPS_MAX:
                self._announce(message)

    def _hear_of(self, told: Told, sender: NodeId) -> None:
        said_s, name = self.host.now() - told.age_s, told.name
        if name == self.host.name or name in self._linked() or said_s <= self._heard_s.get(name, -inf):
            return
        if name in self.loads or len(self.loads) < OTHERS_MAX:
            self.loads[name], self._heard_s[name], self._through[name] = told.load, said_s, sender

    def _announce(self, sent: Sent) -> None:
        """To where a client was sent, over a link or through whoever has told of that one."""
        hop = sent.to if sent.to in self._linked() else self._through.get(sent.to)
        if hop is not None:
            self.host.send(hop, msgspec.structs.replace(sent, hops=sent.hops + 1))

    @property
    def full(self) -> bool:
        most = self.options.clients_max
        return bool(most) and self._burden().clients >= most

    def refusal(
        self, client: str, *, known: bool, follows: bool, over: Transport = Transport.MQTT
    ) -> tuple[Reason, str] | None:
        """Why this client is not let in, if so. With `USE_ANOTHER_SERVER` the text is where it should go.

        `known`: its session, or a copy of it, is here. `follows`: it may be told of another broker.
        """
        must = self.leaving or ((self.full or self.cordoned) and not known)
        may = follows and (self.leaving or self.cordoned or self.options.redirect)
        if may and (must or (not known and self._has_too_much() and not self._is_settled(client))):
            address = self.elsewhere(client, over)
            if address:
                return Reason.USE_ANOTHER_SERVER, address
        if self.leaving:
            return Reason.SERVER_SHUTTING_DOWN, "the broker is shutting down"
        if must and self.cordoned:
            return Reason.SERVER_BUSY, "the broker takes no new clients at the moment"
        if must:
            return Reason.SERVER_BUSY, f"{self.options.clients_max} clients are connected, which is all that may be"
        return None

    def elsewhere(self, client: str, over: Transport = Transport.MQTT) -> str:
        """Where this client should go instead, which is told there; empty where nobody has room."""
        strains = self._strains()
        room = inf if self.leaving or self.full or self.cordoned else 1.0
        found = [name for name in sorted(strains) if strains[name] < room and self.loads[name].at(over)]
        if not found:
            return ""
        name = min(self.host.random.sample(found, min(2, len(found))), key=strains.__getitem__)
        load = self.loads[name]
        self.loads[name] = msgspec.structs.replace(load, clients=load.clients + 1)
        self._sent.add(client)
        self.redirected += 1
        if len(client) <= TEXT_MAX:
            self._announce(Sent(client, name))
        return load.at(over)

    def _is_settled(self, client: str) -> bool:
        """It was sent here, or was sent away from here and has come back."""
        return client in self._expected or client in self._sent

    def _has_too_much(self) -> bool:
        return _strain(self._now(), self._all()) > 1 + MARGIN

    def _strains(self) -> dict[NodeId, float]:
        """Of those that take clients."""
        mean = self._all()
        return {name: _strain(load, mean) for name, load in self._heard() if load.open}

    def _heard(self) -> list[tuple[NodeId, Load]]:
        """What those said who can be counted on."""
        fresh_s, linked = 3 * self.options.tell_s, set(self._linked())
        itself_s, hearsay_s = self.host.now() - fresh_s, self.host.now() - HEARSAY * fresh_s
        return [
            (name, load)
            for name, load in self.loads.items()
            if self._heard_s[name] > (itself_s if name in linked else hearsay_s)
            and (name in linked or self._through.get(name) in linked)
        ]

    def _all(self) -> Mean:
        """The mean of all brokers, as far as it says something."""
        all_loads = [self._now(), *(load for _, load in self._heard())]
        clients = sum(load.clients for load in all_loads) / len(all_loads)
        events_per_s = sum(load.events_per_s for load in all_loads) / len(all_loads)
        return Mean(max(clients, CLIENTS_FEW), max(events_per_s, EVENTS_FEW_PER_S))

    def _now(self) -> Load:
        return msgspec.structs.replace(self._own, clients=self._burden().clients)

    def _tell(self) -> None:
        now_s, events = self.host.now(), self._burden().events
        before_s, before = self._counted
        if now_s > before_s:
            rate = max(0.0, (events - before) / (now_s - before_s))
            self._own = msgspec.structs.replace(self._own, events_per_s=rate)
            self._counted = now_s, events
        self._say()
        self.host.after(self.options.tell_s * self.host.random.uniform(0.9, 1.1), self._tell)

    def _load(self) -> Load:
        return Load(
            self._burden().clients,
            self._own.events_per_s,
            self.address,
            self.address_tls,
            not (self.leaving or self.full or self.cordoned),
            self.address_ws,
            self.address_wss,
            self.address_http,
        )

    def _say(self) -> None:
        load, passed_on = self._load(), self._passed_on()
        for peer in list(self._linked()):
            self.host.send(peer, load)
            if passed_on is not None:
                self.host.send(peer, passed_on)

    def _passed_on(self) -> Loads | None:
        """Where all may be linked with all there is nothing to pass on."""
        heard = self._heard()
        if len(list(self._linked())) < LINKS_LEAST or not heard:
            return None
        now_s, some = self.host.now(), self.host.random.sample(heard, min(PASSED_ON, len(heard)))
        return Loads(tuple(Told(name, now_s - self._heard_s[name], load) for name, load in some))
