"""Two sessions of one client become one, and what both were owed is taken once: docs/broker.md, "If O is away".

When the new session subscribes, every broker is asked to turn to it, under a mark instead of an epoch. What a broker
sends after its `Turned` it sends here too, if the subscription wants it; so of what the old session passes on, that
much has been had.
"""

from __future__ import annotations

from godwit.protocols.broker.outlet import Subscription
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.sessions import Item, Session, Sub
from godwit.protocols.broker.topics import matches
from godwit.protocols.host import NodeId

SEEN_MAX = 10_000


def begin(session: Session) -> None:
    """It is new, and an older one may turn up."""
    session.firsts = {}
    session.review()


def came(session: Session, stamp: tuple[NodeId, int] | None) -> None:
    """Before a broker has turned it may know of a subscription: what comes until then is remembered one by one."""
    if session.firsts is None or stamp is None or len(session.seen) >= SEEN_MAX:
        return
    if len(session.firsts.get(stamp[0], ())) < len(session.subscriptions):
        session.seen.add(stamp)


def subscribed(session: Session, wanted: Subscription, old: Sub | None, own: NodeId, number: int, now: float) -> int:
    """Under which mark the others are to turn; 0 where nobody need. What is published here under this number or a
    later one comes from now on."""
    if session.firsts is None or (old is not None and _is_same(old.wanted, wanted)):
        return 0
    unsubscribed(session, wanted.key)
    session.firsts.setdefault(own, {})[wanted.key] = number
    # Far below every epoch, and never used again after a crash.
    mark = max((*session.marks, int(now * 10))) + 1
    session.marks[mark] = wanted.key
    return mark


def unsubscribed(session: Session, key: str) -> None:
    for known in (session.firsts or {}).values():
        known.pop(key, None)
    session.marks = {mark: other for mark, other in session.marks.items() if other != key}


def turned(session: Session, origin: NodeId, mark: int, number: int) -> bool:
    """That broker has said so under this number of its stream; whether it was asked for."""
    key = session.marks.get(mark)
    if session.firsts is None or key is None:
        return False
    session.firsts.setdefault(origin, {}).setdefault(key, number)
    return True


def had(session: Session, item: Item) -> bool:
    """Whether what an older session passes on has come for this one by itself, or is sure to."""
    if not session.firsts or item.stamp is None:
        return False
    if item.stamp in session.seen:
        return True
    origin, number = item.stamp
    known, subs = session.firsts.get(origin, {}), session.subscriptions
    return any(number >= first and _wants(subs[key], item.publication) for key, first in known.items() if key in subs)


def _is_same(one: Subscription, other: Subscription) -> bool:
    return (one.topics, one.condition, one.group, one.no_local) == (
        other.topics,
        other.condition,
        other.group,
        other.no_local,
    )


def _wants(sub: Sub, publication: Publication) -> bool:
    """Members of a group get their share only: that says nothing of the rest."""
    wanted = sub.wanted
    if wanted.group or (wanted.no_local and publication.publisher == sub.session.client):
        return False
    return matches(wanted.topics, publication.topic) and (
        sub.condition is None or sub.condition.matches(publication.values())
    )
