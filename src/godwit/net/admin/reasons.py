"""Answers to questions about one client: may it, would it, and why did it not?"""

from __future__ import annotations

from godwit.events import Value
from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.net.admin.rows import SubscriptionTrial, TakerRow, Verdict, Wanting, Why
from godwit.net.admin.sessions import found, state_of
from godwit.net.admin.trail import Trail
from godwit.net.admin.watch import Watch, named
from godwit.net.server import Parts
from godwit.protocols.broker import topics
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.session.state import Sub

TAKERS_SHOWN = 200


class QuestionError(ValueError):
    """It cannot be answered; the text says what would be right."""


def offered(parts: Parts, topic: str, payload: str, publisher: str = "") -> Publication:
    if problem := topics.problem_of_name(topic):
        raise QuestionError(problem)
    return Publication(publisher, 0, topic, payload.encode(), time=parts.broker.clock())


def parsed(text: str) -> FilterSet:
    from godwit.filters.text import parse  # takes a while to load, and few ask

    try:
        return parse(text)
    except FilterError as error:
        raise QuestionError(str(error)) from None


def wanting(parts: Parts, topic: str, payload: str) -> Wanting:
    """Who would get it, with the broker's own index."""
    publication = offered(parts, topic, payload)
    found_subs, brokers = parts.broker.wanting(publication)
    # A copy of another broker's session is none, and a shadow only passes on.
    subs = [sub for sub in found_subs if sub.session.copy is None and sub.session.standing.state is not State.SHADOW]
    return Wanting(
        total=len({sub.session.client for sub in subs}),
        takers=[
            TakerRow(
                client=sub.session.client,
                state=state_of(sub.session),
                key=sub.wanted.key,
                condition=sub.wanted.condition,
                shared=bool(sub.wanted.group),
            )
            for sub in subs[:TAKERS_SHOWN]
        ],
        brokers=sorted(brokers),
    )


def may(parts: Parts, user: str, act: str, topic: str, condition: str, payload: str) -> Verdict:
    """May this user publish such an event, or subscribe to these topics with this condition?"""
    grant = parts.access.grant_of(user)
    if grant is None:
        return Verdict(may=False, because=f"there is no user {user!r}")
    if act == "publish":
        publication = offered(parts, topic, payload)
        return _verdict(grant.publish, grant.publish is None or grant.publish.matches(publication.values()), "publish")
    if act != "subscribe":
        raise QuestionError(f"act {act!r}; right would be publish or subscribe")
    if problem := topics.problem_of_filter(topic):
        raise QuestionError(problem)
    wish = wanted_filters(topic, parsed(condition) if condition else None)
    return _verdict(grant.subscribe, grant.subscribe is None or grant.subscribe.covers(wish), "subscribe")


def _verdict(granted: FilterSet | None, allowed: bool, act: str) -> Verdict:
    if granted is None:
        return Verdict(may=True, because=f"it may {act} everything")
    if not tuple(granted):
        return Verdict(may=False, because=f"it may {act} nothing")
    how = "matches" if act == "publish" else "covers"
    return Verdict(may=allowed, because=f"a grant {how} it" if allowed else f"no grant {how} it")


def why(parts: Parts, client: str, event: str, payload: str, topic: str, watch: Watch, trail: Trail) -> Why:
    """What this broker knows of the event and the client. `event` is publisher:sequence; without one, topic and payload
    say what it would be like."""
    publisher, _, number = event.rpartition(":")
    if event and not number.isdecimal():
        raise QuestionError(f"event {event!r}; right would be publisher:sequence, as traces name it")
    row = watch.found(event) if event else None
    values = dict(row.values) if row is not None else None
    about_topic = row.topic if row is not None else topic
    if values is None and topic:
        values = dict(offered(parts, topic, payload).values())
    session = found(parts, client)
    admitted = parts.access.rights(client)
    granted = admitted.grant.subscribe if admitted is not None else FilterSet()
    queued = session is not None and any(
        named(item.label.id) == event for item in (*session.queue.waiting, *session.queue.flying.values())
    )
    return Why(
        broker=parts.identity.name,
        now=parts.broker.clock(),
        traced_since=trail.since,
        event=row,
        trace=trail.about(client, (publisher, int(number))) if event else [],
        state=state_of(session) if session is not None else "",
        moved_to=session.standing.moved_to if session is not None else "",
        waiting=queued,
        subscriptions=[_tried(sub, about_topic, values) for sub in session.subscriptions.values()] if session else [],
        permitted=granted is None or values is None or granted.matches(values),
        wanted_by=_wanted_by(parts, values),
    )


def _wanted_by(parts: Parts, values: dict[str, Value] | None) -> dict[str, bool] | None:
    """In a ring the matching brokers know what others want, and not every broker."""
    if parts.ring is not None:
        return None
    return {
        name: values is not None and any(one.matches(values) for one in filters)
        for name, filters in sorted(parts.fabric.interests.items())
    }


def _tried(sub: Sub, topic: str, values: dict[str, Value] | None) -> SubscriptionTrial:
    wanted = sub.wanted
    if values is None:
        return SubscriptionTrial(
            key=wanted.key, condition=wanted.condition, topic_fits=False, fits=False, because="the event is not known"
        )
    topic_fits = topics.meaning(wanted.topics).matches(values)
    if not topic_fits:
        because = f"topic {topic!r} is not one of {wanted.topics!r}"
        return SubscriptionTrial(
            key=wanted.key, condition=wanted.condition, topic_fits=False, fits=False, because=because
        )
    if sub.condition is None:
        return SubscriptionTrial(key=wanted.key, condition="", topic_fits=True, fits=True, because="")
    from godwit.filters.explanation import trial  # takes a while to load, and few ask

    tried = trial(sub.condition, values)
    failed = next((one for one in tried.alternatives if not one.matches), None)
    because = "" if tried.matches or failed is None else f"fails at {failed.failed}: {failed.because}"
    return SubscriptionTrial(
        key=wanted.key, condition=wanted.condition, topic_fits=True, fits=tried.matches, because=because
    )
