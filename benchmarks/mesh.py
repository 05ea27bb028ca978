"""What it costs brokers to be there: idle processor time, links and memory, by the number of brokers.

    python benchmarks/mesh.py                        8, 16, 32 and 64 brokers; about fifteen minutes
    python benchmarks/mesh.py --sizes 8,16           these only
    python benchmarks/mesh.py --before FOLDER        the same for another tree of sources, beside these
    python benchmarks/mesh.py --write                the table also to docs/results/mesh.md
    python benchmarks/mesh.py --rows FILE            go on where an interrupted run has stopped

Brokers are real processes on loopback, started one after the other; each is told of the first. Once all know all and
rest, nothing happens for `--idle` seconds, and the kernel says what each has used. Nobody has clients.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results" / "mesh.md"
PAUSE_S = 0.3
SETTLE_S = 600.0
QUIET_S = 10.0


class Row(NamedTuple):
    code: str
    brokers: int
    cpu_ms_s: float
    """Of a processor, for each second, the mean of all brokers."""
    cpu_max_ms_s: float
    links: float
    links_max: int
    hops_max: int
    memory_mb: float


HEADS = ("code", "brokers", "idle CPU, ms/s", "highest", "links", "most", "hops to the leader, most", "memory, MB")


def cells(row: Row) -> tuple[str, ...]:
    figures = f"{row.cpu_ms_s:.2f}", f"{row.cpu_max_ms_s:.2f}", f"{row.links:.1f}", str(row.links_max)
    return row.code, str(row.brokers), *figures, str(row.hops_max), f"{row.memory_mb:.0f}"


async def measure(code: str, size: int, idle_s: float, console: Console) -> Row:
    """In the process that has the code to be measured on its path."""
    try:
        from godwit.net.processes import BrokerProcess
    except ImportError:  # as older sources call it
        from godwit.net.loopback import BrokerProcess  # type: ignore[import-not-found, no-redef]

    with tempfile.TemporaryDirectory() as folder:
        brokers = [BrokerProcess(f"b{number:02d}", Path(folder) / f"b{number:02d}") for number in range(size)]
        for broker in brokers[1:]:
            broker.peers = [brokers[0].peer_port]
        try:
            for number, broker in enumerate(brokers, 1):
                console.print(f"{code}: broker {number} of {size}", end="\r")
                await broker.start()
                await asyncio.sleep(PAUSE_S)
            await settled(brokers, console)
            return await figures(code, brokers, idle_s)
        finally:
            kill(brokers)


def kill(brokers: list) -> None:  # type: ignore[type-arg]
    """At once and all of them, however busy the machine is."""
    for broker in brokers:
        with contextlib.suppress(ProcessLookupError):
            if broker.running:
                os.kill(broker._process.pid, signal.SIGKILL)


async def settled(brokers: list, console: Console) -> None:  # type: ignore[type-arg]
    """All know all, and links have not changed for a while."""
    links: list[int] = []
    quiet_since = asyncio.get_running_loop().time()
    async with asyncio.timeout(SETTLE_S):
        while True:
            reports = [await broker.report() for broker in brokers]
            now = [sum(peer.linked for peer in report.peers) for report in reports]
            complete = all(len(report.peers) == len(brokers) - 1 for report in reports)
            if now != links or not complete:
                links, quiet_since = now, asyncio.get_running_loop().time()
            if asyncio.get_running_loop().time() - quiet_since > QUIET_S:
                return
            await asyncio.sleep(2.0)


async def figures(code: str, brokers: list, idle_s: float) -> Row:  # type: ignore[type-arg]
    pids = [broker._process.pid for broker in brokers]
    before = [processor_s(pid) for pid in pids]
    await asyncio.sleep(idle_s)
    used = [1e3 * (processor_s(pid) - was) / idle_s for pid, was in zip(pids, before, strict=True)]
    reports = [await broker.report() for broker in brokers]
    links = [sum(peer.linked for peer in report.peers) for report in reports]
    memory = fmean(map(resident_mb, pids))
    hops = max(report.hops for report in reports)
    return Row(code, len(brokers), fmean(used), max(used), fmean(links), max(links), hops, memory)


def processor_s(pid: int) -> float:
    """Of all its threads, as the scheduler has counted it."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def elsewhere(sources: Path, size: int, idle_s: float) -> Row:
    """The same, with another tree of sources."""
    command = [sys.executable, __file__, "--sizes", str(size), "--idle", str(idle_s), "--raw", "before"]
    environment = {**os.environ, "PYTHONPATH": str(sources / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{sources}: {done.stderr[-2000:]}")
    return _row(done.stdout.strip().splitlines()[-1])


def _row(line: str) -> Row:
    code, brokers, cpu, cpu_max, links, links_max, hops, memory = line.split("\t")
    return Row(code, int(brokers), float(cpu), float(cpu_max), float(links), int(links_max), int(hops), float(memory))


def page(rows: list[Row], idle_s: float, command: str) -> str:
    lines = [
        "# What brokers cost while nothing happens",
        "",
        f"Made by `{command}`. Real processes on loopback, one machine of {os.cpu_count()} cores.",
        f"Each is told of the first. Means over {idle_s:g} idle seconds, as the kernel counts.",
        "`before` dials everybody and surveys all brokers at each heartbeat; `now` keeps few links and looks at tables",
        "when they have changed.",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|---" * len(HEADS) + "|",
        *("| " + " | ".join(cells(row)) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8,16,32,64")
    parser.add_argument("--idle", type=float, default=20.0)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rows", type=Path, help="keep rows here; those that are there are not measured again")
    parser.add_argument("--raw", default="", help=argparse.SUPPRESS)
    told = parser.parse_args()
    sizes = [int(size) for size in told.sizes.split(",")]
    console = Console(stderr=True)
    if told.raw:
        print("\t".join(map(str, asyncio.run(measure(told.raw, sizes[0], told.idle, console)))))
        return
    rows: list[Row] = []
    for size in sizes:
        for code in ("before", "now") if told.before else ("now",):
            rows.append(row_of(code, size, told, console))
            console.print("\t".join(cells(rows[-1])))
            if told.write:  # what has been measured stays, whatever becomes of the rest
                options = " --before FOLDER" if told.before else ""
                ordered = sorted(rows, key=lambda row: row.brokers)
                RESULTS.write_text(page(ordered, told.idle, f"python benchmarks/mesh.py{options} --write"))
    table = Table(*HEADS)
    for row in rows:
        table.add_row(*cells(row))
    Console().print(table)


def row_of(code: str, size: int, told: argparse.Namespace, console: Console) -> Row:
    kept = told.rows.read_text().splitlines() if told.rows and told.rows.exists() else []
    for row in map(_row, kept):
        if (row.code, row.brokers) == (code, size):
            return row
    console.print(f"{size} brokers, {code}")
    if code == "before":
        row = elsewhere(told.before, size, told.idle)
    else:
        row = asyncio.run(measure(code, size, told.idle, console))
    if told.rows:
        with told.rows.open("a") as file:
            print(*row, sep="\t", file=file)
    return row


if __name__ == "__main__":
    main()
