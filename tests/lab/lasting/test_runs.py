"""A run of what lasts: the same for the same seed, and the same pairs whatever the effort."""

from __future__ import annotations

import pytest

from godwit.lab.lasting.runs import Configuration, run
from godwit.lab.lasting.study import PLANS
from godwit.tables.double import Effort, Sense


@pytest.mark.parametrize("sense", Sense)
def test_all_efforts_find_the_same_pairs_of_the_same_seed(sense: Sense) -> None:
    found = [
        run(Configuration(seed=1, experiment="E10", sense=sense, effort=effort, profiles=60, queries=60))
        for effort in Effort
    ]
    assert len({one.pairs for one in found}) == 1
    assert found[0].tests == 60 * 60
    assert found[2].tests < found[1].tests


@pytest.mark.feature("content-routing F41")
@pytest.mark.parametrize(("sense", "counted"), [(Sense.COVER, 319_000), (Sense.OVERLAP, 753_000)])
def test_the_trial_of_the_specification_takes_about_as_many_operations(sense: Sense, counted: int) -> None:
    """The first seed of the plan. What the specification counted (4.4) is of one seed, too."""
    plan = [one for one in PLANS["published"].runs() if one.experiment == "E10" and one.effort is Effort.BOUNDED]
    whole = next(one for one in plan if one.sense is sense and one.profiles == one.queries == 1_000)
    assert run(whole).tests == pytest.approx(counted, rel=0.1)


def test_preloading_all_inputs_leaves_nothing_to_test() -> None:
    one = Configuration(
        seed=1, experiment="E11", sense=Sense.OVERLAP, effort=Effort.BOUNDED, profiles=50, queries=50, varied="inputs"
    )
    whole = Configuration(
        seed=1,
        experiment="E11",
        sense=Sense.OVERLAP,
        effort=Effort.BOUNDED,
        profiles=50,
        queries=50,
        varied="inputs",
        preloaded=50,
    )
    assert run(whole).tests == 0
    assert run(whole).pairs == run(one).pairs


def test_the_published_plan_has_every_point_five_times() -> None:
    runs = PLANS["published"].runs()
    assert len(runs) == len(set(runs)) == 5 * 2 * (3 * 2 * 3 + 2 * 5)


def test_random_filters_leave_the_cost_of_placing_and_raise_that_of_matching() -> None:
    def cost(preloaded: int) -> tuple[int, int]:
        found = run(
            Configuration(
                seed=1,
                experiment="E11",
                sense=Sense.COVER,
                effort=Effort.BOUNDED,
                profiles=200,
                queries=200,
                varied="random",
                preloaded=preloaded,
            )
        )
        return found.placing, found.tests - found.placing

    (placing, matching), (placing_among, matching_among) = cost(0), cost(200)
    assert 0 < placing_among < 1.5 * placing
    assert matching_among > 1.5 * matching
