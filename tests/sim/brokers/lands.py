"""Small countries of sites, with clients that are where the test puts them."""

from __future__ import annotations

from godwit.filters.filters import Filter
from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.fabric.gateway import Gateway
from godwit.protocols.host import NodeId
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Roamer, Said


class Land:
    """Brokers are named by their site's letter and a number; links between letters are uplinks. Inside each site there
    is a tree, or a ring with the fabric `sites-dht`."""

    follows = True

    def __init__(self, links: str, seed: int = 1, fabric: str = "sites") -> None:
        pairs = [(pair.split("-")[0], pair.split("-")[1]) for pair in links.split()]
        names = sorted({name for pair in pairs for name in pair})
        self.site_of = {name: name[0].upper() for name in names}
        gateways = [name for name in names if any(name in pair and pair[0][0] != pair[1][0] for pair in pairs)]
        options = StationOptions(fabric=fabric, sites=self.site_of, gateways=tuple(gateways))
        self.cluster = Cluster(names, pairs, seed, options)
        self.said: dict[int, Said] = {}
        self.cluster.run(5.0)

    def client(self, name: str, at: NodeId, *topics: str) -> Roamer:
        made = Roamer(self, name, {one: Subscription(one, one, qos=2) for one in topics}, delay_s=0.001)
        made.come(at)
        self.cluster.run(3.0)
        return made

    def gateway(self, name: NodeId) -> Gateway:
        fabric = self.cluster.sites[name].station.fabric
        assert isinstance(fabric, Gateway)
        return fabric

    def offer(self, name: NodeId, *filters: Filter) -> None:
        station = self.cluster.sites[name].station
        station.broker.offer(filters)
        if isinstance(station.fabric, Gateway):
            station.fabric.offer(filters)
        self.cluster.run(1.0)

    def run(self, for_s: float) -> None:
        self.cluster.run(for_s)

    def note(self, who: str, to: str, text: str) -> None: ...

    def disturbed(self, since_s: float) -> bool:
        return False

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None: ...
