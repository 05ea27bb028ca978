"""Many brokers in few sites, or in one tree over the same links: what crosses between the sites is counted."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.fabric.gateway import Gateway
from godwit.protocols.broker.messages import Offered, Outlook, Wanted, filters_in
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.broker.topics import meaning
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Bsub
from godwit.protocols.routing.process import Enclosed
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Roamer, Said
from godwit.sim.brokers.station import Station

JOINED_S = 120.0
"""By then all are in their rings: they come in one after the other."""


class CountryOptions(msgspec.Struct, frozen=True, kw_only=True):
    sites: int = 3
    brokers: int = 20
    """In each site."""
    wishes: int = 10
    """Of the client at each broker."""
    common: float = 0.01
    """Of all wishes, those that are for what other sites publish."""
    events: int = 300
    """That the clients publish, all over the country."""
    as_sites: bool = True
    """Else all brokers are in one tree, over the same links."""
    rings: bool = False
    """Inside each site is a ring; else a tree."""


class Counted(msgspec.Struct, kw_only=True):
    """What was counted over the links between sites, unless it says otherwise."""

    events: int = 0
    due: int = 0
    """Events that had to cross: for each link, those that somebody beyond it wants."""
    statements: int = 0
    """Filters that were said to begin or end."""
    statements_everywhere: int = 0
    missing: int = 0
    """Deliveries that did not arrive."""
    unwanted: int = 0


class Country:
    """A chain of sites, in each a star of brokers around its gateway. It is a `Scene`: everybody stays where it is."""

    follows = True

    def __init__(self, seed: int, options: CountryOptions = CountryOptions()) -> None:  # noqa: B008
        self.options = options
        self.names = [
            [f"s{site}b{broker}" for broker in range(options.brokers)] for site in range(1, options.sites + 1)
        ]
        self.site_of = {name: f"site{at}" for at, names in enumerate(self.names, 1) for name in names}
        gateways = [names[0] for names in self.names]
        self.uplinks = set(pairwise(gateways))
        inside = [(names[0], other) for names in self.names for other in names[1:]]
        station = StationOptions(
            fabric=_fabric(options),
            sites=self.site_of if options.as_sites else {},
            gateways=tuple(gateways) if options.as_sites else (),
            handoff="reactive",
        )
        self.cluster = Cluster([*self.site_of], [*inside, *self.uplinks], seed, station)
        self.cluster.cables.spy = self._look
        self.said: dict[int, Said] = {}
        self.found = Counted()
        self.dice = self.cluster.streams.stream("country")
        for name, machine in self.cluster.sites.items():
            self._grant(machine.station, meaning(f"{self.site_of[name]}/#"))
        self.wishes = {name: self._wishes(name) for name in self.site_of}
        self.clients = {name: self._client(name) for name in self.site_of}

    @staticmethod
    def _grant(station: Station, publish: Filter) -> None:
        """Clients may publish what is of their site: that is what the site offers to others."""
        station.broker.offer((publish,))
        if isinstance(station.fabric, Gateway):
            station.fabric.offer((publish,))

    def _wishes(self, name: NodeId) -> list[str]:
        """Topics: of its own site, and a few of any other."""
        here = self.site_of[name]
        elsewhere = sorted({*self.site_of.values()} - {here})
        common = [self.dice.random() < self.options.common for _ in range(self.options.wishes)]
        return [f"{self.dice.choice(elsewhere) if far else here}/{self.dice.randrange(200)}" for far in common]

    def _client(self, name: NodeId) -> Roamer:
        wanted = {topic: Subscription(topic, topic, qos=2) for topic in self.wishes[name]}
        return Roamer(self, f"c-{name}", wanted, delay_s=0.001)

    def run(self) -> Counted:
        self.cluster.run(JOINED_S if self.options.rings else 5.0)
        for name, client in self.clients.items():
            client.come(name)
        self.cluster.run(2.0)
        for client in self.clients.values():
            client.want()
        self.cluster.run(10.0)
        for _ in range(self.options.events):
            self._publish()
            self.cluster.run(0.02)
        self.cluster.run(10.0)
        for name, client in self.clients.items():
            wanted = {n for n, said in self.said.items() if said.topic in self.wishes[name]}
            self.found.missing += len(wanted - client.counts.keys())
            self.found.unwanted += len(client.counts.keys() - wanted)
        return self.found

    def _publish(self) -> None:
        """Half of it what somebody wants that is far away, if there is anything."""
        far = [(name, topic) for name, topics in self.wishes.items() for topic in topics if self._is_far(name, topic)]
        name = self.dice.choice([*self.site_of])
        topic = f"{self.site_of[name]}/{self.dice.randrange(200)}"
        if far and self.dice.random() < 0.5:
            _, topic = self.dice.choice(far)
            name = self.dice.choice([one for one, site in self.site_of.items() if site == topic.partition("/")[0]])
        if self.clients[name].speak(topic, {}, 2) is not None:
            self.found.due += sum(self._must_cross(name, topic, link) for link in self.uplinks)

    def _is_far(self, name: NodeId, topic: str) -> bool:
        return topic.partition("/")[0] != self.site_of[name]

    def _must_cross(self, at: NodeId, topic: str, link: tuple[NodeId, NodeId]) -> bool:
        """By where sites lie in the chain, without any filter."""
        order = [*dict.fromkeys(self.site_of.values())]
        left, right = sorted(order.index(self.site_of[end]) for end in link)
        here = order.index(self.site_of[at])
        wanting = {order.index(self.site_of[name]) for name, topics in self.wishes.items() if topic in topics}
        return any(site >= right for site in wanting) if here <= left else any(site <= left for site in wanting)

    def _look(self, sender: NodeId, to: NodeId, message: Message) -> None:
        crosses = (sender, to) in self.uplinks or (to, sender) in self.uplinks
        stated = 0
        if isinstance(message, Enclosed):
            parts = message.message.parts if isinstance(message.message, Numbered) else (message.message,)
            stated = sum(len(part.filters) for part in parts if isinstance(part, Bsub))
        elif isinstance(message, Parcels):
            for item in (item for run in message.runs for item in decode_items(run)):
                self.found.events += crosses and isinstance(item.content, Publication)
                if isinstance(item.content, Outlook | Offered | Wanted):
                    stated += sum(1 for _ in filters_in(item.content))
        self.found.statements += stated if crosses else 0
        self.found.statements_everywhere += stated

    def note(self, who: str, to: str, text: str) -> None: ...

    def disturbed(self, since_s: float) -> bool:
        return False

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None: ...


def _fabric(options: CountryOptions) -> str:
    if not options.as_sites:
        return "tree"
    return "sites-dht" if options.rings else "sites"
