"""Fleets join few brokers all with all, and many in a ring."""

from __future__ import annotations

from godwit.lab.product.fleet import between, links


def test_few_brokers_are_all_linked_and_many_stand_in_a_ring() -> None:
    assert len(links([f"b{n}" for n in range(6)])) == 15
    many = links([f"b{n}" for n in range(20)])
    assert len(many) == len({frozenset(one) for one in many}) == 40


def test_a_span_of_values_reads_as_a_condition() -> None:
    assert between(3, 22) == "value BETWEEN 3 AND 22"
