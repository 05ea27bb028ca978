"""Clients of nodes without infrastructure get what was published many hops away, once, also after partitions."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.protocols.adhoc.messages import Beacon
from godwit.protocols.broker.fabric.adhoc import field_options
from godwit.sim.brokers.sky import FIELD, Sky
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import WIFI_TWO_RAY, Radio

DAY_S = 24 * 3600.0

pytestmark = pytest.mark.feature("manet-cbr F4")


def line(names: str = "abcd", **more: object) -> Sky:
    sky = Sky(names, **more)  # type: ignore[arg-type]
    sky.join(*names)
    return sky


def test_a_client_gets_what_was_published_three_hops_away() -> None:
    sky = line()
    hearer, speaker = sky.client("hearer", "d", "news/#"), sky.client("speaker", "a")
    sky.run(10)
    speaker.publish("news/today", b"hello", qos=1)
    speaker.publish("weather/today", b"rain")
    sky.run(3)
    assert hearer.payloads == [b"hello"]
    assert speaker.accepts[0][1] == 0


def test_content_decides_and_the_relays_need_want_nothing() -> None:
    sky = line()
    hearer, speaker = sky.client("hearer", "d", "air/#", "pm25 > 150"), sky.client("speaker", "a")
    sky.run(10)
    for value in (100, 200, 151):
        speaker.publish("air/beijing", b'{"pm25": %d}' % value)
    sky.run(3)
    assert hearer.payloads == [b'{"pm25": 200}', b'{"pm25": 151}']


def test_what_nobody_wants_is_said_once_and_goes_no_further_than_its_credit() -> None:
    sky = line("abcdef")
    sky.client("hearer", "f", "news/#")
    speaker = sky.client("speaker", "a")
    sky.run(15)
    before = sky.sent()
    speaker.publish("weather/today")
    sky.run(5)
    assert sky.sent() - before == 1 + FIELD.credits


def test_a_burst_keeps_its_order_over_many_hops() -> None:
    sky = line("abcde")
    hearer, speaker = sky.client("hearer", "e", "#"), sky.client("speaker", "a")
    sky.run(12)
    said = [b"%d" % number for number in range(200)]
    for payload in said:
        speaker.publish("count", payload)
    sky.run(30)
    assert hearer.payloads == said


@pytest.mark.parametrize("gap", [("b", "c"), ("a", "b"), ("c", "d")])
def test_what_was_published_while_a_link_was_down_arrives_after_it_is_up(gap: tuple[str, str]) -> None:
    sky = line()
    hearer, speaker = sky.client("hearer", "d", "news/#"), sky.client("speaker", "a")
    sky.run(10)
    sky.part(*gap)
    said = []
    for number in range(40):
        said.append(b"%d" % number)
        speaker.publish("news/x", said[-1], qos=1)
        sky.run(1)
    assert hearer.payloads == []
    sky.join(*gap)
    sky.run(20)
    assert sorted(hearer.payloads) == sorted(said)


def test_a_session_keeps_what_came_while_its_client_was_away_and_does_not_follow_it_to_another_node() -> None:
    sky = line()
    hearer, speaker = sky.client("hearer", "d", "#", expiry_s=3600.0), sky.client("speaker", "a")
    sky.run(10)
    hearer.drop()
    speaker.publish("x", b"kept", qos=1)
    sky.run(5)
    hearer.connect("c")
    sky.run(5)
    assert hearer.presents[-1] is False
    hearer.drop()
    hearer.connect("d")
    sky.run(5)
    assert hearer.presents[-1] is True
    assert hearer.payloads == [b"kept"]


def test_a_node_that_restarts_gets_nothing_again_that_others_still_carry() -> None:
    sky = line("abc")
    hearer, speaker = sky.client("hearer", "c", "#", expiry_s=3600.0), sky.client("speaker", "a")
    sky.run(8)
    said = [speaker.publish("x", b"%d" % number, qos=1).payload for number in range(10)]
    sky.run(5)
    sky.world.nodes["c"].restart()
    sky.run(5)
    hearer.connect("c")
    said.append(speaker.publish("x", b"after", qos=1).payload)
    sky.run(10)
    assert hearer.payloads == said


def test_a_publication_is_not_brought_after_its_time_whatever_the_clocks_say() -> None:
    sky = line("ab")
    hearer, speaker = sky.client("hearer", "b", "#"), sky.client("speaker", "a")
    sky.run(5)
    sky.part("a", "b")
    speaker.publish("x", b"short", expires=sky.clock() + 5)
    speaker.publish("x", b"long", expires=sky.clock() + 500)
    sky.run(30)
    sky.join("a", "b")
    sky.run(10)
    assert hearer.payloads == [b"long"]
    assert sky["b"].air is not None
    assert sky["b"].air.counts.expired == 1


@pytest.mark.parametrize("wrong_s", [-8 * DAY_S, 8 * DAY_S])
@pytest.mark.parametrize("wrong", ["a", "b", "c"])
def test_a_node_days_off_loses_nothing_for_a_client_that_is_away(wrong: str, wrong_s: float) -> None:
    """Who publishes, who carries, or where the client is: what comes at once and what comes after a partition."""
    sky = line("abc", offsets_s={wrong: wrong_s})
    hearer, speaker = sky.client("hearer", "c", "#", expiry_s=7200.0), sky.client("speaker", "a")
    sky.run(8)
    hearer.drop()
    said = []
    for parted in (False, True):
        if parted:
            sky.part("b", "c")
        for number in range(5):
            ends = sky["a"].broker.steady() + 600.0
            said.append(speaker.publish("x", b"%d %d" % (parted, number), qos=1).payload)
            said.append(speaker.publish("x", b"%d %d ends" % (parted, number), qos=1, expires=ends).payload)
        sky.run(100)
    sky.join("b", "c")
    sky.run(20)
    hearer.connect("c")
    sky.run(5)
    assert hearer.payloads == said


def test_a_retained_publication_is_kept_by_nodes_that_wanted_it() -> None:
    sky = line()
    hearer, speaker = sky.client("hearer", "d", "state/#"), sky.client("speaker", "a")
    sky.run(10)
    speaker.publish("state/door", b"open", retain=True)
    sky.run(3)
    late = sky.client("late", "d", "state/#")
    sky.run(1)
    assert hearer.payloads == late.payloads == [b"open"]
    assert late.got[0].retain


def test_beacons_fit_their_frame_however_much_is_wanted_and_known() -> None:
    names = [f"node-with-a-long-name-{number}" for number in range(12)]
    sky = Sky(names, options=field_options(beacon_max_b=600))
    for one in names:
        sky.join(*(other for other in names if other != one))
        sky.medium.ears[one] = {other for other in names if other != one}
    for number, name in enumerate(names):
        client = sky.client(f"c{number}", name)
        for topic in range(20):
            client.subscribe(f"a/{number}/{topic}/#", f"v{topic} > {number}")
    speakers = [sky.client(f"s{number}", name) for number, name in enumerate(names)]
    for speaker in speakers:
        for _ in range(5):
            speaker.publish("a/1/1/x", b'{"v1": 50}')
    sky.run(20)
    assert max(size for _, message, size in sky.medium.aired if isinstance(message, Beacon)) <= 600
    got = sky.clients["c1"].payloads
    assert len(got) == 5 * len(names)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_lost_frames_and_changing_links_bring_nothing_twice(seed: int) -> None:
    sky = line("abcde", seed=seed)
    sky.join("a", "c", "e")
    sky.medium.loss = 0.2
    hearers = [sky.client(f"at-{name}", name, "#") for name in "bde"]
    speakers = [sky.client(f"from-{name}", name) for name in "ac"]
    dice = sky.world.streams.stream("links")
    said = []
    for number in range(60):
        speaker = dice.choice(speakers)
        said.append(speaker.publish("x", b"%s %d" % (speaker.name.encode(), number), qos=dice.choice((0, 1))).payload)
        pair = dice.sample("abcde", 2)
        dice.choice((sky.part if pair[1] in sky.medium.ears[pair[0]] else sky.join, lambda a, b: None))(*pair)
        sky.run(dice.uniform(0, 2))
    sky.join(*"abcde")
    sky.medium.loss = 0.0
    sky.run(60)
    for hearer in hearers:
        assert sorted(hearer.payloads) == sorted(said)


@pytest.mark.parametrize("seed", [1, 2])
def test_walking_nodes_with_a_real_radio_deliver_to_sessions(seed: int) -> None:
    """Twenty nodes on a field of 800 m, hardly ever all connected, with collisions."""
    names = [f"n{number}" for number in range(20)]
    sky = Sky(
        names,
        seed=seed,
        options=field_options(carry_s=240.0),
        radio=partial(Radio, profile=WIFI_TWO_RAY),
        move=lambda name: Waypoint(width_m=800, height_m=800, speed_mps=(5, 15)),
    )
    hearers = [sky.client(f"hearer-{number}", names[number], "walk/#") for number in range(5)]
    speakers = [sky.client(f"speaker-{number}", names[-1 - number]) for number in range(3)]
    sky.run(20)
    said = []
    for number in range(20):
        said += [one.publish("walk/x", b"%s %d" % (one.name.encode(), number), qos=1).payload for one in speakers]
        sky.run(1)
    sky.run(200)
    for hearer in hearers:
        assert len(hearer.payloads) == len(set(hearer.payloads))
        assert len(hearer.payloads) >= 0.98 * len(said)
