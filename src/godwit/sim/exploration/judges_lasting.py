"""Judges of what lasts: questions, what is past, and bounded rates. They hear what clients were told and got, and know
the promises of docs/lasting.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from godwit.protocols.broker.session.retained import Last
from godwit.sim.brokers.cluster import Machine
from godwit.sim.brokers.picture import Picture
from godwit.sim.brokers.roamer import SPREAD_S, Roamer, Said, Told
from godwit.sim.exploration.findings import SHOWN_MAX, Finding, counts, is_certain, shown
from godwit.sim.exploration.plan import Ask, Skew, Wish

if TYPE_CHECKING:
    from godwit.sim.exploration.trial import Trial


def misled(trial: Trial) -> Iterator[Finding]:
    """What a client makes of the changes that it was told is what is retained where it is, and numbers are used once.

    One that comes without what it was given, or with something older, may be taken for what it was before."""
    for roamer in trial.subscribers:
        asks = trial.cards[roamer.name].asks
        if not asks or roamer.was_blind or roamer.connection is None:
            continue
        site = trial.cluster.sites[roamer.connection.site.name]
        things = _things(site)
        for question, ask in enumerate(asks, 1):
            picture = roamer.pictures.get(("" if trial.follows else site.name, question), Picture())
            if picture.wrong:
                yield Finding("misnumbered", roamer.name, "; ".join(picture.wrong[:SHOWN_MAX]))
            expected = {topic: thing.payload for topic, thing in things.items() if answers(ask, topic, things)}
            known = {topic: expected.get(topic, b"?") for topic in picture.known} if ask.quiet else picture.known
            if known != expected:
                wrong = sorted({*known.items()} ^ {*expected.items()})
                yield Finding("misled", roamer.name, f"at {site.name} about {wrong[:SHOWN_MAX]}")


class Thing(msgspec.Struct, frozen=True):
    """What is retained of a topic: its content, and where it is; over a range where it has a profile."""

    payload: bytes
    content: Mapping[str, Any]
    low: float | None
    width: float


def _things(site: Machine) -> dict[str, Thing]:
    """By brute force over the rows of a disk."""
    now, found = site.broker.steady(), dict[str, Thing]()
    for (topic, _), row in site.node.disk.get("disk", {}).get("retained", {}).items():
        last = msgspec.msgpack.decode(row, type=Last).publication
        if last.payload and (last.expires is None or now < last.expires):
            content = msgspec.json.decode(last.payload)
            low, width = content.get("x"), 0.0
            if profile := dict(last.properties.user).get("profile"):
                words = profile.split()
                low, width = float(words[2]), float(words[6]) - float(words[2])
            found[topic] = Thing(last.payload, content, low, width)
    return found


def answers(ask: Ask, topic: str, things: Mapping[str, Thing]) -> bool:
    """Whether a thing answers a question, by arithmetic and without any filter."""
    thing = things[topic]
    if not ask.wants(topic, thing.content["warm"]):
        return False
    return (ask.low is None or _is_within(ask, thing)) and (not ask.near or _is_near(ask, topic, things))


def _is_within(ask: Ask, thing: Thing) -> bool:
    if thing.low is None or ask.low is None:
        return False
    if not thing.width:
        return ask.low <= thing.low < ask.high
    end = thing.low + thing.width
    return ask.low <= thing.low and end <= ask.high if ask.cover else ask.low < end and thing.low < ask.high


def _is_near(ask: Ask, topic: str, things: Mapping[str, Thing]) -> bool:
    thing, other = things[topic], things.get(ask.near)
    if topic == ask.near or other is None or "lon" not in thing.content or "lon" not in other.content:
        return False
    return bool(abs(thing.content["x"] - other.content["x"]) <= ask.reach)


def historical(trial: Trial) -> Iterator[Finding]:
    """Who was away is told the difference: nothing that was said while brokers knew that it was away, and had been
    replaced before one let it in. The client hears later that it is in, and may never hear it: what has left for it by
    then cannot be taken back."""
    if trial.wiped:
        return
    by_topic: dict[str, list[Said]] = {}
    for said in trial.said.values():
        if said.retain and said.qos and said.accepted:
            by_topic.setdefault(said.topic, []).append(said)
    for roamer in trial.subscribers:
        past = [
            told.n
            for told in (() if roamer.was_blind else roamer.changes)
            if told.n and _was_replaced(trial, trial.said[told.n], told, by_topic.get(told.topic, ()))
        ]
        if past:
            yield Finding("history", roamer.name, f"was told of {shown(past)}, which had been replaced before it came")


def _was_replaced(trial: Trial, said: Said, told: Told, others: Iterable[Said]) -> bool:
    """Whether the broker that told it had acknowledged both it and a newer one while the client was away; and knew what
    it then had to show, where another broker says that."""
    newer = [one for one in others if one.at == said.at == told.at and one.time_s > said.accepted_s]
    return said.time_s > told.away_s and any(_shown_s(trial, one) < told.opened_s for one in newer)


def _shown_s(trial: Trial, said: Said) -> float:
    return said.accepted_s if trial.promises.prompt else trial.calm_after(said.accepted_s)


# What is past.


def unrecalled(trial: Trial) -> Iterator[Finding]:
    """All that was published since the moment that it asked for, whatever became of its session: who is told that it
    has none asks again."""
    for roamer, since_s in _recalling(trial):
        due = [
            said
            for said in trial.said.values()
            if said.time_s >= since_s and trial.wants(roamer, said) and is_certain(trial, roamer, said)
        ]
        missing = [said.n for said in due if not roamer.counts[said.n]]
        if missing:
            yield Finding("lost", roamer.name, f"never got of the past or since {shown(missing)}")


def outside(trial: Trial) -> Iterator[Finding]:
    """Nothing that was published before."""
    for roamer, since_s in _recalling(trial):
        early = [n for n in roamer.counts if _is_earlier(trial, trial.said[n], since_s) and counts(trial, n)]
        if early:
            yield Finding("unwanted", roamer.name, f"asked for what is newer than {shown(early)}")


def _is_earlier(trial: Trial, said: Said, since_s: float) -> bool:
    """Whether it was published before, and not said again since. What came late to the broker that matches it is as new
    as what is published now."""
    return _shown_s(trial, said) < since_s and said.archived == 1


def _recalling(trial: Trial) -> Iterator[tuple[Roamer, float]]:
    for name, since_s in trial.recalled_s.items():
        yield trial.roamers[name], since_s


# What comes now and then.


def outdated(trial: Trial) -> Iterator[Finding]:
    """Of each topic the newest comes in the end: nothing that its publisher said there afterwards, for sure."""
    for roamer in _paced(trial):
        newest: dict[str, Said] = {}
        for n in roamer.order:
            newest[trial.said[n].topic] = trial.said[n]
        due = _due_now_and_then(trial, roamer)
        missing = [
            said.n
            for said in due
            if said.topic not in newest or (said.n not in roamer.counts and _follows(said, newest[said.topic]))
        ]
        if missing:
            yield Finding("lost", roamer.name, f"never got {shown(missing)}, nor anything newer of the same topic")


def _due_now_and_then(trial: Trial, roamer: Roamer) -> Iterator[Said]:
    from_s = max([roamer.clean_s, roamer.forfeited_s, *(gap.until_s for gap in roamer.bond.gaps)])
    calm_s = trial.calm_after(from_s) if from_s > 0 else from_s
    for said in trial.said.values():
        if said.time_s > calm_s and trial.wants(roamer, said) and is_certain(trial, roamer, said):
            yield said


def _follows(said: Said, other: Said) -> bool:
    return said.publisher == other.publisher and said.at == other.at and said.time_s > other.accepted_s


def hasty(trial: Trial) -> Iterator[Finding]:
    """Of each topic one in an interval, and then the newest: over one connection that was there for a while, and while
    nothing was wrong."""
    if any(isinstance(step, Skew) for step in trial.plan.steps):
        return  # whose seconds?
    for roamer in _paced(trial):
        (wish,) = trial.cards[roamer.name].wishes
        by_topic: dict[tuple[float, str], list[tuple[float, Said]]] = {}
        for time_s, admission, said in trial.paced.get(roamer.name, ()):
            if time_s >= admission.time_s + SPREAD_S and not trial.disturbed(admission.time_s):
                by_topic.setdefault((admission.time_s, said.topic), []).append((time_s, said))
                if said.at == admission.at and _is_old(trial, roamer, said, time_s):
                    yield Finding("outdated", roamer.name, f"got {said.n}, though its broker had a newer one")
        for (_, topic), got in by_topic.items():
            shortest_s = _shortest(roamer, wish)
            early = [said.n for (before_s, _), (time_s, said) in pairwise(got) if time_s - before_s < shortest_s]
            if early:
                yield Finding("hasty", roamer.name, f"got {shown(early)} of {topic} too soon after the one before")


def _is_old(trial: Trial, roamer: Roamer, said: Said, time_s: float) -> bool:
    """Whether its publisher had been told that the same broker has a newer one, before this one left."""
    left_s = time_s - 2 * roamer.delay_s - 0.01
    return said.qos > 0 and any(
        one.topic == said.topic and _follows(one, said) and one.accepted_s < left_s and trial.wants(roamer, one)
        for one in trial.said.values()
    )


def _shortest(roamer: Roamer, wish: Wish) -> float:
    """What is told apart may come closer by as much as the way to the client varies."""
    return wish.interval_s - roamer.delay_s - 0.01


def _paced(trial: Trial) -> list[Roamer]:
    return [one for one in trial.subscribers if trial.cards[one.name].paced]


JUDGES: tuple[Callable[[Trial], Iterator[Finding]], ...] = (misled, historical, unrecalled, outside, outdated, hasty)
