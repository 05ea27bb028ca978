"""What may join brokers in the simulator, and how a world is built for it.

To plug in another fabric: a function that weaves it on one machine, what it promises, and a line in `FABRICS`. Then
`godwit explore --fabric NAME` runs it under faults, and judges hold it to its promises.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any

import msgspec

from godwit.protocols.broker.fabric import adhoc
from godwit.protocols.broker.fabric.adhoc import AdhocFabric
from godwit.protocols.broker.fabric.base import Fabric, Streamless
from godwit.protocols.broker.fabric.gateway import Gateway, SiteOptions
from godwit.protocols.broker.fabric.ring.fabric import RingFabric, RingOptions
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.handoff.directory import Directory
from godwit.protocols.broker.handoff.homes import CareOf, Hashed
from godwit.protocols.broker.streams import frames
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.disk import SimStore
from godwit.sim.brokers.options import StationOptions
from godwit.sim.world import Node


class Ground(msgspec.Struct, frozen=True):
    """The machine that a fabric is woven on, for one life of its broker."""

    node: Node
    store: SimStore
    clock: Callable[[], float]
    """Seconds since 1970, as this machine believes."""
    options: StationOptions


class Woven(msgspec.Struct, frozen=True):
    """What a broker is made with."""

    fabric: Fabric
    brokers: Callable[[], Collection[NodeId]]
    """The others that are known here, to whom copies may go."""
    directory: Directory | None = None
    """None: every broker is told where sessions are."""


class Promises(msgspec.Struct, frozen=True, kw_only=True):
    """What judges hold a fabric to, beyond what holds for all of them; docs/explore.md."""

    follows: bool = True
    """Sessions go where their clients go. Else each broker keeps one for each client that was there."""
    outlives: bool = True
    """A crash loses nothing that was acknowledged. Else it takes along what was on its way between brokers."""
    confined: bool = True
    """What nobody wants crosses no link."""
    retains: bool = True
    """Whoever asks, at whichever broker, is told the same retained publications in the end. Else a broker only has
    those that somebody wanted there."""
    replicated: bool = True
    """What was retained is at several brokers, so that a lost disk takes along only what it had not passed on."""
    ordered: bool = True
    """Order holds whatever goes wrong. Else only where nothing does, there is one way, and the subscriber stays."""
    by_level: bool = False
    """Order holds among topics with the same first level only."""
    prompt: bool = True
    """Who acknowledges something retained shows that from then on. Else its matching broker has to be heard first."""


class FabricKind(msgspec.Struct, frozen=True, kw_only=True):
    weave: Callable[[Ground], Woven]
    encode: Callable[[Any], bytes] = frames.encode
    decode: Callable[[bytes], Message] = frames.decode
    """What links carry are bytes."""
    promises: Promises = Promises()


def tree(ground: Ground) -> Woven:
    node, options = ground.node, ground.options
    fabric = TreeFabric(node, ground.store, options.tree)
    homes = options.homes
    directory = CareOf(node, fabric, Hashed(node.name, fabric, homes)) if homes else None
    return Woven(fabric, lambda: fabric.brokers, directory)


def ring(ground: Ground) -> Woven:
    node, options = ground.node, ground.options
    fabric = RingFabric(node, ground.store, _ring_options(node.name, options, options.first))
    return Woven(fabric, lambda: fabric.brokers, CareOf(node, fabric, fabric))


def _ring_options(name: NodeId, options: StationOptions, first: NodeId) -> RingOptions:
    founds = name == first if options.founds is None else options.founds
    return msgspec.structs.replace(options.ring, place=place_of(name), first=founds)


def place_of(name: NodeId) -> Point:
    """Where a broker of this name stands, in all its lives: longitude and latitude."""
    dice = Random(name)
    return dice.uniform(-180.0, 180.0), dice.uniform(-85.0, 85.0)


def air(ground: Ground) -> Woven:
    """Whoever is linked hears the other; what is said is said to all of them."""
    return Woven(
        Streamless(AdhocFabric(ground.node, ground.store, ground.options.air, ground.clock)), lambda: frozenset()
    )


class SimGateway(Gateway):
    """A gateway that is told of all links alike: those to brokers of other sites are its uplinks."""

    def __init__(
        self, inner: TreeFabric | RingFabric, store: SimStore, options: SiteOptions, sites: Mapping[NodeId, str]
    ) -> None:
        super().__init__(inner, store, options)
        self.sites = sites

    def linked(self, peer: NodeId) -> None:
        if self.sites[peer] == self.options.site:
            super().linked(peer)
        else:
            self.reached(peer)

    def unlinked(self, peer: NodeId) -> None:
        if self.sites[peer] == self.options.site:
            super().unlinked(peer)
        else:
            self.unreached(peer)


def site(ground: Ground) -> Woven:
    """A tree inside each site, and uplinks between those of their brokers that are gateways."""
    fabric = TreeFabric(ground.node, ground.store, ground.options.tree)
    return Woven(_seated(ground, fabric), lambda: fabric.brokers)


def ringed_site(ground: Ground) -> Woven:
    """A ring inside each site, or one of all brokers where there are no sites."""
    node, options = ground.node, ground.options
    here = [name for name, site in options.sites.items() if site == options.sites.get(node.name)]
    first = min(here, default=options.first)
    fabric = RingFabric(node, ground.store, _ring_options(node.name, options, first))
    return Woven(_seated(ground, fabric), lambda: fabric.brokers, CareOf(node, fabric, fabric))


def _seated(ground: Ground, fabric: TreeFabric | RingFabric) -> Fabric:
    """With uplinks, where its broker is a gateway."""
    node, options = ground.node, ground.options
    if node.name not in options.gateways:
        return fabric
    here = options.sites[node.name]
    fellows = tuple(one for one in options.gateways if options.sites[one] == here)
    seat = SiteOptions(site=here, gateways=fellows, takeover_s=options.takeover_s)
    return SimGateway(fabric, ground.store, seat, options.sites)


FABRICS: dict[str, FabricKind] = {
    "tree": FabricKind(weave=tree),
    "dht": FabricKind(weave=ring, promises=Promises(confined=False, by_level=True, prompt=False)),
    "adhoc": FabricKind(
        weave=air,
        encode=adhoc.encode,
        decode=adhoc.decode,
        promises=Promises(follows=False, outlives=False, confined=False, retains=False, ordered=False),
    ),
    "sites": FabricKind(weave=site),
    "sites-two": FabricKind(weave=site, promises=Promises(ordered=False)),
    "sites-dht": FabricKind(
        weave=ringed_site, promises=Promises(confined=False, replicated=False, by_level=True, prompt=False)
    ),
}
"""By the name that `--fabric` takes."""
