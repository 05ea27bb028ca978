"""The ring on recorded movement: San Francisco's taxis as phones, its eNodeBs as brokers, Beijing's sensors.

The stations keep their arrangement and are laid over the box of the cells; an hour of readings passes in `READING_S`.
Each taxi wants bad air within some kilometres of where it began. `Drive` is what happens, on whichever net: `RingNet`
is the ring, and `tree_drive.TreeNet` are the brokers that people run.
"""

from __future__ import annotations

import csv
import gzip
import math
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.spatial import cKDTree

from godwit.lab.gathering.crossings import HANDOVER, REGISTERING
from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import sites_of
from godwit.protocols.gathering.messages import Condition
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import NodeId, Record
from godwit.sim.mobility import Array
from godwit.sim.ring.gathering import Gathering

TAXIS, CELLS = "sf_taxi_gps_week.parquet", "sf_lte_cells.csv.gz"
STATIONS, READINGS = "beijing_stations.csv", "beijing_air_quality.parquet"
BEGIN = 1_211_997_600
"""2008-05-28 18:00 UTC, eleven in the morning in San Francisco."""

GRID_S = 10.0
GAP_S = 300.0
REACH_KM = 5.0
AREA_KM = 3.0
READING_S = 20.0
BAD_AIR = 75
FIRST_HOUR = 180
"""2013-03-08 12:00: from then on bad air comes and goes."""

INSTALLED_S = 2.0
"""After so long a subscription is where it must be, on either fabric; readings from then on are wanted."""

KM_PER_DEGREE = 111.195
TELL_S = 2.0


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    minutes: float = 30.0
    seed: int = 1
    brokers: int | None = None
    """So many of the eNodeBs, spread over the box as all of them are; None is all."""


class Driven(msgspec.Struct, frozen=True, kw_only=True):
    """What one fabric made of it. Messages are counted once for each hop between brokers."""

    brokers: int
    taxis: int
    sensors: int
    events: int
    wanted: int
    received: int
    buffered: int
    handoffs: int
    absences: int
    hops: float
    """Of a reading to its matching broker, if there is one, and of its notice from there to the taxi's broker."""
    handover_sent: float
    register_sent: float
    stored_mean: float
    """Subscriptions a broker knows."""
    items: float = 0.0
    """Of a tree: what is kept on a disk for others, for each handoff."""
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def lost(self) -> int:
        return self.wanted - self.received - self.buffered


def brokers_of(folder: Path) -> list[tuple[NodeId, Point]]:
    """One for each eNodeB, in the middle of its cells; kilometres east and north of the south-western corner."""
    cells: dict[int, list[tuple[float, float]]] = {}
    with gzip.open(folder / CELLS, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            cells.setdefault(int(row["cell"]) // 256, []).append((float(row["lon"]), float(row["lat"])))
    middles = {site: np.mean(some, axis=0).tolist() for site, some in sorted(cells.items())}
    fresh: dict[Point, NodeId] = {}
    for site, (lon, lat) in middles.items():
        fresh.setdefault(plane(lon, lat), f"e{site}")
    return [(name, place) for place, name in fresh.items()]


def thinned(brokers: list[tuple[NodeId, Point]], count: int | None) -> list[tuple[NodeId, Point]]:
    """Evenly out of the order of their cells, in which neighbors follow each other; at least two, or there are no
    handoffs."""
    if count is None or count >= len(brokers):
        return brokers
    if count < 2:
        raise ValueError(f"{count} brokers: at least 2, or nobody moves from one to another")
    order = sites_of(brokers)
    chosen = {order[at * len(order) // count].name for at in range(count)}
    return [one for one in brokers if one[0] in chosen]


ORIGIN = (-122.512, 37.600)
EAST_KM = KM_PER_DEGREE * math.cos(math.radians(37.7))
"""A degree of longitude here."""


def plane(lon: Any, lat: Any) -> tuple[Any, Any]:
    return ((lon - ORIGIN[0]) * EAST_KM, (lat - ORIGIN[1]) * KM_PER_DEGREE)


class Net(Protocol):
    """Brokers of one fabric, on which a drive takes place."""

    def begin(self) -> None:
        """Attach every station to its broker, and know every taxi."""

    def count(self) -> None:
        """All taxis are in that were there at first: what is sent from now on is for handoffs, and counts."""

    def later(self, delay_s: float, call: Callable[[], None]) -> None: ...

    def run_for(self, seconds: float) -> None: ...

    def attach(self, taxi: NodeId, broker: NodeId) -> None: ...

    def detach(self, taxi: NodeId) -> None: ...

    def subscribe(self, taxi: NodeId, area: Disc) -> None:
        """To bad air within the area; called right after the first `attach`."""

    def publish(self, station: NodeId, place: Point, value: float, wanting: list[NodeId]) -> None:
        """`wanting` are the taxis that are due to get it."""

    def measured(self) -> Driven:
        """What came of it, but for the time that it took."""


class Drive:
    """Who is where and says what, from the recording alone. `run` it once, on a net that is made for it."""

    def __init__(self, recording: Recording, told: Callable[[str], None] = lambda text: None) -> None:
        self.recording = recording
        self.told = told
        self._tell_at = 0.0
        folder = Path(recording.folder)
        self.until_s = 60.0 * recording.minutes
        self.sites = sites_of(thinned(brokers_of(folder), recording.brokers))
        self.places = np.array([site.place for site in self.sites])
        self.nearest = cKDTree(self.places)
        self.taxis = self._taxis(folder)
        self.stations = self._stations(folder)
        self.events = self.wanted = self.handoffs = self.absences = 0
        self.areas: dict[NodeId, Disc] = {}
        self.attached: dict[NodeId, int] = {}
        self.last: dict[NodeId, int] = {}

    def _taxis(self, folder: Path) -> dict[NodeId, Array]:
        """Kilometres on a grid of time, NaN where nothing is known for long."""
        table = pq.read_table(folder / TAXIS, columns=["cab", "t", "lat_e5", "lon_e5"])
        inside = (pc.field("t") >= int(BEGIN - GAP_S)) & (pc.field("t") <= int(BEGIN + self.until_s + GAP_S))
        rows = table.filter(inside)
        # Names that are kept as a dictionary cannot be sorted.
        rows = rows.set_column(0, "cab", pc.cast(rows["cab"], "string"))
        rows = rows.sort_by([("cab", "ascending"), ("t", "ascending")])
        grid = BEGIN + np.arange(0.0, self.until_s, GRID_S)
        found: dict[NodeId, Array] = {}
        cabs = np.array(rows["cab"].to_pylist())
        fixes = {name: rows[name].to_numpy().astype(float) for name in ("t", "lat_e5", "lon_e5")}
        for cab in np.unique(cabs).tolist():
            own = slice(int(np.searchsorted(cabs, cab)), int(np.searchsorted(cabs, cab, side="right")))
            times = fixes["t"][own]
            if len(times) < 2:
                continue
            after = np.searchsorted(times, grid)
            known = (after > 0) & (after < len(times))
            gap = times[np.clip(after, 1, len(times) - 1)] - times[np.clip(after, 1, len(times) - 1) - 1]
            x, y = plane(fixes["lon_e5"][own] / 1e5, fixes["lat_e5"][own] / 1e5)
            path = np.c_[np.interp(grid, times, x), np.interp(grid, times, y)]
            path[~known | (gap > GAP_S)] = np.nan
            if np.isfinite(path).any():
                found[f"cab-{cab}"] = path
        return found

    def _stations(self, folder: Path) -> dict[NodeId, tuple[Point, list[float]]]:
        """Where each stands over the box of the brokers, and what it measured hour by hour."""
        with (folder / STATIONS).open(encoding="utf-8") as lines:
            rows = [(row["station"], float(row["lon"]), float(row["lat"])) for row in csv.DictReader(lines)]
        where = np.array([(lon, lat) for _, lon, lat in rows])
        share = (where - where.min(axis=0)) / (where.max(axis=0) - where.min(axis=0))
        box = np.percentile(self.places, (10, 90), axis=0)
        laid = box[0] + share * (box[1] - box[0])
        table = pq.read_table(folder / READINGS, columns=["station", "pm25"])
        hours = math.ceil(self.until_s / READING_S)
        found = {}
        for (station, _, _), place in zip(rows, laid.tolist(), strict=True):
            own = table.filter(pc.field("station") == station)["pm25"].slice(FIRST_HOUR, hours).to_pylist()
            found[station] = (tuple(place), own)
        return found

    def run(self, on: Callable[[Drive], Net]) -> Driven:
        net = on(self)
        started, busy = time.perf_counter(), time.process_time()
        net.begin()
        for step in range(int(self.until_s / GRID_S)):
            self._step(net, step)
            net.run_for(GRID_S)
            if step == 0:
                net.count()
            self._tell(step + 1)
        net.run_for(120.0)
        took = {"wall_s": time.perf_counter() - started, "cpu_s": time.process_time() - busy}
        return msgspec.structs.replace(net.measured(), **took)

    def _tell(self, steps: int) -> None:
        """Every few seconds of the clock: a step of a tree takes many of them."""
        if time.perf_counter() > self._tell_at:
            self._tell_at = time.perf_counter() + TELL_S
            passed = steps * GRID_S / 60
            self.told(f"{passed:.1f} of {self.recording.minutes:g} minutes, {self.handoffs:,} handoffs")

    def station_broker(self, station: NodeId) -> NodeId:
        return self.sites[int(self.nearest.query(self.stations[station][0])[1])].name

    def _step(self, net: Net, step: int) -> None:
        for name, path in self.taxis.items():
            self._drive(net, name, path[step])
        due = step * GRID_S % READING_S == 0
        if due:
            for station, (place, readings) in self.stations.items():
                hour = int(step * GRID_S / READING_S)
                value = readings[hour] if hour < len(readings) else None
                if value is not None:
                    # After the seconds in which taxis associate and subscribe.
                    net.later(INSTALLED_S, partial(self._publish, net, station, place, value))

    def _drive(self, net: Net, name: NodeId, place: Any) -> None:
        far, index = (math.inf, 0) if math.isnan(place[0]) else self.nearest.query(place)
        if far > REACH_KM:
            if self.attached.pop(name, None) is not None:
                self.absences += 1
                net.detach(name)
            return
        if self.attached.get(name) == index:
            return
        if self.last.get(name, index) != index:
            self.handoffs += 1
        self.attached[name] = self.last[name] = int(index)
        net.detach(name)
        net.attach(name, self.sites[index].name)
        if name not in self.areas:
            area = self.areas[name] = Disc((float(place[0]), float(place[1])), AREA_KM)
            net.subscribe(name, area)

    def _publish(self, net: Net, station: NodeId, place: Point, value: float) -> None:
        wanting = [name for name, area in self.areas.items() if area.contains(place)] if value > BAD_AIR else []
        self.events += 1
        self.wanted += len(wanting)
        net.publish(station, place, value, wanting)


class Heard:
    """Hops of events to their matching broker and of notices to the taxis' brokers."""

    def __init__(self) -> None:
        self.hops: dict[str, Counter[int]] = {"matched": Counter(), "notified": Counter()}

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        if record.kind in self.hops:
            self.hops[record.kind][record.hops] += 1

    def mean(self, kind: str) -> float:
        counted = self.hops[kind]
        return sum(hops * count for hops, count in counted.items()) / max(1, counted.total())


class RingNet:
    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        self.heard = Heard()
        self.gathering = Gathering(drive.recording.seed, Rules(recheck_s=30.0), recorder=self.heard)
        self.gathering.deploy(drive.sites)

    def begin(self) -> None:
        for name in self.drive.stations:
            self.gathering.phone(name)
            self.gathering.attach(name, self.drive.station_broker(name))
        for name in self.drive.taxis:
            self.gathering.phone(name)
        self.gathering.run_for(1.0)

    def count(self) -> None:
        self.before = self.gathering.underlay.sent.copy()

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.gathering.world.engine.after(delay_s, call)

    def run_for(self, seconds: float) -> None:
        self.gathering.run_for(seconds)

    def attach(self, taxi: NodeId, broker: NodeId) -> None:
        self.gathering.attach(taxi, broker)

    def detach(self, taxi: NodeId) -> None:
        self.gathering.detach(taxi)

    def subscribe(self, taxi: NodeId, area: Disc) -> None:
        self.gathering.phones[taxi].subscribe("reading", area, (Condition("pm25", BAD_AIR, ">"),))

    def publish(self, station: NodeId, place: Point, value: float, wanting: list[NodeId]) -> None:
        self.gathering.phones[station].publish("reading", place, {"pm25": value})

    def measured(self) -> Driven:
        drive, gathering = self.drive, self.gathering
        sent = gathering.underlay.sent - self.before
        stored = [len(broker.store) for broker in gathering.brokers.values()]
        return Driven(
            brokers=len(drive.sites),
            taxis=len(drive.taxis),
            sensors=len(drive.stations),
            events=drive.events,
            wanted=drive.wanted,
            received=sum(len(gathering.phones[name].history()) for name in drive.taxis),
            buffered=sum(broker.profiles.buffered_total() for broker in gathering.brokers.values()),
            handoffs=drive.handoffs,
            absences=drive.absences,
            hops=self.heard.mean("matched") + self.heard.mean("notified"),
            handover_sent=sum(sent[kind] for kind in HANDOVER) / max(1, drive.handoffs),
            register_sent=sum(sent[kind] for kind in REGISTERING) / max(1, drive.handoffs),
            stored_mean=sum(stored) / len(stored),
        )
