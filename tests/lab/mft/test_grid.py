"""The published grid, and its quick version."""

from __future__ import annotations

import pytest

from godwit.lab.mft.grid import QUICK, Grid


@pytest.mark.feature("mft-pubsub F33", "mft-pubsub F31")
def test_the_published_evaluation_is_five_hundred_runs_beside_the_hardened_ones() -> None:
    cells = Grid().cells()
    published = [c for c in cells if c.protocol in ("mft", "aodv")]
    assert len(published) == 500
    assert len(cells) == 750
    assert len(set(Grid().all())) == len(Grid().all())
    assert {(c.publish_s, c.drain_s) for c in cells} == {(500.0, 200.0)}


@pytest.mark.feature("mft-pubsub F33")
def test_both_protocols_run_with_the_same_seeds_in_every_cell() -> None:
    def worlds(protocol: str) -> set[tuple[int, float, int]]:
        return {(c.size, c.speed_mps, c.seed) for c in Grid().cells() if c.protocol == protocol}

    assert worlds("mft") == worlds("aodv") == worlds("hardened")


def test_mft_in_the_grid_is_exactly_the_published_protocol() -> None:
    run = next(c for c in Grid().cells() if c.protocol == "mft")
    assert (run.choice, run.hold_s, run.patience_s, run.without) == ("first", 0.0, 0.0, ())
    assert not any(getattr(run.rules, name) for name in run.rules.__struct_fields__)


def test_the_quick_grid_has_every_size_but_the_largest_at_one_speed() -> None:
    assert {c.size for c in QUICK.cells()} == {2, 4, 8, 16, 32}
    assert {c.speed_mps for c in QUICK.cells() if c.size == 32} == {8.0}
    simulated_s = sum(c.publish_s + c.drain_s for c in QUICK.all())
    assert simulated_s < 4 * 3600


@pytest.mark.parametrize(("speeds", "reference"), [((2.0, 8.0), 8.0), ((2.0, 6.0, 10.0), 6.0), ((4.0,), 4.0)])
def test_sizes_are_compared_at_the_speed_closest_to_the_published_one(
    speeds: tuple[float, ...], reference: float
) -> None:
    assert Grid(speeds_mps=speeds).reference_mps == reference
