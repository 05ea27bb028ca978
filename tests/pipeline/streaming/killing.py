"""Streams whose driver, broker and subscriptions are disturbed at random moments, and who must not show it.

A driver runs all streams and is killed with kill -9, with all that it has started; the next one goes on from the
checkpoints, and the last takes what is left. What is there afterwards must be what batches find in the same input.

    python -m tests.pipeline.streaming.killing --seeds 10          from a live broker, which is killed too
    python -m tests.pipeline.streaming.killing --seeds 10 --files  from files
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec
from pyspark.sql import SparkSession
from tests.pipeline.streaming.disturbed import (
    FILTERS,
    WAIT_S,
    Jobs,
    Station,
    Wishes,
    files,
    jobs_of_a_broker,
    jobs_of_files,
)
from tests.pipeline.streaming.judging import (
    Events,
    Faults,
    different,
    events,
    file_events,
    judge_archive,
    judge_audit,
    judge_gathering,
    judge_match,
    rows,
)

from godwit.pipeline import ingest
from godwit.pipeline.audit import job as audit_job
from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.match import job as match_job
from godwit.pipeline.session import QUIET, Options, start
from godwit.pipeline.streaming.queries import Pace, finished

MODULE = "tests.pipeline.streaming.killing"
ROOT = Path(__file__).resolve().parents[3]
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The seed decides the moments, of which there are so many."""

    seed: int
    live: bool = True
    driver_kills: int = 1
    broker_kills: int = 1
    """Each time subscriptions change while it runs, and once more while there is none."""


def drive(jobs: Jobs) -> None:
    """All streams in one session, until killed."""
    spark = start(Options(master="local[2]", memory="512m", partitions=1, settings=QUICK))
    pace = Pace(follow=True, every="1 second")
    first = [] if jobs.ingest is None else [ingest.stream(spark, jobs.ingest, pace)]
    others = [
        match_job.stream(spark, jobs.match, pace),
        gathering_job.stream(spark, jobs.gathering, pace),
        audit_job.stream(spark, jobs.audit, pace),
    ]
    finished(*(one.query for one in [*first, *others]))


def finish(spark: SparkSession, jobs: Jobs) -> None:
    """What is left, by those who are not killed."""
    if jobs.ingest is not None:
        ingest.run_stream(spark, jobs.ingest, Pace())
    match_job.run_stream(spark, jobs.match, Pace())
    gathering_job.run_stream(spark, jobs.gathering, Pace())
    audit_job.run_stream(spark, jobs.audit, Pace())


class Driver:
    """A process with all streams, and all that it starts."""

    def __init__(self, jobs: Jobs, out: Path) -> None:
        self._out = out
        words = [
            sys.executable,
            "-m",
            "tests.pipeline.streaming.killing",
            "--drive",
            msgspec.json.encode(jobs).decode(),
        ]
        self._log = out / "driver.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(words, start_new_session=True, stdout=log, stderr=log, cwd=ROOT)

    def work(self, streams: int) -> None:
        """Return when so many streams have committed a micro-batch from now on."""
        before = self._commits()
        until_s = time.monotonic() + WAIT_S
        while len(self._commits().items() - before.items()) < streams:
            assert self._process.poll() is None, f"the driver has ended: {self._log.read_text()[-3000:]}"
            assert time.monotonic() < until_s, f"no progress: {self._commits()}; {self._log.read_text()[-3000:]}"
            time.sleep(0.02)

    def _commits(self) -> dict[Path, int]:
        found = dict[Path, int]()
        for place in self._out.glob("*/_checkpoint/**/commits/[0-9]*"):
            found[place.parent] = max(found.get(place.parent, 0), int(place.name) + 1)
        return found

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def killed(plan: Plan, folder: Path, spark: SparkSession) -> Faults:
    """Run the plan in an empty folder, with the session for what is left and for the batches."""
    wishes = Wishes(folder / "wishes.jsonl")
    return [*(_of_a_broker if plan.live else _of_files)(plan, folder, spark, wishes)]


def _of_files(plan: Plan, folder: Path, spark: SparkSession, wishes: Wishes) -> Iterator[str]:
    files(folder)
    disturb(plan, folder, jobs_of_files(folder, wishes, 1), wishes)
    jobs = jobs_of_files(folder, wishes, None)
    finish(spark, jobs)
    yield from judged(spark, jobs, file_events(folder / "air"))


def _of_a_broker(plan: Plan, folder: Path, spark: SparkSession, wishes: Wishes) -> Iterator[str]:
    with contextlib.closing(Station(folder)) as station:
        jobs = jobs_of_a_broker(folder, f"godwit://{station.live}", wishes)
        disturb(plan, folder, jobs, wishes, station)
        station.finish()
        finish(spark, jobs)
        archived = events(station.archive)
        if not plan.broker_kills:
            yield from judge_archive(station.published, archived)
        yield from different("ingest", rows(folder / "ingest" / "events", "publisher", "sequence"), archived)
        yield from judged(spark, jobs, archived)


def judged(spark: SparkSession, jobs: Jobs, happened: Events) -> Iterator[str]:
    yield from judge_match(Path(jobs.match.out), happened, FILTERS)
    yield from judge_gathering(spark, jobs.gathering)
    yield from judge_audit(spark, jobs.audit)


def disturb(plan: Plan, folder: Path, jobs: Jobs, wishes: Wishes, station: Station | None = None) -> None:
    """Drivers one after another, each killed when some or all streams were at work for a moment."""
    dice = Random(f"{plan.seed}/{plan.live}")
    for turn in range(plan.driver_kills):
        driver = Driver(jobs, folder)
        try:
            # The first is killed when all are at work; a later one perhaps while it starts.
            driver.work(dice.randint(1, jobs.streams) if turn else jobs.streams)
            wishes.change()
            if station is not None and not turn:
                for _ in range(plan.broker_kills):
                    time.sleep(dice.uniform(0, 2))
                    station.restart(dice.uniform(0, 2))
                    driver.work(jobs.streams)
            time.sleep(dice.uniform(0, 3))
        finally:
            driver.kill()
        # What the driver did not commit is matched again, with these.
        wishes.change()


def main(arguments: Sequence[str], say: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description="Kill drivers of streams.")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", action="store_true", help="streams of files instead of a live broker")
    parser.add_argument("--kills", type=int, default=2, help="of the driver in each run")
    parser.add_argument("--broker-kills", type=int, default=1, help="while the first driver runs")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--drive", metavar="JOBS", help=argparse.SUPPRESS)
    told = parser.parse_args(arguments)
    if told.drive is not None:
        drive(msgspec.json.decode(told.drive, type=Jobs))
        return 0
    spark = start(Options(master="local[2,4]", memory="1g", partitions=2, settings=QUICK))
    failed = []
    for seed in range(told.seed, told.seed + told.seeds):
        kills = 1 if told.files else told.kills
        plan = Plan(seed=seed, live=not told.files, driver_kills=kills, broker_kills=told.broker_kills)
        folder, begun_s = Path(tempfile.mkdtemp(prefix=f"killing-{seed}-")), time.monotonic()
        try:
            faults = killed(plan, folder, spark)
        except Exception as error:  # the other seeds may tell why
            faults = [f"{type(error).__name__}: {error}"]
        say(f"{plan}: {'FAULTY' if faults else 'clean'} ({time.monotonic() - begun_s:.0f} s)\n")
        for fault in faults:
            say(f"  {fault}\n")
        sys.stdout.flush()
        failed += [seed] if faults else []
        if told.keep or faults:
            say(f"  {folder}\n")
        else:
            shutil.rmtree(folder)
    say(f"{told.seeds} seeds, faults in {failed or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
