"""What two gateways tell each other: differences, or all; and the ways between sites."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.uplink import Uplink, View, paths_through
from godwit.protocols.broker.messages import Outlook
from godwit.protocols.broker.topics import meaning

some_filters = st.lists(st.sampled_from([meaning(f"{one}/#") for one in "abcdef"]), unique=True).map(tuple)


@given(st.lists(st.tuples(some_filters, some_filters, st.booleans()), max_size=8))
def test_the_other_side_knows_what_was_told_whatever_was_lost(
    steps: list[tuple[tuple[Filter, ...], tuple[Filter, ...], bool]],
) -> None:
    here, there = Uplink("b", "A", View()), Uplink("a", "B", View())
    for number, (offered, wanted, lost) in enumerate(steps, 1):
        outlook = here.tell((("A",),), offered, wanted, number)
        if outlook is not None and not lost and not there.hear(outlook):
            here.tell_anew()
            again = here.tell((("A",),), offered, wanted, number)
            assert again is not None
            assert there.hear(again)
        if outlook is not None and not lost:
            assert set(there.heard.offered) == set(offered)
            assert set(there.heard.wanted) == set(wanted)


def test_nothing_is_said_twice() -> None:
    uplink = Uplink("b", "A", View())
    first = uplink.tell((("A",),), (meaning("a/#"),), (), 1)
    assert first == Outlook("A", 1, 0, (("A",),), offered=(meaning("a/#"),))
    assert uplink.tell((("A",),), (meaning("a/#"),), (), 2) is None
    assert uplink.tell((("A",),), (), (meaning("b/#"),), 3) == Outlook(
        "A", 3, 1, (("A",),), unoffered=(meaning("a/#"),), wanted=(meaning("b/#"),)
    )


def test_ways_lead_through_us_but_not_back_where_they_came_from() -> None:
    behind = [("B",), ("B", "D"), ("C",), ("C", "A")]
    assert paths_through("A", behind, besides="C") == (("A",), ("A", "B"), ("A", "B", "D"))


def test_of_a_cycle_both_ends_of_one_link_refuse_the_same_one() -> None:
    def refused(here: str, there: str, way: tuple[str, ...]) -> bool:
        return Uplink("x", here, View(there, 1, (way,))).is_refused

    assert refused("B", "C", ("C", "A", "B"))
    assert refused("C", "B", ("B", "A", "C"))
    assert not refused("A", "B", ("B", "C", "A"))
    assert not refused("A", "C", ("C", "B", "A"))
