"""Visits from logs of attachments, beside a loop that follows one subscriber at a time and remembers all."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

import paho.mqtt.client as mqtt
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pyspark.sql import SparkSession
from tests.brokers import FREE, START_S, Process, running

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.mobility.attachments import Attached, of_traces
from godwit.pipeline.mobility.job import ATTACHMENTS, TRACES, MobilityOptions, run
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.mobility.visits import Visiting
from godwit.pipeline.schemas import TRACES as TRACES_SCHEMA

GAP_S, PING_PONG_S = 30.0, 12.0

Row = tuple[str, float, str | None, bool, float | None]
"""Subscriber, time, site, whether attached, until when."""


@dataclass
class Stay:
    site: str
    entered_s: float
    last_s: float
    rows: list[float] = field(default_factory=list)


def stays_of(rows: list[Row], sampled: bool) -> list[Stay]:
    """Of one subscriber: what a person would do with pencil and paper, row by row."""
    found = list[Stay]()
    current: Stay | None = None
    until: float | None = None
    last_row: Row | None = None
    for row in rows:
        _, time_s, site, attached, end = row
        if last_row is not None and row[:4] == last_row[:4]:
            continue
        last_row = row
        if not attached:
            if current is not None and site in (None, current.site):
                current.last_s = time_s if until is None else min(until, time_s)
                current = until = None
            continue
        if current is not None and until is not None:
            current.last_s = min(until, time_s)
        elif current is not None and not sampled:
            current.last_s = time_s
        assert site is not None
        current, until = Stay(site, time_s, time_s if end is None else end, [time_s]), end
        found.append(current)
    return joined(found)


def joined(found: list[Stay]) -> list[Stay]:
    told = list[Stay]()
    for stay in found:
        last = told[-1] if told else None
        if last is not None and last.site == stay.site and stay.entered_s - last.last_s < GAP_S:
            last.last_s = stay.last_s
            last.rows += stay.rows
        else:
            told.append(stay)
    return told


def visits_counted(rows: list[Row], sampled: bool) -> list[tuple[object, ...]]:
    told = list[tuple[object, ...]]()
    for subscriber, own in groupby(rows, key=lambda row: row[0]):
        stays = stays_of(list(own), sampled)
        handed = [b.entered_s - a.last_s < GAP_S for a, b in pairwise(stays)]
        short = [b.entered_s - a.entered_s < PING_PONG_S for a, b in pairwise(stays)]
        back = [
            0 < at < len(handed)
            and handed[at - 1]
            and handed[at]
            and short[at]
            and stays[at - 1].site == stays[at + 1].site
            for at in range(len(stays))
        ]
        for at, stay in enumerate(stays):
            goes = at < len(handed) and handed[at]
            ended = "handoff" if goes else "gap" if at < len(handed) else "end"
            ping_pong = back[at] or (goes and back[at + 1])
            told.append((subscriber, stay.site, stay.entered_s, stay.last_s, len(stay.rows), ended, ping_pong))
    return told


def visits_found(rows: list[Row], cuts: list[int], sampled: bool) -> list[tuple[object, ...]]:
    edges = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    names = ["subscriber", "time_s", "site", "attached", "until_s"]
    kinds = [pa.string(), pa.float64(), pa.string(), pa.bool_(), pa.float64()]
    arrays = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    whole = pa.RecordBatch.from_arrays(arrays, names=names)
    parts = [whole.slice(begin, end - begin) for begin, end in pairwise(edges)]
    attached = Attached(Visiting(GAP_S, PING_PONG_S), sampled)
    return [
        tuple(row[name] for name in ("subscriber", "site", "entered_s", "last_fix_s", "fixes", "ended", "ping_pong"))
        for batch in attached.visits(parts)
        for row in batch.to_pylist()
    ]


times = st.integers(0, 120).map(float)
rows = st.one_of(
    st.tuples(st.sampled_from("abc"), times, st.sampled_from("XYZ"), st.just(True), st.none()),
    st.tuples(st.sampled_from("abc"), times, st.sampled_from([*"XYZ", None]), st.just(False), st.none()),
    st.tuples(st.sampled_from("abc"), times, st.sampled_from("XYZ"), st.just(True), st.integers(0, 40)).map(
        lambda row: (*row[:4], row[1] + row[4])
    ),
)
logs = st.lists(rows, max_size=40).map(lambda log: sorted(log, key=lambda row: (row[0], row[1])))


@given(logs, st.lists(st.integers(0, 40), max_size=8), st.booleans())
def test_visits_are_those_of_a_plain_loop_wherever_batches_are_cut(log: list[Row], cuts: list[int], told: bool) -> None:
    assert visits_found(log, cuts, told) == visits_counted(log, told)


def test_who_is_attached_stays_until_the_log_says_otherwise() -> None:
    log: list[Row] = [("c", 0.0, "X", True, None), ("c", 900.0, "Y", True, None), ("c", 905.0, None, False, None)]
    assert visits_found(log, [], sampled=False) == [
        ("c", "X", 0.0, 900.0, 1, "handoff", False),
        ("c", "Y", 900.0, 905.0, 1, "end", False),
    ]


def test_in_a_log_of_samples_silence_is_a_gap() -> None:
    log: list[Row] = [("c", 0.0, "X", True, None), ("c", 900.0, "Y", True, None)]
    assert [visit[5] for visit in visits_found(log, [], sampled=True)] == ["gap", "end"]


def test_a_site_that_notices_late_does_not_end_the_attachment_elsewhere() -> None:
    log: list[Row] = [
        ("c", 0.0, "X", True, None),
        ("c", 10.0, "Y", True, None),
        ("c", 70.0, "X", False, None),
        ("c", 500.0, "Y", False, None),
    ]
    assert visits_found(log, [], sampled=False)[-1] == ("c", "Y", 10.0, 500.0, 1, "end", False)


LOG = """mac,t,ap,what
c,0,north,assoc
c,100,south,assoc
c,100,north,disassoc
c,400,,deauth
d,0,north,assoc
d,50,north,deauth
d,1000,south,assoc
e,5,,assoc
f,7,south,assoc
"""


def learned(tmp_path: Path, table: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = pq.read_table(tmp_path / "out" / table).to_pylist()
    return found


def test_a_log_of_access_points_gives_handoffs_gaps_and_a_neighbor_graph(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "wifi.csv").write_text(LOG)
    options = MobilityOptions(
        positions=str(tmp_path / "wifi.csv"),
        kind=ATTACHMENTS,
        out=str(tmp_path / "out"),
        positions_select="mac AS subscriber, t AS time_s, ap AS site, what = 'assoc' AS attached",
        rules=Rules(gap_s=300),
    )
    summary = run(spark, options)
    assert (summary.rows_in, summary.quarantined) == (9, 1)
    assert [(row["subscriber"], row["site"], row["next_site"]) for row in learned(tmp_path, "handoffs")] == [
        ("c", "north", "south")
    ]
    ended = {(row["subscriber"], row["site"]): row["ended"] for row in learned(tmp_path, "visits")}
    assert ended == {
        ("c", "north"): "handoff",
        ("c", "south"): "end",
        ("d", "north"): "gap",
        ("d", "south"): "end",
        ("f", "south"): "end",
    }
    (gap,) = [row for row in learned(tmp_path, "distributions") if row["measure"] == "gap" and row["site"] is None]
    assert gap["mean_s"] == 950.0
    assert {(row["broker"], row["peer"]) for row in learned(tmp_path, "neighbors")} == {
        ("north", "south"),
        ("south", "north"),
    }
    assert [row["reason"] for row in learned(tmp_path, "quarantine")] == [
        "attached, and the column 'site' does not say where"
    ]


def test_rows_of_one_second_keep_the_order_of_the_log(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "subscriber,time_s,site,attached\nc,0,a,true\nc,10,b,true\nc,10,b,false\nc,10,a,true\nc,20,b,true\n"
    )
    run(
        spark,
        MobilityOptions(positions=str(tmp_path / "log.csv"), kind=ATTACHMENTS, out=str(tmp_path / "out")),
    )
    moves = sorted(learned(tmp_path, "visits"), key=lambda row: (str(row["entered_s"]), row["last_fix_s"]))
    assert [row["site"] for row in moves] == ["a", "b", "a", "b"]


def test_positions_need_sites_and_the_error_says_what_would_do_without(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("subscriber,time_s,site\nc,0,a\n")
    with pytest.raises(PipelineError, match="SITES"):
        run(spark, MobilityOptions(positions=str(tmp_path / "log.csv"), out=str(tmp_path / "out")))


def test_traces_of_brokers_and_of_simulated_clients_are_logs_of_attachments(
    spark: SparkSession, tmp_path: Path
) -> None:
    told = [
        {"time_s": 0.0, "node": "b1", "kind": "attached", "client": "c"},
        {"time_s": 50.0, "node": "b2", "kind": "attached", "client": "c"},
        {"time_s": 51.0, "node": "b1", "kind": "detached", "client": "c"},
        {"time_s": 60.0, "node": "b2", "kind": "published", "client": "c"},
        {"time_s": 0.0, "node": "phone", "kind": "attached", "client": "", "peer": "b1"},
        {"time_s": 30.0, "node": "phone", "kind": "attached", "client": "", "peer": "b3"},
    ]
    traces = spark.createDataFrame(told, TRACES_SCHEMA)
    assert {(row.subscriber, row.site, row.attached) for row in of_traces(traces).collect()} == {
        *{("c", "b1", True), ("c", "b2", True), ("c", "b1", False)},
        *{("phone", "b1", True), ("phone", "b3", True)},
    }
    traces.write.parquet(str(tmp_path / "traces.parquet"))
    run(
        spark,
        MobilityOptions(positions=str(tmp_path / "traces.parquet"), kind=TRACES, out=str(tmp_path / "out")),
    )
    assert {(row["subscriber"], row["site"], row["next_site"]) for row in learned(tmp_path, "handoffs")} == {
        ("c", "b1", "b2"),
        ("phone", "b1", "b3"),
    }


def visit(broker: Process) -> None:
    """Connect, as a client that walks from broker to broker would, and say goodbye."""
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = 600
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="walker", protocol=mqtt.MQTTv5)
    connected = Event()
    client.on_connect = lambda *_: connected.set()
    client.connect("127.0.0.1", int(broker.port), clean_start=mqtt.MQTT_CLEAN_START_FIRST_ONLY, properties=properties)
    client.loop_start()
    assert connected.wait(START_S)
    client.disconnect()
    client.loop_stop()


def test_two_live_brokers_record_the_handoffs_that_a_client_makes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "godwit.toml").write_text(
        f'[archive]\nfolder = "{tmp_path / "archive"}"\nevents = false\ntraces = true\n'
    )
    config = ("--config", str(tmp_path / "godwit.toml"))
    north = Process(tmp_path, "north", *FREE, *config)
    south = Process(tmp_path, "south", *FREE, *config, "--peer", north.at("peers"))
    with running(north, south):
        for broker in (north, south, north):
            visit(broker)
        assert [north.end(), south.end()] == [0, 0]
    options = MobilityOptions(positions=str(tmp_path / "archive"), kind=TRACES, out=str(tmp_path / "out"))
    assert run(spark, options).quarantined == 0
    moves = sorted(learned(tmp_path, "handoffs"), key=lambda row: str(row["time_s"]))
    assert [(row["site"], row["next_site"]) for row in moves] == [("north", "south"), ("south", "north")]
