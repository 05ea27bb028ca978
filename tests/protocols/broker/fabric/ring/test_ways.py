"""Which link a frame takes: nearer by each hop, never back, and by a detour where links are broken."""

from __future__ import annotations

from random import Random

from godwit.protocols.broker.fabric.ring.ways import DETOURS_MAX, Ways
from godwit.protocols.topology.mesh import distance
from godwit.sim.brokers.site import SimHost
from godwit.sim.engine import Engine

NAMES = [f"b{number}" for number in range(12)]


def ways(*links: str) -> Ways:
    found = Ways(SimHost("me", Engine(), Random(1)))
    found.links.update(links)
    found.changed()
    return found


def test_a_linked_broker_is_reached_directly_and_another_by_the_nearest_to_it() -> None:
    here = ways(*NAMES[:6])
    assert here.next_to("b3") == "b3"
    for to in NAMES[6:]:
        assert here.next_to(to) == min(NAMES[:6], key=lambda name: (distance(name, to), name))


def test_nothing_goes_back_by_the_link_it_came_on() -> None:
    here = ways(*NAMES[:6])
    for to in NAMES[6:]:
        first, second = sorted(NAMES[:6], key=lambda name: (distance(name, to), name))[:2]
        assert here.next_to(to, arrived=first) == second
    assert ways("b0").next_to("b9", arrived="b0") is None


def test_a_link_that_leads_no_nearer_is_taken_a_few_times_only() -> None:
    to = next(name for name in NAMES if distance("b0", name) > distance("me", name))
    here = ways("b0")
    assert here.next_to(to, DETOURS_MAX - 1) == "b0"
    assert here.next_to(to, DETOURS_MAX) is None


def test_what_was_nearest_is_found_anew_when_links_change() -> None:
    here = ways(*NAMES[:6])
    before = here.next_to("b9")
    assert before is not None
    here.links.discard(before)
    here.changed()
    assert here.next_to("b9") not in (None, before)
