"""Ingest, match and mobility of a generated fleet on a standalone cluster of two workers with executors of 2 GB.

    python benchmarks/pipeline_scale.py --rows 1,3,10 --write docs/results/pipeline.md             rows in millions
    python benchmarks/pipeline_scale.py --rows 10 --subscriptions 1000000 --jobs match --write docs/results/pipeline.md

Each job has a session of its own. A line says the seconds, the seconds for a million rows, and the largest resident
memory of each kind of process while it ran. The load is that of the machine, of the last five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

from godwit.pipeline import ingest
from godwit.pipeline.match import job as match_job
from godwit.pipeline.mobility import job as mobility_job
from godwit.pipeline.progress import Summary
from godwit.pipeline.session import Options, make_java_ready, start

FILE_ROWS, PUBLISHERS, SITES = 1_000_000, 20_000, 600
EXECUTOR, DRIVER = "2g", "2g"
TOLD = ("events", "deliveries", "visits", "handoffs")
SOUTH, WEST, SIDE = 37.6, -122.5, 0.25


def fleet(folder: Path, rows: int) -> None:
    """Vehicles that tell speed and place every few seconds: archive, events by column, and positions in one."""
    for at, begin in enumerate(range(0, rows, FILE_ROWS)):
        dice, count = np.random.default_rng(at), min(FILE_ROWS, rows - begin)
        number = np.arange(begin, begin + count)
        who = number % PUBLISHERS
        time_s = 1.7e9 + (number // PUBLISHERS) * 10.0
        turn = 2 * np.pi * (who / PUBLISHERS + time_s / 86_400)
        lat = SOUTH + SIDE * (0.5 + 0.45 * np.sin(turn * (1 + who % 7))) + dice.normal(0, 2e-4, count)
        lon = WEST + SIDE * (0.5 + 0.45 * np.cos(turn)) + dice.normal(0, 2e-4, count)
        speed = np.round(dice.gamma(4, 10, count), 1)
        subscriber = pa.array(np.char.add("v", who.astype(str)))
        attributes = [f'{{"speed":{v},"lat":{a:.5f},"lon":{o:.5f}}}' for v, a, o in zip(speed, lat, lon, strict=True)]
        columns = {
            "broker": pa.array(np.char.add("b", (who % 3).astype(str))),
            "publisher": subscriber,
            "sequence": number,
            "time": pa.array((time_s * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC")),
            "attributes": attributes,
        }
        pq.write_table(pa.table(columns), folder / "archive" / f"{at}.parquet")
        moving = {"id": number, "subscriber": subscriber, "time_s": time_s, "lat": lat, "lon": lon, "speed": speed}
        pq.write_table(pa.table(moving), folder / "moving" / f"{at}.parquet")


def wishes(path: Path, count: int) -> None:
    """Each is about a speed beyond what most drive, in a small box."""
    dice = np.random.default_rng(1)
    south, west = SOUTH + SIDE * dice.random(count), WEST + SIDE * dice.random(count)
    with path.open("w") as lines:
        for at in range(count):
            box = (
                f"within_box(lat, lon, {south[at]:.4f}, {west[at]:.4f}, {south[at] + 2e-3:.4f}, {west[at] + 2e-3:.4f})"
            )
            lines.write(json.dumps({"id": f"s{at}", "filter": f"speed > {40 + at % 60} AND {box}"}) + "\n")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers of one core; their address, and the processes to measure."""
    make_java_ready()
    home, started = Path(pyspark.__file__).parent, list[subprocess.Popen[bytes]]()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    worker = (
        "worker.Worker",
        "--cores",
        "1",
        "--memory",
        "3g",
        "--webui-port",
        "0",
        "--work-dir",
        str(folder / "w"),
        url,
    )
    try:
        for name, *words in (("master.Master", "--port", str(port), "--webui-port", "0"), worker, worker):
            command = [str(home / "bin/spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *words]
            with (folder / "cluster.log").open("ab") as log:
                started.append(
                    subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log, start_new_session=True)
                )
            time.sleep(8)
        yield url, [one.pid for one in started[1:]]
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Memory:
    """The largest resident memory, in MB, of the workers with all their processes, of the driver's Java, and of its
    Python, while something runs."""

    def __init__(self, workers: list[int]) -> None:
        self.workers_mb = self.java_mb = self.python_mb = 0.0
        self._spent, self._before = dict[int, float](), dict[int, float]()
        self._roots, self._done = workers, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._done.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """Processor time of all processes together; what one spends in its last second is not seen."""
        return sum(self._spent.values()) - sum(self._before.values())

    def _spend(self, now: dict[int, float]) -> None:
        self._before = self._before or now
        self._spent |= now

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            sizes, parents, spent = processes()
            self._spend({pid: spent[pid] for pid in tree(os.getpid(), parents)})
            of_workers = {pid for root in self._roots for pid in tree(root, parents)}
            children = [pid for pid in tree(os.getpid(), parents) if parents[pid] == os.getpid()]
            gateways = [pid for pid in children if pid not in self._roots and "SparkSubmit" in command(pid)]
            self.workers_mb = max(self.workers_mb, sum(sizes[pid] for pid in of_workers))
            self.java_mb = max(self.java_mb, sum(sizes[pid] for one in gateways for pid in tree(one, parents)))
            self.python_mb = max(self.python_mb, sizes[os.getpid()])


def processes() -> tuple[dict[int, float], dict[int, int], dict[int, float]]:
    """Resident memory in MB, the parent, and the processor time in seconds, of every process of this machine."""
    asked = ["ps", "-e", "-o", "pid=,ppid=,rss=,cputimes="]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in told.splitlines()]
    sizes, parents = {row[0]: row[2] / 1024 for row in rows}, {row[0]: row[1] for row in rows}
    return sizes, parents, {row[0]: float(row[3]) for row in rows}


def tree(root: int, parents: dict[int, int]) -> set[int]:
    own, size = {root} & parents.keys(), -1
    while len(own) != size:
        size = len(own)
        own |= {pid for pid, parent in parents.items() if parent in own}
    return own


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@dataclass(frozen=True)
class Measured:
    """A line of the table."""

    job: str
    rows: int
    subscriptions: int
    seconds: float
    load: float
    memory: Memory
    out: str

    def line(self) -> str:
        wanted = f", {self.subscriptions:,} subscriptions" if self.job == "match" else ""
        memory = f"{self.memory.workers_mb:,.0f} | {self.memory.java_mb:,.0f} | {self.memory.python_mb:,.0f}"
        each_s, cpu_s = self.seconds * 1e6 / self.rows, self.memory.cpu_s()
        return (
            f"| {self.job}{wanted} | {self.rows / 1e6:g} | {self.seconds:.0f} | {each_s:.1f} | {cpu_s:.0f} |"
            f" {cpu_s * 1e6 / self.rows:.1f} | {memory} | {self.out} | {self.load:.1f} |"
        )


def measured(
    name: str, url: str, roots: list[int], rows: int, job: Callable[..., Summary], subscriptions: int = 0
) -> Measured:
    settings = {"spark.executor.memory": EXECUTOR, "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}
    began_s, memory = time.monotonic(), Memory(roots)
    spark = start(Options(master=url, name=name, memory=DRIVER, partitions=max(8, rows // 250_000), settings=settings))
    try:
        summary = job(spark)
    finally:
        spark.stop()
    took_s = time.monotonic() - began_s
    memory.end()
    out = ", ".join(f"{count:,} {table}" for table, count in summary.rows_out.items() if count and table in TOLD)
    found = Measured(name, rows, subscriptions, took_s, os.getloadavg()[1], memory, out)
    print(found.line(), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1,3,10", help="millions, with commas")
    parser.add_argument("--jobs", default="ingest,match,mobility", help="with commas")
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--write", default=None, metavar="FILE", help="put the table into this page, as it is done")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="godwit-scale-", dir=asked.folder))
    try:
        wishes(folder / "wishes.jsonl", asked.subscriptions)
        dice = np.random.default_rng(2)
        places = {"site": [f"s{at}" for at in range(SITES)], "lat": SOUTH + SIDE * dice.random(SITES)}
        pq.write_table(pa.table(places | {"lon": WEST + SIDE * dice.random(SITES)}), folder / "sites.parquet")
        found = list[Measured]()
        with cluster(folder) as (url, roots):
            for millions in asked.rows.split(","):
                for one in sized(folder, url, roots, int(float(millions) * 1e6), asked):
                    found.append(one)
                    if asked.write is not None:
                        write(Path(asked.write), found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sized(folder: Path, url: str, roots: list[int], rows: int, asked: argparse.Namespace) -> Iterator[Measured]:
    for name in ("archive", "moving", "out"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    fleet(folder, rows)
    archives = ingest.IngestOptions(archives=(str(folder / "archive"),), out=str(folder / "out" / "ingest"))
    matching = match_job.MatchOptions(
        events=str(folder / "moving"), subscriptions=str(folder / "wishes.jsonl"), out=str(folder / "out" / "match")
    )
    moving = mobility_job.MobilityOptions(
        positions=str(folder / "moving"), sites=str(folder / "sites.parquet"), out=str(folder / "out" / "mobility")
    )
    jobs: dict[str, Callable[..., Summary]] = {
        "ingest": lambda spark: ingest.run(spark, archives),
        "match": lambda spark: match_job.run(spark, matching),
        "mobility": lambda spark: mobility_job.run(spark, moving),
    }
    for name in asked.jobs.split(","):
        yield measured(name, url, roots, rows, jobs[name], asked.subscriptions if name == "match" else 0)


BEGIN, END = "<!-- written by benchmarks/pipeline_scale.py -->", "<!-- end -->"
NAMES = (
    *("job", "million rows", "s", "s a million", "CPU s", "CPU s a million"),
    *("workers, MB", "driver's Java, MB", "driver's Python, MB", "left", "load"),
)
HEAD = f"| {' | '.join(NAMES)} |\n|{'---|' * len(NAMES)}"


def write(page: Path, found: Sequence[Measured]) -> None:
    """Put the lines between the marks of the page; those of other sizes that are there stay."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    older, _, after = rest.partition(END)
    new = [one.line() for one in found]
    keys = {_key(line) for line in new}
    kept = [line for line in older.splitlines() if line.startswith("| ") and _key(line) not in keys]
    lines = sorted([*(line for line in kept if not line.startswith("| job")), *new], key=_key)
    page.write_text(f"{before}{BEGIN}\n{HEAD}\n" + "\n".join(lines) + f"\n{END}{after}")


def _key(line: str) -> tuple[str, float]:
    job, rows = line.split(" | ")[:2]
    return job, float(rows) if rows.replace(".", "").isdecimal() else 0.0


if __name__ == "__main__":
    main()
