"""Processes of tests that need not load everything again: `python -m godwit ...` as a fork of one that has loaded it.

A broker takes a second of the processor to load what it is made of, and tests start more than a thousand. With `use`
a `subprocess.Popen` of `[sys.executable, "-m", "godwit", ...]` asks a process of this worker, the zygote, which has
loaded the modules and done nothing else, for a fork of itself. What comes back is a process as any other: with its own
number, folder, environment and files, the child of whoever asked for it, who waits for it, and kills it.

So do modules of its own, `-m godwit.net.archive.mending`, and what is to run in a network by itself, after the words
`ip netns exec NAME`. Whatever a process could inherit otherwise is started as always: another Python, other switches,
variables of Python or its libraries that differ, open files, a user of its own. So is everything within
`started_truly`, and where GODWIT_TESTS_FORK=0. Linux only; elsewhere nothing changes.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import inspect
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

SWITCH = "GODWIT_TESTS_FORK"
MODULES = (
    *("godwit.cli", "typer._adapters", "rich.console", "uvloop"),
    *("godwit.net.server", "godwit.net.rehearsal", "godwit.net.ops.services", "godwit.net.ops.status"),
    *("godwit.net.ops.spans", "godwit.net.ops.journal", "godwit.net.ops.systemd", "godwit.net.admin.portal"),
    *("godwit.client.client", "godwit.client.thread", "godwit.filters.text"),
    *("godwit.tables.matching.index", "godwit.tables.matching.batch", "pandas"),
)
"""What brokers and clients load sooner or later. To import these must start no thread: a fork would lack it."""
ALONE = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""Has libraries start no thread when they are loaded."""
READ_EARLY = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "NUMBA_", "OMP_", "OPENBLAS_", "ARROW_", "JE_ARROW_", "TZ")
"""Beginnings of variables that a process looks at before it runs anything of ours."""
SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): orphans below a process become its children."""
IN_SPACE = ("ip", "netns", "exec")
NEW_NETWORK, NEW_MOUNTS, SLAVE, RECURSIVE, DETACHED = 0x4000_0000, 0x0002_0000, 1 << 19, 1 << 14, 2
"""Flags of setns(2), unshare(2), mount(2) and umount2(2)."""
LENGTH_B = 4

_true_start = subprocess.Popen._execute_child  # type: ignore[attr-defined]
_signature = inspect.signature(_true_start)
_asking = threading.Lock()
_truly = 0
"""How many want that nothing is forked now."""
_zygote: Zygote | None = None


def use() -> None:
    """From now on, in this process."""
    if sys.platform == "linux" and os.environ.get(SWITCH) != "0":
        subprocess.Popen._execute_child = _start  # type: ignore[attr-defined]


@contextmanager
def started_truly() -> Iterator[None]:
    """Processes that are started meanwhile load everything themselves, as people's do."""
    global _truly
    _truly += 1
    try:
        yield
    finally:
        _truly -= 1


class Zygote:
    """As it is seen by whoever asks it for processes."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        self.environment = dict(os.environ)
        self.owner = os.getpid()
        command = [sys.executable, "-m", "tools.zygote", str(its.fileno())]
        root = Path(__file__).parents[1]
        with its:
            self.process = subprocess.Popen(
                command, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL, cwd=root, env=self.environment | ALONE
            )
        self.socket = ours

    def end(self) -> None:
        self.socket.close()
        self.process.wait()

    def fork(self, request: Mapping[str, object], files: Sequence[int]) -> int:
        """The number of a new process that is a child of this one, and has these files as 0, 1 and 2."""
        body = json.dumps(request).encode()
        libc = ctypes.CDLL(None)
        libc.prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self.socket, [len(body).to_bytes(LENGTH_B, "big")], list(files))
            self.socket.sendall(body)
            return int.from_bytes(_received(self.socket, LENGTH_B), "big")
        finally:
            libc.prctl(SUBREAPER, 0, 0, 0, 0)


def _start(popen: Any, *given: Any, **named: Any) -> None:
    """In place of `Popen._execute_child`."""
    wanted = _signature.bind(popen, *given, **named).arguments
    if not _can_fork(wanted):
        _true_start(popen, *given, **named)
        return
    space, (_, _, module, *arguments) = _split(wanted["args"])
    ends = [wanted[name] for name in ("p2cread", "c2pwrite", "errwrite")]
    request = {
        "space": space,
        "module": module,
        "arguments": arguments,
        "folder": os.fsdecode(wanted["cwd"] or os.getcwd()),
        "environment": dict(_environment(wanted)),
        "session": bool(wanted["start_new_session"]),
    }
    try:
        with _asking:
            popen.pid = _living().fork(request, [end if end != -1 else own for own, end in enumerate(ends)])
    except OSError as error:
        warnings.warn(f"processes are started truly from now on: {error}", stacklevel=2)
        subprocess.Popen._execute_child = _true_start  # type: ignore[attr-defined]
        _true_start(popen, *given, **named)
        return
    popen._child_created = True
    popen._close_pipe_fds(*(wanted[name] for name in _PIPES))


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_PLAIN = {"gid": None, "gids": None, "uid": None, "umask": -1, "process_group": -1, "preexec_fn": None, "shell": False}


def _split(args: Sequence[Any]) -> tuple[str, list[str]]:
    """The name of the network, if any, and the words of the command."""
    words = [os.fsdecode(word) for word in args]
    return (words[3], words[4:]) if tuple(words[:3]) == IN_SPACE and len(words) > 3 else ("", words)


def _can_fork(wanted: Mapping[str, Any]) -> bool:
    """Whether a fork cannot be told from a start."""
    args = wanted["args"]
    if _truly or isinstance(args, str | bytes | os.PathLike) or wanted["executable"] not in (None, args[0]):
        return False
    _, words = _split(args)
    if words[:2] != [sys.executable, "-m"] or not f"{words[2]}.".startswith("godwit."):
        return False
    if wanted["pass_fds"] or not wanted["close_fds"] or not wanted["restore_signals"]:
        return False
    if any(wanted.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return False
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN or not os.path.isdir(wanted["cwd"] or "."):
        return False
    return _early(_environment(wanted)) == _early(os.environ)


def _environment(wanted: Mapping[str, Any]) -> Mapping[str, str]:
    given = wanted["env"]
    return os.environ if given is None else {os.fsdecode(name): os.fsdecode(given[name]) for name in given}


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_EARLY)}


def _living() -> Zygote:
    """Of this process: it is made when it is first needed, and again where a test has changed what is read early."""
    global _zygote
    if _zygote is not None and _zygote.owner == os.getpid() and _early(_zygote.environment) != _early(os.environ):
        _zygote.end()
    if _zygote is None or _zygote.owner != os.getpid() or _zygote.process.poll() is not None:
        _zygote = Zygote()
    return _zygote


def _received(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionError("the other side of the zygote has ended")
        data += more
    return data


# What follows runs in the zygote, and in each process that it becomes.


def main(number: int) -> None:
    for name in MODULES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(importlib.import_module("godwit.cli").app)
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        sys.exit(f"zygote: importing has started {len(threads) - 1} threads, which a fork would not have")
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=number) as asked:
        while True:
            try:
                head, files, _, _ = socket.recv_fds(asked, LENGTH_B, 3)
                request = json.loads(_received(asked, int.from_bytes(head, "big"))) if head else None
            except (ConnectionError, KeyboardInterrupt):
                return
            if request is None:
                return
            if _is_born(asked):
                break
            for one in files:
                os.close(one)
    _become(request, files)
    _end(_status(request["module"]))


def _status(module: str) -> int:
    """Of `python -m MODULE`, run to its end."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as asked:
        if asked.code is None or isinstance(asked.code, int):
            return asked.code or 0
        print(asked.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _end(status: int) -> None:
    """As Python ends, but for taking all modules apart: what is shared until then would be copied for it, and that
    takes longer than all else that a small command does."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def _is_born(asked: socket.socket) -> bool:
    """Fork twice, so that the second is nobody's child here: true in the new process."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        new = os.fork()
        if new == 0:
            return True
        os.write(writer, new.to_bytes(LENGTH_B, "big"))
        os._exit(0)
    os.close(writer)
    os.waitpid(between, 0)
    asked.sendall(os.read(reader, LENGTH_B))
    os.close(reader)
    return False


def _become(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """A process as it would be after `exec`."""
    for own, given in enumerate(files):
        os.dup2(given, own)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["space"]:
        _enter(request["space"])
    sys.argv = [request["module"], *request["arguments"]]
    sys.path[0] = request["folder"]
    source = io.BufferedReader(io.FileIO(0, closefd=False))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(source, sys.stdin.encoding)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _output(1, "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _output(2, "backslashreplace")  # type: ignore[misc]


def _enter(space: str) -> None:
    """A network by itself, with what is told of it under /sys, as `ip netns exec` does."""
    libc = ctypes.CDLL(None, use_errno=True)

    def done(status: int) -> None:
        if status:
            raise OSError(ctypes.get_errno(), f"cannot enter the network {space}")

    with Path(f"/run/netns/{space}").open() as file:
        done(libc.setns(file.fileno(), NEW_NETWORK))
    done(libc.unshare(NEW_MOUNTS))
    done(libc.mount(b"", b"/", b"none", SLAVE | RECURSIVE, None))
    done(libc.umount2(b"/sys", DETACHED))
    done(libc.mount(space.encode(), b"/sys", b"sysfs", 0, None))


def _output(number: int, errors: str) -> io.TextIOWrapper:
    plain = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
    by_line = number == 2 or os.isatty(number)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(plain, sys.stdout.encoding, errors, line_buffering=by_line, write_through=at_once)


if __name__ == "__main__":
    main(int(sys.argv[1]))
