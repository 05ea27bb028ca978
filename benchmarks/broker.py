"""The broker beside mosquitto and amqtt, measured in the same run on the same machine.

    python benchmarks/broker.py              about four minutes on two idle cores
    python benchmarks/broker.py --quick      fewer messages
    python benchmarks/broker.py --only idle  one row: 1-1, 1-100, round-trips, durable, content, clients, idle

Each broker is a process of its own, and so is the load (benchmarks/mqttload.py). Payloads have 256 bytes. Debian's
mosquitto is installed if it is missing and this is root, amqtt into a folder of its own; what cannot be had is left
out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

FILES = 24_000
START_S = 20.0
LOAD_S = 90.0
LOAD = Path(__file__).with_name("mqttload.py")
AMQTT = Path(tempfile.gettempdir()) / "godwit-bench-amqtt"

MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
persistence {persistence}
persistence_location {folder}/
autosave_interval 1
"""
AMQTT_CONFIG = """listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""


class Row(NamedTuple):
    name: str
    title: str
    unit: str
    goal: str
    load: list[str]
    quick: list[str]
    durable: bool = False
    ours_only: bool = False


def row(name: str, title: str, unit: str, goal: str, load: str, quick: str, **more: bool) -> Row:
    return Row(name, title, unit, goal, load.split(), quick.split(), **more)


ROWS = [
    row("1-1", "QoS 0, 1 -> 1, pipelined", "msg/s", "250,000", "fan-out --count 1000000", "fan-out --count 200000"),
    row(
        "1-100", "QoS 0, 1 -> 100", "deliveries/s", "1,500,000",
        "fan-out --subscribers 100 --count 40000", "fan-out --subscribers 100 --count 8000",
    ),
    row(
        "round-trips", "one at a time", "round trips/s", "6,000",
        "round-trips --count 10000", "round-trips --count 2000",
    ),
    row(
        "durable", "QoS 1, stored for a session that is away", "acknowledged/s", "mosquitto, persistent",
        "acknowledged --version 4 --count 100000", "acknowledged --version 4 --count 20000", durable=True,
    ),
    row(
        "content", "10,000 filters, 100 clients, 0.1 %", "events/s", "10,000",
        "content --subscribers 100 --count 40000", "content --subscribers 100 --count 8000", ours_only=True,
    ),
    row(
        "clients", "10,000 clients, a filter each", "events/s", "5,000",
        "content --subscribers 10000 --count 20000", "content --subscribers 10000 --count 4000", ours_only=True,
    ),
]  # fmt: skip
SLOW = 20
"""amqtt gets so many times fewer messages, and in the only version that it speaks."""
OLD = ["--version", "4"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    said = (folder / "log").read_text(errors="replace")[-1000:]
                    raise SystemExit(f"{command[0]} does not listen: {said}") from None
                time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


Broker = Callable[[int, Path, bool], list[str]]


def godwit(port: int, folder: Path, durable: bool) -> list[str]:
    return [sys.executable, "-m", "godwit", "serve", "--listen", f"127.0.0.1:{port}", "--data", str(folder / "data")]


def mosquitto(port: int, folder: Path, durable: bool) -> list[str]:
    persistence = "true" if durable else "false"
    (folder / "conf").write_text(MOSQUITTO.format(port=port, folder=folder, persistence=persistence))
    folder.chmod(0o777)
    return ["mosquitto", "-c", str(folder / "conf")]


def amqtt(port: int, folder: Path, durable: bool) -> list[str]:
    (folder / "conf.yaml").write_text(AMQTT_CONFIG.format(port=port))
    return [str(AMQTT / "bin" / "amqtt"), "-c", str(folder / "conf.yaml")]


def rivals(console: Console) -> dict[str, Broker]:
    """Those that can be had here."""
    found: dict[str, Broker] = {}
    if shutil.which("mosquitto") is None and os.geteuid() == 0:
        console.print("installing mosquitto ...", style="dim")
        subprocess.run(["apt-get", "update", "-qq"], check=False, capture_output=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "mosquitto"], check=False, capture_output=True)
    if shutil.which("mosquitto"):
        found["mosquitto"] = mosquitto
    if not (AMQTT / "bin" / "amqtt").exists():
        console.print("installing amqtt ...", style="dim")
        subprocess.run([sys.executable, "-m", "venv", str(AMQTT)], check=False, capture_output=True)
        subprocess.run([str(AMQTT / "bin" / "pip"), "install", "-q", "amqtt"], check=False, capture_output=True)
    if (AMQTT / "bin" / "amqtt").exists():
        found["amqtt"] = amqtt
    return found


def measured(broker: Broker, load: list[str], durable: bool) -> dict[str, float] | None:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as name:
        folder = Path(name)
        with running(broker(port, folder, durable), port, folder):
            command = [sys.executable, str(LOAD), *load, "--port", str(port)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_S)
            except subprocess.TimeoutExpired:
                print(f"no answer within {LOAD_S:.0f} s", file=sys.stderr)
                return None
    if done.returncode:
        print(done.stderr[-500:], file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def fewer(load: list[str]) -> list[str]:
    at = load.index("--count") + 1
    return [*load[:at], str(max(1000, int(load[at]) // SLOW)), *load[at + 1 :], *OLD]


def resident_b(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(broker: Broker, clients: int) -> float:
    """Bytes for each idle client."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="godwit-bench-") as name:
        folder = Path(name)
        with running(broker(port, folder, False), port, folder) as process:
            time.sleep(1)
            before = resident_b(process.pid)
            command = [sys.executable, str(LOAD), "idle", "--port", str(port), "--subscribers", str(clients), *OLD]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as load:
                assert load.stdout is not None
                load.stdout.readline()
                time.sleep(1)
                used = (resident_b(process.pid) - before) / clients
                load.communicate(b"\n")
    return used


def told(found: dict[str, float] | None) -> str:
    if found is None:
        return "failed"
    missing = f" ({100 * found['arrived']:.0f} % arrived)" if found.get("arrived", 1) < 0.9999 else ""
    return f"{found['per_s']:,.0f}{missing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="rows, separated by commas")
    given = parser.parse_args()
    only = set(given.only.split(",")) if given.only else None
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, most), most))
    console = Console()
    others = rivals(console)
    table = Table(title="Brokers on this machine, in this run")
    for heading in ("what", "unit", "godwit", *others, "ratio to mosquitto", "goal"):
        table.add_column(heading, justify="left" if heading in ("what", "unit") else "right")
    for one in ROWS:
        if only is not None and one.name not in only:
            continue
        load = one.quick if given.quick else one.load
        console.print(f"{one.title} ...", style="dim")
        ours = measured(godwit, load, one.durable)
        theirs: dict[str, dict[str, float] | None] = {}
        if not one.ours_only:
            for name, broker in others.items():
                theirs[name] = measured(broker, fewer(load) if name == "amqtt" else load, one.durable)
        first = theirs.get("mosquitto")
        ratio = f"{ours['per_s'] / first['per_s']:.1f}" if ours and first else "-"
        cells = [told(theirs[name]) if name in theirs else "cannot" for name in others]
        table.add_row(one.title, one.unit, told(ours), *cells, ratio, one.goal)
    if only is None or "idle" in only:
        clients = 2_000 if given.quick else 10_000
        console.print(f"{clients:,} idle clients ...", style="dim")
        used = {name: memory(broker, clients) for name, broker in {"godwit": godwit, **others}.items()}
        ratio = f"{used['godwit'] / used['mosquitto']:.1f}" if "mosquitto" in used else "-"
        table.add_row("memory of an idle client", "bytes", *(f"{one:,.0f}" for one in used.values()), ratio, "10,000")
    console.print(table)


if __name__ == "__main__":
    main()
