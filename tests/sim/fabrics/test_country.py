"""Three sites of brokers: what crosses is what the oracle says, and little is said about it.

`pytest -m explore` has twenty brokers in each, for which the figures are given; ten tell the same in a quarter of the
time.
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from godwit.sim.fabrics.country import Counted, Country, CountryOptions

TEN = CountryOptions(brokers=10, common=0.02, events=120)
TWENTY = CountryOptions(events=120)


@pytest.fixture(scope="module", params=[TEN, pytest.param(TWENTY, marks=pytest.mark.explore)], ids=["ten", "twenty"])
def country(request: pytest.FixtureRequest) -> CountryOptions:
    assert isinstance(request.param, CountryOptions)
    return request.param


@cache
def counted(country: CountryOptions, **more: bool) -> Counted:
    return Country(3, msgspec.structs.replace(country, **more)).run()


@pytest.mark.feature("content-routing F20")
def test_events_on_uplinks_are_the_oracles_and_statements_ten_times_fewer_than_in_one_tree(
    country: CountryOptions,
) -> None:
    """Of seed 3 and twenty brokers: 71 events of 71, 11 statements on the uplinks where the tree makes 993."""
    sites, tree = counted(country), counted(country, as_sites=False)
    assert sites.missing == sites.unwanted == tree.missing == 0
    assert sites.events == sites.due > 0
    assert 10 * sites.statements <= tree.statements
    assert sites.statements_everywhere < tree.statements_everywhere


@pytest.mark.feature("content-routing F20")
def test_with_rings_inside_statements_are_fewer_everywhere_too(country: CountryOptions) -> None:
    """Of seed 3: what goes from the first site to the third is matched in the second on its way."""
    rings, trees = counted(country, rings=True), counted(country)
    assert rings.missing == rings.unwanted == 0
    assert rings.events == rings.due == trees.due > 0
    # The more brokers there are, the more a tree has to say.
    assert country.brokers / 2 * rings.statements_everywhere < trees.statements_everywhere
