"""Speed of the data jobs beside baselines of the same run, and how their cost grows.

    python benchmarks/pipeline.py                       every row, a quarter of an hour on two idle cores
    python benchmarks/pipeline.py --quick               a tenth of everything
    python benchmarks/pipeline.py --only sql,mobility   some of the rows; --help lists them
    python benchmarks/pipeline.py --write docs/results/pipeline.md --scale DIR
                                                        all tables of the page: each row as it is measured, then those
                                                        of pipeline_scale.py, whose fleet is made and kept in DIR

With --write, what was measured is kept in a file of JSON beside the page: rows that are not asked for stay.
Every row has a session in a process of its own, is run once to warm up (but mobility, which is measured as users find
it, from a cold start), and is checked: both sides of a comparison must find the same deliveries. Both sides of a match
count the deliveries; plain Python makes a table of them in memory. In `rows`, both sides hand every row, with the ids
of event and subscription, to Spark's sink `noop`. Memory is the largest sum over all processes of the row,
Java and Python, of what they alone hold (Pss); "processor" is their user and system time. Needs the shared data:
`--data DIR`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from rich.console import Console
from rich.table import Table

import pipeline_live
import sweep
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter
from godwit.filters.predicates import Interval, Text
from godwit.filters.text import to_text
from godwit.pipeline.io.reading import checked
from godwit.pipeline.match import job as match_job
from godwit.pipeline.match.deliveries import deliveries
from godwit.pipeline.match.job import MatchOptions
from godwit.pipeline.match.subscriptions import Compiled, Shipper
from godwit.pipeline.mobility.job import MobilityOptions, run
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.schemas import SUBSCRIPTIONS
from godwit.pipeline.session import Options, start
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index
from pipeline_scale import fleet, wishes
from workloads import DATA, EQUAL, FLIGHTS, NEAR, flights, uniform

TAXIS, CELLS = "sf_taxi_gps_week.parquet", "sf_lte_cells.csv.gz"
DAY = "time_s >= 1211958000 AND time_s < 1212044400"
FILES = 8
TASKS_MAX_S = 900

TOLD = ("measure", "ours", "baseline", "ratio", "goal")
BEGIN, END = "<!-- written by benchmarks/pipeline.py -->", "<!-- end -->"

Answer = dict[str, Any]
"""A row of the table: measure, ours, baseline, ratio, goal."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", default=",".join(ROWS), metavar="ROWS", help=f"some of {', '.join(ROWS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with flights, taxis and cells")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page")
    parser.add_argument("--scale", metavar="DIR", help="then measure a cluster too, as pipeline_scale.py does")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    for name in (FLIGHTS, TAXIS, CELLS):
        if not (asked.data / name).exists():
            parser.error(f"there is no {asked.data / name}; --data names the folder of the shared data")
    if asked.row:
        row, _, number = asked.row.partition(":")
        print(json.dumps(ROWS[row][int(number)](asked.data, 10 if asked.quick else 1)))
        return
    chosen = asked.only.split(",")
    if unknown := set(chosen) - set(ROWS):
        parser.error(f"--only {','.join(sorted(unknown))}: the rows are {', '.join(ROWS)}")
    report(chosen, asked.data, asked.quick, asked.write)
    if asked.scale is not None:
        of_cluster = [str(Path(__file__).with_name("pipeline_scale.py")), "--folder", asked.scale]
        sys.exit(subprocess.call([sys.executable, *of_cluster, *(("--write", asked.write) if asked.write else ())]))


def report(rows: list[str], data: Path, quick: bool, page: Path | None = None) -> None:
    console, started = Console(), time.monotonic()
    table = Table(title=f"Data jobs{', a tenth of the size' if quick else ''}; load {os.getloadavg()[0]:.1f}")
    for name in (*TOLD, "memory"):
        table.add_column(name, justify="left" if name == "measure" else "right")
    for row in rows:
        for number in range(len(ROWS[row])):
            with console.status(f"{row} {number + 1} of {len(ROWS[row])}, {time.monotonic() - started:.0f} s so far"):
                answer, peak_mb = in_its_own_process(f"{row}:{number}", data, quick)
            told = [str(answer.get(name, "")) for name in TOLD]
            console.print("  " + "; ".join(filter(None, told)), highlight=False)
            if page is not None:
                write(page, f"{row}:{number}", [*told, f"{peak_mb:,.0f} MB"])
            table.add_row(*told, f"{peak_mb:,.0f} MB")
    console.print(table)
    console.print(f"{time.monotonic() - started:.0f} s in all, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def write(page: Path, row: str, told: list[str]) -> None:
    """Put a row into the table of the page, and beside what was measured before."""
    answers = page.with_suffix(".json")
    known = json.loads(answers.read_text()) if answers.exists() else {}
    known[row] = [*told, f"{time.strftime('%d %B %Y')}, {os.getloadavg()[1]:.1f}"]
    order = [f"{name}:{number}" for name, made in ROWS.items() for number in range(len(made))]
    known = {name: known[name] for name in order if name in known}
    answers.write_text(json.dumps(known, indent=1) + "\n")
    names = (*TOLD, "memory", "when, load")
    lines = [
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(one)} |" for one in known.values()),
    ]
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}")


def in_its_own_process(row: str, data: Path, quick: bool) -> tuple[Answer, float]:
    """What a row answers, and the most memory that it and its descendants held at one time, in MB."""
    words = [sys.executable, __file__, "--data", str(data), "--row", row, *["--quick"] * quick]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(words, stdout=told, stderr=subprocess.DEVNULL)
        peak_b, deadline = 0, time.monotonic() + TASKS_MAX_S
        while process.poll() is None and time.monotonic() < deadline:
            peak_b = max(peak_b, sum(map(_held_b, _descendants(process.pid))))
            time.sleep(0.25)
        if process.poll() is None:
            process.kill()
            return {"measure": row, "ours": f"not done in {TASKS_MAX_S} s"}, peak_b / 1e6
        told.seek(0)
        lines = told.read().splitlines()
    if process.returncode:
        return {"measure": row, "ours": f"failed; try --row {row}"}, peak_b / 1e6
    return json.loads(lines[-1]), peak_b / 1e6


def _descendants(root: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found = {root}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found


def _held_b(process: int) -> int:
    """Resident memory, with what several processes share divided among them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@dataclass(frozen=True)
class Took:
    """What a piece of work took, in all processes together, and what it found."""

    seconds: float
    processor_s: float
    found: int

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s (processor {self.processor_s:.1f} s)"


def timed(work: Callable[[], int]) -> Took:
    started, before = time.perf_counter(), _processor_s()
    found = work()
    return Took(time.perf_counter() - started, _processor_s() - before, found)


def _processor_s() -> float:
    """Of this process, its descendants, and those of them that have ended."""
    ticks = 0
    for process in _descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def in_files(table: pa.Table, folder: Path, files: int = FILES) -> str:
    """Events in files of which each is a task."""
    numbered = table.append_column("id", pa.array(np.arange(table.num_rows)))
    share = -(-table.num_rows // files)
    folder.mkdir()
    for at in range(files):
        pq.write_table(numbered.slice(at * share, share), folder / f"{at}.parquet")
    return str(folder)


def shipped(spark: SparkSession, filters: list[Filter]) -> Compiled:
    rows = [(str(at), to_text(one)) for at, one in enumerate(filters)]
    known = checked(spark.createDataFrame(rows, SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")
    return Shipper(spark).ship(known)


def counted(rows: DataFrame) -> int:
    return rows.count()


def matched(spark: SparkSession, path: str, compiled: Compiled, act: Callable[[DataFrame], int] = counted) -> int:
    """As the job does it: the events are the files as they are."""
    return act(deliveries(spark.read.parquet(path), compiled, ["id"], is_as_filed=True))


def handed_over(rows: DataFrame) -> int:
    """Make every row, count it as it passes, and let it go."""
    passed = Observation()
    rows.observe(passed, sf.count(sf.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(passed.get["rows"])


def warm(spark: SparkSession, path: str, compiled: Compiled, act: Callable[[DataFrame], int] = counted) -> None:
    """Workers are started, kernels loaded and Java has compiled what it finds hot."""
    for _ in range(2):
        matched(spark, f"{path}/0.parquet", compiled, act)


def beside_sql(data: Path, scale: int) -> Answer:
    return _beside_sql(data, scale, counted, "deliveries counted")


def rows_beside_sql(data: Path, scale: int) -> Answer:
    return _beside_sql(data, scale, handed_over, "every row made")


def _beside_sql(data: Path, scale: int, act: Callable[[DataFrame], int], done: str) -> Answer:
    """The index against a join: one row of bounds for each subscription, null where it does not care."""
    load = flights(10_000 // scale, 336_776 // scale, data)
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master="local[2]"))
        path, compiled = in_files(load.events, Path(folder, "events")), shipped(spark, load.filters)
        warm(spark, path, compiled, act)
        ours = timed(lambda: matched(spark, path, compiled, act))
        events, wishes = spark.read.parquet(path), spark.createDataFrame(bounds(load.filters)).cache()
        act(joined(spark.read.parquet(f"{path}/0.parquet").limit(1000), wishes))
        theirs = timed(lambda: act(joined(events, wishes)))
        spark.stop()
    assert ours.found == theirs.found, (ours, theirs)
    return {
        "measure": f"match {len(load.events):,} flights x {len(load.filters):,}, {done} ({ours.found:,}), local[2]",
        "ours": str(ours),
        "baseline": f"SQL join {theirs}",
        "ratio": f"{theirs.seconds / ours.seconds:.1f}",
        "goal": "20",
    }


def bounds(filters: list[Filter]) -> pa.Table:
    """Filters of the flights as columns that SQL can compare: a value for each equality, two for each range."""
    columns: dict[str, list[Any]] = {name: [None] * len(filters) for name in EQUAL}
    columns |= {f"{name}_{end}": [None] * len(filters) for name in NEAR for end in ("low", "high")}
    for at, one in enumerate(filters):
        for own in one.attributes:
            low, high = _ends(own)
            if own.name in EQUAL:
                columns[own.name][at] = low
            else:
                columns[f"{own.name}_low"][at], columns[f"{own.name}_high"][at] = low, high
    texts = {name: pa.string() for name in EQUAL}
    wishes = {name: pa.array(values, texts.get(name, pa.int32())) for name, values in columns.items()}
    return pa.table({"subscription": pa.array(map(str, range(len(filters)))), **wishes})


def _ends(own: AttributeFilter) -> tuple[Any, Any]:
    (predicate,) = own.clause
    if isinstance(predicate, Text):
        return predicate.operand, predicate.operand
    assert isinstance(predicate, Interval)
    return predicate.lo[0], predicate.hi[0]


def joined(events: DataFrame, wishes: DataFrame) -> DataFrame:
    e, w = events.alias("e"), sf.broadcast(wishes.alias("w"))
    conditions = [_unasked_or(f"w.{name}", sf.col(f"e.{name}") == sf.col(f"w.{name}")) for name in EQUAL]
    conditions += [
        _unasked_or(f"w.{name}_low", sf.col(f"e.{name}").between(sf.col(f"w.{name}_low"), sf.col(f"w.{name}_high")))
        for name in NEAR
    ]
    every = conditions[0]
    for condition in conditions[1:]:
        every &= condition
    return e.join(w, every).select("e.id", "w.subscription")


def _unasked_or(name: str, condition: Column) -> Column:
    return sf.col(name).isNull() | condition


def two_cores(data: Path, scale: int) -> Answer:
    """As users would ask: `local[1]` has one task at a time, but Java and Python work on it side by side."""
    one, two = (_apart(_a_session, data, scale, cores) for cores in (1, 2))
    return _of_two("the same, 2 cores against 1", two, f"local[1] {one}", one, "1.7")


def one_core_held(data: Path, scale: int) -> Answer:
    """The same with all processes of `local[1]` held to one core."""
    one, two = (_apart(_a_session, data, scale, cores, cores == 1) for cores in (1, 2))
    return _of_two("the same, all of local[1] on one core", two, f"one core {one}", one, "1.9")


def two_processes(data: Path, scale: int) -> Answer:
    """What two cores of this machine can give: two plain processes at once, each with half of the events."""
    one = _apart(_plain_processes, data, scale, 1)
    two = _apart(_plain_processes, data, scale, 2)
    return _of_two("the same in plain Python, two processes against one", two, f"one process {one}", one, "")


def _of_two(measure: str, two: Took, told: str, one: Took, goal: str) -> Answer:
    assert one.found == two.found, (one, two)
    ratio = f"{one.seconds / two.seconds:.2f}"
    return {"measure": measure, "ours": str(two), "baseline": told, "ratio": ratio, "goal": goal}


def _apart(work: Callable[..., Took], *given: Any) -> Took:
    """In a fresh process: a second session in this one would find Java warm, and where it may run decided."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def _a_session(data: Path, scale: int, cores: int, is_held: bool = False) -> Took:
    if is_held:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    load = flights(10_000 // scale, 336_776 // scale, data)
    with tempfile.TemporaryDirectory() as folder:
        path = in_files(load.events, Path(folder, "events"))
        spark = start(Options(master=f"local[{cores}]"))
        compiled = shipped(spark, load.filters)
        warm(spark, path, compiled)
        took = timed(lambda: matched(spark, path, compiled))
        spark.stop()
    return took


def _plain_processes(data: Path, scale: int, processes: int) -> Took:
    load = flights(10_000 // scale, 336_776 // scale, data)
    with tempfile.TemporaryDirectory() as folder:
        files = sorted(Path(in_files(load.events, Path(folder, "events"))).iterdir())
        shares = [files[at::processes] for at in range(processes)]
        with ProcessPoolExecutor(processes, get_context("fork"), _make_ready, (load.filters,)) as pool:
            # Each starts one process, which makes its index.
            list(pool.map(_share_matched, [files[:1]] * processes))
            return timed(lambda: sum(pool.map(_share_matched, shares)))


_ready: tuple[Index, pa.Array]


def _make_ready(filters: list[Filter]) -> None:
    global _ready
    _ready = indexed(filters)


def _share_matched(files: list[Path]) -> int:
    return plainly_matched(*_ready, files)


def indexed(filters: list[Filter]) -> tuple[Index, pa.Array]:
    index = Index()
    index.add_many(range(len(filters)), filters)
    return index, pa.array([str(at) for at in range(len(filters))])


def spark_overhead(data: Path, scale: int) -> Answer:
    """The same files to the same columns, without Spark and with it; links make ten million events of 250,000."""
    load = uniform(10_000, 0.0001, events=250_000 // scale)
    index, names = indexed(load.filters)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(in_files(load.events, Path(folder, "events"), files=1))
        for copy in range(1, 40):
            os.link(path / "0.parquet", path / f"{copy}.parquet")
        files = sorted(path.iterdir())
        plainly_matched(index, names, files[:1])
        plain = timed(lambda: plainly_matched(index, names, files))
        spark = start(Options(master="local[1]"))
        compiled = shipped(spark, load.filters)
        warm(spark, str(path), compiled)
        ours = timed(lambda: matched(spark, str(path), compiled))
        spark.stop()
    assert plain.found == ours.found, (plain, ours)
    events = 40 * len(load.events)
    return {
        "measure": f"match {events:,} events x {len(load.filters):,}, {ours.found:,} deliveries, local[1]",
        "ours": str(ours),
        "baseline": f"plain Python {plain}",
        "ratio": f"{plain.seconds / ours.seconds:.2f}",
        "goal": "0.7",
    }


def plainly_matched(index: Index, names: pa.Array, files: list[Path]) -> int:
    """One thread; what a program without Spark would do to have the same table of deliveries in memory."""
    count = 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=10_000, use_threads=False):
            matches = index.match_batch(Batch.from_arrow(batch.drop_columns(["id"])))
            rows = pa.array(np.repeat(np.arange(len(batch)), matches.counts))
            found = pa.table([batch.column("id").take(rows), names.take(pa.array(matches.ids))], ["id", "subscription"])
            count += found.num_rows
    return count


def week_of_taxis(data: Path, scale: int) -> Answer:
    where = None if scale == 1 else DAY
    seconds, rows = mobility(data, str(data / CELLS), "cell DIV 256 AS site, lat, lon", where)
    size = f"{rows['positions']:,} fixes x {rows['sites']} sites, {rows['handoffs']:,} handoffs"
    return {
        "measure": f"mobility, {size}, local[2]",
        "ours": f"{seconds:.1f} s",
        "goal": "45 s, 4 GB" if where is None else "",
    }


def mobility(data: Path, sites: str, select: str, where: str | None) -> tuple[float, dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master="local[2]"))
        options = MobilityOptions(
            positions=str(data / TAXIS),
            sites=sites,
            out=f"{folder}/out",
            positions_select="cab AS subscriber, t AS time_s, lat_e5 / 1e5 AS lat, lon_e5 / 1e5 AS lon",
            sites_select=select,
            where=where,
            rules=Rules(utc_offset_h=-7),
        )
        summary = run(spark, options)
        spark.stop()
    return summary.seconds, {**summary.rows_out, "positions": summary.rows_in}


def match_growth(data: Path, scale: int) -> Answer:
    """Ten times the events, and ten times the subscriptions."""
    few_events, few = 33_677 // scale, 1_000 // scale
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Options(master="local[2]"))
        for name, events, subscriptions in (
            ("base", few_events, few),
            ("events", 10 * few_events, few),
            ("subscriptions", few_events, 10 * few),
        ):
            load = flights(subscriptions, events, data)
            path, compiled = in_files(load.events, Path(folder, name)), shipped(spark, load.filters)
            matched(spark, path, compiled)
            took = timed(lambda path=path, compiled=compiled: matched(spark, path, compiled))  # type: ignore[misc]
            told[name] = f"{took.seconds:.2f} s ({took.found:,})"
        spark.stop()
    return {
        "measure": f"growth: {few_events:,} flights x {few:,} subscriptions takes {told['base']}",
        "ours": f"10 x events {told['events']}",
        "baseline": f"10 x subscriptions {told['subscriptions']}",
    }


def sites_growth(data: Path, scale: int) -> Answer:
    """A day of taxis, and sites thrown over the same box. The first run does not count: Java warms up in it."""
    dice, told = np.random.default_rng(1), []
    few, many = 549 // scale, 5_490 // scale
    with tempfile.TemporaryDirectory() as folder:
        paths = [thrown(dice, count, Path(folder, f"{count}.csv")) for count in (few, many)]
        for path in (paths[0], *paths):
            seconds, rows = mobility(data, path, "site, lat, lon", DAY)
            told.append(f"{rows['sites']:,} sites {seconds:.1f} s ({rows['handoffs']:,})")
    _, baseline, ours = told
    return {"measure": "growth: mobility, one day, sites x 10 (handoffs)", "ours": ours, "baseline": baseline}


def thrown(dice: np.random.Generator, count: int, path: Path) -> str:
    lats, lons = dice.uniform(37.6002, 37.8098, count), dice.uniform(-122.5122, -122.3594, count)
    lines = [f"{at},{lat},{lon}" for at, (lat, lon) in enumerate(zip(lats, lons, strict=True))]
    path.write_text("\n".join(["site,lat,lon", *lines]))
    return str(path)


def a_million_of_each(data: Path, scale: int) -> Answer:
    """The whole job: subscriptions are read, compiled and shipped, events matched, deliveries written."""
    count = 1_000_000 // scale
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events, wanted = fleet(folder, count) / "moving", wishes(folder, count)
        options = MatchOptions(events=str(events), subscriptions=str(wanted), out=f"{folder}/out")
        spark = start(Options(master="local[2]"))
        took = timed(lambda: match_job.run(spark, options).rows_out["deliveries"])
        spark.stop()
    size = f"{count:,} events x {count:,} subscriptions, {took.found:,} deliveries written"
    return {"measure": f"match, {size}, local[2]", "ours": str(took)}


def start_of_a_session(data: Path, scale: int) -> Answer:
    """Until a first small job is done; Spark's classes are there, from a session before."""
    _apart(_started)
    return {
        "measure": "start of a session and its first small job, local[2]",
        "ours": str(_apart(_started)),
        "goal": "6 s",
    }


def _started() -> Took:
    return timed(lambda: start(Options(master="local[2]")).range(100).count())


def a_sweep(data: Path, scale: int) -> Answer:
    took = sweep.measured(sweep.RUNS // scale)
    begin_s = took.start_s + took.first_s
    return {
        "measure": f"sweep, {took.runs} short simulations, local[2]",
        "ours": f"{took.spark_s:.1f} s; {took.spark_s + begin_s:.1f} s with the start of Spark and its workers",
        "baseline": f"plain loop {took.loop_s:.1f} s; two plain processes {took.processes_s:.1f} s",
        "ratio": f"{took.ratio:.2f}; {took.whole_ratio:.2f} with the start",
        "goal": str(sweep.GOAL),
    }


def a_live_stream(data: Path, scale: int) -> Answer:
    found = pipeline_live.measured(pipeline_live.GOAL_RATE, 60.0 / scale, 1_000)
    return {
        "measure": "streaming match from a live broker, 1,000 subscriptions",
        "ours": f"{found.per_s:,.0f} events/s, all delivered {found.behind_s:.1f} s after the last;"
        f" median {found.median_s:.2f} s, 95 % {found.p95_s:.2f} s",
        "goal": f"{pipeline_live.GOAL_RATE:,} events/s, median below {pipeline_live.GOAL_S:g} s",
    }


ROWS: dict[str, list[Callable[[Path, int], Answer]]] = {
    "sql": [beside_sql],
    "rows": [rows_beside_sql],
    "cores": [two_cores, one_core_held, two_processes],
    "overhead": [spark_overhead],
    "mobility": [week_of_taxis],
    "growth": [match_growth, sites_growth],
    "million": [a_million_of_each],
    "start": [start_of_a_session],
    "sweep": [a_sweep],
    "live": [a_live_stream],
}


if __name__ == "__main__":
    main()
