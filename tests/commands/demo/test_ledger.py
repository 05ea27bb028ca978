"""The account finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import pytest

from godwit.commands.demo.ledger import Ledger, Verdict, judged
from godwit.filters.text import parse

WISHES = {"ann": parse("x > 5"), "bob": parse("x > 0")}


def ledger() -> Ledger:
    """Ann is owed events 1 and 2, Bob all three."""
    kept = Ledger()
    for sequence, x in enumerate((1, 7, 9)):
        kept.published(0.1 * sequence, "p", sequence, {"x": x})
    return kept


def verdict(*deliveries: tuple[str, int]) -> Verdict:
    kept = ledger()
    for name, sequence in deliveries:
        kept.delivered(1.0, name, "p", sequence)
    return judged(kept.facts, kept.contents, WISHES)


ALL = (("ann", 1), ("ann", 2), ("bob", 0), ("bob", 1), ("bob", 2))


def test_all_once_and_in_order_is_clean() -> None:
    found = verdict(*ALL)
    assert found.is_clean
    assert (found.published, found.matched, found.delivered) == (3, 5, 5)


@pytest.mark.parametrize(
    ("deliveries", "wrong"),
    [
        (ALL[1:], {"lost": 1}),
        ((*ALL, ALL[-1]), {"duplicated": 1}),
        ((ALL[1], ALL[0], *ALL[2:]), {"out_of_order": 1}),
        ((*ALL[:2], ("ann", 0), *ALL[2:]), {"unwanted": 1, "out_of_order": 1}),
        ((), {"lost": 5}),
    ],
)
def test_each_fault_is_counted_by_its_name(deliveries: tuple[tuple[str, int], ...], wrong: dict[str, int]) -> None:
    found = verdict(*deliveries)
    assert not found.is_clean
    faults = {name: getattr(found, name) for name in ("lost", "duplicated", "out_of_order", "unwanted")}
    assert faults == {"lost": 0, "duplicated": 0, "out_of_order": 0, "unwanted": 0} | wrong


def test_a_handoff_lasts_from_coming_within_reach_until_the_session_is_there() -> None:
    kept = ledger()
    for start in (1.0, 2.0, 3.0):
        kept.left(start, "ann", "harbour")
        kept.arrived(start + 0.02, "ann", "market")
    kept.left(4.0, "bob", "market")
    found = judged(kept.facts, kept.contents, WISHES)
    assert found.handoffs == 3
    assert found.handoff_median_s == pytest.approx(0.02)


def test_nothing_published_is_no_reason_to_fail() -> None:
    assert judged([], {}, WISHES).is_clean
