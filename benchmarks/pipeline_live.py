"""Streaming match from a live broker: whether it keeps up, and how long an event takes to become a delivery on disk.

    python benchmarks/pipeline_live.py                         20,000 events/s for a minute, 1,000 subscriptions
    python benchmarks/pipeline_live.py --rate 5000 --seconds 20

A broker process with an archive, a publisher process, and a Spark session of its own. An event's time is when the
broker took it; it is delivered when Spark has committed the micro-batch of its deliveries. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mqttload import Client

STEP_S = 0.02
WARM_S = 15.0
"""Compiling, starting workers and the first micro-batches are no part of what is measured."""
GOAL_RATE, GOAL_S, BEHIND_S = 20_000, 2.0, 5.0


class Figures(msgspec.Struct, frozen=True):
    """What `measured` found; times in seconds."""

    published: int
    per_s: float
    """As sent; a publisher that is held up by the broker sends less than it was asked to."""
    deliveries: int
    median_s: float
    p95_s: float
    late_median_s: float
    """Of the last third alone: where the stream falls behind it is more."""
    behind_s: float
    """From the last event until all were delivered."""
    batches: int
    broker_cores: float
    spark_cores: float
    """Busy on average while events came: CPU time, which a busy machine changes less than it changes waiting."""

    def line(self) -> str:
        verdict = "keeps up" if self.behind_s < BEHIND_S else "falls behind"
        return (
            f"streaming match from a live broker: {self.per_s:,.0f} events/s, {verdict} (goal {GOAL_RATE:,});"
            f" end to end median {self.median_s:.2f} s (goal {GOAL_S:g}), 95 % {self.p95_s:.2f} s, last third"
            f" {self.late_median_s:.2f} s; all delivered {self.behind_s:.1f} s after the last event;"
            f" {self.deliveries:,} deliveries in {self.batches} micro-batches; cores busy: broker"
            f" {self.broker_cores:.2f}, Spark {self.spark_cores:.2f}; load of the machine {os.getloadavg()[0]:.1f}"
        )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rate", type=int, default=GOAL_RATE, help="events/s")
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--subscriptions", type=int, default=1_000)
    arguments.add_argument("--cores", type=int, default=2)
    arguments.add_argument("--publish", type=int, metavar="PORT", help=argparse.SUPPRESS)
    asked = arguments.parse_args()
    if asked.publish is not None:
        print(publish(asked.publish, asked.rate, asked.seconds))
        return
    print(measured(asked.rate, asked.seconds, asked.subscriptions, asked.cores).line())


def measured(rate: int, seconds: float, subscriptions: int, cores: int = 2) -> Figures:
    """One run, in a folder that is removed afterwards."""
    from godwit.pipeline.match.job import MatchOptions, stream
    from godwit.pipeline.session import Options, start
    from godwit.pipeline.streaming.queries import Pace, ending

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "wishes.jsonl").write_text(wishes(subscriptions))
        broker, ports = serving(folder)
        try:
            spark = start(Options(master=f"local[{cores}]", name="live benchmark", memory="3g"))
            options = MatchOptions(
                events=ports["archive"],
                subscriptions=str(folder / "wishes.jsonl"),
                out=str(folder / "out"),
                key=("publisher", "sequence", "time"),
            )
            running = stream(spark, options, Pace(follow=True))
            query = running.query
            port = ports["mqtt"].rpartition(":")[2]
            published(port, rate, WARM_S)
            if not query.isActive:
                raise SystemExit(f"the stream has ended: {ending(str(query.exception()))}")
            before = cpu_s(broker.pid), cpu_s(os.getpid()) - cpu_s(broker.pid)
            count, per_s = published(port, rate, seconds)
            ended_s = time.time()
            after = cpu_s(broker.pid), cpu_s(os.getpid()) - cpu_s(broker.pid)
            busy = [(more - less) * per_s / count for less, more in zip(before, after, strict=True)]
            query.processAllAvailable()
            query.stop()
            running.close()
            spark.stop()
            return figures(folder / "out", count, per_s, ended_s, busy)
        finally:
            broker.terminate()
            broker.wait()


def wishes(count: int) -> str:
    """Each wants a narrow range of one of a hundred sensors; a thousand of them want one event in ten."""
    dice = np.random.default_rng(5)
    lines = []
    for number in range(count):
        low = int(dice.integers(0, 990))
        wanted = f"sensor = {dice.integers(0, 100)} AND value >= {low} AND value < {low + 10}"
        lines.append(json.dumps({"id": f"s{number}", "filter": wanted}))
    return "\n".join(lines)


def serving(folder: Path) -> tuple[subprocess.Popen[str], dict[str, str]]:
    (folder / "broker.toml").write_text(
        f'[archive]\nfolder = "{folder}/archive"\nlisten = "127.0.0.1:0"\nbatch_s = 0.1\n'
    )
    words = ["--name", "bench", "--data", str(folder / "data"), "--listen", "127.0.0.1:0"]
    broker = subprocess.Popen(
        [sys.executable, "-m", "godwit", "serve", *words, "--config", str(folder / "broker.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    ports: dict[str, str] = {}
    assert broker.stdout is not None
    for line in broker.stdout:
        what, _, where = line.strip().partition(" ")
        ports[what] = where.strip()
        if what == "access":
            break
    return broker, ports


def published(port: str, rate: int, seconds: float) -> tuple[int, float]:
    """By a process of its own: how many, and how many a second."""
    words = [sys.executable, __file__, "--publish", port, "--rate", str(rate), "--seconds", str(seconds)]
    count, took_s = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return count, count / took_s


def publish(port: int, rate: int, seconds: float) -> str:
    """Bursts at a steady pace; when held up it goes on at its pace and does not catch up."""
    client, dice = Client(port, "load", 5), np.random.default_rng(3)
    step, sent = int(rate * STEP_S), 0
    pool = [
        client.publication("air", b'{"sensor": %d, "value": %.2f}' % (dice.integers(0, 100), dice.uniform(0, 1000)))
        for _ in range(20_000)
    ]
    begun = due = time.perf_counter()
    while due < begun + seconds:
        at = sent % (len(pool) - step)
        client.socket.sendall(b"".join(pool[at : at + step]))
        sent += step
        due = max(due + STEP_S, time.perf_counter() - STEP_S)
        time.sleep(max(due - time.perf_counter(), 0))
    return json.dumps([sent, time.perf_counter() - begun])


def cpu_s(root: int) -> float:
    """CPU time of a process and of all that it has started and that still runs."""
    spent, parents = dict[int, float](), dict[int, int]()
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = place.read_text().rpartition(")")[2].split()
            pid = int(place.parent.name)
            parents[pid], spent[pid] = int(words[1]), sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")
    found, more = {root}, {root}
    while more:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
    return sum(spent.get(pid, 0.0) for pid in found)


def figures(out: Path, count: int, per_s: float, ended_s: float, cores: list[float]) -> Figures:
    begun_s = ended_s - count / per_s
    waits, times, last_s, batches = list[np.ndarray](), list[np.ndarray](), 0.0, 0
    for folder in (out / "deliveries").glob("batch=*"):
        commit = out / "_checkpoint" / "commits" / folder.name.removeprefix("batch=")
        if not commit.exists():
            continue
        taken = pc.cast(pc.cast(pq.read_table(folder)["time"], pa.timestamp("us", "UTC")), "int64").to_numpy() / 1e6
        taken = taken[(taken >= begun_s) & (taken <= ended_s + 1)]
        if len(taken):
            batches, last_s = batches + 1, max(last_s, commit.stat().st_mtime)
            waits.append(commit.stat().st_mtime - taken)
            times.append(taken)
    wait, at = np.concatenate(waits), np.concatenate(times)
    late = wait[at > begun_s + 2 / 3 * (ended_s - begun_s)]
    return Figures(
        count,
        per_s,
        len(wait),
        float(np.median(wait)),
        float(np.quantile(wait, 0.95)),
        float(np.median(late)) if len(late) else float("inf"),
        last_s - ended_s,
        batches,
        *cores,
    )


if __name__ == "__main__":
    main()
