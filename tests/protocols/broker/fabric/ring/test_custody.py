"""What has no matching broker waits, in its order, and survives a crash if it is durable."""

from __future__ import annotations

from godwit.protocols.broker.fabric.ring.custody import Custody, Kept
from godwit.protocols.broker.fabric.ring.targets import Targets, of_level
from godwit.protocols.broker.messages import Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Disk, MemoryStore


def custody(disk: Disk) -> Custody:
    return Custody(MemoryStore(disk, lambda call: call()), Targets())


def routed(number: int, topic: str, qos: int = 1) -> Routed:
    return Routed(Publication("p", number, topic, qos=qos))


def kept(of: Custody) -> list[int]:
    return [one.routed.publication.sequence for one in of.kept.values()]


def test_what_cannot_go_keeps_back_its_own_kind_only() -> None:
    one = custody({})
    for number, topic in enumerate(("a/1", "b/1", "a/2", "b/2")):
        one.add(routed(number, topic), of_level(topic[0]))
    gone: list[int] = []

    def goes(item: Kept) -> bool:
        sequence = item.routed.publication.sequence
        if sequence != 0:
            gone.append(sequence)
        return sequence != 0

    one.release(goes)
    assert gone == [1, 3]
    assert kept(one) == [0, 2]
    assert one.precedes(of_level("a"))
    assert not one.precedes(of_level("b"))


def test_a_crash_leaves_what_is_durable_in_its_order() -> None:
    disk: Disk = {}
    one = custody(disk)
    for number, qos in enumerate((1, 0, 2)):
        one.add(routed(number, "a/x", qos), of_level("a"))
    one.store.settled(lambda: None)
    assert kept(custody(disk)) == [0, 2]
