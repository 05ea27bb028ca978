"""The pages on growth and recorded movement are what was measured: nobody edits them by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from godwit.lab.gathering.beyond.growth import Drives, Scaled, recorded_page, scale_page
from godwit.lab.gathering.beyond.scale import CLIENTS, SIZES
from godwit.lab.gathering.beyond.tree_drive import BROKERS
from godwit.lab.pages import markdown
from godwit.lab.provenance import UNKNOWN

RESULTS = Path(__file__).resolve().parents[4] / "docs" / "results"


@pytest.fixture(scope="module")
def scaled() -> Scaled:
    return msgspec.json.decode((RESULTS / "ring-scale.json").read_bytes(), type=Scaled)


@pytest.fixture(scope="module")
def drives() -> Drives:
    return msgspec.json.decode((RESULTS / "ring-recorded.json").read_bytes(), type=Drives)


def test_the_page_on_scale_is_what_was_measured(scaled: Scaled) -> None:
    assert (RESULTS / "ring-scale.md").read_text() == markdown(scale_page(scaled))


def test_the_page_on_recorded_movement_is_what_was_measured(drives: Drives) -> None:
    assert (RESULTS / "ring-recorded.md").read_text() == markdown(recorded_page(drives))


@pytest.mark.feature("data-gathering F40")
def test_it_was_measured_at_full_size_within_its_bounds(scaled: Scaled) -> None:
    """Five minutes and 4 GB were asked for: of a processor, since the clock depends on who else is there."""
    assert [one.brokers for one in scaled.sizes] == list(SIZES)
    assert scaled.sizes[-1].clients == CLIENTS
    assert sum(one.cpu_s for one in scaled.sizes) < 300
    assert max(one.memory_mb for one in scaled.sizes) < 4096
    survived = scaled.survived
    assert survived.brokers >= 1000
    assert (survived.received, survived.owners_wrong) == (survived.wanted, 0)


def test_both_fabrics_lived_through_the_same_and_lost_nothing(drives: Drives) -> None:
    whole, ring, tree = drives.runs.values()
    assert whole.brokers == 549
    assert ring.brokers == tree.brokers == BROKERS
    assert all(one.lost == 0 for one in drives.runs.values())
    for name in ("taxis", "sensors", "events", "wanted", "handoffs"):
        assert getattr(ring, name) == getattr(tree, name)


def test_each_says_which_code_made_it(scaled: Scaled, drives: Drives) -> None:
    assert UNKNOWN not in (scaled.made.commit, scaled.made.code, drives.made.commit, drives.made.code)
