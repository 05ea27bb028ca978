"""Everything at once, for an hour: `make soak`, or `make soak ARGS="--minutes 5"`.

Rounds of the killing run (`tests.net.killing`) one after the other on the same three brokers: load, clients that roam,
brokers killed. Meanwhile flooders say all they can, clocks of brokers are set, and disks are full for a while. Then
there is calm, in which all that was acknowledged must arrive, once where QoS 2 is asked for. At the end memory,
descriptors and disk of the brokers must be back near what they were after the first round.

Who is root gets small disks of the brokers' own, in a mount namespace that ends with the run, and they are filled to
the last byte (ENOSPC). For others no file may grow (EFBIG), which fails in the same places.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import mqtt5
import msgspec
from tests.net.killing import Killing, Plan

from godwit.client.client import connect
from godwit.net.processes import BrokerError, BrokerProcess, agreed, rested
from godwit.protocols.broker.interest.conditions import SOON

ROUND_S = 40.0
DRAIN_S = 300.0
PAUSE_S = FULL_S = (0.5, 3.0)
DISK_MB = 160
OWN_DISKS = "--own-disks"
BALLAST = "ballast"
STEP_S = 8 * 24 * 3600.0
MEMORY_GROWTH_MB, DESCRIPTORS_GROWTH, DISK_GROWTH_MB = 120, 40, 400
"""What may be left of the load of many rounds."""

CLOCK = """
import os, time
_real, _at = time.time, os.environ["GODWIT_SOAK_CLOCK"]
def _stepped():
    try:
        return _real() + os.stat(_at).st_size - 10**9
    except OSError:
        return _real()
time.time = _stepped
"""
"""A calendar that can be set: off by as many seconds as a file is long, less a thousand million. For processes only
that are started with it."""


class Standing(msgspec.Struct, frozen=True):
    """What a broker takes of its machine."""

    memory_mb: float
    descriptors: int
    disk_mb: float


class SoakedBroker(BrokerProcess):
    """Can be flooded, set back and filled. Several do so at once: whoever starts it when it runs finds it running, and
    nobody kills it before it is up."""

    _changing: asyncio.Lock | None = None
    own_disk = False
    fills = fillings = 0
    """How many fill its disk at this moment, and how often that was begun or ended."""

    @property
    def _alone(self) -> asyncio.Lock:
        self._changing = self._changing or asyncio.Lock()
        return self._changing

    async def start(self) -> None:
        """One whose disk is full says so and ends; it is started again when there is room."""
        async with self._alone:
            while not self.running:
                full, before = self.fills, self.fillings
                try:
                    await super().start()
                except BrokerError:
                    if not full and self.fillings == before:
                        raise
                    await asyncio.sleep(0.5)

    async def kill(self) -> None:
        async with self._alone:
            await super().kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def disk(self) -> Path:
        return self.folder / "data"

    def mount(self) -> None:
        """Give it a small disk of its own, in the mount namespace of this process."""
        self.disk.mkdir(parents=True)
        asked = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "soak", str(self.disk)]
        subprocess.run(asked, check=True)
        self.own_disk = True

    def standing(self) -> Standing:
        size = sum(one.stat().st_size for one in self.disk.rglob("*") if one.is_file() and one.name != BALLAST)
        return Standing(self.memory_b() / 1e6, len(os.listdir(f"/proc/{self.pid}/fd")), size / 1e6)

    def fill(self) -> None:
        """To the last byte: the broker acknowledges nothing more, and goes on by itself when there is room. Or no file
        may grow beyond what the largest is now, for this process alone, which it takes for a disk that fails."""
        self.fills += 1
        self.fillings += 1
        if self.own_disk:
            with (self.disk / BALLAST).open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(1 << 20))
            return
        largest = max((one.stat().st_size for one in self.folder.rglob("*") if one.is_file()), default=0)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (max(largest, 4_096), resource.RLIM_INFINITY))

    def empty(self) -> None:
        self.fills = max(self.fills - 1, 0)
        self.fillings += 1
        if self.own_disk:
            (self.disk / BALLAST).unlink(missing_ok=True)
        elif self.running:
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def flood(port: int, seconds: float, dice: Random) -> None:
    """One client that says all it can and reads now and then."""
    said = dice.choice(
        (
            b"\xc0\0" * 5_000,
            mqtt5.PublishPacket("flood/x", b"x" * 200).write() * 500,
            mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(f"flood/{i}") for i in range(200)]).write() * 5,
            bytes(dice.randrange(256) for _ in range(5_000)),
        )
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as wire:
            wire.sendall(mqtt5.ConnectPacket(f"flooder-{dice.random()}", clean_start=True).write())
            wire.settimeout(0.5)
            while time.monotonic() < end:
                with contextlib.suppress(TimeoutError):
                    wire.sendall(said)
                if not wire.recv(1 << 20):
                    break
                time.sleep(0.05)
        time.sleep(0.05)


class Soak:
    def __init__(self, brokers: Sequence[SoakedBroker], clock: Path, seed: int, evidence: Path | None = None) -> None:
        self.brokers = brokers
        self.clock = clock
        self.evidence = evidence
        self.dice = Random(seed)
        self.counts = {"floods": 0, "clock steps": 0, "full disks": 0}

    async def plague(self, calm: asyncio.Event) -> None:
        """One after the other. It is never cancelled: a broker that was killed is started again by whoever did it."""
        while not calm.is_set():
            await asyncio.sleep(self.dice.uniform(*PAUSE_S))
            broker = self.dice.choice(self.brokers)
            match self.dice.randrange(3):
                case 0:
                    self.counts["floods"] += 1
                    await asyncio.to_thread(flood, broker.port, self.dice.uniform(1, 5), Random(self.dice.random()))
                case 1:
                    self.counts["clock steps"] += 1
                    set_clock(self.clock, self.dice.choice((0.0, -STEP_S, STEP_S, -3_600.0, 60.0)))
                case _ if broker.running:
                    self.counts["full disks"] += 1
                    await self._full(broker)

    async def _full(self, broker: SoakedBroker) -> None:
        with contextlib.suppress(OSError, ProcessLookupError):
            broker.fill()
        try:
            await asyncio.sleep(self.dice.uniform(*FULL_S))
        finally:
            with contextlib.suppress(OSError, ProcessLookupError):
                broker.empty()
        if not broker.own_disk or self.dice.random() < 0.5:
            await broker.kill()
            await broker.start()

    async def round(self, number: int, seconds: float) -> bool:
        kills = max(1, int(seconds / 10))
        plan = Plan(seed=number, seconds=seconds, kills=kills, events_per_s=100.0, drain_s=DRAIN_S)
        try:
            outcome = await Killing(plan, self.brokers, (self.plague, self.plague)).run()
        except Exception as error:
            # An hour must not end for one of its rounds: that one is faulty, and the next begins with all brokers.
            say(f"round {number}: FAULTY: {error!r}: {getattr(error, 'exceptions', '')!r}"[:2_000])
            return False
        finally:
            set_clock(self.clock, 0.0)
            for broker in self.brokers:
                broker.empty()
                await broker.start()
        say(f"round {number}: {'clean' if outcome.is_clean else 'FAULTY'}: {outcome}")
        for line in outcome.missing:
            say(f"  {line}")
        if not outcome.is_clean and self.evidence is not None:
            await self._keep(self.evidence / f"round-{number}")
        return outcome.is_clean

    async def _keep(self, folder: Path) -> None:
        """The disks of the brokers and what they say of themselves: those of the soak go with it."""
        for broker in self.brokers:
            shutil.copytree(broker.disk, folder / broker.name)
            (folder / f"{broker.name}.json").write_bytes(msgspec.json.encode(await broker.report()))


def set_clock(path: Path, offset_s: float) -> None:
    with path.open("ab") as file:
        file.truncate(int(offset_s) + 10**9)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def soaked(folder: Path, minutes: float, seed: int, round_s: float, *, own_disks: bool, keep: bool) -> int:
    clock = folder / "clock"
    set_clock(clock, 0.0)
    (folder / "python").mkdir()
    (folder / "python" / "sitecustomize.py").write_text(CLOCK)
    os.environ["GODWIT_SOAK_CLOCK"] = str(clock)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder / "python"), os.environ.get("PYTHONPATH"))))
    settings = {"handoff_wait_s": 600.0, "peers.secret": "soaked in rain, drawn by chance"}
    brokers = [SoakedBroker(f"b{number}", folder / f"b{number}", settings) for number in range(3)]
    for broker in brokers:
        broker.peers = [other.peer_port for other in brokers if other is not broker]
        if own_disks:
            broker.mount()
    say(f"three brokers; a full disk means {'ENOSPC on a disk of their own' if own_disks else 'EFBIG'}")
    try:
        await asyncio.gather(*(broker.start() for broker in brokers))
        await agreed(list(brokers))
        return await _rounds(Soak(brokers, clock, seed, folder if keep else None), minutes, seed, round_s)
    finally:
        await asyncio.gather(*(broker.kill() for broker in brokers))


async def _rounds(soak: Soak, minutes: float, seed: int, round_s: float) -> int:
    began, number, faults = time.monotonic(), 0, []
    first: list[Standing] = []
    while not number or time.monotonic() - began < minutes * 60:
        if not await soak.round(seed * 10_000 + number, round_s):
            faults.append(number)
        number += 1
        first = first or await _standing(soak.brokers)
    say(
        f"{number} rounds in {(time.monotonic() - began) / 60:.1f} minutes, {soak.counts}, faults in {faults or 'none'}"
    )
    return 1 if faults + _grown(soak.brokers, first, await _standing(soak.brokers)) else 0


async def _standing(brokers: Sequence[SoakedBroker]) -> list[Standing]:
    """When all have their matcher in memory, which a broker loads when so many have asked by content, and are at rest.
    Without it one that has just been started takes half of what it will."""
    for broker in brokers:
        async with connect(broker.address, keep_s=0) as client:
            wanted = [aiter(await client.subscribe(f"n >= {i}", topics="standing")) for i in range(SOON)]
            await client.publish({"n": SOON}, topic="standing", qos=1)
            for one in wanted:
                await anext(one)
    await rested(list(brokers))
    return [broker.standing() for broker in brokers]


def _grown(brokers: Sequence[SoakedBroker], first: Sequence[Standing], last: Sequence[Standing]) -> list[str]:
    """Which broker has kept more than it may."""
    found = []
    for broker, before, now in zip(brokers, first, last, strict=True):
        say(f"{broker.name}: after the first round {before}, now {now}")
        if now.memory_mb > before.memory_mb + MEMORY_GROWTH_MB:
            found.append(f"{broker.name}: memory")
        if now.descriptors > before.descriptors + DESCRIPTORS_GROWTH:
            found.append(f"{broker.name}: descriptors")
        if now.disk_mb > before.disk_mb + DISK_GROWTH_MB:
            found.append(f"{broker.name}: disk")
    for line in found:
        say(f"FAULTY: {line} has grown")
    return found


MOUNTING = ("unshare", "--mount", "--propagation", "private")
"""What is mounted by a process started so is nobody else's, and goes with it."""


def can_mount() -> bool:
    if os.geteuid() or not shutil.which(MOUNTING[0]):
        return False
    asked = [*MOUNTING, "sh", "-c", "mount -t tmpfs -o size=1m soak /mnt"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.net.soaking", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=float, default=ROUND_S, help="seconds of load in each round")
    parser.add_argument("--keep", action="store_true", help="keep the brokers' logs, and their disks after each fault")
    parser.add_argument(OWN_DISKS, action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args(arguments)
    if not told.own_disks and can_mount():
        os.execvp("unshare", [*MOUNTING, sys.executable, "-m", "tests.net.soaking", *arguments, OWN_DISKS])
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        disks, keep = told.own_disks, told.keep
        return asyncio.run(soaked(folder, told.minutes, told.seed, told.round, own_disks=disks, keep=keep))
    finally:
        if told.keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
