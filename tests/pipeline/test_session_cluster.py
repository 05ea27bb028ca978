"""A real standalone cluster on loopback whose workers lack godwit: two die, and the results are the local ones."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.brokers import own_ports
from tests.spark.classes import kept

from godwit.lab.mft.runs import Configuration, run
from godwit.pipeline.match.job import MatchOptions
from godwit.pipeline.match.job import run as run_match
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.job import MobilityOptions
from godwit.pipeline.mobility.job import run as run_mobility
from godwit.pipeline.session import make_java_ready
from godwit.pipeline.sweep import runs as sweep

DATA = Path(__file__).resolve().parent.parent / "data"
START_S = 600

SUBMIT = """
import json
import sys
import msgspec
from godwit.lab.mft.runs import Configuration, run
from godwit.pipeline.match import job as match_job
from godwit.pipeline.mobility import job as mobility_job
from godwit.pipeline.sweep import runs as sweep
from godwit.pipeline.session import QUIET, Options, start
master, classes, match, mobility, runs = sys.argv[1:]
settings = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m",
    "spark.executor.cores": "1", "spark.sql.shuffle.partitions": "4", "spark.task.maxFailures": "8",
    "spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {classes}",
    "spark.sql.files.maxPartitionBytes": "4k",
}
spark = start(Options(master=master, memory="512m", ship="godwit", settings=settings))
print("started", flush=True)
match_job.run(spark, msgspec.json.decode(match, type=match_job.MatchOptions))
print("matched", flush=True)
mobility_job.run(spark, msgspec.json.decode(mobility, type=mobility_job.MobilityOptions))
print("learned", flush=True)
sys.stdin.readline()
found = {}
for number, result, error in sweep.outcomes(spark, run, msgspec.json.decode(runs, type=list[Configuration])):
    found[number] = error or result.digest
    if len(found) == 5:
        print("sweeping", flush=True)
print(json.dumps(found), flush=True)
spark.stop()
"""


@dataclass
class Cluster:
    """A master, which is the first process, and its workers; more may join."""

    master: str
    processes: list[subprocess.Popen[bytes]]
    join: Callable[[str], None]

    def lose(self, worker: int) -> None:
        end(self.processes[worker])


@contextmanager
def running(tmp_path: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    """A master and two workers, in this environment."""
    make_java_ready()
    processes: list[subprocess.Popen[bytes]] = []
    with own_ports(1) as [port]:
        try:
            yield started(tmp_path, environment, port, processes)
        finally:
            for process in processes:
                end(process)


def started(
    tmp_path: Path, environment: dict[str, str], port: int, processes: list[subprocess.Popen[bytes]]
) -> Cluster:
    """`processes` has what was started, also where something goes wrong."""
    deploy = "org.apache.spark.deploy"
    told = ("--port", str(port), "--webui-port", "0")
    processes.append(spark_class(tmp_path, environment, "master", f"{deploy}.master.Master", *told))
    url = f"spark://127.0.0.1:{port}"

    def join(name: str) -> None:
        folder = tmp_path / f"work-{name}"
        share = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--work-dir", str(folder), url)
        processes.append(spark_class(tmp_path, environment, name, f"{deploy}.worker.Worker", *share))

    join("first")
    join("second")
    registered(tmp_path / "master.log", 2)
    return Cluster(url, processes, join)


def spark_class(folder: Path, own: dict[str, str], name: str, *words: str) -> subprocess.Popen[bytes]:
    """A process of the cluster in a group of its own, so that its executors end with it."""
    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / f"local-{name}"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {kept()}",
        **own,
    }
    with (folder / f"{name}.log").open("wb") as log:
        command = [str(home / "bin" / "spark-class"), words[0], "--host", "127.0.0.1", *words[1:]]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def registered(log: Path, workers: int) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if len(re.findall("Registering worker", log.read_text())) >= workers:
            return
        time.sleep(0.1)
    raise AssertionError(f"the workers did not register in {START_S} s:\n{log.read_text()[-2000:]}")


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def python_without_godwit(folder: Path) -> str:
    """A Python that has the packages of this one, but not what is installed by a link, as godwit is here."""
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(str(Path(pyspark.__file__).parent.parent))
    return str(folder / "bin" / "python")


def lacks_godwit(python: str) -> bool:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    tried = subprocess.run([python, "-c", "import pyarrow, godwit"], env=environment, capture_output=True, text=True)
    return "No module named 'godwit'" in tried.stderr


def tables(out: Path, *names: str) -> dict[str, list[str]]:
    return {name: sorted(map(str, pq.read_table(out / name).to_pylist())) for name in names}


@pytest.mark.bound(600)
def test_workers_get_godwit_shipped_and_die_in_the_middle_and_the_results_are_the_local_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    python = python_without_godwit(tmp_path / "bare")
    if not lacks_godwit(python):
        pytest.skip("godwit is installed among the packages of this environment, not by a link")
    lacking = {"PYSPARK_PYTHON": python, "PYTHONPATH": ""}
    with running(tmp_path, lacking) as cluster:
        submitted(spark, cluster, tmp_path, python)


def submitted(spark: SparkSession, cluster: Cluster, tmp_path: Path, python: str) -> None:
    wishes = tmp_path / "wishes.jsonl"
    filters = {"late": "dep_delay > 60", "boston": "dest = 'BOS'"}
    wishes.write_text("".join(json.dumps({"id": name, "filter": text}) + "\n" for name, text in filters.items()))
    match = MatchOptions(
        events=str(DATA / "flights.parquet"),
        subscriptions=str(wishes),
        out=str(tmp_path / "matched"),
        select="concat_ws('-', carrier, flight, month, day, hour, origin) AS id, *",
    )
    learn = MobilityOptions(
        positions=str(DATA / "taxis.parquet"),
        sites=str(DATA / "sites.csv"),
        out=str(tmp_path / "learned"),
        positions_select="cab AS subscriber, t AS time_s, lat_e5 / 1e5 AS lat, lon_e5 / 1e5 AS lon",
        rules=mobility.Rules(utc_offset_h=-7),
    )
    runs = [Configuration(size=4, speed_mps=8.0, seed=seed, publish_s=20.0, drain_s=8.0) for seed in range(24)]
    words = [cluster.master, kept(), *(msgspec.json.encode(one).decode() for one in (match, learn, runs))]
    command = [sys.executable, "-c", SUBMIT, *words]
    environment = {**os.environ, "PYSPARK_PYTHON": python}
    driver = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert driver.stdin is not None
        assert driver.stdout is not None
        said = []
        for line in driver.stdout:
            said.append(line.decode().strip())
            if said[-1] == "matched":
                # Mobility has begun, with shuffles and broadcasts on both workers, when one of them goes.
                time.sleep(1.0)
                cluster.lose(1)
            elif said[-1] == "learned":
                cluster.join("third")
                driver.stdin.write(b"\n")
                driver.stdin.flush()
            elif said[-1] == "sweeping":
                cluster.lose(2)
        assert driver.wait(timeout=60) == 0
    finally:
        end(driver)
    assert said[:-1] == ["started", "matched", "learned", "sweeping"]
    local = {str(number): error or done.digest for number, done, error in sweep.outcomes(spark, run, runs)}
    assert json.loads(said[-1]) == local
    run_match(spark, msgspec.structs.replace(match, out=str(tmp_path / "matched here")))
    run_mobility(spark, msgspec.structs.replace(learn, out=str(tmp_path / "learned here")))
    assert tables(tmp_path / "matched", "deliveries") == tables(tmp_path / "matched here", "deliveries")
    learned = ("visits", "handoffs", "neighbors")
    assert tables(tmp_path / "learned", *learned) == tables(tmp_path / "learned here", *learned)
