"""Scripts are the same for every protocol, nothing is lost in them, and costs keep their bounds."""

from __future__ import annotations

import msgspec
import pytest

from godwit.lab.relocation.runs import BATCH, DEPLOYED, PROTOCOLS, Configuration, run, script
from godwit.lab.relocation.verdicts import KINDS
from godwit.protocols.relocation.costs import Overlay, bounds

SMALL = Configuration(seed=1, protocol="ping/pong", brokers=16, subscribers=6, handovers=6)


def small(protocol: str, **others: object) -> Configuration:
    return msgspec.structs.replace(SMALL, protocol=protocol, **others)


@pytest.mark.feature("content-routing F40")
def test_every_protocol_replays_the_same_script() -> None:
    assert all(script(small(protocol)) == script(SMALL) for protocol in (*PROTOCOLS, *DEPLOYED))
    assert script(SMALL) != script(small("ping/pong", seed=2))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.feature("content-routing F40", "content-routing F39")
def test_after_a_warm_up_nothing_is_lost_and_the_bounds_hold(protocol: str) -> None:
    for mobility in ("border", "full"):
        result = run(small(protocol, mobility=mobility))
        assert (result.moved, result.flaws, result.incomplete) == (6, 0, 0)
        assert result.latency_s > 0
        if protocol in KINDS:
            overlay = Overlay(brokers=16, path=0, longest=result.longest, pings=3)
            # Links are counted here, and the bounds count brokers between: a way has one link more.
            assert result.signalling <= bounds(KINDS[protocol], overlay).incomplete_upper + 2


@pytest.mark.feature("content-routing F40")
def test_pings_take_a_period_more_and_covering_makes_some_handovers_free() -> None:
    pings, marker, covered = (
        run(small(name)) for name in ("ping/pong", "incomplete, addressed", "complete, addressed")
    )
    assert pings.latency_s > marker.latency_s + 0.1
    assert covered.signalling < marker.signalling < pings.signalling


@pytest.mark.feature("content-routing F40")
@pytest.mark.parametrize("fabric", DEPLOYED)
def test_the_deployed_broker_plays_the_same_script_without_a_flaw(fabric: str) -> None:
    result = run(small(fabric, brokers=6, subscribers=2, handovers=2))
    assert (result.moved, result.flaws) == (2, 0)
    assert 0 < result.latency_s < 2


def test_a_batch_of_trials_counts_those_that_went_wrong() -> None:
    result = run(Configuration(seed=1, protocol="", variant="acyclic, covering out of band"))
    assert result.trials == BATCH
    assert 0 < result.bad < BATCH


@pytest.mark.parametrize(
    "wrong", [{"protocol": "pigeons"}, {"mobility": "none"}, {"filters": "all"}, {"variant": "luck"}]
)
def test_what_nobody_knows_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one of"):
        msgspec.structs.replace(SMALL, **wrong)
