"""Deployed brokers find one another, lose one another and come back."""

from __future__ import annotations

from godwit.protocols.host import Message
from godwit.sim.brokers.cluster import Cluster

NAMES = ("b1", "b2", "b3")
LINE = (("b1", "b2"), ("b2", "b3"))


def known(cluster: Cluster, name: str) -> set[str]:
    return set(cluster.sites[name].station.tree.brokers)


def test_brokers_in_a_line_know_all_others() -> None:
    cluster = Cluster(NAMES, LINE, 1)
    cluster.run(10.0)
    assert all(known(cluster, name) == set(NAMES) - {name} for name in NAMES)


def test_whoever_is_cut_off_notices_late_and_speaks_again_once_the_link_is_whole() -> None:
    cluster = Cluster(NAMES, LINE, 1)
    cluster.run(10.0)
    cluster.cut("b1", "b2", notice_s=2.0)
    cluster.cut("b1", "b2")
    assert "b2" in cluster.sites["b1"].peers
    cluster.run(3.0)
    assert "b2" not in cluster.sites["b1"].peers
    cluster.heal("b1", "b2")
    cluster.run(1.0)
    assert "b2" not in cluster.sites["b1"].peers  # one of two cuts is left
    cluster.heal("b1", "b2")
    cluster.run(1.0)
    assert "b2" in cluster.sites["b1"].peers


def test_a_stalled_link_delays_and_keeps_the_order() -> None:
    cluster = Cluster(("b1", "b2"), (("b1", "b2"),), 1)
    cluster.run(10.0)
    seen: list[tuple[float, Message]] = []
    cluster.cables.spy = lambda sender, to, message: seen.append((cluster.engine.now, message))
    cluster.cables.stall("b1", "b2", cluster.engine.now + 2.0)
    begun_s = cluster.engine.now
    cluster.run(1.5)
    early = [time_s for time_s, _ in seen if time_s > begun_s + 0.2]
    cluster.run(2.0)
    assert early == []
    assert seen


def test_a_clock_that_runs_wrong_never_goes_back() -> None:
    cluster = Cluster(NAMES, LINE, 1)
    node = cluster.sites["b1"].node
    cluster.run(5.0)
    before = node.now()
    cluster.skew("b1", 0.5)
    assert node.now() == before
    cluster.run(2.0)
    assert node.now() == before + 1.0


def test_a_broker_that_lost_its_disk_is_found_again() -> None:
    cluster = Cluster(NAMES, LINE, 1)
    cluster.run(10.0)
    cluster.crash("b2")
    cluster.start("b2", keep_disk=False)
    cluster.run(30.0)
    assert known(cluster, "b2") == {"b1", "b3"}
