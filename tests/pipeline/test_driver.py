"""Sessions of this process and of Spark Connect: who may ask which it is, and that jobs do not care."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.session import Options, start

ROOT = Path(__file__).resolve().parents[2] / "src" / "godwit" / "pipeline"
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
from pyspark.sql import SparkSession
from godwit.pipeline.match.job import MatchOptions, run as match
from godwit.pipeline.mobility.job import MobilityOptions, run as mobility
from godwit.pipeline.session import make_java_ready, prepare
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.match import subscriptions
folder = sys.argv[1]
make_java_ready()
spark = SparkSession.builder.remote("local[2]").config("spark.driver.memory", "512m").getOrCreate()
prepare(spark)
subscriptions.SPREAD_MIN = 2
events, wishes, sites = f"{folder}/events.parquet", f"{folder}/wishes.jsonl", f"{folder}/sites.csv"
told = match(spark, MatchOptions(events=events, subscriptions=wishes, out=f"{folder}/matched"))
learned = mobility(spark, MobilityOptions(positions=events, sites=sites, out=f"{folder}/moves"))
try:
    mobility(spark, MobilityOptions(positions="hdfs://there/positions", sites=sites, out=f"{folder}/no"))
except PipelineError as error:
    refused = str(error)
print(json.dumps([type(spark).__module__, told.rows_out, told.stages > 0, learned.rows_out["handoffs"], refused]))
spark.stop()
"""


def test_jobs_run_through_spark_connect(tmp_path: Path) -> None:
    rows = {"id": [1, 2, 3], "subscriber": ["c"] * 3, "time_s": [0.0, 60.0, 120.0], "lat": [0.0, 1.0, 1.0]}
    pq.write_table(pa.table(rows | {"lon": rows["lat"]}), tmp_path / "events.parquet")
    wishes = [{"id": "north", "filter": "lat > 0.5"}, {"id": "all", "filter": "TRUE"}, {"id": "bad", "filter": "lat >"}]
    (tmp_path / "wishes.jsonl").write_text("\n".join(map(json.dumps, wishes)))
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
    own = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    own |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT.parents[1])}
    done = subprocess.run([sys.executable, "-c", WORK, str(tmp_path)], env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    module, delivered, has_stages, handoffs, refused = json.loads(done.stdout.splitlines()[-1])
    assert ".connect." in module
    assert (delivered, has_stages, handoffs) == ({"deliveries": 5}, True, 1)
    assert "a client of Spark Connect has no Hadoop" in refused
    pairs = pq.read_table(tmp_path / "matched" / "deliveries").to_pylist()
    assert sorted((row["id"], row["subscription"]) for row in pairs) == [
        *((1, "all"), (2, "all"), (2, "north")),
        *((3, "all"), (3, "north")),
    ]


def test_what_a_server_decides_by_itself_cannot_be_asked_for() -> None:
    with pytest.raises(PipelineError, match="--ship is for sessions of this machine"):
        start(Options(master="sc://127.0.0.1:1", ship="all"))
