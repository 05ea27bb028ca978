"""Two sessions of one client become one, and what both were owed is taken once: docs/broker.md, "If O is away".

The new session remembers, for each broker and each of its subscriptions, the first number of that broker's stream by
which something came for it. From that number on the broker knew of the subscription and sent all that it wants; so of
what the old session passes on, that much has been had.
"""

from __future__ import annotations

from godwit.protocols.broker.outlet import Subscription
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.sessions import Item, Session, Sub
from godwit.protocols.broker.topics import matches
from godwit.protocols.host import NodeId


def begin(session: Session) -> None:
    """It is new, and an older one may turn up."""
    session.firsts = {}
    session.review()


def note(session: Session, origin: NodeId, number: int, publication: Publication) -> bool:
    """This came for the session; whether that says something new."""
    firsts = session.firsts
    if firsts is None or not number:
        return False
    known = firsts.setdefault(origin, {})
    if len(known) >= len(session.subscriptions):
        return False
    found = [key for key, sub in session.subscriptions.items() if key not in known and _wants(sub, publication)]
    for key in found:
        known[key] = number
    return bool(found)


def subscribed(session: Session, wanted: Subscription, old: Sub | None, own: NodeId, next_number: int) -> None:
    """What is published at this broker itself, under its next number or a later one, comes for it from now on."""
    if session.firsts is None or (old is not None and _is_same(old.wanted, wanted)):
        return
    unsubscribed(session, wanted.key)
    session.firsts.setdefault(own, {})[wanted.key] = next_number


def unsubscribed(session: Session, key: str) -> None:
    for known in (session.firsts or {}).values():
        known.pop(key, None)


def had(session: Session, item: Item) -> bool:
    """Whether what an older session passes on has come for this one by itself, or is sure to."""
    if not session.firsts or item.stamp is None:
        return False
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
