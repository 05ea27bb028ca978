"""Scenarios: a world in a small TOML file, checked to the last key before anything runs.

`load` reads and checks; `godwit.sim.stage` builds the world. Node names carry the role: brokers begin with b, which is
what tells the protocols apart who may be a neighbor in the tree.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from godwit.events import Value
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter
from godwit.filters.text import parse
from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.host import NodeId
from godwit.protocols.topology.election import Choice
from godwit.sim.mobility import Replay
from godwit.sim.radio import CC2420

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Chance = Annotated[float, Meta(ge=0, le=1)]
Pair = tuple[float, float]
Name = Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_-]*$")]


class ScenarioError(ValueError):
    """A scenario that cannot be run: the message names the file, the key and what would be right."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in which every key means something."""


class Area(Strict, frozen=True):
    width_m: Positive
    height_m: Positive


class Wires(Strict, frozen=True, tag="wired", tag_field="kind"):
    links: tuple[tuple[NodeId, NodeId], ...]
    latency_s: NotNegative = 0.001
    latency_spread_s: NotNegative = 0.0
    """The mean of what chance adds to the latency of each message."""
    bytes_per_s: Positive | None = None
    loss: Chance = 0.0
    duplication: Chance = 0.0


class IdealDisc(Strict, frozen=True, tag="disc", tag_field="kind"):
    range_m: Positive
    bits_per_s: Positive = 250_000.0


class Cc2420(Strict, frozen=True, tag="cc2420", tag_field="kind"):
    sigma_db: NotNegative = CC2420.sigma_db
    one_way_sigma_db: NotNegative = CC2420.one_way_sigma_db
    mtu_b: Annotated[int, Meta(gt=CC2420.overhead_b)] | None = None


class TwoRay(Strict, frozen=True, tag="two-ray", tag_field="kind"):
    """The 914 MHz card with two-ray ground: heard to 250 m, sensed to 550 m."""


class Mft(Strict, frozen=True, tag="mft", tag_field="kind"):
    rules: Literal["hardened", "thesis"] = "hardened"
    period_s: Positive = 1.0
    choice: Choice = Choice.FIRST
    hold_s: NotNegative = 0.0
    patience_s: NotNegative = 0.0
    refresh_s: Positive = 10.0
    acknowledge: bool = True
    queue_max: Annotated[int, Meta(gt=0)] | None = None


class Aodv(Strict, frozen=True, tag="aodv", tag_field="kind"):
    expanding_ring: bool = True


class Moving(Strict, frozen=True):
    """What the three ways of wandering about share."""

    speed_mps: tuple[NotNegative, NotNegative]


class ByWaypoint(Moving, frozen=True, tag="waypoint", tag_field="kind"):
    pause_s: NotNegative = 0.0


class ByWalk(Moving, frozen=True, tag="walk", tag_field="kind"):
    tick_s: Positive = 1.0


class ByMass(Moving, frozen=True, tag="mass", tag_field="kind"):
    change_s: tuple[Positive, NotNegative] = (5.0, 1.0)
    turn_rad: NotNegative = 0.5


class ByReplay(Strict, frozen=True, tag="replay", tag_field="kind"):
    """A CSV file with the columns node, time_s, x_m and y_m, beside the scenario unless its path is absolute."""

    file: str
    gap_max_s: Positive = 300.0


Mobility = ByWaypoint | ByWalk | ByMass | ByReplay


class Group(Strict, frozen=True):
    """Nodes of one role: by name, or so many. On the air they have places or mobility; on wires places only draw."""

    names: tuple[Name, ...] = ()
    count: Annotated[int, Meta(gt=0, le=10_000)] | None = None
    places: tuple[Pair, ...] = ()
    mobility: Mobility | None = None


class Brokers(Group, frozen=True):
    kind: Literal["protocol", "product"] = "protocol"
    """What runs there: the protocol of the scenario, or the broker that people deploy."""
    handoff: Handoff = "proactive"
    """Of the product: how sessions follow their clients."""
    session_wait_s: NotNegative = 10.0


class Clients(Group, frozen=True):
    """With the product they may roam: so often, in the mean, each goes to another of the brokers it is linked to."""

    roam_every_s: Positive | None = None
    away_s: NotNegative = 1.0
    """For how long it is nowhere on the way, in the mean."""


class Subscribers(Clients, frozen=True):
    wants: str | tuple[str, ...] = "TRUE"
    """Filters; `{name}` stands for the subscriber's own name."""


class Between(Strict, frozen=True):
    """A number drawn anew for every event, whole where both ends are."""

    low: int | float
    high: int | float


class Publishers(Clients, frozen=True):
    every_s: Positive = 1.0
    from_s: NotNegative = 0.0
    until_s: Positive | None = None
    payload_b: Annotated[int, Meta(ge=0, le=65536)] = 16
    event: dict[str, Value | tuple[Value, ...] | Between] = field(default_factory=dict)
    """Attributes. One of a list is drawn for each event; `{subscriber}` in a text stands for any one subscriber."""


class Fault(Strict, frozen=True):
    at_s: NotNegative


class Crash(Fault, frozen=True, tag="crash", tag_field="do"):
    node: NodeId


class Restart(Fault, frozen=True, tag="restart", tag_field="do"):
    node: NodeId
    keep_disk: bool = True


class Skew(Fault, frozen=True, tag="skew", tag_field="do"):
    node: NodeId
    rate: Positive = 1.0
    offset_s: NotNegative = 0.0


class Lose(Fault, frozen=True, tag="lose", tag_field="do"):
    link: tuple[NodeId, NodeId]
    loss: Chance = 0.0
    duplication: Chance = 0.0


class Partition(Fault, frozen=True, tag="partition", tag_field="do"):
    sides: tuple[tuple[NodeId, ...], ...]


class Merge(Fault, frozen=True, tag="merge", tag_field="do"):
    sides: tuple[tuple[NodeId, ...], ...]


AnyFault = Crash | Restart | Skew | Lose | Partition | Merge
PREFIXES = {"brokers": "b", "subscribers": "s", "publishers": "p"}


class Scenario(Strict, frozen=True):
    title: str
    duration_s: Positive
    medium: Wires | IdealDisc | Cc2420 | TwoRay
    brokers: tuple[Brokers, ...] = ()
    subscribers: tuple[Subscribers, ...] = ()
    publishers: tuple[Publishers, ...] = ()
    protocol: Mft | Aodv = Mft()
    area: Area | None = None
    faults: tuple[AnyFault, ...] = ()

    @property
    def is_product(self) -> bool:
        """Whether deployed brokers play it."""
        return any(group.kind == "product" for group in self.brokers)

    def groups(self) -> Iterator[tuple[str, Group, list[NodeId]]]:
        """Every group with its key and the names of its nodes; counted groups of one role are numbered through."""
        for role, prefix in PREFIXES.items():
            groups: Sequence[Group] = getattr(self, role)
            width = len(str(sum(group.count or 0 for group in groups) - 1))
            number = 0
            for place, group in enumerate(groups):
                counted = range(number, number + (group.count or 0))
                number += len(counted)
                yield f"{role}[{place}]", group, [*group.names, *(f"{prefix}{n:0{width}d}" for n in counted)]


class Loaded(msgspec.Struct, frozen=True):
    """A scenario that can be run, with what its files and filters hold."""

    scenario: Scenario
    names: dict[NodeId, tuple[str, int]]
    """Role of every node, and the number of its group."""
    wanted: dict[NodeId, tuple[Filter, ...]]
    recordings: dict[NodeId, Replay]


def load(path: Path) -> Loaded:
    """Read and check a scenario; `ScenarioError` names whatever cannot be."""
    try:
        raw = tomllib.loads(path.read_text())
        _refuse_infinities(raw, "")
        scenario = msgspec.convert(raw, Scenario)
        return _checked(scenario, path.parent)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: not TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {_readable(str(error))}") from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def _readable(complaint: str) -> str:
    """What msgspec says, with the key in front instead of behind."""
    said, _, where = complaint.partition(" - at `$")
    said = said.replace("Object contains", "has").replace("Object missing", "lacks")
    key = where.rstrip("`").lstrip(".")
    return f"{key}: {said}" if key else said


def _refuse_infinities(value: Any, key: str) -> None:
    match value:
        case dict():
            for name, inner in value.items():
                _refuse_infinities(inner, f"{key}.{name}" if key else name)
        case list():
            for place, inner in enumerate(value):
                _refuse_infinities(inner, f"{key}[{place}]")
        case float() if not math.isfinite(value):
            raise ScenarioError(f"{key}: {value} is not a finite number")


def _checked(scenario: Scenario, folder: Path) -> Loaded:
    names: dict[NodeId, tuple[str, int]] = {}
    recordings: dict[NodeId, Replay] = {}
    wanted: dict[NodeId, tuple[Filter, ...]] = {}
    groups = list(scenario.groups())
    for key, group, members in groups:
        role, number = key[:-1].split("[")
        _check_members(key, role, group, members, names)
        names.update(dict.fromkeys(members, (role, int(number))))
        _check_places(scenario, key, group, members)
        if isinstance(group.mobility, ByReplay):
            recordings |= _recordings(f"{key}.mobility", folder / group.mobility.file, group.mobility, members)
        if isinstance(group, Subscribers):
            wanted |= {name: _filters(f"{key}.wants", group, name) for name in members}
    if not names:
        raise ScenarioError("there is nobody: give brokers, subscribers or publishers")
    _check_links(scenario, names)
    _check_faults(scenario, names)
    _check_publishers(scenario, bool(wanted))
    (_check_product if scenario.is_product else _check_protocol)(scenario, names)
    return Loaded(scenario, names, wanted, recordings)


def _check_members(
    key: str, role: str, group: Group, members: list[NodeId], names: dict[NodeId, tuple[str, int]]
) -> None:
    if bool(group.names) == (group.count is not None):
        raise ScenarioError(f"{key}: give either names or count")
    for name, times in Counter(members).items():
        if times > 1 or name in names:
            raise ScenarioError(f"{key}: there are two nodes {name!r}")
        if (role == "brokers") != name.startswith("b"):
            raise ScenarioError(f"{key}: {name!r} will not do: the names of brokers, and only theirs, begin with b")


def _check_places(scenario: Scenario, key: str, group: Group, members: list[NodeId]) -> None:
    area, wires = scenario.area, isinstance(scenario.medium, Wires)
    if group.places and group.mobility is not None:
        raise ScenarioError(f"{key}: who has mobility finds its own place; drop places")
    if wires and group.mobility is not None:
        raise ScenarioError(f"{key}.mobility: nobody moves on wires; cut and merge links with faults")
    if not wires and not group.places and group.mobility is None:
        raise ScenarioError(f"{key}: on the air everybody needs places or mobility")
    if group.places and len(group.places) != len(members):
        raise ScenarioError(f"{key}.places: {len(group.places)} places for {len(members)} nodes")
    if area is not None:
        for number, (x, y) in enumerate(group.places):
            if not (0 <= x <= area.width_m and 0 <= y <= area.height_m):
                raise ScenarioError(f"{key}.places[{number}]: ({x:g}, {y:g}) lies outside the area")
    if isinstance(group.mobility, Moving):
        if area is None:
            raise ScenarioError(f"{key}.mobility: there is no area to move in; give [area] width_m and height_m")
        low, high = group.mobility.speed_mps
        if low > high:
            raise ScenarioError(f"{key}.mobility.speed_mps: [{low:g}, {high:g}] is upside down: slowest first")


def _check_links(scenario: Scenario, names: dict[NodeId, tuple[str, int]]) -> None:
    if not isinstance(scenario.medium, Wires):
        return
    seen: set[frozenset[NodeId]] = set()
    for number, link in enumerate(scenario.medium.links):
        key = f"medium.links[{number}]"
        _check_known(key, link, names)
        if frozenset(link) in seen or link[0] == link[1]:
            raise ScenarioError(f"{key}: {link[0]} - {link[1]} is there twice, or leads nowhere")
        seen.add(frozenset(link))


def _check_faults(scenario: Scenario, names: dict[NodeId, tuple[str, int]]) -> None:
    for number, fault in enumerate(scenario.faults):
        key = f"faults[{number}]"
        if fault.at_s > scenario.duration_s:
            raise ScenarioError(f"{key}.at_s: {fault.at_s:g} is after the end, {scenario.duration_s:g}")
        match fault:
            case Crash(node=node) | Restart(node=node) | Skew(node=node):
                _check_known(f"{key}.node", [node], names)
            case Lose(link=link):
                _check_known(f"{key}.link", link, names)
                _check_wired(scenario, key, link)
            case Partition(sides=sides) | Merge(sides=sides):
                _check_known(f"{key}.sides", [name for side in sides for name in side], names)
                _check_wired(scenario, key, None)
                if len(sides) < 2:
                    raise ScenarioError(f"{key}.sides: {len(sides)} of them, but it takes two")


def _check_wired(scenario: Scenario, key: str, link: Sequence[NodeId] | None) -> None:
    if not isinstance(scenario.medium, Wires):
        raise ScenarioError(f"{key}: there are no links to break on the air; let nodes move or crash")
    if link is not None and set(link) not in [set(known) for known in scenario.medium.links]:
        raise ScenarioError(f"{key}.link: there is no link {link[0]} - {link[1]}")


def _check_known(key: str, named: Sequence[NodeId], names: dict[NodeId, tuple[str, int]]) -> None:
    for name in named:
        if name not in names:
            raise ScenarioError(f"{key}: there is no node {name!r}")


def _check_publishers(scenario: Scenario, anybody_subscribes: bool) -> None:
    for number, group in enumerate(scenario.publishers):
        key = f"publishers[{number}]"
        until = scenario.duration_s if group.until_s is None else group.until_s
        if until <= group.from_s:
            raise ScenarioError(f"{key}.until_s: {until:g} is not after from_s, {group.from_s:g}")
        for name, value in group.event.items():
            if value == ():
                raise ScenarioError(f"{key}.event.{name}: there is nothing to draw from an empty list")
            if isinstance(value, Between) and value.low > value.high:
                raise ScenarioError(f"{key}.event.{name}: low {value.low:g} is above high {value.high:g}")
            texts = value if isinstance(value, tuple) else (value,)
            if not anybody_subscribes and any(isinstance(text, str) and "{subscriber}" in text for text in texts):
                raise ScenarioError(f"{key}.event.{name}: there are no subscribers to stand for {{subscriber}}")


def _check_protocol(scenario: Scenario, names: dict[NodeId, tuple[str, int]]) -> None:
    for key, group, _ in scenario.groups():
        if isinstance(group, Clients) and group.roam_every_s is not None:
            raise ScenarioError(f"{key}.roam_every_s: clients of these brokers do not roam; give brokers kind product")


def _check_product(scenario: Scenario, names: dict[NodeId, tuple[str, int]]) -> None:
    """Deployed brokers speak over connections: links that keep the order and lose nothing while they last."""
    options = {(group.kind, group.handoff, group.session_wait_s) for group in scenario.brokers}
    if len(options) > 1:
        raise ScenarioError("brokers: kind, handoff and session_wait_s must be the same for all of them")
    wires = scenario.medium
    if not isinstance(wires, Wires):
        raise ScenarioError("medium.kind: the product needs wired")
    if wires.loss or wires.duplication or any(isinstance(fault, Lose) for fault in scenario.faults):
        raise ScenarioError("medium: connections lose and repeat nothing; break links with partition instead")
    for name, (role, _) in names.items():
        linked = {other for link in wires.links if name in link for other in link if names[other][0] == "brokers"}
        if role != "brokers" and not linked:
            raise ScenarioError(f"medium.links: {name} has no link to a broker")
    for number, fault in enumerate(scenario.faults):
        if isinstance(fault, Skew) and names[fault.node][0] != "brokers":
            raise ScenarioError(f"faults[{number}].node: only clocks of brokers are skewed, {fault.node} is none")


def _filters(key: str, group: Subscribers, name: NodeId) -> tuple[Filter, ...]:
    texts = (group.wants,) if isinstance(group.wants, str) else group.wants
    found: list[Filter] = []
    for text in texts:
        try:
            found += parse(text.replace("{name}", name))
        except FilterError as error:
            raise ScenarioError(f"{key}: {error}") from None
    return tuple(dict.fromkeys(found))


def _recordings(key: str, path: Path, mobility: ByReplay, members: list[NodeId]) -> dict[NodeId, Replay]:
    fixes: dict[NodeId, list[tuple[float, float, float]]] = {name: [] for name in members}
    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            missing = {"node", "time_s", "x_m", "y_m"} - set(rows.fieldnames or ())
            if missing:
                raise ScenarioError(f"{key}.file: {path} has no column {', '.join(sorted(missing))}")
            for row in rows:
                if row["node"] in fixes:
                    fixes[row["node"]].append((float(row["time_s"]), float(row["x_m"]), float(row["y_m"])))
    except OSError as error:
        raise ScenarioError(f"{key}.file: {path}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"{key}.file: {path}, line {rows.line_num}: {error}") from None
    return {name: _recording(key, path, mobility, name, found) for name, found in fixes.items()}


def _recording(
    key: str, path: Path, mobility: ByReplay, name: NodeId, fixes: list[tuple[float, float, float]]
) -> Replay:
    if not fixes:
        raise ScenarioError(f"{key}.file: {path} has no fix of {name!r}")
    times, xs, ys = zip(*fixes, strict=True)
    try:
        return Replay(times_s=times, xs_m=xs, ys_m=ys, gap_max_s=mobility.gap_max_s)
    except ValueError as error:
        raise ScenarioError(f"{key}.file: {path}, {name!r}: {error}") from None
