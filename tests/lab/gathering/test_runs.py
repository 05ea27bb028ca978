"""The published experiments with real cores: counts that must hold on every map."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from godwit.lab.gathering.crossings import RANGE, SPEED, Drift, attachments, moves
from godwit.lab.gathering.runs import Configuration, run
from godwit.sim.mobility import Field
from godwit.sim.streams import Streams


def one(experiment: str, brokers: int = 16, **others: object) -> Configuration:
    plain = {"seed": 3, "experiment": experiment, "brokers": brokers, "requests": 150, **others}
    return msgspec.convert(plain, Configuration)


@pytest.mark.feature("data-gathering F37", "data-gathering F40")
def test_subscriptions_take_as_many_hops_whatever_the_digits_and_no_more_than_the_cells_are_deep() -> None:
    by_bits = [run(one("S1", bits=bits)) for bits in (1, 2, 4)]
    assert len({(r.deliveries, r.hops_sum, r.hops_max, r.sent) for r in by_bits}) == 1
    depth = max(len(site.cell) for site in one("S1").chart().sites)
    assert by_bits[0].hops_max <= depth
    assert by_bits[0].deliveries >= 150


@pytest.mark.feature("data-gathering F38", "data-gathering F40")
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_with_eight_brokers_every_notice_takes_one_hop_and_one_confirmation(bits: int) -> None:
    result = run(one("S2", 8, bits=bits))
    assert (result.hops_mean, result.overhead, result.overhead_text) == (1.0, 2.0, 2.0)


@pytest.mark.feature("data-gathering F40")
@pytest.mark.parametrize("experiment", ["S1", "S2"])
def test_the_overhead_of_the_text_is_never_above_two_and_the_plotted_one_counts_deliveries(experiment: str) -> None:
    result = run(one(experiment, 40))
    assert result.sent == result.confirmed
    assert result.overhead_text <= 2.0
    assert result.overhead == pytest.approx(2 * result.sent / result.deliveries)


@pytest.mark.feature("data-gathering F39")
@pytest.mark.parametrize("brokers", [8, 24])
def test_nothing_is_lost_while_phones_drift_between_brokers(brokers: int) -> None:
    result = run(one("M", brokers))
    assert result.lost == 0
    assert result.relocations > 50
    assert 0 <= result.redirected <= result.relocations
    assert 2.0 <= result.handover <= 9.0
    assert (result.series != "") == (brokers == 24)


@pytest.mark.feature("data-gathering F44")
def test_baselines_run_on_the_same_maps_and_cost_what_they_must() -> None:
    ring, flooding, rendezvous = (run(one("S1", 24, scheme=s)) for s in ("ring", "flooding", "rendezvous"))
    assert flooding.sent == 23 * 150
    assert flooding.stored_max == 150
    assert ring.sent < flooding.sent
    assert ring.stored_max < flooding.stored_max
    assert rendezvous.deliveries == 150


@pytest.mark.feature("data-gathering F44")
def test_without_a_handover_things_are_lost_and_through_a_home_they_take_longer() -> None:
    ring, resubscribing, home = (run(one("M", 8, scheme=s)) for s in ("ring", "resubscribing", "home only"))
    assert ring.lost == home.lost == 0
    assert resubscribing.lost > 0
    assert resubscribing.subscribing_sent > ring.subscribing_sent
    assert home.latency_s > ring.latency_s


@pytest.mark.feature("data-gathering F35")
def test_a_run_is_decided_by_its_configuration() -> None:
    first, second = run(one("M", 16)), run(one("M", 16))
    first.wall_s = second.wall_s = 0.0
    assert first == second
    assert run(msgspec.structs.replace(one("M", 16), seed=4)).associations != first.associations


@pytest.mark.feature("data-gathering F36")
def test_phones_keep_their_broker_until_it_is_out_of_range_and_then_take_the_nearest() -> None:
    far = np.array([[5.0, 40.0], [24.0, 10.0], [26.0, 8.0], [60.0, 30.0], [60.0, 20.0], [90.0, 20.0]])
    assert attachments(far**2, ["a", "b"]) == [(0.0, "a"), (2.0, "b"), (3.0, None), (4.0, "b")]


@pytest.mark.feature("data-gathering F36")
def test_drifting_phones_stay_in_the_square_at_their_speed() -> None:
    field = Field(Streams(1))
    drift = Drift(
        width_m=100,
        height_m=100,
        speed_mps=(SPEED, SPEED),
        change_s=(100, 200),
        turn_rad=math.pi / 6,
        uniform=True,
        at=(99.0, 1.0),
    )
    field.add("p", drift)
    track = [tuple(float(axis[0]) for axis in field.positions(float(t))) for t in range(5000)]
    assert all(-1e-6 <= x <= 100 + 1e-6 and -1e-6 <= y <= 100 + 1e-6 for x, y in track)
    steps = [math.dist(a, b) for a, b in pairwise(track)]
    assert max(steps) <= SPEED + 1e-9
    headings = [math.atan2(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(track)]
    turns = [t for t in range(1, len(headings)) if abs(headings[t] - headings[t - 1]) > 1e-6]
    assert len(turns) > 20


def test_moves_name_real_brokers_and_alternate_with_absences() -> None:
    configuration = one("M", 8)
    names = {site.name for site in configuration.chart().sites}
    some = moves(configuration, 1500.0)
    assert len(some) == 32
    for path in some.values():
        assert {broker for _, broker in path if broker is not None} <= names
        assert [t for t, _ in path] == sorted(t for t, _ in path)
    assert RANGE == 25.0


@pytest.mark.parametrize(
    "wrong", [{"experiment": "S9"}, {"scheme": "smoke"}, {"experiment": "race", "variant": "none"}]
)
def test_a_run_that_nobody_knows_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one of"):
        Configuration(**{"seed": 1, "experiment": "S1", "brokers": 8, **wrong})  # type: ignore[arg-type]
