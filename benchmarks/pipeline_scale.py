"""Ingest, match and mobility of a generated fleet on a standalone cluster of two workers with executors of 2 GB.

    python benchmarks/pipeline_scale.py --rows 1,4,10 --subscriptions 100000     rows in millions

Each job has a session of its own. A line says the seconds, the seconds for a million rows, and the largest memory of
each kind of process while it ran (resident, of the process tree of the two workers and of the driver).
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """The largest resident memory of some trees of processes, in MB."""

    def __init__(self, roots: list[int]) -> None:
        self.most, self._roots, self._done = 0.0, roots, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> float:
        self._done.set()
        self._thread.join()
        return self.most

    def _watch(self) -> None:
        while not self._done.wait(2.0):
            self.most = max(self.most, sum(map(_tree_mb, self._roots)))


def _tree_mb(root: int) -> float:
    told = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in told.splitlines()]
    own, total = {root}, 0.0
    for _ in range(6):
        own |= {pid for pid, parent, _ in rows if parent in own}
    for pid, _, rss in rows:
        total += rss / 1024 if pid in own else 0
    return total


def measured(name: str, url: str, roots: list[int], rows: int, job: Callable[..., Summary]) -> None:
    settings = {"spark.executor.memory": EXECUTOR, "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}
    began_s, executors, driver = time.monotonic(), Memory(roots), Memory([os.getpid()])
    spark = start(Options(master=url, name=name, memory=DRIVER, partitions=max(8, rows // 250_000), settings=settings))
    try:
        summary = job(spark)
    finally:
        spark.stop()
    took_s, memory = time.monotonic() - began_s, (executors.end(), driver.end())
    out = ", ".join(f"{count:,} {table}" for table, count in summary.rows_out.items() if count)
    print(
        f"{name:<9} {rows / 1e6:6.1f} M rows {took_s:7.1f} s {took_s * 1e6 / rows:6.2f} s/M"
        f"  workers {memory[0]:5.0f} MB  with driver {memory[1]:5.0f} MB  {out}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1,4,10", help="millions, with commas")
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--folder", default=None)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="godwit-scale-", dir=asked.folder))
    try:
        wishes(folder / "wishes.jsonl", asked.subscriptions)
        dice = np.random.default_rng(2)
        places = {"site": [f"s{at}" for at in range(SITES)], "lat": SOUTH + SIDE * dice.random(SITES)}
        pq.write_table(pa.table(places | {"lon": WEST + SIDE * dice.random(SITES)}), folder / "sites.parquet")
        with cluster(folder) as (url, roots):
            for millions in asked.rows.split(","):
                sized(folder, url, roots, int(float(millions) * 1e6))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sized(folder: Path, url: str, roots: list[int], rows: int) -> None:
    for name in ("archive", "moving", "out"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    fleet(folder, rows)
    archives = ingest.IngestOptions(archives=(str(folder / "archive"),), out=str(folder / "out" / "ingest"))
    measured("ingest", url, roots, rows, lambda spark: ingest.run(spark, archives))
    matching = match_job.MatchOptions(
        events=str(folder / "moving"), subscriptions=str(folder / "wishes.jsonl"), out=str(folder / "out" / "match")
    )
    measured("match", url, roots, rows, lambda spark: match_job.run(spark, matching))
    moving = mobility_job.MobilityOptions(
        positions=str(folder / "moving"), sites=str(folder / "sites.parquet"), out=str(folder / "out" / "mobility")
    )
    measured("mobility", url, roots, rows, lambda spark: mobility_job.run(spark, moving))


if __name__ == "__main__":
    main()
