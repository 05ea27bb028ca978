"""Archives can be read whatever happened to the broker that wrote them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from godwit.net.archive import writer
from godwit.net.archive.writer import ArchiveOptions
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.host import Record


def publication(sequence: int, payload: bytes = b"", **more: object) -> Publication:
    return Publication("van-7", sequence, "air/beijing", payload, qos=1, time=1_700_000_000.5, **more)  # type: ignore[arg-type]


def read(folder: Path, kind: str = "events") -> list[dict[str, object]]:
    return [row for file in sorted(folder.glob(f"{kind}-*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_what_was_published_can_be_read_back_with_all_that_filters_see(tmp_path: Path) -> None:
    roll = writer.events(tmp_path, "north")
    roll.add(publication(1, b'{"pm25": 163.5, "lat": 39.9, "lon": 116}', properties=Properties(user=(("unit", "ug"),))))
    roll.add(publication(2, b"\x00\xff"))
    roll.stop()
    first, second = read(tmp_path)
    assert first["attributes"] == (
        '{"unit":"ug","pm25":163.5,"lat":39.9,"lon":116,'
        '"topic":"air/beijing","topic_levels":2,"topic_1":"air","topic_2":"beijing"}'
    )
    assert (first["lat"], first["lon"], first["broker"], first["publisher"]) == (39.9, 116.0, "north", "van-7")
    assert str(first["time"]) == "2023-11-14 22:13:20.500000+00:00"
    assert (second["sequence"], second["payload"], second["lat"]) == (2, b"\x00\xff", None)


def test_traces_have_the_simulators_schema(tmp_path: Path) -> None:
    roll = writer.traces(tmp_path)
    roll.add((12.5, "north", Record("delivered", ("van-7", 3), client="desk")))
    roll.stop()
    (row,) = read(tmp_path, "traces")
    assert (row["time_s"], row["node"], row["kind"], row["publisher"], row["sequence"], row["client"]) == (
        (12.5, "north", "delivered", "van-7", 3, "desk")
    )  # fmt: skip


def test_a_large_file_makes_room_for_the_next(tmp_path: Path) -> None:
    roll = writer.events(tmp_path, "north", ArchiveOptions(file_bytes=20_000, batch_rows=10, batch_s=0.01))
    for number in range(100):
        roll.add(publication(number, bytes(1000)))
    roll.stop()
    assert len(list(tmp_path.glob("*.parquet"))) > 2
    assert [row["sequence"] for row in read(tmp_path)] == list(range(100))
    assert not list(tmp_path.glob("*.arrows")) + list(tmp_path.glob("*.part"))


WRITER = """
import sys, time
from pathlib import Path
from godwit.net.archive import writer
from godwit.protocols.broker.publication import Publication
roll = writer.events(Path(sys.argv[1]), "north", writer.ArchiveOptions(batch_s=0.01))
for number in range(500):
    roll.add(Publication("p", number, "t"))
while roll.written < 500:
    time.sleep(0.01)
print("written", flush=True)
while True:
    roll.add(Publication("p", number, "t", bytes(5000)))
    time.sleep(0.0001)
"""


FIRST = """
import sys, time
from pathlib import Path
from godwit.net.archive import writer
from godwit.protocols.broker.publication import Publication
roll = writer.events(Path(sys.argv[1]), "north", writer.ArchiveOptions(batch_s=0.01))
before = set(sys.modules)
roll.add(Publication("p", 1, "t"))
while not roll.written:
    time.sleep(0.01)
print(len({name for name in set(sys.modules) - before if name.partition(".")[0] == "pandas"}))
roll.stop()
"""


def test_the_first_row_need_not_wait_until_pandas_is_loaded(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, "-c", FIRST, str(tmp_path)], capture_output=True, text=True, check=True)
    assert told.stdout == "0\n"


def test_a_killed_writer_loses_only_the_last_moment(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert read(tmp_path) == []
    writer.events(tmp_path, "north").stop()
    assert [row["sequence"] for row in read(tmp_path)][:500] == list(range(500))


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:10], lambda data: b"\x00" * 100])
def test_rubbish_in_the_folder_stops_nothing(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "events-1.arrows").write_bytes(damage(b"x" * 100))
    roll = writer.events(tmp_path, "north")
    roll.add(publication(1))
    roll.stop()
    assert [row["sequence"] for row in read(tmp_path)] == [1]


def test_what_a_slow_disk_cannot_take_is_counted(tmp_path: Path) -> None:
    roll = writer.events(tmp_path, "north", ArchiveOptions(waiting_max=3, batch_s=60))
    for number in range(10):
        roll.add(publication(number))
    roll.stop()
    assert (roll.written, roll.dropped) == (3, 7)
