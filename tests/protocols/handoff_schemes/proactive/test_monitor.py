from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import Desk, Stage

from godwit.protocols.handoff_schemes.messages import Pong
from godwit.protocols.handoff_schemes.proactive.monitor import SubscriberMonitor


@pytest.mark.feature("proactive-handoff F5")
def test_silence_for_two_pings_means_gone() -> None:
    stage = Stage("A")
    lost: list[str] = []
    monitor = SubscriberMonitor(Desk(stage, "A"), lost.append, ping_s=0.1, misses=2)
    monitor.watch("s")
    for _ in range(10):
        monitor.heard(Pong("s"))
        stage.pass_time(0.11)
    assert lost == []
    stage.pass_time(0.11)
    stage.pass_time(0.11)
    assert lost == ["s"]
    stage.pass_time(1)
    assert lost == ["s"]


@pytest.mark.feature("proactive-handoff F5")
def test_a_broken_connection_counts_at_once_and_one_forgotten_never() -> None:
    stage = Stage("A")
    lost: list[str] = []
    monitor = SubscriberMonitor(Desk(stage, "A"), lost.append)
    monitor.watch("s")
    monitor.closed("s")
    monitor.watch("t")
    monitor.forget("t")
    monitor.closed("t")
    stage.pass_time(1)
    assert lost == ["s"]
