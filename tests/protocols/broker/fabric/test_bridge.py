"""Tree and air joined by one, two or three brokers: everything crosses, nothing runs in circles or comes twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.protocols.adhoc.messages import Data
from godwit.sim.brokers.sky import Sky


def joined(bridges: int = 2, seed: int = 1) -> Sky:
    """t1 and t2 in the tree, x and y in the air, and bridges that x hears."""
    names = [f"b{number}" for number in range(1, bridges + 1)]
    sky = Sky([*names, "x", "y"], [*names, "t1", "t2"], seed=seed)
    sky.join("x", "y")
    for name in names:
        sky.join("x", name)
    sky.run(12)
    return sky


def toggle(sky: Sky, a: str, b: str) -> None:
    """Cut the cable between them, or mend it."""
    cables = sky.medium.cables
    (cables.cut if cables.links[a][b].up else cables.heal)(a, b)
    sky.tell(a, b)


def heal(sky: Sky) -> None:
    for a in sky.tree:
        for b in sky.tree:
            if a < b and not sky.medium.cables.links[a][b].up:
                toggle(sky, a, b)


@pytest.mark.parametrize("bridges", [1, 2, 3])
def test_what_is_published_in_the_air_reaches_the_tree_once(bridges: int) -> None:
    sky = joined(bridges)
    far, near = sky.client("far", "t1", "news/#"), sky.client("near", "b1", "news/#")
    speaker = sky.client("speaker", "y")
    sky.run(12)
    said = [speaker.publish("news/x", b"%d" % number, qos=1).payload for number in range(20)]
    sky.run(10)
    assert far.payloads == said
    assert near.payloads == said


@pytest.mark.parametrize("bridges", [1, 2, 3])
def test_what_is_published_in_the_tree_reaches_the_air_once(bridges: int) -> None:
    sky = joined(bridges)
    far = sky.client("far", "y", "news/#")
    speakers = [sky.client("speaker-1", "t1"), sky.client("speaker-2", "b1")]
    sky.run(12)
    for speaker in speakers:
        said = [speaker.publish("news/x", b"%s %d" % (speaker.name.encode(), n), qos=1).payload for n in range(20)]
        sky.run(10)
        assert far.payloads == said
        far.got.clear()


def test_the_air_hears_nothing_of_the_tree_that_it_does_not_want() -> None:
    sky = joined()
    sky.client("far", "y", "news/#")
    sky.client("home", "t2", "weather/#")
    speakers = [sky.client("speaker-1", "t1"), sky.client("speaker-2", "b1")]
    sky.run(12)
    before = sky.sent(Data)
    for speaker in speakers:
        speaker.publish("weather/x", qos=1)
    sky.run(5)
    assert sky.sent(Data) == before


def test_interest_that_has_gone_leaves_both_sides() -> None:
    """Two bridges must not go on wanting something because each hears that the other does."""
    sky = joined()
    client = sky.client("far", "y", "news/#")
    sky.run(12)
    assert any(sky["t1"].fabric.interests["b1"])
    client.connection.site.broker.unsubscribe(client.session, ["news/#"])  # type: ignore[union-attr]
    sky.run(60)
    assert sky["t1"].fabric.interests["b1"] == sky["t1"].fabric.interests["b2"] == ()


def test_a_tree_joins_two_parts_of_the_air_that_do_not_hear_each_other() -> None:
    sky = Sky(["b1", "b2", "x", "y"], ["b1", "b2", "t"])
    sky.join("x", "b1")
    sky.join("y", "b2")
    hearer, speaker = sky.client("hearer", "y", "news/#"), sky.client("speaker", "x")
    sky.run(20)
    said = [speaker.publish("news/x", b"%d" % number).payload for number in range(10)]
    sky.run(10)
    assert hearer.payloads == said


def test_the_air_joins_no_parts_of_a_tree_which_catch_up_by_themselves_once() -> None:
    """Streams owe every copy in the tree: what the air brought before them would come twice."""
    sky = joined()
    hearer, speaker = sky.client("hearer", "t2", "#"), sky.client("speaker", "t1")
    sky.client("far", "y", "#")
    sky.run(12)
    for one in ("b1", "t1"):
        for other in ("b2", "t2"):
            sky.medium.cables.cut(one, other)
            sky.tell(one, other)
    said = [speaker.publish("x", b"%d" % number, qos=1).payload for number in range(10)]
    sky.run(20)
    for one in ("b1", "t1"):
        for other in ("b2", "t2"):
            sky.medium.cables.heal(one, other)
            sky.tell(one, other)
    sky.run(60)
    assert hearer.payloads == said


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_a_session_that_moves_in_the_tree_gets_what_two_bridges_bring_once(seed: int) -> None:
    """Each bridge turns to the new place at a moment of its own, and brings what it hears when it hears it."""
    sky = joined(2, seed)
    walker, sitter = sky.client("walker", "t1", "#"), sky.client("sitter", "t2", "#")
    speakers = [sky.client(f"from-{name}", name) for name in ("t2", "b1", "x", "y")]
    sky.run(15)
    sky.medium.loss = 0.15
    dice, said = sky.world.streams.stream("chaos"), []
    for number in range(60):
        speaker = dice.choice(speakers)
        said.append(speaker.publish("z", b"%s %d" % (speaker.name.encode(), number), qos=2).payload)
        if dice.random() < 0.25:
            toggle(sky, *sorted(dice.sample(sky.tree, 2)))
        if dice.random() < 0.25:
            bridge = dice.choice(("b1", "b2"))
            (sky.part if bridge in sky.medium.ears["x"] else sky.join)("x", bridge)
        if dice.random() < 0.3:
            walker.drop(notice_s=dice.choice((0.0, 0.2, None))).connect(dice.choice(sky.tree))
        sky.run(dice.choice((0.0, 0.02, 0.1, 1.0)))
    sky.medium.loss = 0.0
    for bridge in ("b1", "b2"):
        sky.join("x", bridge)
    heal(sky)
    sky.run(60)
    walker.drop(notice_s=0.0).connect("t1")
    sky.run(60)
    assert sorted(walker.payloads) == sorted(said)
    assert sorted(sitter.payloads) == sorted(said)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_lost_frames_and_broken_cables_bring_nothing_twice(seed: int, bridges: int) -> None:
    sky = joined(bridges, seed)
    sky.medium.loss = 0.15
    hearers = [sky.client(f"at-{name}", name, "#") for name in ("t1", "b1", "x", "y")]
    speakers = [sky.client(f"from-{name}", name) for name in ("t2", "b1", "y")]
    sky.run(15)
    dice = sky.world.streams.stream("chaos")
    said = []
    for number in range(40):
        speaker = dice.choice(speakers)
        said.append(speaker.publish("z", b"%s %d" % (speaker.name.encode(), number), qos=1).payload)
        if dice.random() < 0.3:
            toggle(sky, *sorted(dice.sample(sky.tree, 2)))
        sky.run(dice.uniform(0, 1))
    sky.medium.loss = 0.0
    heal(sky)
    sky.run(90)
    for hearer in hearers:
        assert sorted(hearer.payloads) == sorted(said)
