"""How a publication comes to its one matching broker, and what keeps the order of those for one cell (docs/ring.md,
"Order where a cell changes hands")."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.fabric.passages import Passages
from godwit.protocols.broker.fabric.ring.custody import Custody, Kept, Passes, Trails, way_of
from godwit.protocols.broker.fabric.ring.loops import Loops
from godwit.protocols.broker.fabric.ring.ways import HOPS_MAX
from godwit.protocols.broker.messages import Owned, Pass, Passed, Region, Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.gathering.areas import Keyed, Spot
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.fabric.ring.fabric import RingFabric


class Routes:
    def __init__(self, fabric: RingFabric) -> None:
        self.fabric = fabric
        self.host = fabric.host
        self.atlas = fabric.atlas
        self.targets = fabric.targets
        store, outbox = fabric.store, fabric.streams.sender.outbox
        bytes_max = fabric.options.streams.outbox_bytes_max
        self.custody = Custody(store, self.targets, self._cell_of, bytes_max)
        self.passes = Passes(store)
        self.trails = Trails(self.host, store, outbox, self.targets, fabric.options.pass_s)
        self.loops = Loops(self.host, store, self.targets, self._probe)
        self._passages = Passages(store, self.host.now())
        self.on_released: Callable[[Publication, NodeId], None] = lambda publication, owner: None
        """A publication that was kept here is sent to this broker."""

    def start(self) -> None:
        for one in self.passes.waiting.values():
            self.host.after(self.fabric.options.pass_s, partial(self.on_passed, Passed(one.ticket)))
        self.trails.start()

    def _cell_of(self, spot: Spot) -> str:
        region = self.atlas.owner(spot)
        return "" if region is None else region.prefix

    def look(self) -> None:
        """Call it now and then: something may go that had to wait."""
        self.trails.look()
        self.release()

    def confirmed(self) -> None:
        """Another broker has confirmed something."""
        if self.trails.look():
            self.fabric.changed()

    def reborn(self, broker: NodeId) -> None:
        """It has lost its disk, and with it what it had to pass on."""
        self.passes.end(lambda one: one.via == broker)
        self.loops.again()

    def _probe(self, routed: Routed) -> None:
        if self.route(routed) is None:
            self.match(routed)

    def route(self, routed: Routed) -> NodeId | None:
        """The broker to which it was sent, empty where it waits here; None where it is for this one to match."""
        target = self.targets.of_publication(routed.publication)
        if not self.custody.precedes(target):
            owner = self._open_owner(target)
            if owner == self.host.name:
                return None
            if owner:
                self._send_routed(owner, routed, target)
                return owner
        self._keep(routed, target)
        return ""

    def _keep(self, content: Routed | Pass, target: Keyed | Spot) -> None:
        self.fabric.counts.dropped_full += self.custody.add(content, target)
        self.fabric.search.soon()

    def _open_owner(self, target: Keyed | Spot) -> NodeId:
        """Who matches it at this moment; empty where nobody does, or nobody is known to."""
        region = self.atlas.owner(target)
        if region is None or self.fabric.membership.closes(target) or self.passes.closes(region):
            return ""
        if region.owner == self.host.name:
            return "" if self.fabric.replicas.restoring else region.owner
        if self.trails.closes(region):
            return ""
        if self.fabric.is_silent(region.owner):
            return ""  # what is in its stream is for it alone, and somebody may stand in for it by now
        return region.owner

    def _send_routed(self, owner: NodeId, routed: Routed, target: Keyed | Spot) -> None:
        region = self.atlas.owner(target)
        if region is not None:
            self.passes.sends(region)
        self.fabric.meet((owner,))
        self.fabric.send((owner,), routed, durable=routed.publication.qos > 0)

    def match(self, routed: Routed) -> None:
        """It is for this broker to find out who wants it. Two gateways may bring the same from another site."""
        publication = routed.publication
        if routed.probe and routed.by == self.host.name:
            self.loops.passed(routed.probe)
        elif routed.probe:
            self.fabric.meet((routed.by,))
            self.fabric.send((routed.by,), Passed(routed.probe))
        elif (
            routed.share is not None
            or publication.passage is None
            or self._passages.admit(publication.passage, self.host.now())
        ):
            self.fabric.on_routed(publication, routed.share)

    def on_routed(self, origin: NodeId, routed: Routed) -> None:
        target = self.targets.of_publication(routed.publication)
        owner = "" if self.custody.precedes(target) else self._open_owner(target)
        if owner == self.host.name or self._is_awaited(routed, target):
            self.match(routed)
            return
        on = msgspec.structs.replace(routed, hops=routed.hops + 1)
        if not owner or routed.hops >= HOPS_MAX:
            self._keep(on, target)
        else:
            self._send_routed(owner, on, target)
        region = self.atlas.owner(target)
        if region is not None and region.owner != self.host.name:
            self.fabric.send((origin,), Owned(0, (region,)), durable=False)

    def follow(self, publisher: str) -> list[int]:
        """Sends probes behind what is kept here of what this one said: their numbers, by which `loops.on_back` tells
        when what is before them is matched."""
        return self.loops.follow(self.custody.said_by(publisher))

    def _is_awaited(self, routed: Routed, target: Keyed | Spot) -> bool:
        """Whether it goes before what waits here: it was passed on, by whatever way, to this broker as the new owner of
        a cell. What comes straight from whoever took it was sent later."""
        region = self.atlas.owner(target)
        if not routed.hops or region is None or region.owner != self.host.name or self.fabric.replicas.restoring:
            return False
        is_closed = self.fabric.membership.closes(target) or self.custody.has_passed_on(target)
        return self.passes.closes(region) and not is_closed

    def release(self) -> None:
        self.custody.release(self._goes)

    def _goes(self, kept: Kept) -> bool:
        if isinstance(kept.content, Pass):
            return self._passes_on(kept.content)
        owner = self._open_owner(kept.target)
        if owner == self.host.name:
            self.match(kept.content)
        elif owner:
            self._send_routed(owner, kept.content, kept.target)
            self.on_released(kept.content.publication, owner)
        return bool(owner)

    def on_pass(self, message: Pass) -> None:
        """It waits behind what waits here for the cell, and goes where that goes."""
        on = msgspec.structs.replace(message, hops=message.hops + 1)
        region = message.region
        if region is not None and self.fabric.owns(way_of(region)):
            # Another may have stood in for this broker, which has not heard of it.
            self.fabric.learn((region,), said_by=message.by)
        if region is None:
            self._pass_on(on, message.to)
        elif message.by == self.host.name:
            self._answer_pass(message)  # it has been round: what waits here waits for this
        elif message.hops and self._has_matched(region):
            self._answer_pass(message)
        elif self.custody.has_for_others(region) or not self._passes_on(on):
            self._keep(on, way_of(region))

    def _has_matched(self, region: Region) -> bool:
        """Whether all that was passed on to this broker for the cell, its own, is matched. What else waits here waits
        for a `Pass` of this one: should who passes something on wait for that, each may wait for the other."""
        target = way_of(region)
        own = self.atlas.owner(target)
        if own is None or own.owner != self.host.name or not region.prefix.startswith(own.prefix):
            return False
        if self.fabric.membership.closes(target) or self.fabric.replicas.restoring:
            return False
        return self.passes.closes(own) and not self.custody.has_passed_on_for(region)

    def _passes_on(self, message: Pass) -> bool:
        assert message.region is not None, "kept are those that name the cell"
        to = self._way_behind(message.region) or self._open_owner(way_of(message.region))
        if to:
            self._pass_on(message, to)
        return bool(to)

    def _way_behind(self, region: Region) -> NodeId:
        """Where what was passed on from here for the cell has gone, if this broker waits for that itself. Were the
        `Pass` of another to wait for its own, each might wait for the other."""
        is_closed = self.fabric.membership.closes(way_of(region)) or self.trails.closes(region)
        return "" if is_closed or self.fabric.replicas.restoring else self.passes.way(region)

    def _pass_on(self, message: Pass, to: NodeId) -> None:
        if to == self.host.name or message.hops >= HOPS_MAX:
            self._answer_pass(message)
        else:
            self.fabric.meet((to,))
            self.fabric.send((to,), message)

    def _answer_pass(self, message: Pass) -> None:
        if message.by == self.host.name:
            self.on_passed(Passed(message.ticket))
        else:
            self.fabric.meet((message.by,))
            self.fabric.send((message.by,), Passed(message.ticket))

    def on_passed(self, passed: Passed) -> None:
        self.loops.passed(passed.ticket)
        self.passes.end(lambda one: one.ticket == passed.ticket)
        self.fabric.changed()

    def wait_for(self, region: Region) -> None:
        """A cell has a new owner, this broker perhaps: what was sent to another for it goes first."""
        ticket = self.fabric.next_serial()
        via = self.passes.begin(region, ticket)
        if via:
            self.fabric.send((via,), Pass(self.host.name, ticket, region.owner, region=region))
            self.host.after(self.fabric.options.pass_s, partial(self.on_passed, Passed(ticket)))
