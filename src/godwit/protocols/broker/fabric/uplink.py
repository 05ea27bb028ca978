"""One uplink, as a gateway sees it: what the other side has said, and what it was told (docs/sites.md)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.messages import SITES_MAX, Content, Filters, Outlook, Path, Paths, Repeated
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

OWNER = "uplink "
"""Before the name of the peer: the owner of the row of an uplink in `meta`."""


class View(msgspec.Struct, frozen=True, array_like=True):
    """What one side has said in all its outlooks together; of the other side it is on the disk."""

    site: str = ""
    number: int = 0
    paths: Paths = ()
    offered: Filters = ()
    wanted: Filters = ()
    acts: bool = False
    leads: bool = False

    def after(self, outlook: Outlook) -> View | None:
        """None where it changes something that is not known here."""
        if outlook.base not in (0, self.number):
            return None
        was = View() if not outlook.base else self
        return View(
            outlook.site,
            outlook.number,
            outlook.paths,
            _changed(was.offered, outlook.unoffered, outlook.offered),
            _changed(was.wanted, outlook.unwanted, outlook.wanted),
            outlook.acts,
            outlook.leads,
        )

    def outlook_to(self, now: View) -> Outlook | None:
        """What must be said so that this is known; None where it is. Without a number so far it is all."""
        if self._content == now._content and self.number:
            return None
        offered, wanted = now.offered, now.wanted
        return Outlook(
            self.site,
            now.number,
            self.number,
            now.paths,
            _without(self.offered, offered),
            _without(offered, self.offered),
            _without(self.wanted, wanted),
            _without(wanted, self.wanted),
            now.acts,
            now.leads,
        )

    @property
    def _content(self) -> tuple[object, ...]:
        return self.paths, set(self.offered), set(self.wanted), self.acts, self.leads


def _without(some: Filters, others: Filters) -> Filters:
    gone = set(others)
    return tuple(one for one in some if one not in gone)


def _changed(was: Filters, removed: Filters, added: Filters) -> Filters:
    return tuple(dict.fromkeys((*_without(was, removed), *added)))


Stalled = list[tuple[int, Content | Repeated]]
"""Contents with their numbers in the stream."""


class Crossings(msgspec.Struct):
    """Of one uplink since the start of its gateway."""

    events_out: int = 0
    events_in: int = 0
    outlooks_out: int = 0
    outlooks_in: int = 0
    filters_out: int = 0
    """Filters that began or ended in what was stated there."""
    filters_in: int = 0
    repeated: int = 0
    """Events that had come another way, or were our own."""
    refused: int = 0
    """Contents that have no business on an uplink."""


class Uplink:
    """To one gateway of another site."""

    def __init__(self, peer: NodeId, here: str, heard: View) -> None:
        self.peer = peer
        self.here = here
        """The name of our own site."""
        self.heard = heard
        self.told = View(here)
        self.up = False
        self.up_since_s = 0.0
        self.disk = 0
        """The name of the other's disk, once it has been heard."""
        self.dropped = 0
        """How much of what was for it had been dropped when it was told all the last time."""
        self.acts = False
        """Whether events and wishes cross here, and not at another gateway of our site."""
        self.stalled: Stalled | None = None
        """What has come and waits behind a cut, with its numbers; None where nothing does."""
        self.counts = Crossings()

    @property
    def site(self) -> str:
        return self.heard.site

    @property
    def cycle(self) -> Path:
        """The way on which this uplink leads back to our own site, with both ends; empty where it does not."""
        for path in self.heard.paths:
            if self.here in path:
                return (self.here, *path[: path.index(self.here) + 1])
        return ()

    @property
    def is_refused(self) -> bool:
        """Of a cycle the link between the two sites that are last in the alphabet carries nothing: all agree on it."""
        cycle = self.cycle
        if not cycle:
            return False
        links = [tuple(sorted(pair)) for pair in pairwise(cycle)]
        return tuple(sorted((self.here, self.site))) == max(links)

    @property
    def offered(self) -> Filters:
        return () if self.is_refused else self.heard.offered

    @property
    def wanted(self) -> Filters:
        """What may be sent there now."""
        return () if self.is_refused or not self.acts else self.heard.wanted

    @property
    def paths(self) -> Paths:
        return () if self.is_refused else self.heard.paths

    def hear(self, outlook: Outlook) -> bool:
        """False where it changes something that is not known here."""
        view = self.heard.after(outlook)
        if view is None:
            return False
        self.heard = view
        self.counts.outlooks_in += 1
        self.counts.filters_in += _size(outlook)
        return True

    def tell(
        self, paths: Paths, offered: Filters, wanted: Filters, number: int, *, leads: bool = False
    ) -> Outlook | None:
        """The next outlook, or None where there is nothing new. With it the other side knows these."""
        now = View(self.here, number, paths, offered, wanted, self.acts, leads)
        outlook = self.told.outlook_to(now)
        if outlook is None:
            return None
        self.told = now
        self.counts.outlooks_out += 1
        self.counts.filters_out += _size(outlook)
        return outlook

    def tell_anew(self) -> None:
        """Whatever was told may be lost."""
        self.told = View(self.here)


def _size(outlook: Outlook) -> int:
    return sum(map(len, (outlook.unoffered, outlook.offered, outlook.unwanted, outlook.wanted)))


def paths_through(here: str, behind: Iterable[Path], besides: str) -> Paths:
    """What is told to a site of the ways that lead through ours: to us, and on from here by another uplink. One that
    leads back to that site is told too: so it hears of a cycle."""
    onward = {(here, *path) for path in behind if path[0] != besides and here not in path}
    return ((here,), *sorted(onward, key=lambda path: (len(path), path)))[:SITES_MAX]


def put(store: Store, uplink: Uplink) -> None:
    store.put("meta", OWNER + uplink.peer, 0, msgspec.msgpack.encode(uplink.heard))


def loaded(store: Store, here: str) -> dict[NodeId, Uplink]:
    """Those that were known at the last start."""
    rows = [(owner.removeprefix(OWNER), row) for owner, _, row in store.load("meta") if owner.startswith(OWNER)]
    return {peer: Uplink(peer, here, msgspec.msgpack.decode(row, type=View)) for peer, row in rows}


def told_to(filters: Iterable[Filter]) -> Filters:
    """In one order, whatever tables make of it."""
    return tuple(sorted(filters, key=repr))
