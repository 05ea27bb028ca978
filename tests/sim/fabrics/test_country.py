"""Three sites of twenty brokers: what crosses is what the oracle says, and little is said about it."""

from __future__ import annotations

import pytest

from godwit.sim.fabrics.country import Country, CountryOptions


@pytest.mark.feature("content-routing F20")
def test_events_on_uplinks_are_the_oracles_and_statements_ten_times_fewer_than_in_one_tree() -> None:
    """Of seed 3: 178 events of 178, 11 statements on the uplinks where the tree makes 993."""
    sites, tree = (Country(3, CountryOptions(as_sites=one, events=120)).run() for one in (True, False))
    assert sites.missing == sites.unwanted == tree.missing == 0
    assert sites.events == sites.due > 0
    assert 10 * sites.statements <= tree.statements
    assert sites.statements_everywhere < tree.statements_everywhere


@pytest.mark.feature("content-routing F20")
def test_with_rings_inside_statements_are_fewer_everywhere_too() -> None:
    """Of seed 3: what goes from the first site to the third is matched in the second on its way."""
    rings, trees = (Country(3, CountryOptions(rings=one, events=120)).run() for one in (True, False))
    assert rings.missing == rings.unwanted == 0
    assert rings.events == rings.due == trees.due > 0
    assert 10 * rings.statements_everywhere < trees.statements_everywhere
