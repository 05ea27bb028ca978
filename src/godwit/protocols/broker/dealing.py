"""Which member of a shared group gets an event: one in the whole fabric (docs/broker.md, "Shared subscriptions").

Whoever matches the event chooses a broker among those that state members of the group, and sends it there alone. A
broker without such a member passes it on, so it ends where a member is, or where nobody states one any longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

from godwit.protocols.broker.fabric.passages import DEALT, Passage, Passages
from godwit.protocols.broker.interest.subscribers import Group
from godwit.protocols.broker.messages import Dealt, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.memory import wants
from godwit.protocols.broker.session.state import GroupKey
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.dispatch import Switch


class Dealing:
    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self._had = Passages(switch.store, switch.host.now(), dealt=True)
        """What a bridge or gateway has brought and a member had here: another one may bring it too."""

    def decide(self, publication: Publication, share: Share) -> NodeId | None:
        """Give it to a member here, or to a broker that states one: first to one that is connected, then to any. Those
        are asked first to which there is a way. The broker that has it now; None where nobody states a member."""
        fabric, here = self.switch.fabric, self.switch.name
        seats = self.switch.audiences.seats(share.group)
        some = (*seats, here) if self.switch.audiences.group(share.group) is not None else tuple(seats)
        names = ranked(publication, share.group, some)
        for settle in (True,) if share.settle or len(names) < 2 else (False, True):
            tried = dict(share.tried) if settle is share.settle else {}
            untried = [one for one in names if one == here or one not in tried or fabric.heard(one) > tried[one]]
            near = [name for name in untried if name == here or not fabric.is_silent(name)]
            far = [name for name in untried if settle and name not in near]
            for name in (*near, *far):
                if name != here:
                    tried[name] = fabric.heard(name)
                    self._send(name, Dealt(publication, Share(share.group, tuple(tried.items()), settle)))
                    return name
                if self._share(here, publication, share.group, settle=settle):
                    return name
        return None

    def _send(self, to: NodeId, dealt: Dealt) -> None:
        durable = dealt.publication.qos > 0
        self.switch.counts.forwarded += 1
        self.switch.ledger.writes += durable
        self.switch.fabric.send((to,), dealt, durable=durable)

    def take(self, origin: NodeId, publication: Publication, share: Share) -> None:
        """Another broker has chosen this one."""
        if not self._share(origin, publication, share.group, settle=share.settle):
            self._search(publication, share)

    def hand_on(self, publication: Publication, key: GroupKey) -> bool:
        """The member that had it is no more, and has not got it. False where nobody else is known to be one."""
        return self._share(self.switch.name, publication, key, settle=False) or self._search(publication, Share(key))

    def _search(self, publication: Publication, share: Share) -> bool:
        if self.switch.fabric.deals and self.switch.fabric.route(publication, share) is not None:
            self.switch.ledger.writes += publication.qos > 0
            return True
        return self.decide(publication, share) is not None

    def _share(self, origin: NodeId, publication: Publication, key: GroupKey, *, settle: bool) -> bool:
        """Whether that is the end of it: a member here has it, or has had it, or nobody in the group wants it."""
        name = _passage(publication, key)
        if name is not None and name in self._had:
            return True
        group = self.switch.audiences.group(key)
        if group is None:
            return False
        if not wants(next(iter(group.members)), publication):
            return True
        if not self.share(group, origin, publication, settle=settle):
            return False
        if name is not None:
            self._had.admit(name, self.switch.host.now())
        return True

    def share(self, group: Group, origin: NodeId, publication: Publication, *, settle: bool = True) -> bool:
        """To the member here whose turn it is, wherever its session is by now: nobody else has it. False where there is
        none."""
        switch = self.switch
        sub = group.pick(publication.qos, switch.may_have, settle=settle)
        if sub is None:
            return False
        wanted = sub.wanted
        identifiers = (wanted.identifier,) if wanted.identifier else ()
        qos, retain = min(publication.qos, wanted.qos), publication.is_shown_retained(wanted.retain_as_published)
        switch.give(sub.session, origin, publication, qos, retain, identifiers, None, group.key)
        return True


def ranked(publication: Publication, key: GroupKey, brokers: Iterable[NodeId]) -> list[NodeId]:
    """In which order they are asked: even among events, and the same for one event wherever it is asked."""
    name = repr((publication.passage or publication.id, key))

    def weight(broker: NodeId) -> bytes:
        return blake2b(f"{name} {broker}".encode("utf-8", "surrogatepass"), digest_size=8).digest()

    return sorted(dict.fromkeys(brokers), key=weight)


def _passage(publication: Publication, key: GroupKey) -> Passage | None:
    if publication.passage is None:
        return None
    line, number = publication.passage
    return f"{DEALT}{'/'.join(key)} {line}", number
