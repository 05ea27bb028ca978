"""The fit of what the durable scheme never does: hidden costs are found again, and only X2 and X10 enter."""

from __future__ import annotations

import msgspec
import pytest
from tests.lab.handoff.test_verdicts import as_published

from godwit.lab.handoff.bed import Costs
from godwit.lab.handoff.extras import FITTED, FREE, SHARED, START, Fit, fitted, targets
from godwit.lab.handoff.runs import Configuration, Result

pytestmark = pytest.mark.feature("proactive-handoff F32")


def test_only_throughput_and_latency_of_the_other_schemes_enter() -> None:
    fit = Fit()
    assert {scheme for scheme, _, _ in fit.cells} == {"reactive", "proactive"}
    assert [published for _, published, _ in targets(("reactive", 100, "RND"))] == [664.39, 0.841]
    assert [published for _, published, _ in targets(("proactive", 200, "NBR"))] == [1420.26]
    assert set(FITTED) == set(START) == set(FREE)


def test_the_shared_channel_carries_the_published_rate_and_no_larger_message() -> None:
    size_b = SHARED["size_b"]
    assert isinstance(size_b, int)
    assert 1420.26 * size_b * 8 <= 11e6 < 1420.26 * (size_b + 1) * 8


def test_a_fit_finds_costs_that_were_hidden_from_it() -> None:
    truth = {"notice_s": 0.003, "standin_s": 0.0004, "moved_event_s": 0.004}

    def work(configuration: Configuration) -> Result:
        """Throughput falls and latency rises with the costs, and both are as published at the truth."""
        said = {name: getattr(configuration, name) for name in FREE}
        kept = said["standin_s"] / truth["standin_s"] if configuration.scheme == "proactive" else 1.0
        moved = said["moved_event_s"] / truth["moved_event_s"] if configuration.scheme == "reactive" else 1.0
        notice = said["notice_s"] / truth["notice_s"]
        made = as_published(configuration)
        return msgspec.structs.replace(
            made,
            throughput_per_s=made.throughput_per_s * (kept * moved) ** -0.5,
            latency_s=made.latency_s * notice,
        )

    told: list[float] = []
    found = fitted(Fit(), dict(START), 8, lambda values, error: told.append(error), work)
    assert min(told) < told[0] / 20
    for name, value in truth.items():
        assert found[name] == pytest.approx(value, rel=0.05)


def test_costs_that_are_not_given_are_put_together_from_what_durable_does() -> None:
    plain, given = Costs(), Costs(notice_s=0.002, standin_s=0.0001, moved_event_s=0.003)
    assert plain.control_s == plain.deliver_s
    assert plain.kept_for_standin_s == plain.store_s
    assert plain.moved_s(2) == plain.control_s + plain.accept_s + 2 * plain.store_s
    assert (given.control_s, given.kept_for_standin_s) == (0.002, 0.0001)
    assert given.moved_s(2) == pytest.approx(0.008)
