from __future__ import annotations

import pytest

from godwit.lab.handoff.grid import EXPERIMENTS, PUBLISHED, QUICK, STORED, TEXT_READING, Grid, all_readings, readings


@pytest.mark.feature("proactive-handoff F36")
def test_the_whole_grid_has_every_published_cell() -> None:
    cells = Grid().cells()
    assert len(set(cells)) == len(cells)
    assert {(c.subscribers, c.pattern) for c in cells} >= {(k, p) for k in (10, 100, 200) for p in ("RND", "NBR")}
    assert {c.sleep_s for c in cells if c.warmup_s < 700} == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert {c.queue_mb for c in cells} == {1.0, 2.0, 3.0, 4.0}
    assert {c.disconnect_s for c in cells} == {12.0, 24.0}
    assert {c.connect_s for c in cells} == {60.0, 150.0}
    assert {c.bandwidth_mbps for c in cells} == {1.0, 11.0}
    assert {c.moving for c in cells} == {True, False}
    assert {c.seed for c in cells if c.warmup_s < 700} == {1, 2, 3, 4, 5}
    assert {c.mass for c in cells if c.skew} == {1.0, 0.97, 0.93, 0.85, 0.7}
    assert {c.subscribers for c in cells if c.scheme == "memory"} == {10, 50, 100, 150, 200}


@pytest.mark.feature("proactive-handoff F36")
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_each_experiment_can_be_run_alone(experiment: str) -> None:
    alone = Grid(experiments=(experiment,)).cells()
    assert 0 < len(alone) < len(Grid().cells())
    assert set(alone) <= set(Grid().cells())


def test_the_quick_grid_is_small() -> None:
    assert sum(cell.subscribers * (cell.warmup_s + cell.measure_s) for cell in QUICK.cells()) < 3.5e5


def test_what_durable_stores_is_read_in_three_ways_and_the_others_are_run_once() -> None:
    by_reading = readings(PUBLISHED)
    text = set(by_reading[TEXT_READING].cells())
    for name, times in STORED.items():
        new = set(by_reading[name].cells()) - text
        assert {(cell.scheme, cell.stored) for cell in new} == {("durable", times)}
    assert {cell.stored for cell in text if cell.warmup_s < 700} == {2.5}


def test_what_decides_the_most_comes_first_and_the_deployed_broker_is_in_the_tables() -> None:
    every = all_readings(PUBLISHED)
    assert len(set(every)) == len(every)
    first = every[: 5 * 3 * 2 * 3]
    assert {cell.subscribers for cell in first} == {10, 100, 200}  # whose losses were published
    assert {(cell.scheme, cell.channel) for cell in first} == {
        (name, "shared") for name in ("durable", "reactive", "proactive")
    }
    deployed = [cell for cell in every if cell.scheme == "product"]
    assert {(cell.subscribers, cell.pattern) for cell in deployed} == {
        (size, pattern) for size in (10, 50, 100, 150, 200) for pattern in ("RND", "NBR")
    }


def test_further_worlds_are_of_what_losses_are_compared_in_and_of_the_texts_reading_only() -> None:
    further = [cell for cell in all_readings(PUBLISHED) if cell.seed > 405 and cell.warmup_s < 700]
    assert {cell.seed for cell in further} == set(range(406, 436))
    assert {(cell.scheme, cell.subscribers, cell.pattern) for cell in further} == {
        ("durable", 10, "RND"),
        *((scheme, size, "RND") for scheme in ("reactive", "proactive") for size in (10, 200)),
    }
    assert len(further) == 150
    assert set(further) <= set(readings(PUBLISHED)[TEXT_READING].cells())
