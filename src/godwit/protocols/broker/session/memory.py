"""What a session has had, where another of its client may turn up: docs/broker.md, "If O is out of reach".

Two questions are kept apart. What a session takes by itself is decided by numbers: of each broker's stream all that a
subscription wants behind the broker's `Turned`; what came before that is the older session's. Whether something comes a
second time is decided by evidence alone: the names of all that was taken. So nothing is left out because another
session ought to have it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.messages import FIRST, Carried, Line, Memory, Name, Stamp
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.proofs import BEFORE
from godwit.protocols.broker.session.state import Copy, Item, Session, Sub
from godwit.protocols.broker.topics import matches

HAD_MAX = 20_000
"""So many publications are remembered; an older one may come again."""


def is_own(session: Session, stamp: Stamp | None, publication: Publication) -> bool:
    """Whether what comes to the broker under this number is for this session to take: whoever sent it knew of the
    session. What was under way before that an older one has had, or will pass on."""
    memory = session.carried.memory
    if memory is None or stamp is None:
        return True
    origin, number = stamp
    for key, first in memory.firsts.get(origin, {}).items():
        sub = session.subscriptions.get(key)
        if sub is not None and number > first and wants(sub, publication):
            return True
    return False


def is_first(session: Session, item: Item) -> bool:
    """Whether no session of the client that has gone into this one has had it; from now on this one has."""
    memory, name = session.carried.memory, item.name
    if memory is None or name is None:
        return True
    if name in memory.had:
        return False
    note(memory, (name,))
    return True


def note(memory: Memory, names: Iterable[Name]) -> None:
    """These are the session's."""
    memory.had.update(dict.fromkeys(names))
    while len(memory.had) > HAD_MAX:
        del memory.had[next(iter(memory.had))]


def merge(memory: Memory, carried: Carried) -> None:
    """Another session of the client goes into the one with this memory; with one of its own, where it had begun so.
    Whoever it had been too hasty for itself must be waited for. That it is the one that this one waits for nobody can
    tell from epochs, which several sessions may have had: the broker where that was says that it has none any more."""
    other = carried.memory
    memory.stays = memory.original is not None
    memory.lines |= lines_of(other)
    memory.united |= tokens_of(carried)
    if other is not None:
        note(memory, other.had)
        memory.unmet |= other.unmet
        for broker, since in other.awaited.items():
            memory.awaited[broker] = max(since, memory.awaited.get(broker, 0))


def tokens_of(carried: Carried) -> dict[Line, str]:
    """By age: the session itself, and those that have gone into it, each with the token that was given last in it."""
    return {**(carried.memory.united if carried.memory is not None else {}), carried.age: carried.last}


def ages_of(carried: Carried) -> set[Line]:
    """Of the session itself, of what it was a copy of, and of those that have gone into it: every token that was given
    in any of them has an epoch as high as these."""
    memory = carried.memory
    original = {memory.original} if memory is not None and memory.original is not None else set[Line]()
    return {*tokens_of(carried), *original}


def still_awaits(carried: Carried, copy: Copy) -> bool:
    """Whether a session waits for what this is a copy of, and may lack what is in it. Not where it is that session, has
    begun as a copy of it, or has got it already: what its client has had of that here nobody knows later. Nor where the
    client was in another session since, which may have had it."""
    memory = carried.memory
    if memory is None or copy.session.carried.age in ages_of(carried):
        return False
    since = memory.awaited.get(copy.source)
    return since is not None and since <= copy.epoch and copy.source not in memory.answered


def is_forsaken(memory: Memory | None, other: Carried) -> bool:
    """Whether this began as a copy, and its client was let in since where that was made: into the other session, or one
    that has gone into the other. All that waits in the copy came there too, and waits there or was had.

    One that was let in there before the copy was taken up, and has not heard so, is in the copy. Brokers have turned to
    that, and away from the other."""
    last = tokens_of(other).get(memory.original) if memory is not None and memory.original is not None else None
    if memory is None or last is None or last == memory.last:
        return False
    return not _is_before(last, memory.born)


def _is_before(token: str, born: Line) -> bool:
    """Whether a token was given before a session began, by the calendars of two brokers."""
    given_ms = token.partition(".")[2].partition(".")[0].partition(BEFORE)[0]
    return given_ms.isdecimal() and int(given_ms) < born[0]


def had_without(memory: Memory, waiting: Container[Name]) -> dict[Name, None]:
    """What the client itself has had: what waits for it goes along by itself."""
    return {name: None for name in memory.had if name not in waiting}


def lines_of(memory: Memory | None) -> set[Line]:
    """The session itself, and those that have gone into it."""
    return {FIRST} if memory is None else {memory.born, *memory.lines}


def born_of_session(carried: Carried) -> Line:
    """Under which it is known what it kept, where it goes into another: when it began anew; `FIRST` of others."""
    if carried.memory is not None:
        return carried.memory.born
    return carried.age if carried.started else FIRST


def is_outdated(carried: Carried, born: Line) -> bool:
    """Whether the client has started clean since that one began: what it kept is not for this session."""
    return born[0] < carried.started


def is_same(one: Subscription, other: Subscription) -> bool:
    """Whether the two get the same, as surely."""
    return (one.topics, one.condition, one.group, one.no_local, one.qos > 0) == (
        other.topics,
        other.condition,
        other.group,
        other.no_local,
        other.qos > 0,
    )


def wants(sub: Sub, publication: Publication) -> bool:
    """By topic, content and publisher."""
    wanted = sub.wanted
    if wanted.no_local and publication.publisher == sub.session.client:
        return False
    return matches(wanted.topics, publication.topic) and (
        sub.condition is None or sub.condition.matches(publication.values())
    )
