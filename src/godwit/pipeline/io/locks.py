"""Who is at work on a folder: one run at a time, and its lock says which.

On this machine the lock ends with the process that holds it, however that ends. Elsewhere it is a file, and one whose
process is gone from this machine is taken over; of a process on another machine nothing is known, so a person decides.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.files import Files, beside

LOCK = "lock"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask."""

    job: str
    user: str
    host: str
    pid: int
    since: str

    @classmethod
    def of_this_process(cls, job: str) -> Holder:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(job=job, user=_user(), host=socket.gethostname(), pid=os.getpid(), since=now)

    def __str__(self) -> str:
        return f"{self.job} of {self.user} on {self.host}, process {self.pid}, since {self.since}"

    def is_gone(self) -> bool:
        """Whether it certainly is; of another machine nobody knows."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Lock:
    """Of the folder at `path`; raises `PipelineError` naming the holder where another run has it. Release it."""

    def __init__(self, files: Files, path: str, job: str) -> None:
        self._files, self._path, self._place = files, path, beside(path, LOCK)
        self._own = msgspec.json.encode(Holder.of_this_process(job)).decode()
        self._held: IO[str] | None = None
        local = files.local(self._place)
        if local is None:
            self._take_elsewhere()
        else:
            self._held = self._taken(local)

    def release(self) -> None:
        self._files.delete(self._place)
        if self._held is not None:
            self._held.close()

    def _taken(self, place: Path) -> IO[str]:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            while True:
                lock = place.open("a+")
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.seek(0)
                    told = lock.read()
                    lock.close()
                    raise self._refusal(told) from None
                # The holder before may have removed the file between our opening it and our locking it.
                if place.exists() and place.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                    break
                lock.close()
        except OSError as error:
            raise PipelineError(f"{self._path}: cannot be made a folder for tables: {error.strerror}") from None
        lock.truncate(0)
        lock.write(self._own)
        lock.flush()
        return lock

    def _take_elsewhere(self) -> None:
        if self._files.write_new(self._place, self._own):
            return
        told = self._files.read(self._place) or ""
        holder = _holder(told)
        if holder is None or not holder.is_gone():
            raise self._refusal(told, f"; if that run is gone, remove {self._place}")
        self._files.delete(self._place)
        if not self._files.write_new(self._place, self._own):
            raise self._refusal(self._files.read(self._place) or "")

    def _refusal(self, told: str, more: str = "") -> PipelineError:
        who = _holder(told) or "another run"
        return PipelineError(f"{self._path}: {who} is at work there; wait for it, or name another --out{more}")


def _holder(told: str) -> Holder | None:
    try:
        return msgspec.json.decode(told, type=Holder)
    except msgspec.DecodeError:
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
