"""What a session has by itself, where an older one of its client may turn up: docs/broker.md, "If O is out of reach".

Of each broker's stream that is all that a subscription wants behind the broker's `Turned`, up to where it was given up.
It takes nothing else by itself: the rest is the older session's. So every publication belongs to one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.messages import Memory, Part, Past, Stamp
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import remembered
from godwit.protocols.broker.session.state import Item, Session, Sub
from godwit.protocols.broker.topics import matches
from godwit.protocols.host import NodeId

PAST_MAX, SEEN_MAX = 1_000, 10_000
"""Subscriptions that were given up, and single publications; what is beyond is not remembered, and may come again."""


def is_own(session: Session, stamp: Stamp | None, publication: Publication) -> bool:
    """Whether what comes to the broker under this number is for this session to take: whoever sent it knew of the
    session. What was under way before that an older one has had, or will pass on."""
    memory = session.carried.memory
    return memory is None or stamp is None or _is_coming(session, memory, stamp, publication, qos_min=0)


def is_late(session: Session, item: Item) -> bool:
    """Whether what comes from where the session was before was had already. Either it is not its own, and an older
    session has passed it on; or a newer one that has gone into this one has had it, since the two have crossed."""
    memory = session.carried.memory
    if memory is None or item.stamp is None or item.group is not None:
        return False
    origin, number = item.stamp
    if any(_is_in(session, part, item.stamp, item.publication) for part in memory.parts if part.born > memory.born):
        return True
    return any(
        number <= part.reached.get(origin, 0) and _is_wanted(session, part.wanted, item.publication)
        for part in memory.parts
    ) and not _is_in(session, memory, item.stamp, item.publication)


def had(session: Session, item: Item, born: int) -> bool:
    """Whether what a session passes on that began at this epoch, or is older (0), has come for this one by itself or
    for another that began later, or is sure to. What was dealt to a member of a group, or is retained, is nobody
    else's."""
    memory = session.carried.memory
    if memory is None or item.stamp is None or item.group is not None:
        return False
    return _is_in(session, memory, item.stamp, item.publication) or any(
        _is_in(session, part, item.stamp, item.publication) for part in memory.parts if part.born > born
    )


def passes(session: Session, item: Item, born: int) -> bool:
    """The session that began at this epoch passes this on, whether it is taken or not; whether that is news."""
    memory = session.carried.memory
    part = next((one for one in reversed(memory.parts) if one.born == born), None) if memory is not None else None
    if memory is None or part is None or item.stamp is None or item.group is not None:
        return False
    origin, number = item.stamp
    known = memory.firsts.get(origin, {})
    for key, sub in session.subscriptions.items():
        if key not in known and not sub.wanted.group and _wants(sub, item.publication):
            part.early.setdefault(key, {})[origin] = number
    part.reached[origin] = max(number, part.reached.get(origin, 0))
    return True


def note(session: Session, item: Item, born: int | None) -> bool:
    """It is taken, and came from where the session was before (None), or from another that began at this epoch; whether
    that had to be remembered. That one may have heard from a broker since it left."""
    memory = session.carried.memory
    if memory is None or item.stamp is None or item.group is not None:
        return False
    part = memory if born is None else next((part for part in memory.parts if part.born == born), None)
    if part is None or len(part.seen) >= SEEN_MAX or _is_in(session, part, item.stamp, item.publication):
        return False
    part.seen.add(item.publication.id)
    return True


def lines_of(memory: Memory | None) -> set[int]:
    """The session itself, and those that have gone into it."""
    return {0} if memory is None else {memory.born, *memory.lines}


def is_same(one: Subscription, other: Subscription) -> bool:
    """Whether the two get the same, as surely."""
    return (one.topics, one.condition, one.group, one.no_local, one.qos > 0) == (
        other.topics,
        other.condition,
        other.group,
        other.no_local,
        other.qos > 0,
    )


def give_up(memory: Memory, wanted: Subscription, reached: Mapping[NodeId, int]) -> None:
    """It is wanted no longer, from where each stream has come to."""
    past = _ended(memory, wanted, reached)
    if past is not None and len(memory.past) < PAST_MAX:
        memory.past.append(past)


def merge(memory: Memory, other: Memory | None, wanted: tuple[Subscription, ...], epoch: int) -> None:
    """Another session comes, with these subscriptions, under this epoch; with a memory, where it had begun so too."""
    part = Part(0, epoch, [], 0, wanted)
    memory.lines |= lines_of(other)
    memory.parts.append(part)
    if other is not None:
        past = [past for one in wanted if (past := _ended(other, one, other.reached))]
        part.born, part.past, part.open, part.seen = other.born, [*other.past, *past], len(past), other.seen
        # What its parts had passed on early went to that session, not to this one, which takes such things by itself.
        memory.parts += [msgspec.structs.replace(one, early={}, reached={}) for one in other.parts]


def end_part(memory: Memory, epoch: int, origin: NodeId, number: int) -> None:
    """That broker has turned from the session that came under this epoch."""
    for part in memory.parts:
        if part.epoch == epoch and part.open:
            for past in part.past[-part.open :]:
                past.lasts[origin] = number


def _ended(memory: Memory, wanted: Subscription, reached: Mapping[NodeId, int]) -> Past | None:
    """QoS 0 is for the moment: it is no reason not to take something again."""
    firsts = {origin: known.pop(wanted.key) for origin, known in memory.firsts.items() if wanted.key in known}
    if not firsts or not wanted.qos:
        return None
    return Past(wanted, firsts, {origin: reached.get(origin, 0) for origin in firsts})


def _is_in(session: Session, part: Memory | Part, stamp: Stamp, publication: Publication) -> bool:
    return (
        publication.id in part.seen
        or (isinstance(part, Memory) and _is_coming(session, part, stamp, publication, qos_min=1))
        or any(_is_past(session, one, stamp, publication) for one in part.past)
    )


def _is_coming(session: Session, memory: Memory, stamp: Stamp, publication: Publication, *, qos_min: int) -> bool:
    origin, number = stamp
    for key, first in memory.firsts.get(origin, {}).items():
        sub = session.subscriptions.get(key)
        if (
            sub is not None
            and number > first
            and sub.wanted.qos >= qos_min
            and _wants(sub, publication)
            and not any(_came_early(session, part, key, stamp, publication) for part in memory.parts)
        ):
            return True
    return False


def _came_early(session: Session, part: Part, key: str, stamp: Stamp, publication: Publication) -> bool:
    origin, number = stamp
    return number <= part.early.get(key, {}).get(origin, 0) and _is_wanted(session, part.wanted, publication)


def _is_wanted(session: Session, wanted: Iterable[Subscription], publication: Publication) -> bool:
    subs = (remembered(session, one, 0) for one in wanted if matches(one.topics, publication.topic))
    return any(sub is not None and not sub.wanted.group and _wants(sub, publication) for sub in subs)


def _is_past(session: Session, past: Past, stamp: Stamp, publication: Publication) -> bool:
    origin, number = stamp
    if not past.firsts.get(origin, number) < number <= past.lasts.get(origin, 0):
        return False
    return _is_wanted(session, (past.wanted,), publication)


def _wants(sub: Sub, publication: Publication) -> bool:
    wanted = sub.wanted
    if wanted.no_local and publication.publisher == sub.session.client:
        return False
    return matches(wanted.topics, publication.topic) and (
        sub.condition is None or sub.condition.matches(publication.values())
    )
