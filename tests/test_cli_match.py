"""`godwit match`: files in, deliveries out, and what is said of files that are not as they should be."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.commands.match import deliveries as deliveries_of_commands
from godwit.commands.match.matcher import make_ready
from godwit.filters.text import parse

DATA = Path(__file__).parent / "data"
GODWIT = [sys.executable, "-c", "from godwit.cli import main; main()"]

READINGS: list[dict[str, Any]] = [
    {"id": "a", "kind": "air", "pm25": 180, "lat": 39.93, "lon": 116.42},
    {"id": "b", "kind": "air", "pm25": 20.5, "lat": 40.4, "lon": 116.6},
    {"kind": "taxi", "free": True, "pm25": None},
]
WISHES: list[dict[str, Any]] = [
    {"id": "smog", "filter": "kind = 'air' AND pm25 > 150"},
    {"id": "near", "filter": "within(lat, lon, 39.92, 116.42, 5km)"},
    {"id": "cab", "filter": "kind = 'taxi' AND free AND pm25 IS NULL"},
]
EXPECTED = [
    {"event": 1, "event_id": "a", "subscription": "smog"},
    {"event": 1, "event_id": "a", "subscription": "near"},
    {"event": 3, "subscription": "cab"},
]


def matching(subscriptions: object, events: object, *more: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["match", *map(str, (events, subscriptions, *more))], input=stdin)


def lines(path: Path, objects: Iterable[Any]) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in objects))
    return path


def deliveries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def wishes(tmp_path: Path) -> Path:
    return lines(tmp_path / "wishes.jsonl", WISHES)


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    return lines(tmp_path / "readings.jsonl", READINGS)


def ordered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda one: (one["event"], str(one["subscription"])))


def test_deliveries_go_to_stdout_and_the_summary_to_stderr(wishes: Path, readings: Path) -> None:
    result = matching(wishes, readings, "--out", "-")
    assert result.exit_code == 0
    assert ordered(deliveries(result.stdout)) == ordered(EXPECTED)
    assert "3 events, 3 subscriptions: 3 deliveries" in result.stderr


def test_deliveries_in_json_lines_and_parquet_are_the_same(tmp_path: Path, wishes: Path, readings: Path) -> None:
    assert matching(wishes, readings, "--out", tmp_path / "out.jsonl").exit_code == 0
    assert matching(wishes, readings, "--out", tmp_path / "out.parquet").exit_code == 0
    assert ordered(deliveries((tmp_path / "out.jsonl").read_text())) == ordered(EXPECTED)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.equals(
        pa.schema([("event", pa.int64()), ("event_id", pa.string()), ("subscription", pa.string())])
    )
    rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    assert ordered(rows) == ordered(EXPECTED)
    assert not list(tmp_path.glob("*partial*"))


def test_without_out_only_the_summary_is_given(wishes: Path, readings: Path) -> None:
    result = matching(wishes, readings)
    assert result.exit_code == 0
    assert "3 deliveries" in result.stdout
    assert "--out" in result.stdout
    assert "smog" in result.stdout
    assert result.stderr == ""


def test_events_may_come_from_stdin(wishes: Path) -> None:
    text = "".join(f"{json.dumps(one)}\n" for one in READINGS)
    assert ordered(deliveries(matching(wishes, "-", "--out", "-", stdin=text).stdout)) == ordered(EXPECTED)


def test_a_limit_stops_after_so_many_events(wishes: Path, readings: Path) -> None:
    assert "2 events, 3" in matching(wishes, readings, "--limit", 2).stdout
    assert "0 events, 3" in matching(wishes, readings, "--limit", 0).stdout


@pytest.mark.parametrize("form", ["parquet", "txt", "txt.gz", "jsonl.gz"])
def test_subscriptions_come_in_every_form(tmp_path: Path, readings: Path, form: str) -> None:
    path = tmp_path / f"wishes.{form}"
    texts = [wish["filter"] for wish in WISHES]
    match form:
        case "parquet":
            pq.write_table(pa.table({"filter": texts}), path)
        case "txt":
            lines(path, texts)
        case "txt.gz":
            path.write_bytes(gzip.compress("\n".join(texts).encode()))
        case "jsonl.gz":
            path.write_bytes(gzip.compress("".join(f"{json.dumps({'filter': text})}\n" for text in texts).encode()))
    found = deliveries(matching(path, readings, "--out", "-").stdout)
    assert sorted((one["event"], one["subscription"]) for one in found) == [(1, 1), (1, 2), (3, 3)]


def test_blank_lines_and_comments_in_a_text_of_filters_keep_line_numbers_right(tmp_path: Path, readings: Path) -> None:
    path = lines(tmp_path / "wishes.txt", ["# who wants what", "", "kind = 'taxi'"])
    assert deliveries(matching(path, readings, "--out", "-").stdout) == [{"event": 3, "subscription": 3}]


def test_numbered_subscriptions_stay_numbers_in_parquet(tmp_path: Path, readings: Path) -> None:
    path = lines(tmp_path / "wishes.jsonl", [{"id": 7, "filter": "pm25 > 0"}])
    matching(path, readings, "--out", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").column("subscription").to_pylist() == [7, 7]


BAD_EVENTS = {
    '{"pm25": 1': "not JSON",
    "[1, 2]": "an event is an object",
    '"text"': "an event is an object",
    '{"where": {"lat": 1}}': "attribute 'where' is an object",
    '{"tags": [1]}': "attribute 'tags' is an array",
    '{"n": 9223372036854775808}': "does not fit 64 bits",
    '{"n": -123456789012345678901234567890}': "does not fit 64 bits",
    '{"n": 1e999}': "not JSON",
    '{"n": NaN}': "not JSON",
    '{"": 1}': "must be a text of 1 to 255 characters",
    "[" * 5000: "nested too deeply",
    "\x1b[31m": "not JSON",
}


@pytest.mark.parametrize("bad", BAD_EVENTS)
def test_a_bad_event_is_told_by_file_line_and_reason_and_the_others_are_matched(
    tmp_path: Path, wishes: Path, bad: str
) -> None:
    events = lines(tmp_path / "events.jsonl", [READINGS[0], bad, "", READINGS[2]])
    result = matching(wishes, events, "--out", "-")
    assert result.exit_code == 1
    assert f"{events}:2: " in result.stderr
    assert BAD_EVENTS[bad] in result.stderr
    assert "bad lines, left out: 1\n" in result.stderr
    assert "\x1b" not in result.stderr
    assert sorted(one["event"] for one in deliveries(result.stdout)) == [1, 1, 4]


def test_bytes_that_are_no_text_make_a_bad_line(tmp_path: Path, wishes: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b'{"a": "\xff"}\n{"kind": "taxi", "free": true}\n')
    result = matching(wishes, tmp_path / "events.jsonl", "--out", "-")
    assert result.exit_code == 1
    assert "events.jsonl:1: not UTF-8 text" in result.stderr
    assert deliveries(result.stdout) == [{"event": 2, "subscription": "cab"}]


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_events(tmp_path: Path, wishes: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b'\xef\xbb\xbf{"kind": "air", "pm25": 200}\r\n{"kind": "air"}\r\n')
    result = matching(wishes, tmp_path / "events.jsonl", "--out", "-")
    assert result.exit_code == 0
    assert deliveries(result.stdout) == [{"event": 1, "subscription": "smog"}]


def test_a_line_too_long_to_hold_is_a_bad_line(tmp_path: Path, wishes: Path) -> None:
    huge = json.dumps({"kind": "x" * 3_000_000})
    events = lines(tmp_path / "events.jsonl", [huge, READINGS[0]])
    result = matching(wishes, events, "--out", "-")
    assert result.exit_code == 1
    assert f"{events}:1: the line is longer than" in result.stderr
    assert [one["event"] for one in deliveries(result.stdout)] == [2, 2]


def test_of_many_bad_lines_twenty_are_shown_and_all_are_counted(tmp_path: Path, wishes: Path) -> None:
    events = lines(tmp_path / "events.jsonl", ["oops"] * 50 + [READINGS[0]])
    result = matching(wishes, events)
    assert result.exit_code == 1
    assert result.stderr.count("not JSON") == 20
    assert "bad lines, left out: 50\n" in result.stdout


BAD_WISHES = {
    '{"id": "x"}': "filter",
    '{"id": "x", "filter": 5}': "filter",
    '{"id": [1], "filter": "a = 1"}': "id",
    '{"id": "x", "filter": "a = "}': "column 5",
    '{"id": "smog", "filter": "a = 1"}': "the id 'smog' is taken by line 1",
    "pm25 > 150": "not JSON",
}


@pytest.mark.parametrize("bad", BAD_WISHES)
def test_a_bad_subscription_is_told_and_the_others_are_matched(tmp_path: Path, readings: Path, bad: str) -> None:
    path = lines(tmp_path / "wishes.jsonl", [WISHES[0], bad])
    result = matching(path, readings, "--out", "-")
    assert result.exit_code == 1
    assert f"{path}:2: " in result.stderr
    assert BAD_WISHES[bad] in result.stderr
    assert deliveries(result.stdout) == [EXPECTED[0]]


def test_a_bad_row_of_subscriptions_in_parquet_is_told(tmp_path: Path, readings: Path) -> None:
    path = tmp_path / "wishes.parquet"
    pq.write_table(pa.table({"id": ["x", "y", "z"], "filter": ["pm25 > 150", None, "("]}), path)
    result = matching(path, readings, "--out", "-")
    assert result.exit_code == 1
    assert f"{path}:2: " in result.stderr
    assert f"{path}:3: filter, column 2" in result.stderr
    assert [one["subscription"] for one in deliveries(result.stdout)] == ["x"]


def test_a_missing_filter_column_is_named_with_those_that_are_there(tmp_path: Path, readings: Path) -> None:
    pq.write_table(pa.table({"name": ["x"], "rule": ["a = 1"]}), tmp_path / "wishes.parquet")
    result = matching(tmp_path / "wishes.parquet", readings)
    assert result.exit_code == 2
    assert "there is no column 'filter'; the columns are 'name', 'rule'" in result.stderr


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.parquet", "gone.csv", "gone.txt"])
def test_a_file_that_is_not_there_is_one_clear_line(tmp_path: Path, wishes: Path, readings: Path, name: str) -> None:
    for arguments in ((tmp_path / name, readings), (wishes, tmp_path / name)):
        result = matching(*arguments)
        assert result.exit_code == 2
        assert name in result.stderr.splitlines()[0]


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.txt", "empty.parquet"])
def test_no_subscriptions_are_an_error(tmp_path: Path, readings: Path, name: str) -> None:
    (tmp_path / name).touch()
    result = matching(tmp_path / name, readings)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"godwit: {tmp_path / name}: ")


def test_no_events_are_no_error(tmp_path: Path, wishes: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    result = matching(wishes, tmp_path / "events.jsonl", "--out", tmp_path / "out.parquet")
    assert result.exit_code == 0
    assert "0 events, 3 subscriptions: 0 deliveries" in result.stdout
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 0


@pytest.mark.parametrize("name", ["empty.csv", "empty.parquet", "events.xls", "events.gz"])
def test_what_cannot_be_events_is_refused(tmp_path: Path, wishes: Path, name: str) -> None:
    (tmp_path / name).touch()
    result = matching(wishes, tmp_path / name)
    assert result.exit_code == 2
    assert name in result.stderr


def test_a_gzip_file_cut_short_keeps_what_was_read_beside_the_name_asked_for(tmp_path: Path, wishes: Path) -> None:
    whole = gzip.compress("".join(f"{json.dumps({'kind': 'air', 'pm25': n})}\n" for n in range(50_000)).encode())
    (tmp_path / "events.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "out.jsonl").write_text("of yesterday")
    result = matching(wishes, tmp_path / "events.jsonl.gz", "--out", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert "gzip data is damaged after line" in result.stderr
    assert (tmp_path / "out.jsonl").read_text() == "of yesterday"
    kept = deliveries((tmp_path / "out.partial.jsonl").read_text())
    assert len(kept) > 1000
    assert all(one["subscription"] == "smog" and one["event"] > 151 for one in kept)
    assert f"{len(kept):,} deliveries" in result.stdout


def test_a_parquet_file_cut_short_is_refused(tmp_path: Path, wishes: Path) -> None:
    whole = (DATA / "flights.parquet").read_bytes()
    (tmp_path / "events.parquet").write_bytes(whole[: len(whole) // 2])
    result = matching(wishes, tmp_path / "events.parquet")
    assert result.exit_code == 2
    assert "damaged or no Parquet file" in result.stderr


def test_a_parquet_file_with_damaged_pages_is_told_and_what_came_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"n": list(range(300_000))}), path, row_group_size=100_000, use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(damaged)
    result = matching(lines(tmp_path / "wishes.txt", ["n < 1000"]), path, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 2
    assert f"godwit: {path}: " in result.stderr
    assert pq.read_table(tmp_path / "out.partial.parquet").num_rows == 1000
    assert not (tmp_path / "out.parquet").exists()


def test_only_one_of_the_two_comes_from_stdin() -> None:
    result = matching("-", "-", stdin="")
    assert result.exit_code == 2
    assert "cannot both come from stdin" in result.stderr


def test_long_ids_are_written_whole(tmp_path: Path, wishes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries_of_commands, "CHARACTERS_MAX", 1000)
    events = lines(
        tmp_path / "events.jsonl", [{"id": "x" * 300 + str(n), "kind": "air", "pm25": 200} for n in range(20)]
    )
    result = matching(wishes, events, "--out", "-")
    assert [one["event_id"] for one in deliveries(result.stdout)] == ["x" * 300 + str(n) for n in range(20)]


def test_deliveries_into_a_folder_that_is_not_there_are_refused_before_the_work(
    tmp_path: Path, wishes: Path, readings: Path
) -> None:
    result = matching(wishes, readings, "--out", tmp_path / "gone" / "out.jsonl")
    assert result.exit_code == 2
    assert "no such file or directory" in result.stderr


def test_deliveries_under_a_name_of_no_known_kind_are_refused(tmp_path: Path, wishes: Path, readings: Path) -> None:
    result = matching(wishes, readings, "--out", tmp_path / "out.xml")
    assert result.exit_code == 2
    assert ".jsonl, .ndjson, .json, .parquet" in result.stderr


CSV = """\
id,kind,pm25,free,zip,note
a,air,180,,00100,"two
lines"
b,air,20.5,,00200,
c,taxi,NA,true,00300,"a ""quoted"" word"
"""


def csv_deliveries(tmp_path: Path, text: str, *filters: str) -> tuple[list[tuple[int, int]], Result]:
    (tmp_path / "events.csv").write_text(text)
    wishes = lines(tmp_path / "wishes.txt", filters)
    result = matching(wishes, tmp_path / "events.csv", "--out", "-")
    return sorted((one["event"], one["subscription"]) for one in deliveries(result.stdout)), result


def test_csv_columns_have_the_types_that_their_cells_show(tmp_path: Path) -> None:
    found, result = csv_deliveries(
        tmp_path, CSV, "pm25 > 150", "pm25 = 20.5", "free", "zip = '00200'", "pm25 IS NULL", "note LIKE '%\"%'"
    )
    assert result.exit_code == 0
    assert found == [(2, 1), (4, 2), (4, 4), (5, 3), (5, 5), (5, 6)]


def test_csv_lines_that_do_not_fit_are_told_and_left_out(tmp_path: Path) -> None:
    text = CSV + 'd,air,oops,,00400,\ne,air\nf,"air"x,1,,2,\ng,air,99999999999999999999,,00500,\nh,air,199,,00600,\n'
    found, result = csv_deliveries(tmp_path, text, "pm25 > 150")
    assert result.exit_code == 1
    assert found == [(2, 1), (10, 1)]
    told = result.stderr
    assert "events.csv:6: 'oops' is no number" in told
    assert "events.csv:7: 2 fields, but the header names 6" in told
    assert "events.csv:8: not CSV" in told
    assert "events.csv:9: '99999999999999999999' is no number" in told


def test_64_bit_integers_of_csv_stay_exact(tmp_path: Path) -> None:
    text = "n\n9007199254740993\n9007199254740992\n9223372036854775807\n"
    found, _ = csv_deliveries(tmp_path, text, "n = 9007199254740993", "n = 9223372036854775807")
    assert found == [(2, 1), (4, 2)]


def test_a_later_text_in_a_column_of_numbers_is_bad_however_far_down_it_stands(tmp_path: Path) -> None:
    rows = [str(n) for n in range(40_000)]
    rows[35_000] = "many"
    found, result = csv_deliveries(tmp_path, "\n".join(["n", *rows]), "n >= 39998")
    assert found == [(40_000, 1), (40_001, 1)]
    assert "events.csv:35002: 'many' is no number" in result.stderr


def test_csv_with_the_same_column_twice_is_refused(tmp_path: Path) -> None:
    _, result = csv_deliveries(tmp_path, "a,a\n1,2\n", "a = 1")
    assert result.exit_code == 2
    assert "two columns have the same name" in result.stderr


def test_a_column_that_no_filter_can_test_is_refused_only_where_a_filter_names_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"tags": [["x"], ["y"]], "n": [1, 2]}), tmp_path / "events.parquet")
    good = matching(lines(tmp_path / "n.txt", ["n = 2"]), tmp_path / "events.parquet", "--out", "-")
    assert deliveries(good.stdout) == [{"event": 2, "subscription": 1}]
    bad = matching(lines(tmp_path / "tags.txt", ["tags = 'x'"]), tmp_path / "events.parquet")
    assert bad.exit_code == 2
    assert "column 'tags' is list<" in bad.stderr


@pytest.mark.parametrize("name", ["events.csv", "events.parquet"])
def test_an_attribute_that_is_no_column_is_pointed_out(tmp_path: Path, name: str) -> None:
    table = pa.table({"delay": [1, 2]})
    pa_csv.write_csv(table, tmp_path / "events.csv")
    pq.write_table(table, tmp_path / "events.parquet")
    result = matching(lines(tmp_path / "wishes.txt", ["dealy > 1"]), tmp_path / name)
    assert result.exit_code == 0
    assert f"{name}: filters name what is no column here and so always absent: dealy" in result.stderr


def test_columns_that_no_filter_names_still_count_as_events(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "events.parquet")
    result = matching(lines(tmp_path / "wishes.txt", ["m IS NULL"]), tmp_path / "events.parquet", "--out", "-")
    assert [one["event"] for one in deliveries(result.stdout)] == [1, 2, 3]


@pytest.mark.parametrize("name", ["events.parquet", "events"])
def test_a_directory_of_parquet_files_is_read_as_spark_writes_it(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for part in (0, 1):
        pq.write_table(pa.table({"n": [2 * part, 2 * part + 1]}), folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").touch()
    result = matching(lines(tmp_path / "wishes.txt", ["n >= 1"]), folder, "--out", "-")
    assert [one["event"] for one in deliveries(result.stdout)] == [2, 3, 4]


FLIGHT_FILTERS = (
    "carrier = 'UA' AND dep_delay > 60",
    "dest IN ('LAX', 'SFO', 'SEA') AND distance >= 2400",
    "dep_time IS NULL",
    "tailnum LIKE 'N6%' AND NOT origin = 'JFK'",
    "arr_delay > dep_delay",
    "air_time BETWEEN 100 AND 150 OR month = 12",
    "dest LIKE '%A_' AND carrier <> 'B6'",
    "time_hour >= 1370000000",
    "hour < 6 AND carrier IN ('AA', 'DL', 'B6')",
    "distance > 5000",
)


@pytest.mark.feature("content-routing F8")
@pytest.mark.parametrize("form", ["parquet", "csv", "csv.gz", "jsonl"])
def test_real_flights_get_where_each_filter_by_itself_says(tmp_path: Path, form: str) -> None:
    table = pq.read_table(DATA / "flights.parquet")
    seconds = table.column("time_hour").cast(pa.int64()).to_numpy() / 1e6
    table = table.set_column(table.schema.get_field_index("time_hour"), "time_hour", pa.array(seconds))
    rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    events = tmp_path / f"flights.{form}"
    match form:
        case "parquet":
            events = DATA / "flights.parquet"
        case "jsonl":
            lines(events, rows)
        case _:
            pa_csv.write_csv(table, tmp_path / "flights.csv")
            if form == "csv.gz":
                events.write_bytes(gzip.compress((tmp_path / "flights.csv").read_bytes()))
    result = matching(lines(tmp_path / "wishes.txt", FLIGHT_FILTERS), events, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 0
    out = pq.read_table(tmp_path / "out.parquet").to_pylist()
    first = 2 if form.startswith("csv") else 1
    expected = {
        (first + at, 1 + number)
        for number, text in enumerate(FLIGHT_FILTERS)
        for at, row in enumerate(rows)
        if parse(text).matches(row)
    }
    assert len(expected) > 300
    assert {(one["event"], one["subscription"]) for one in out} == expected
    assert len(out) == len(expected)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "csv", "csv.gz", "tsv", "parquet"])
@given(content=st.binary(max_size=200) | st.text('{}[]",:\n0a-', max_size=60).map(str.encode))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_a_file_there_is_a_status_and_no_traceback(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"any.{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") and content[:1] > b"@" else content)
    good = lines(tmp_path / "good.txt", ["a = 0", "TRUE"])
    for arguments in ((good, path), (path, good.rename(tmp_path / "good.jsonl"))):
        result = matching(*arguments)
        assert result.exit_code in (0, 1, 2)
        assert isinstance(result.exception, SystemExit | None)


def test_ctrl_c_leaves_a_summary_of_what_was_done(tmp_path: Path, wishes: Path) -> None:
    out = tmp_path / "out.jsonl"
    command = [*GODWIT, "match", "-", str(wishes), "--out", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        event = b'{"kind": "air", "pm25": 200}\n'
        process.stdin.write(event * (1 << 14))
        process.stdin.flush()
        growing = tmp_path / "out.partial.jsonl"
        deadline = time.monotonic() + 60
        while not (growing.exists() and growing.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in stderr
    assert b"out.partial.jsonl" in stderr
    assert b"16,384 events, 3 subscriptions: 16,384 deliveries" in stdout
    assert not out.exists()


@pytest.fixture
def compiled() -> None:
    """Machine code is on disk, so that nobody has to be told that it is being made."""
    make_ready(lambda text: None)


@pytest.mark.usefixtures("compiled")
def test_a_reader_that_takes_nothing_ends_the_work_in_silence(wishes: Path, readings: Path) -> None:
    command = [*GODWIT, "match", str(readings), str(wishes), "--out", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 141
    assert stderr == b""


@pytest.mark.usefixtures("compiled")
def test_a_reader_that_had_enough_ends_the_work_in_silence(tmp_path: Path, wishes: Path) -> None:
    events = lines(tmp_path / "events.jsonl", [READINGS[0]] * 20_000)
    command = [*GODWIT, "match", str(events), str(wishes), "--out", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 141
    assert stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("count", [1, 2_000])
def test_a_full_disk_is_one_clear_line(tmp_path: Path, wishes: Path, count: int) -> None:
    events = lines(tmp_path / "events.jsonl", [READINGS[0]] * count)
    with open("/dev/full", "w") as full:
        command = [*GODWIT, "match", str(events), str(wishes), "--out", "-"]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 2
    assert "No space left on device" in process.stderr
    assert "Traceback" not in process.stderr


def test_programs_get_the_account_as_one_object(wishes: Path, readings: Path) -> None:
    told = CliRunner().invoke(app, ["match", str(readings), str(wishes), "--json"])
    account = json.loads(told.stdout)
    plain = CliRunner().invoke(app, ["match", str(readings), str(wishes)]).stdout
    assert f"{account['events']:,} events, {account['subscriptions']:,} subscriptions" in plain
    assert sum(one["deliveries"] for one in account["most"]) <= account["deliveries"]
    both = CliRunner().invoke(app, ["match", str(readings), str(wishes), "--json", "--out", "-"])
    assert (both.exit_code, both.stdout) == (2, "")
    assert "would both go to stdout" in both.stderr
