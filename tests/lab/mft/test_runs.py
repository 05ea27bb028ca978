"""One run: what decides it, what it counts, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from godwit.lab.mft.runs import SIDES_M, Configuration, Result, _deliveries, build, run
from godwit.protocols.host import Record
from godwit.protocols.routing.clients import Client
from godwit.sim.radio import CC2420
from godwit.sim.recorder import Trace

PROTOCOLS = ("mft", "hardened", "aodv")
SMALL = Configuration(size=2, speed_mps=2.0, seed=1, publish_s=10.0, drain_s=5.0)
TOGETHER = structs.replace(SMALL, side_m=5.0, publish_s=20.0)


def configured(**changes: Any) -> Configuration:
    return structs.replace(SMALL, **changes)


@pytest.mark.feature("mft-pubsub F33")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_configuration_gives_the_same_digest(protocol: str) -> None:
    assert run(configured(protocol=protocol)).digest == run(configured(protocol=protocol)).digest


@pytest.mark.feature("mft-pubsub F33")
def test_another_seed_is_another_run() -> None:
    assert run(SMALL).digest != run(configured(seed=2)).digest


@pytest.mark.feature("mft-pubsub F33", "mft-pubsub F29")
def test_all_protocols_see_the_same_movement() -> None:
    worlds = [build(configured(size=4, protocol=protocol)) for protocol in PROTOCOLS]
    for time_s in (0.0, 3.0, 12.5):
        places = [np.stack(radio.field.positions(time_s)) for _, radio, _ in worlds]
        assert all(np.array_equal(places[0], other) for other in places[1:])


@pytest.mark.feature("mft-pubsub F33", "mft-pubsub F31")
def test_all_protocols_publish_the_same_events_at_the_same_times() -> None:
    published = []
    for protocol in PROTOCOLS:
        world, _, trace = build(configured(protocol=protocol))
        world.run(15.0)
        published.append([(row[0], row[3], row[4]) for row in trace.of("published")])
    assert published[0] == published[1] == published[2]
    assert len(published[0]) == 2 * 10


@pytest.mark.feature("mft-pubsub F29")
def test_nodes_stay_in_an_area_that_keeps_the_density() -> None:
    for size, side_m in SIDES_M.items():
        assert side_m**2 / (2 * size + 2) == pytest.approx(200, rel=0.1)
    _, radio, _ = build(configured(size=8, speed_mps=10.0))
    for time_s in np.arange(0.0, 60.0, 5.0):
        places = np.stack(radio.field.positions(float(time_s)))
        assert (places >= 0).all()
        assert (places <= SIDES_M[8]).all()


@pytest.mark.feature("mft-pubsub F28")
def test_the_radio_is_the_published_one() -> None:
    _, radio, _ = build(SMALL)
    assert radio.profile is CC2420


@pytest.mark.feature("mft-pubsub F31", "mft-pubsub F32")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_where_everybody_hears_everybody_what_was_routed_arrives(protocol: str) -> None:
    result = run(structs.replace(TOGETHER, protocol=protocol))
    assert (result.published, result.wanted) == (40, 40)
    assert result.delivered >= 36
    assert result.rate == 1.0 if protocol != "aodv" else result.rate == result.honest_rate
    assert result.honest_rate == result.delivered / 40


@pytest.mark.feature("mft-pubsub F31")
def test_multicast_wants_every_event_for_every_subscriber() -> None:
    for protocol in PROTOCOLS:
        result = run(structs.replace(TOGETHER, protocol=protocol, workload="multicast"))
        assert (result.published, result.wanted) == (40, 80)
        assert 60 <= result.delivered <= 80


@pytest.mark.feature("mft-pubsub F32", "mft-pubsub F30")
def test_where_nobody_hears_anybody_only_aodv_is_to_blame() -> None:
    apart = configured(side_m=50_000.0)
    mft, aodv = run(apart), run(structs.replace(apart, protocol="aodv"))
    assert (mft.routed, mft.wanted, mft.delivered) == (0, 20, 0)
    assert (aodv.routed, aodv.wanted, aodv.delivered) == (20, 20, 0)


@pytest.mark.feature("mft-pubsub F32")
def test_the_published_denominator_leaves_out_what_no_broker_knew() -> None:
    """Two publishers, one second: four wanted pairs. Two are routed, three arrive, one of them replayed."""
    trace = Trace()
    for publisher in ("p0", "p1"):
        trace.record(0.0, publisher, Record("published", (publisher, 0), client=publisher))
    for subscriber in ("s00", "s01"):
        trace.record(0.1, "b00", Record("routed", ("p0", 0), client=subscriber))
    trace.record(0.2, "s00", Record("delivered", ("p0", 0), client="s00", hops=2, note="direct"))
    trace.record(0.4, "s00", Record("delivered", ("p1", 0), client="s00", hops=4, note="direct"))
    trace.record(3.0, "s01", Record("delivered", ("p1", 0), client="s01", hops=1, note="replayed"))
    trace.record(3.5, "s01", Record("duplicate", ("p1", 0), client="s01", hops=1, note="replayed"))
    counted = _deliveries(configured(publish_s=1.0, workload="multicast"), trace)
    assert counted["published"] == 2
    assert (counted["wanted"], counted["routed"], counted["delivered"], counted["delivered_routed"]) == (4, 2, 3, 1)
    assert (counted["replayed"], counted["duplicates"]) == (1, 1)
    assert counted["delay_mean_s"] == pytest.approx(1.2)
    assert counted["delay_direct_mean_s"] == pytest.approx(0.3)
    assert counted["delay_replayed_mean_s"] == pytest.approx(3.0)
    assert counted["hops_mean"] == pytest.approx(7 / 3)


@pytest.fixture(scope="module")
def hardened() -> Result:
    return run(structs.replace(TOGETHER, protocol="hardened"))


@pytest.mark.feature("mft-pubsub F32")
def test_messages_add_up_by_type_and_by_role(hardened: Result) -> None:
    total = sum(hardened.messages_by_type.values())
    assert hardened.messages_per_node == pytest.approx(total / 6)
    by_role = hardened.messages_by_role
    assert 2 * (by_role["broker"] + by_role["subscriber"] + by_role["publisher"]) == pytest.approx(total)
    beats = hardened.messages_by_type["Heartbeat"]
    assert hardened.messages_per_node_without_beacons == pytest.approx((total - beats) / 6)
    assert sum(hardened.beats_by_depth.values()) == beats


@pytest.mark.feature("mft-pubsub F32")
def test_acknowledged_messages_are_counted_as_what_they_carry(hardened: Result) -> None:
    assert "Numbered" not in hardened.messages_by_type
    assert hardened.messages_by_type["Pub"] > 40
    assert all(count <= hardened.messages_by_type[kind] for kind, count in hardened.repeated_by_type.items())


@pytest.mark.parametrize(("protocol", "acknowledged"), [("mft", False), ("hardened", True)])
def test_clients_of_hardened_brokers_have_everything_acknowledged(protocol: str, acknowledged: bool) -> None:
    world, _, _ = build(configured(protocol=protocol))
    for name in ("s00", "p0"):
        core = world.nodes[name].core
        assert isinstance(core, Client)
        assert core.options.acknowledge is acknowledged


@pytest.mark.feature("mft-pubsub F35")
def test_bytes_follow_the_message_sizes_of_the_spec() -> None:
    result = run(structs.replace(TOGETHER, protocol="aodv", payload_b=30))
    sizes = {"Hello": 20, "Rreq": 24, "Rrep": 20, "AodvData": 11 + 30}
    assert set(result.messages_by_type) <= set(sizes)
    sent_b = sum(sizes[kind] * count for kind, count in result.messages_by_type.items())
    assert result.bytes_per_node == pytest.approx(sent_b / 6)


@pytest.mark.feature("mft-pubsub F37")
def test_patience_spares_migrations() -> None:
    moving = configured(size=8, speed_mps=6.0, publish_s=30.0)
    hasty, patient = run(moving), run(structs.replace(moving, patience_s=2.5))
    assert patient.migrations_per_min < hasty.migrations_per_min / 2
    assert patient.attachments_per_min < hasty.attachments_per_min / 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": 3}, "size 3: give side_m, or one of 2, 4, 8, 16, 32"),
        ({"size": 0, "side_m": 10.0}, "size 0: must be more than 0"),
        ({"protocol": "ospf"}, "protocol 'ospf': mft, hardened or aodv"),
        ({"workload": "anycast"}, "workload 'anycast': unicast or multicast"),
        ({"speed_mps": 0.0}, "speed_mps 0: must be more than 0"),
        ({"speed_mps": float("nan")}, "speed_mps nan: must be more than 0"),
        ({"publish_s": -1.0}, "publish_s -1: must be more than 0"),
        ({"drain_s": -1.0}, "drain_s -1: must not be negative"),
        ({"side_m": -5.0}, "side_m -5: must not be negative"),
        ({"patience_s": float("inf")}, "patience_s inf: must not be negative"),
        ({"without": ("haste",)}, "no rule is called haste"),
    ],
)
def test_an_impossible_configuration_is_refused_before_anything_runs(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Configuration(**{**structs.asdict(SMALL), **changes})


def test_rules_can_be_left_out_by_name() -> None:
    rules = configured(protocol="hardened", without=("doubts",)).rules
    assert not rules.doubts
    assert rules.refresh
