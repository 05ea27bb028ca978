"""A slice of the table of random histories; the whole of it is a command of the lab."""

from __future__ import annotations

import pytest

from godwit.lab.convergence.trials import MIXES, PROTOCOLS, Mix, Protocol, trial

FIRST, PUBLISHED, PRINTED, NINE, HARDENED = PROTOCOLS
SEEDS = range(40)

every_mix = pytest.mark.parametrize("mix", MIXES, ids=[mix.name for mix in MIXES])
both_ways = pytest.mark.parametrize("settled", [True, False], ids=["settled", "concurrent"])
converges = pytest.mark.feature("mft-pubsub F24", "mft-pubsub F25", "mft-pubsub F22")


def failed(protocol: Protocol, mix: Mix, *, settled: bool, refresh: bool = False) -> list[int]:
    return [seed for seed in SEEDS if trial(protocol, mix, seed, settled=settled, refresh=refresh)]


@converges
@every_mix
@both_ways
def test_p19_hardened_tables_agree_without_waiting_for_a_refresh(mix: Mix, settled: bool) -> None:
    assert failed(HARDENED, mix, settled=settled) == []


@converges
@every_mix
def test_p19_rules_h1_to_h9_suffice_where_changes_come_one_by_one(mix: Mix) -> None:
    assert failed(NINE, mix, settled=True) == []


@converges
@every_mix
@both_ways
@pytest.mark.parametrize("protocol", [PUBLISHED, NINE, HARDENED], ids=lambda protocol: protocol.name)
def test_p19_one_refresh_repairs_whatever_the_rules(protocol: Protocol, mix: Mix, settled: bool) -> None:
    assert failed(protocol, mix, settled=settled, refresh=True) == []


@pytest.mark.feature("mft-pubsub F24")
@every_mix
@both_ways
def test_the_published_rules_fail_somewhere_in_every_row(mix: Mix, settled: bool) -> None:
    assert failed(PUBLISHED, mix, settled=settled)


@pytest.mark.feature("mft-pubsub F24", "mft-pubsub F7")
def test_the_first_approach_is_safe_while_one_broker_moves_at_a_time() -> None:
    for mix in MIXES[:3]:
        assert failed(FIRST, mix, settled=True) == []
    assert failed(FIRST, MIXES[3], settled=True)
    assert failed(FIRST, MIXES[4], settled=True)


@pytest.mark.feature("mft-pubsub F24")
def test_lists_without_tombstones_fail_more_often() -> None:
    everything = MIXES[-1]
    assert len(failed(PRINTED, everything, settled=True)) > len(failed(PUBLISHED, everything, settled=True))


@pytest.mark.feature("mft-pubsub F24")
def test_concurrent_changes_need_more_than_h1_to_h9() -> None:
    assert any(failed(NINE, mix, settled=False) for mix in MIXES)


@pytest.mark.feature("mft-pubsub F24")
def test_a_trial_is_decided_by_its_seed() -> None:
    once, again = ([trial(PUBLISHED, MIXES[-1], seed, settled=False) for seed in range(5)] for _ in range(2))
    assert once == again
