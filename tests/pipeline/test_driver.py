"""Sessions of this process and of Spark Connect: who may ask which it is, and that jobs do not care."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import SparkSession
from tests.brokers import own_ports
from tests.seeds import few
from tests.spark.classes import kept

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.session import QUIET, Options, make_java_ready, start, workers_python

ROOT = Path(__file__).resolve().parents[2] / "src" / "godwit" / "pipeline"
SETTINGS = Path(__file__).resolve().parents[1] / "spark" / "spark-defaults.conf"
OF_JAVA = re.compile(r"\b(_jvm|_jsc|_jdf|_sc|sparkContext|SparkContext)\b|\.rdd\b")

ALLOWED = {
    "driver.py": "broadcasts, job groups and cores, each with what Spark Connect has in its place",
    "io/hadoop.py": "file systems of other machines, which are Java's",
    "sweep/runs.py": "tasks that are tried again one by one, which only RDDs can do; a sweep has a session of its own",
}
"""Modules that may ask for the Java beside a session, and why. All others run through Spark Connect as they are."""


def test_no_other_module_asks_for_java() -> None:
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if OF_JAVA.search(path.read_text())}
    assert found == set(ALLOWED)


WORK = """
import json
import sys
from godwit.pipeline.audit.job import AuditOptions, run as audit
from godwit.pipeline.gathering.job import GatheringOptions, run as gather
from godwit.pipeline.ingest import IngestOptions, run as ingest
from godwit.pipeline.match.job import MatchOptions, run as match
from godwit.pipeline.mobility.job import MobilityOptions, run as mobility
from godwit.pipeline.session import Options, start
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.match import subscriptions
folder, address = sys.argv[1:]
spark = start(Options(master=address))
subscriptions.SPREAD_MIN = 2
events, wishes, sites = f"{folder}/events.parquet", f"{folder}/wishes.jsonl", f"{folder}/sites.csv"
told = match(spark, MatchOptions(events=events, subscriptions=wishes, out=f"{folder}/matched"))
learned = mobility(spark, MobilityOptions(positions=events, sites=sites, out=f"{folder}/moves"))
taken = ingest(spark, IngestOptions(archives=(f"{folder}/archive.parquet",), out=f"{folder}/taken"))
select = "subscriber AS sensor, time_s, lat AS level"
air = GatheringOptions(readings=events, out=f"{folder}/air", quantities=("level",), select=select)
gathered = gather(spark, air)
judged = audit(spark, AuditOptions(traces=f"{folder}/traces.parquet", out=f"{folder}/judged"))
others = [taken.rows_out["events"], gathered.rows_out["aggregates"], judged.notes[0]]
try:
    mobility(spark, MobilityOptions(positions="hdfs://there/positions", sites=sites, out=f"{folder}/no"))
except PipelineError as error:
    refused = str(error)
moved = learned.rows_out["handoffs"]
print(json.dumps([type(spark).__module__, told.rows_out, told.stages > 0, moved, refused, others]))
spark.stop()
"""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Spark Connect server of this machine; its address."""
    make_java_ready()
    with own_ports(1) as [port], connected(folder, port) as address:
        yield address


@contextmanager
def beside(spark: SparkSession) -> Iterator[str]:
    """A Spark Connect server in the Java of this session, which is warm; its address."""
    context = spark.sparkContext
    java = context._jvm
    assert java is not None
    # The service itself has methods that name classes which are nowhere: who looks through all of them finds that out.
    plugin = java.org.apache.spark.sql.connect.SparkConnectPlugin().driverPlugin()
    with own_ports(1) as [port]:
        context._jsc.sc().conf().set("spark.connect.grpc.binding.port", str(port))
        plugin.init(context._jsc.sc(), None)
        try:
            yield f"sc://127.0.0.1:{port}"
        finally:
            plugin.shutdown()


@contextmanager
def connected(folder: Path, port: int) -> Iterator[str]:
    home, paths = (
        Path(pyspark.__file__).parent,
        os.pathsep.join([str(ROOT.parents[1]), os.environ.get("PYTHONPATH", "")]),
    )
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    words += [
        "--properties-file",
        str(SETTINGS),
        "--driver-memory",
        "512m",
        "--driver-java-options",
        f"{QUIET} -XX:+UseSerialGC {kept()}",
        "--conf",
        f"spark.connect.grpc.binding.port={port}",
        # Of these few rows Spark's 200 parts would be two thousand tasks.
        "--conf",
        "spark.sql.shuffle.partitions=2",
        "spark-internal",
    ]
    own = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": workers_python("local[2]"),
        "PYTHONPATH": paths,
    }
    with (folder / "server.log").open("wb") as log:
        command = [str(home / "bin" / "spark-submit"), *words]
        running = subprocess.Popen(command, env=os.environ | own, stdout=log, stderr=log, start_new_session=True)
    try:
        while not _listens(port):
            assert running.poll() is None, (folder / "server.log").read_text()[-3000:]
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("place", few(1, ["beside the session of all tests", "a server of its own"]))
def test_jobs_run_through_spark_connect(spark: SparkSession, tmp_path: Path, place: str) -> None:
    """A server of its own is half a minute of the processor until it is warm, and is the same service."""
    rows = {"id": [1, 2, 3], "subscriber": ["c"] * 3, "time_s": [0.0, 60.0, 120.0], "lat": [0.0, 1.0, 1.0]}
    pq.write_table(pa.table(rows | {"lon": rows["lat"]}), tmp_path / "events.parquet")
    named = {"publisher": ["p"] * 3, "sequence": [1, 2, 2], "time_s": rows["time_s"]}
    pq.write_table(pa.table(named | {"broker": ["b"] * 3, "attributes": ["{}"] * 3}), tmp_path / "archive.parquet")
    said = {"node": ["b"] * 3, "kind": ["published", "matched", "delivered"], "client": ["p", "c", "c"]}
    pq.write_table(pa.table(named | {"sequence": [1] * 3} | said), tmp_path / "traces.parquet")
    wishes = [{"id": "north", "filter": "lat > 0.5"}, {"id": "all", "filter": "TRUE"}, {"id": "bad", "filter": "lat >"}]
    (tmp_path / "wishes.jsonl").write_text("\n".join(map(json.dumps, wishes)))
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
    with server(tmp_path) if place == "a server of its own" else beside(spark) as address:
        command = [sys.executable, "-c", WORK, str(tmp_path), address]
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": str(ROOT.parents[1])}, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr[-3000:]
    module, delivered, has_stages, handoffs, refused, others = json.loads(done.stdout.splitlines()[-1])
    assert ".connect." in module
    assert (delivered, has_stages, handoffs) == ({"deliveries": 5}, True, 1)
    assert others == [2, 1, "1 expected, 1 delivered, 0 lost (0 of them dropped knowingly)"]
    assert "a client of Spark Connect has no Hadoop" in refused
    pairs = pq.read_table(tmp_path / "matched" / "deliveries").to_pylist()
    assert sorted((row["id"], row["subscription"]) for row in pairs) == [
        *((1, "all"), (2, "all"), (2, "north")),
        *((3, "all"), (3, "north")),
    ]


def test_what_a_server_decides_by_itself_cannot_be_asked_for() -> None:
    with pytest.raises(PipelineError, match="--ship is for sessions of this machine"):
        start(Options(master="sc://127.0.0.1:1", ship="all"))
