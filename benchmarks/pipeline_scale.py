"""Ingest, match and mobility of a generated fleet on a standalone cluster of two workers with executors of 2 GB.

    python benchmarks/pipeline_scale.py --folder scale --write docs/results/pipeline.md     all, for docs/results
    python benchmarks/pipeline_scale.py --rows 1,3 --also "" --folder scale                 smaller, in millions

Each job has a session of its own. What its start costs (Java of driver and executors, Python of the workers) is a
column by itself; the others begin when every executor has run a task. A line says the largest resident memory of each
kind of process while the job ran, and that of the largest process of a worker. The load is of the last five minutes.

What it does is said on standard error, the lines on standard output. With --folder, the fleet and the lines are kept
there. Whoever interrupts it, or the machine, types the same command again: files that are whole and lines that were
measured are not made again; `timeout 3600 python ...` bounds it. What jobs and Spark write is removed after each job.
100 million rows need 10 GB for the fleet, and as much again while they are worked on.
Exit status: 0; 1 where the workers took more memory together than --most-mb allows.
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
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
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
START_S = 120
SOUTH, WEST, SIDE = 37.6, -122.5, 0.25
VEHICLES, BROKERS = pa.array([f"v{at}" for at in range(PUBLISHERS)]), pa.array(["b0", "b1", "b2"])

KINDS = ("archive", "moving")
SAY_S = 15.0


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Said:
    """How far a job is, now and then."""

    def __init__(self, job: str) -> None:
        self._job, self._last_s = job, time.monotonic()

    def __call__(self, share: float, what: str) -> None:
        if time.monotonic() - self._last_s > SAY_S:
            self._last_s = time.monotonic()
            say(f"{self._job}: {what}")


def fleet(folder: Path, rows: int) -> Path:
    """Vehicles that tell speed and place every few seconds: archive, events by column, and positions in one.

    Files of all sizes are the same but for the last; each size has a folder with links to its own.
    """
    own = folder / f"rows-{rows}"
    for kind in KINDS:
        (folder / kind).mkdir(exist_ok=True)
        (own / kind).mkdir(parents=True, exist_ok=True)
    for at, begin in enumerate(range(0, rows, FILE_ROWS)):
        count = min(FILE_ROWS, rows - begin)
        names = {kind: folder / kind / f"{at}-{count}.parquet" for kind in KINDS}
        if not all(file.exists() for file in names.values()):
            say(f"fleet: {(begin + count) / 1e6:g} of {rows / 1e6:g} million rows")
            for kind, table in zip(KINDS, part(at, begin, count), strict=True):
                unfinished = names[kind].with_suffix(".new")
                pq.write_table(table, unfinished)
                unfinished.replace(names[kind])
        for kind, file in names.items():
            link = own / kind / file.name
            if not link.exists():
                os.link(file, link)
    return own


def part(at: int, begin: int, count: int) -> tuple[pa.Table, pa.Table]:
    """So many rows from this one on, as archived and as they move."""
    dice = np.random.default_rng(at)
    number = np.arange(begin, begin + count)
    who = number % PUBLISHERS
    time_s = 1.7e9 + (number // PUBLISHERS) * 10.0
    turn = 2 * np.pi * (who / PUBLISHERS + time_s / 86_400)
    lat = SOUTH + SIDE * (0.5 + 0.45 * np.sin(turn * (1 + who % 7))) + dice.normal(0, 2e-4, count)
    lon = WEST + SIDE * (0.5 + 0.45 * np.cos(turn)) + dice.normal(0, 2e-4, count)
    speed = np.round(dice.gamma(4, 10, count), 1)
    subscriber = VEHICLES.take(pa.array(who))
    attributes = pc.binary_join_element_wise(
        *('{"speed":', shown(speed, 1), ',"lat":', shown(lat, 5), ',"lon":', shown(lon, 5), "}"), ""
    )
    columns = {
        "broker": BROKERS.take(pa.array(who % 3)),
        "publisher": subscriber,
        "sequence": number,
        "time": pa.array((time_s * 1e6).astype(np.int64)).cast(pa.timestamp("us", "UTC")),
        "attributes": attributes,
    }
    moving = {"id": number, "subscriber": subscriber, "time_s": time_s, "lat": lat, "lon": lon, "speed": speed}
    return pa.table(columns), pa.table(moving)


def shown(numbers: npt.NDArray[np.float64], digits: int) -> pa.Array:
    return pc.cast(pc.round(pa.array(numbers), digits), pa.string())


def wishes(folder: Path, count: int) -> Path:
    """Each is about a speed beyond what most drive, in a small box."""
    path = folder / f"wishes-{count}.jsonl"
    if path.exists():
        return path
    unfinished = path.with_suffix(".new")
    dice = np.random.default_rng(1)
    south, west = SOUTH + SIDE * dice.random(count), WEST + SIDE * dice.random(count)
    with unfinished.open("w") as lines:
        for at in range(count):
            box = (
                f"within_box(lat, lon, {south[at]:.4f}, {west[at]:.4f}, {south[at] + 2e-3:.4f}, {west[at] + 2e-3:.4f})"
            )
            lines.write(json.dumps({"id": f"s{at}", "filter": f"speed > {40 + at % 60} AND {box}"}) + "\n")
    unfinished.replace(path)
    return path


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
    # Executors are killed, and would leave what they have shuffled.
    own["SPARK_LOCAL_DIRS"] = str(folder / "local")
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
            if len(started) == 1:
                told(folder / "cluster.log", "Starting Spark master", 1)
        told(folder / "cluster.log", "Registering worker", 2)
        yield url, [one.pid for one in started[1:]]
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for left in ("local", "w"):
            shutil.rmtree(folder / left, ignore_errors=True)


def told(log: Path, text: str, times: int) -> None:
    """Wait until it has been said so often."""
    until_s = time.monotonic() + START_S
    while log.read_text().count(text) < times:
        if time.monotonic() > until_s:
            raise SystemExit(f"the cluster did not start in {START_S} s:\n{log.read_text()[-2000:]}")
        time.sleep(0.2)


class Memory:
    """The largest resident memory, in MB, of the workers with all their processes, of the largest of these, of the
    driver's Java, and of its Python, while something runs."""

    def __init__(self, workers: list[int]) -> None:
        self.workers_mb = self.largest_mb = self.java_mb = self.python_mb = 0.0
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
            self.largest_mb = max(self.largest_mb, *(sizes[pid] for pid in of_workers), 0.0)
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


class Measured(msgspec.Struct, frozen=True):
    """A line of the table."""

    job: str
    rows: int
    subscriptions: int
    start_cpu_s: float
    seconds: float
    cpu_s: float
    load: float
    workers_mb: float
    largest_mb: float
    java_mb: float
    python_mb: float
    out: str

    @property
    def key(self) -> tuple[str, int, int]:
        return self.job, self.rows, self.subscriptions

    def line(self) -> str:
        wanted = f", {self.subscriptions:,} subscriptions" if self.job == "match" else ""
        memory = (self.workers_mb, self.largest_mb, self.java_mb, self.python_mb)
        return (
            f"| {self.job}{wanted} | {self.rows / 1e6:g} | {self.start_cpu_s:.0f} | {self.seconds:.0f} |"
            f" {self.seconds * 1e6 / self.rows:.1f} | {self.cpu_s:.0f} | {self.cpu_s * 1e6 / self.rows:.1f} |"
            f" {' | '.join(f'{one:,.0f}' for one in memory)} | {self.out} | {self.load:.1f} |"
        )


def measured(
    name: str, url: str, roots: list[int], rows: int, job: Callable[..., Summary], subscriptions: int = 0
) -> Measured:
    settings = {"spark.executor.memory": EXECUTOR, "spark.executor.cores": "1", "spark.driver.host": "127.0.0.1"}
    what = f"{name}, {rows / 1e6:g} million rows" + (f", {subscriptions:,} subscriptions" if subscriptions else "")
    say(f"{what}: Spark starts")
    before = Memory(roots)
    spark = start(Options(master=url, name=name, memory=DRIVER, partitions=max(8, rows // 250_000), settings=settings))
    try:
        # Every executor has its Java, and its Python.
        spark.range(0, 64, 1, 8).mapInArrow(lambda batches: batches, "id long").count()
        before.end()
        say(f"{what}: begins")
        began_s, memory = time.monotonic(), Memory(roots)
        summary = job(spark, Said(what))
        took_s = time.monotonic() - began_s
        memory.end()
    finally:
        spark.stop()
    out = ", ".join(f"{count:,} {table}" for table, count in summary.rows_out.items() if count and table in TOLD)
    found = Measured(
        job=name,
        rows=rows,
        subscriptions=subscriptions,
        start_cpu_s=before.cpu_s(),
        seconds=took_s,
        cpu_s=memory.cpu_s(),
        load=os.getloadavg()[1],
        workers_mb=memory.workers_mb,
        largest_mb=memory.largest_mb,
        java_mb=memory.java_mb,
        python_mb=memory.python_mb,
        out=out,
    )
    print(found.line(), flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="1,10,100", help="millions, with commas; smallest first")
    parser.add_argument("--jobs", default="ingest,match,mobility", help="with commas")
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--also", default="10:1000000", help="further matches, as millions:subscriptions, with commas")
    parser.add_argument("--folder", default=None, metavar="DIR", help="keep the fleet and what was measured, and go on")
    parser.add_argument("--most-mb", type=float, default=6_000, help="what both workers may take together")
    parser.add_argument("--write", default=None, metavar="FILE", help="put the table into this page, as it is done")
    asked = parser.parse_args()
    # Whoever ends us, as `timeout` does, ends the cluster too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if asked.folder is not None:
        Path(asked.folder).mkdir(parents=True, exist_ok=True)
        return run(Path(asked.folder).absolute(), asked)
    with tempfile.TemporaryDirectory(prefix="godwit-scale-") as name:
        return run(Path(name), asked)


def run(folder: Path, asked: argparse.Namespace) -> int:
    dice = np.random.default_rng(2)
    places = {"site": [f"s{at}" for at in range(SITES)], "lat": SOUTH + SIDE * dice.random(SITES)}
    pq.write_table(pa.table(places | {"lon": WEST + SIDE * dice.random(SITES)}), folder / "sites.parquet")
    lines = folder / "measured.jsonl"
    lines.touch()
    found = [msgspec.json.decode(line, type=Measured) for line in lines.read_text().splitlines()]
    (folder / "cluster.log").unlink(missing_ok=True)
    known = {one.key for one in found}
    if asked.write is not None and found:
        write(Path(asked.write), found)
    if missing := [key for key in keys(asked) if key not in known]:
        with cluster(folder) as (url, roots):
            for name, rows, subscriptions in missing:
                job = jobs(fleet(folder, rows), folder, subscriptions)[name]
                try:
                    found.append(measured(name, url, roots, rows, job, subscriptions))
                finally:
                    for out in folder.glob("out-*"):
                        shutil.rmtree(out, ignore_errors=True)
                with lines.open("ab") as file:
                    file.write(msgspec.json.encode(found[-1]) + b"\n")
                if asked.write is not None:
                    write(Path(asked.write), found)
    too_much = [one for one in found if one.workers_mb > asked.most_mb]
    for one in too_much:
        print(f"{one.job}, {one.rows:,} rows: the workers took {one.workers_mb:,.0f} MB of {asked.most_mb:,.0f}")
    return int(bool(too_much))


def keys(asked: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Jobs with their rows and subscriptions, in the order in which they are measured."""
    for millions in asked.rows.split(","):
        for name in asked.jobs.split(","):
            yield name, int(float(millions) * 1e6), asked.subscriptions if name == "match" else 0
    for further in filter(None, asked.also.split(",")):
        millions, _, subscriptions = further.partition(":")
        yield "match", int(float(millions) * 1e6), int(subscriptions)


def jobs(fleet: Path, folder: Path, subscriptions: int) -> dict[str, Callable[..., Summary]]:
    out, moving = f"{folder}/out", f"{fleet}/moving"
    archives = ingest.IngestOptions(archives=(f"{fleet}/archive",), out=f"{out}-ingest")
    wanted = str(wishes(folder, subscriptions)) if subscriptions else ""
    matching = match_job.MatchOptions(events=moving, subscriptions=wanted, out=f"{out}-match")
    learning = mobility_job.MobilityOptions(positions=moving, sites=f"{folder}/sites.parquet", out=f"{out}-mobility")
    return {
        "ingest": lambda spark, said: ingest.run(spark, archives, said),
        "match": lambda spark, said: match_job.run(spark, matching, said),
        "mobility": lambda spark, said: mobility_job.run(spark, learning, said),
    }


BEGIN, END = "<!-- written by benchmarks/pipeline_scale.py -->", "<!-- end -->"
NAMES = (
    *("job", "million rows", "CPU s of the start", "s", "s a million", "CPU s", "CPU s a million", "workers, MB"),
    *("largest process, MB", "driver's Java, MB", "driver's Python, MB", "left", "load"),
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
    sys.exit(main())
