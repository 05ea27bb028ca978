"""Speed of the data jobs beside baselines of the same run.

    python benchmarks/pipeline.py --data DIR --quick      a tenth of the flights
    python benchmarks/pipeline.py --data DIR --taxis      all of them, and the week of taxis

DIR is the folder of the shared data. Match is measured on flights that left New York and subscriptions widened from
some of them; mobility on the week of San Francisco's taxis. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from godwit.filters.predicates import Kind
from godwit.filters.spark import to_spark
from godwit.filters.text import to_text
from godwit.pipeline import mobility
from godwit.pipeline.match import deliveries
from godwit.pipeline.mobility_job import MobilityOptions, run
from godwit.pipeline.reading import checked
from godwit.pipeline.schemas import SUBSCRIPTIONS
from godwit.pipeline.session import Options, start
from godwit.pipeline.subscriptions import Compiled, Shipper
from godwit.tables.batch import Batch
from godwit.tables.index import Index
from workloads import Workload, _widened

FLIGHTS, TAXIS, CELLS = "nyc_flights_2013.parquet", "sf_taxi_gps_week.parquet", "sf_lte_cells.csv.gz"
JOINED = 200
"""Subscriptions that the SQL baseline joins with: its time grows with their number, and 10,000 would take all day."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="a tenth of everything")
    arguments.add_argument("--data", type=Path, required=True, help="the folder with flights, taxis and cells")
    arguments.add_argument("--taxis", action="store_true", help="the week of taxis too")
    arguments.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    events, subscriptions = (33_000, 1_000) if asked.quick else (336_776, 10_000)
    if asked.cores is not None:
        print(matched_by_spark(asked.data, asked.cores, events, subscriptions))
        return
    in_one_process(asked.data, events, subscriptions)
    one, two = (in_its_own_process(asked.data, cores, asked.quick) for cores in (1, 2))
    print(f"match, local[1]: {one:.1f} s; local[2]: {two:.1f} s, {one / two:.2f} times faster (goal 1.7)")
    if asked.taxis:
        taxis(asked.data)


def flights(data: Path, subscriptions: int, events: int) -> Workload:
    """Flights of the shared data, since not every machine can import the package that they come from."""
    table = pq.read_table(data / FLIGHTS).drop_columns(["time_hour"]).slice(0, events)
    dice = np.random.default_rng(11)
    rows = table.take(dice.integers(0, table.num_rows, subscriptions)).to_pylist()
    return Workload("flights", [_widened(dice, row) for row in rows], table)


def timed(work: Callable[[], int]) -> tuple[float, int]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def in_its_own_process(data: Path, cores: int, quick: bool) -> float:
    """A session's cores are decided when it starts."""
    words = [sys.executable, __file__, "--data", str(data), "--cores", str(cores), *["--quick"] * quick]
    return float(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


def matched_by_spark(data: Path, cores: int, events: int, subscriptions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master=f"local[{cores}]"))
        workload = flights(data, subscriptions, events)
        frame, compiled = prepared(spark, workload, folder)
        counted(frame, compiled)
        seconds, _ = timed(lambda: counted(frame, compiled))
        spark.stop()
        return seconds


def prepared(spark: SparkSession, workload: Workload, folder: str) -> tuple[DataFrame, Compiled]:
    """Events in files of which each is a task, and subscriptions compiled."""
    table, path = workload.events, Path(folder, "events")
    path.mkdir()
    numbered = table.append_column("id", pa.array(range(table.num_rows)))
    for at in range(8):
        share = -(-table.num_rows // 8)
        pq.write_table(numbered.slice(at * share, share), path / f"{at}.parquet")
    rows = [(str(at), to_text(one)) for at, one in enumerate(workload.filters)]
    known = checked(spark.createDataFrame(rows, SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")
    return spark.read.parquet(str(path)), Shipper(spark).ship(known)


def counted(frame: DataFrame, compiled: Compiled) -> int:
    return deliveries(frame, compiled, ["id"]).count()


def in_one_process(data: Path, events: int, subscriptions: int) -> None:
    """Plain Python, Spark, and a join in SQL, all on one core and with the same answer."""
    workload = flights(data, subscriptions, events)
    index = Index()
    index.add_many(range(len(workload.filters)), workload.filters)
    batch = Batch.from_arrow(workload.events)
    index.match_batch(batch)
    plain, pairs = timed(lambda: len(index.match_batch(batch).ids))
    print(f"{events:,} flights x {subscriptions:,} subscriptions: {pairs:,} deliveries")
    print(f"plain Python, the index alone: {plain:.1f} s")
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master="local[1]"))
        frame, compiled = prepared(spark, workload, folder)
        counted(frame, compiled)
        seconds, found = timed(lambda: counted(frame, compiled))
        assert found == pairs, (found, pairs)
        print(f"local[1]: {seconds:.1f} s, {plain / seconds:.2f} of plain Python (goal 0.7)")
        joined(spark, frame, workload, seconds, subscriptions)
        spark.stop()


def joined(spark: SparkSession, frame: DataFrame, workload: Workload, seconds: float, subscriptions: int) -> None:
    """The baseline: every event against every condition in SQL, measured on some of them and scaled up."""
    kinds = {field.name: _kind(field.dataType.simpleString()) for field in frame.schema}
    some = workload.filters[:JOINED]
    conditions = [sf.coalesce(sf.expr(to_spark(one, kinds)), sf.lit(False)).cast("long") for one in some]
    wanted = sum(conditions[1:], conditions[0])
    taken, found = timed(lambda: int(frame.agg(sf.sum(wanted)).collect()[0][0]))
    index = Index()
    index.add_many(range(len(some)), some)
    assert found == len(index.match_batch(Batch.from_arrow(workload.events)).ids)
    whole = taken * subscriptions / len(some)
    print(f"SQL, {len(some)} conditions: {taken:.1f} s; all: {whole:.0f} s, {whole / seconds:.0f} times ours (goal 20)")


def _kind(name: str) -> Kind:
    return {"string": Kind.STRING, "boolean": Kind.BOOL}.get(name, Kind.NUMBER)


def taxis(data: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master="local[2]"))
        options = MobilityOptions(
            positions=str(data / TAXIS),
            sites=str(data / CELLS),
            out=f"{folder}/out",
            positions_select="cab AS subscriber, t AS time_s, lat_e5 / 1e5 AS lat, lon_e5 / 1e5 AS lon",
            sites_select="cell DIV 256 AS site, lat, lon",
            rules=mobility.Rules(utc_offset_h=-7),
        )
        print("\n".join(run(spark, options).lines()))
        spark.stop()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory: driver's Python at most {peak:.0f} MiB, Java's heap at most 2 GiB (goal: 4 GB together)")


if __name__ == "__main__":
    main()
