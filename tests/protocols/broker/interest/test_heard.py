"""What others want, as it is kept on the disk."""

from __future__ import annotations

import msgspec

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import Kind, Text, TextOp, equ
from godwit.protocols.broker.interest.heard import TABLE, Interests, Statement, marker
from godwit.protocols.broker.store import Disk, MemoryStore

SOUND = filter_of(attribute("x", equ(1)))
BROKEN = Filter((AttributeFilter("x", Kind.NUMBER, (Text(TextOp.STW, "a"),)),))


def store(disk: Disk) -> MemoryStore:
    return MemoryStore(disk, lambda call: call())


def written(disk: Disk, broker: str, value: bytes) -> None:
    kept = store(disk)
    kept.put(TABLE, broker, 0, value)
    kept.settled(lambda: None)


def statement(*filters: Filter) -> bytes:
    return msgspec.msgpack.encode(Statement(7, (marker("b", 1), *filters)))


def test_a_filter_that_would_fail_is_gone_after_a_start_and_the_broker_is_known_all_the_same() -> None:
    disk: Disk = {}
    written(disk, "b", statement(BROKEN, SOUND))
    interests = Interests(store(disk), 0.0)
    assert interests.wanted == {"b": (SOUND,)}
    assert interests.peers["b"].statement == 7
    assert "is not for values of kind number" in interests.healed["b"]
    assert not Interests(store(disk), 0.0).healed


def test_a_row_that_says_nothing_is_dropped_and_the_others_stay() -> None:
    disk: Disk = {}
    written(disk, "b", statement(SOUND))
    written(disk, "torn", b"\xc1 no row")
    written(disk, "empty", msgspec.msgpack.encode(Statement(1, ())))
    interests = Interests(store(disk), 0.0)
    assert interests.peers.keys() == {"b"}
    assert interests.healed.keys() == {"torn", "empty"}
    assert not Interests(store(disk), 0.0).healed
