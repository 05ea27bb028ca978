"""Have made before tests ask for it what they would wait for: `python -m tools.warm`, beside the checks of `make test`.

Numba keeps machine code on disk for the processes that come after. Without this, all workers of the suite would
compile the same functions in the middle of some test. So would Python with modules, and pytest with tests, whose
assertions it rewrites: half of the time in which a worker finds its tests. Java keeps Spark's classes
(`godwit.pipeline.classes`); some twenty Javas are started by tests, and each saves half of its start. What sets
modes of files for Hadoop is compiled (`tools.direct_files`). Hypothesis keeps which characters there are, and which
constants stand in all modules of ours.
"""

from __future__ import annotations

import compileall
import faulthandler
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import direct_files

CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"}
"""Every access is checked: a mode with machine code of its own, for `tests/tables/compiled/test_checks.py`."""
SETTINGS = Path(__file__).resolve().parents[1] / "tests" / "spark" / "spark-defaults.conf"
"""What Spark is told in tests."""
MANY = 3_000
"""Enough subscriptions for every table of the index to grow once."""


WHOLE_S = 900.0
"""What is not made by then is made by tests."""


def main() -> int:
    faulthandler.dump_traceback_later(WHOLE_S, exit=True)
    if not CHECKED.items() <= os.environ.items():
        subprocess.run([sys.executable, "deploy/machine.py"], check=False)
        compileall.compile_dir("src", quiet=2)
        direct_files.make()
        found = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tools.warm"]
        subprocess.run(found, stdout=subprocess.DEVNULL, check=False)
    make()
    keep_classes()
    if CHECKED.items() <= os.environ.items():
        return 0
    return subprocess.run([sys.executable, "-m", "tools.warm"], env={**os.environ, **CHECKED}, check=False).returncode


def make() -> None:
    """Call every kernel once, by what calls it."""
    import pyarrow as pa

    from godwit.filters.text import parse
    from godwit.net.preload import warm
    from godwit.tables.matching.batch import Batch
    from godwit.tables.matching.index import Index

    warm()
    index = Index()
    texts = (f"x = {number} OR y = 'a{number}' OR (x = {number} AND y = 'b')" for number in range(MANY))
    index.add_many(list(range(MANY)), list(map(parse, texts)))
    batch = Batch.from_arrow(pa.record_batch({"x": [1, 2], "y": ["b", "a2"]}))
    index.match_batch(batch)
    index.count_batch(batch)
    assert MANY not in index


def pytest_collection_finish() -> None:
    """With all modules loaded: the first text that hypothesis draws has it look through all of them."""
    from hypothesis import given, settings
    from hypothesis import strategies as st

    @settings(max_examples=5, database=None)
    @given(st.text())
    def drawn(text: str) -> None:
        pass

    drawn()


def keep_classes() -> None:
    """Run a small stream and a small batch in a session, and wait for what its Java leaves at its end."""
    try:
        import pyspark  # noqa: F401
    except ModuleNotFoundError:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from godwit.pipeline import classes
    from godwit.pipeline.ingest import IngestOptions, run_stream
    from godwit.pipeline.mobility.job import MobilityOptions
    from godwit.pipeline.mobility.job import run as learn
    from godwit.pipeline.session import QUIET, Options, java, make_java_ready, start
    from godwit.pipeline.streaming.queries import Pace

    # As tests have it: what Spark would generate and compile for each query is most of the work otherwise.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--properties-file '{SETTINGS}' pyspark-shell")
    make_java_ready()
    taken = java()
    if taken is None or not classes.option(taken).startswith(classes.LEAVING):
        return
    quick = {"spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    spark = start(Options(master="local[2]", memory="1g", settings=quick))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "archive").mkdir()
        told = {"broker": ["b"], "publisher": ["p"], "sequence": [1], "time_s": [0.0], "attributes": ["{}"]}
        pq.write_table(pa.table(told), folder / "archive" / "1.parquet")
        run_stream(spark, IngestOptions(archives=(f"{folder}/archive",), out=f"{folder}/events"), Pace())
        (folder / "positions.csv").write_text("subscriber,time_s,lat,lon\nc,0,0,0\nc,60,1,1\n")
        (folder / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
        positions, sites = f"{folder}/positions.csv", f"{folder}/sites.csv"
        learn(spark, MobilityOptions(positions=positions, sites=sites, out=f"{folder}/moves"))
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        spark.stop()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    sys.exit(main())
