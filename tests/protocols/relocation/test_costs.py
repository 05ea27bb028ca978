"""The bounds of a handover, with the spec's test vector."""

from __future__ import annotations

import pytest

from godwit.protocols.host import LocalError
from godwit.protocols.relocation.costs import Bounds, Overlay, Protocol, bounds

pytestmark = pytest.mark.feature("content-routing F39")
VECTOR = {
    Protocol.GENERIC: (588, 236, 588, 236),
    Protocol.GENERIC_RENDEZVOUS: (412, 60, 412, 60),
    Protocol.ACYCLIC_SUBSCRIBER: (98, 0, 98, 10),
    Protocol.ACYCLIC_PUBLISHER: (196, 0, 196, 20),
    Protocol.CYCLIC_RENDEZVOUS_SUBSCRIBER: (10, 0, 20, 0),
    Protocol.CYCLIC_RENDEZVOUS_PUBLISHER: (20, 0, 30, 0),
    Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER: (10, 0, 20, 0),
    Protocol.ACYCLIC_RENDEZVOUS_PUBLISHER: (20, 0, 30, 0),
}


@pytest.mark.parametrize("protocol", Protocol)
def test_a_hundred_brokers_ten_on_the_way(protocol: Protocol) -> None:
    assert bounds(protocol, Overlay(brokers=100, path=10, longest=10)) == Bounds(*VECTOR[protocol])


def test_three_repeated_pings() -> None:
    overlay = Overlay(brokers=100, path=10, longest=10, pings=3)
    assert bounds(Protocol.GENERIC, overlay).upper == 882
    assert bounds(Protocol.GENERIC_RENDEZVOUS, overlay).upper == 706
    assert bounds(Protocol.ACYCLIC_SUBSCRIBER, overlay).incomplete_upper == 392


def test_in_a_tree_points_never_cost_more_than_the_tree() -> None:
    overlay = Overlay(brokers=20, path=3, longest=18, points=5)
    assert bounds(Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER, overlay) == Bounds(18, 0, 36, 0)


@pytest.mark.parametrize(
    "wrong", [{"brokers": 1, "path": 0}, {"brokers": 5, "path": 4}, {"brokers": 5, "path": 1, "longest": 9}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(LocalError):
        Overlay(**wrong)
