"""Scenarios are read strictly: what is wrong is named with its key before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.sim import scenario as described
from godwit.sim.scenario import ScenarioError, load

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "scenarios").glob("*.toml"))

WIRED = """
title = "two brokers"
duration_s = 10
[medium]
kind = "wired"
links = [["b1", "b2"], ["s1", "b2"]]
[[brokers]]
names = ["b1", "b2"]
[[subscribers]]
names = ["s1"]
wants = ["a > 1", "to = '{name}'"]
"""

AIR = """
title = "on the air"
duration_s = 10
area = { width_m = 50, height_m = 50 }
[medium]
kind = "disc"
range_m = 20
[[brokers]]
count = 12
mobility = { kind = "waypoint", speed_mps = [1, 2] }
[[publishers]]
count = 2
places = [[1, 1], [2, 2]]
event = { a = 1 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_good_scenarios(path: Path) -> None:
    assert load(path).names


def test_there_are_examples_of_every_kind_of_world() -> None:
    scenarios = [load(path).scenario for path in EXAMPLES]
    assert {type(s.medium) for s in scenarios} >= {described.Wires, described.IdealDisc, described.Cc2420}
    assert {type(s.protocol) for s in scenarios} == {described.Mft, described.Aodv}


@pytest.mark.feature("mft-pubsub F29")
def test_the_published_c8_has_its_figures() -> None:
    c8 = load(next(path for path in EXAMPLES if path.stem == "c8"))
    roles = [role for role, _ in c8.names.values()]
    assert {role: roles.count(role) for role in roles} == {"brokers": 8, "subscribers": 8, "publishers": 2}
    assert c8.scenario.area == described.Area(width_m=60, height_m=60)
    assert c8.scenario.duration_s == 700
    assert c8.scenario.publishers[0].until_s == 500


def test_counted_nodes_are_numbered_so_that_their_names_sort(tmp_path: Path) -> None:
    names = list(load(written(tmp_path, AIR)).names)
    assert names[:3] == ["b00", "b01", "b02"]
    assert names[-2:] == ["p0", "p1"]


@pytest.mark.feature("mft-pubsub F3")
def test_a_subscriber_can_want_what_names_it(tmp_path: Path) -> None:
    wanted = load(written(tmp_path, WIRED)).wanted["s1"]
    assert [f.matches({"to": "s1"}) for f in wanted] == [False, True]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('title = "two brokers"', "", "lacks required field `title`"),
        ("duration_s = 10", "duration_s = 10\nspeed = 3", "has unknown field `speed`"),
        ("duration_s = 10", "duration_s = -1", "duration_s: Expected `float` > 0.0"),
        ("duration_s = 10", "duration_s = inf", "duration_s: inf is not a finite number"),
        ("duration_s = 10", "duration_s = ", "not TOML"),
        ('kind = "wired"', 'kind = "telepathy"', "medium.kind: Invalid value 'telepathy'"),
        ('kind = "wired"', 'kind = "wired"\nlatency_s = -0.1', "medium.latency_s: Expected `float` >= 0.0"),
        ('kind = "wired"', 'kind = "wired"\nlatency_s = nan', "medium.latency_s: nan"),
        ('kind = "wired"', 'kind = "wired"\nloss = 1.5', "medium.loss: Expected `float` <= 1.0"),
        ('kind = "wired"', 'kind = "wired"\nrange_m = 5', "medium: has unknown field `range_m`"),
        ('["s1", "b2"]', '["s1", "b9"]', "medium.links[1]: there is no node 'b9'"),
        ('["s1", "b2"]', '["b2", "b1"]', "medium.links[1]: b2 - b1 is there twice"),
        ('names = ["b1", "b2"]', 'names = ["b1", "b1"]', "brokers[0]: there are two nodes 'b1'"),
        ('names = ["b1", "b2"]', 'names = ["x1", "b1", "b2"]', "'x1' will not do"),
        ('names = ["b1", "b2"]', 'names = ["b1", "b2"]\ncount = 2', "brokers[0]: give either names or count"),
        ('names = ["b1", "b2"]', 'names = ["b1", "b2"]\nplaces = [[1, 2]]', "1 places for 2 nodes"),
        ("a > 1", "a >", "subscribers[0].wants: "),
        (
            'wants = ["a > 1", "to = \'{name}\'"]',
            'mobility = { kind = "walk", speed_mps = [1, 2] }',
            "subscribers[0].mobility: nobody moves on wires",
        ),
    ],
)
def test_what_is_wrong_on_wires_is_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in WIRED
    path = written(tmp_path, WIRED.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("width_m = 50", "width_m = 0", "area.width_m: Expected `float` > 0.0"),
        ("range_m = 20", "range_m = -20", "medium.range_m: Expected `float` > 0.0"),
        ("[1, 2] }", "[2, 1] }", "brokers[0].mobility.speed_mps: [2, 1] is upside down"),
        ("[1, 2] }", "[-2, 1] }", "brokers[0].mobility.speed_mps[0]: Expected `float` >= 0.0"),
        ("[[1, 1], [2, 2]]", "[[1, 1], [2, 51]]", "publishers[0].places[1]: (2, 51) lies outside the area"),
        ("places = [[1, 1], [2, 2]]", "", "publishers[0]: on the air everybody needs places or mobility"),
        ("area = { width_m = 50, height_m = 50 }", "", "brokers[0].mobility: there is no area to move in"),
        ("event = { a = 1 }", "every_s = 0", "publishers[0].every_s: Expected `float` > 0.0"),
        ("event = { a = 1 }", "every_s = -2", "publishers[0].every_s: Expected `float` > 0.0"),
        ("event = { a = 1 }", "from_s = 20", "publishers[0].until_s: 10 is not after from_s, 20"),
        ("event = { a = 1 }", "event = { a = [] }", "publishers[0].event.a: there is nothing to draw"),
        ("event = { a = 1 }", 'event = { a = "{subscriber}" }', "publishers[0].event.a: there are no subscribers"),
        ("event = { a = 1 }", "event = { a = {low = 2, high = 1} }", "publishers[0].event.a: low 2 is above high 1"),
        ('kind = "waypoint"', 'kind = "teleport"', "brokers[0].mobility.kind: Invalid value 'teleport'"),
        ("count = 12", "count = 0", "brokers[0].count: Expected `int` >= 1"),
        (
            "event = { a = 1 }",
            'event = { a = 1 }\n[[faults]]\nat_s = 1\ndo = "partition"\nsides = [["b00"], ["b01"]]',
            "faults[0]: there are no links to break on the air",
        ),
        (
            "event = { a = 1 }",
            '[[faults]]\nat_s = 11\ndo = "crash"\nnode = "b00"',
            "faults[0].at_s: 11 is after the end",
        ),
        (
            "event = { a = 1 }",
            '[[faults]]\nat_s = 1\ndo = "crash"\nnode = "b77"',
            "faults[0].node: there is no node 'b77'",
        ),
        ("event = { a = 1 }", '[[faults]]\nat_s = 1\ndo = "explode"', "faults[0].do: Invalid value 'explode'"),
    ],
)
def test_what_is_wrong_on_the_air_is_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert old in AIR
    with pytest.raises(ScenarioError) as caught:
        load(written(tmp_path, AIR.replace(old, new, 1)))
    assert complaint in str(caught.value)


REPLAYED = AIR.replace("count = 12", 'names = ["b1"]').replace(
    'kind = "waypoint", speed_mps = [1, 2]', 'kind = "replay", file = "walk.csv"'
)


def test_a_recording_is_read_from_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text("node,time_s,x_m,y_m\nb1,0,1,2\nb9,0,9,9\nb1,10,3,4\n")
    (recording,) = load(written(tmp_path, REPLAYED)).recordings.values()
    assert recording.times_s == (0.0, 10.0)
    assert recording.ys_m == (2.0, 4.0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "No such file"),
        ("node,time_s\nb1,0\n", "has no column x_m, y_m"),
        ("node,time_s,x_m,y_m\nb2,0,1,2\n", "has no fix of 'b1'"),
        ("node,time_s,x_m,y_m\nb1,0,1,2\nb1,soon,1,2\n", "line 3: could not convert"),
        ("node,time_s,x_m,y_m\nb1,0,1\n", "line 2: "),
        ("node,time_s,x_m,y_m\nb1,5,1,2\nb1,4,1,2\n", "'b1': the times of a recording must increase"),
        ("node,time_s,x_m,y_m\nb1,nan,1,2\n", "finite"),
    ],
)
def test_an_unreadable_recording_is_named_with_its_file(tmp_path: Path, content: str | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / "walk.csv").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        load(written(tmp_path, REPLAYED))
    assert "brokers[0].mobility.file" in str(caught.value)
    assert "walk.csv" in str(caught.value)
    assert complaint in str(caught.value)


def test_a_file_that_is_no_scenario_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="not a text file"):
        load(tmp_path / "binary.toml")
