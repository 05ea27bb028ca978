"""Elapsed time as distance: what the proximity table says of whom it has heard (spec manet-cbr 2.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.adhoc.fields import BLACK, GREY

from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.messages import Hint
from godwit.protocols.adhoc.table import Estimate, ProximityTable


def heard_once(**options: object) -> ProximityTable:
    table = ProximityTable(5.0, **options)  # type: ignore[arg-type]
    table.heard("b", BLACK, 0.0)
    return table


@pytest.mark.feature("manet-cbr F9", "manet-cbr F22")
def test_t4_proximity_counts_missed_beacons_in_whole_tenths() -> None:
    table = heard_once()
    tenths = [table.proximity("b", at) for at in (0.0, 4.99, 5.0, 9.99, 10.0, 45.0, 49.99, 50.0, 54.99)]
    assert tenths == [0, 0, 10, 10, 20, 90, 90, 100, 100]
    assert table.proximity("stranger", 0.0) is None


@pytest.mark.feature("manet-cbr F8", "manet-cbr F22")
def test_t4_an_entry_goes_with_the_first_look_after_ten_periods() -> None:
    table = heard_once()
    table.clean(50.0)
    assert table.proximity("b", 50.0) == 100
    table.clean(50.01)
    assert table.proximity("b", 50.01) is None


@pytest.mark.feature("manet-cbr F9")
@given(st.floats(0, 1e6), st.floats(0, 1e4))
def test_proximity_stays_within_its_byte_and_never_falls_with_time(later: float, more: float) -> None:
    for estimate in Estimate:
        table = heard_once(estimate=estimate)
        one, other = table.proximity("b", later), table.proximity("b", later + more)
        assert one is not None
        assert other is not None
        assert 0 <= one <= other <= 100


@pytest.mark.feature("manet-cbr F7")
def test_the_newest_beacon_of_a_broker_replaces_the_older_one() -> None:
    table = heard_once()
    table.heard("b", GREY, 20.0)
    assert len(table.entries) == 1
    assert table.proximity("b", 20.0) == 0
    assert list(table.matching({"colour": "grey"}, 21.0)) == [("b", 0)]
    assert list(table.matching({"colour": "black"}, 21.0)) == []
    table.heard("b", FilterSet(), 22.0)
    assert list(table.matching({"colour": "grey"}, 22.0)) == []


@pytest.mark.feature("manet-cbr F9")
def test_an_unsteady_neighbor_is_still_a_neighbor() -> None:
    assert heard_once(late_s=0.5).proximity("b", 5.4) == 0
    assert heard_once(late_s=0.5).proximity("b", 5.6) == 10


@pytest.mark.feature("manet-cbr F24")
def test_continuous_time_tells_apart_what_tenths_do_not() -> None:
    table = heard_once(estimate=Estimate.CONTINUOUS)
    assert table.proximity("b", 6.0) == 12
    assert table.proximity("b", 9.0) == 18


@pytest.mark.feature("manet-cbr F24")
def test_after_a_long_stay_together_silence_means_less_distance() -> None:
    table = ProximityTable(5.0, estimate=Estimate.RESIDENCE)
    for at in range(0, 60, 5):
        table.heard("companion", BLACK, float(at))
    table.heard("passer-by", BLACK, 55.0)
    companion, stranger = (table.proximity(name, 75.0) for name in ("companion", "passer-by"))
    assert companion is not None
    assert stranger is not None
    assert companion < 40 <= stranger


@pytest.mark.feature("manet-cbr F24")
def test_a_hint_is_one_step_further_and_gives_way_to_fresher_news() -> None:
    table = ProximityTable(5.0)
    table.told(Hint("far", 20, 5.0, BLACK), 100.0)
    assert table.proximity("far", 100.0) == 30
    table.told(Hint("far", 50, 5.0, BLACK), 100.0)
    assert table.proximity("far", 100.0) == 30
    table.told(Hint("far", 0, 5.0, GREY), 100.0)
    assert table.proximity("far", 100.0) == 10
    table.heard("far", GREY, 101.0)
    table.told(Hint("far", 0, 5.0, BLACK), 102.0)
    assert table.proximity("far", 102.0) == 0
    table.told(Hint("farther", 100, 5.0, BLACK), 102.0)
    assert table.proximity("farther", 102.0) is None


@pytest.mark.feature("manet-cbr F24")
def test_only_what_was_met_is_told_and_the_closest_first() -> None:
    table = heard_once()
    table.heard("near", GREY, 10.0)
    table.told(Hint("hearsay", 0, 5.0, BLACK), 11.0)
    assert [hint.broker for hint in table.hints(12.0, 5)] == ["near", "b"]
    assert [hint.broker for hint in table.hints(12.0, 1)] == ["near"]
    assert [(hint.broker, hint.proximity) for hint in table.hints(12.0, 5, ["b", "nobody"])] == [("b", 20)]


@pytest.mark.feature("manet-cbr F24")
def test_the_mean_stay_counts_those_that_go_on_with_their_time_only() -> None:
    table = ProximityTable(5.0)
    usual = table.stay_s(0.0)
    for at in range(0, 200, 5):
        table.heard("companion", BLACK, float(at))
    assert table.stay_s(200.0) == pytest.approx(usual + 200)
    table.heard("passer-by", BLACK, 100.0)
    assert table.stay_s(105.0) == pytest.approx(usual + 5 + 200)
    assert table.stay_s(120.0) == pytest.approx((usual + 5 + 200) / 2)
    table.clean(160.0)
    assert table.stay_s(200.0) == pytest.approx((usual + 5 + 200) / 2)
