"""No test waits for ever: a plugin of pytest that `tests/conftest.py` loads.

A test that takes longer than `bound_s` (an option of pytest.ini, `-o bound_s=10`) in its setup, call or teardown fails,
and its report shows where all threads and tasks stood and which processes it had started. A few have a bound of their
own: `@pytest.mark.bound(600)`.

What does not end even so, in machine code or because it catches everything, is ended `grace_s` later with its process.
pytest-xdist then starts another one, and the test counts as failed (`tools.groups.Scheduling`).
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

BOUND_S, GRACE_S = 240.0, 60.0
REPEATED_S = 10.0
"""A loop may swallow what is raised in one of its callbacks: it is raised again."""
_terminal = pytest.StashKey[int]()


class Overtime(BaseException):
    """Nobody catches it by accident: neither `except Exception` nor hypothesis, which would try the example again."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("bound_s", "seconds that each of setup, call and teardown of a test may take", default=str(BOUND_S))
    parser.addini("grace_s", "seconds after which a process ends whose test does not", default=str(GRACE_S))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "bound(seconds): what this test may take, instead of the `bound_s` of the rest")
    # Now it is the terminal's; in a test it is captured, and lost with the process.
    config.stash[_terminal] = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)


def pytest_unconfigure(config: pytest.Config) -> None:
    faulthandler.cancel_dump_traceback_later()
    os.close(config.stash[_terminal])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with Bound(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with Bound(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with Bound(item, "teardown"):
        return (yield)


class Bound:
    """While it is entered, `Overtime` is raised in the main thread when time is up; later the process ends."""

    def __init__(self, item: pytest.Item, phase: str) -> None:
        own = item.get_closest_marker("bound")
        self.seconds = float(own.args[0] if own else item.config.getini("bound_s"))
        self.item, self.phase = item, phase
        self._before: object = None
        self._said = False

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, REPEATED_S)
        # A thread of C, which needs nothing of Python: it does its work whatever holds Python's lock. A process that is
        # forked from here and ends as a Python does would wait for that thread; multiprocessing's end otherwise.
        end_s = self.seconds + float(self.item.config.getini("grace_s"))
        faulthandler.dump_traceback_later(end_s, exit=True, file=self.item.config.stash[_terminal])

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, self._before)  # type: ignore[arg-type]

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self._said:
            self._said = True
            self.item.add_report_section(self.phase, "where everything stood", standing(frame))
        raise Overtime(f"its {self.phase} took over {self.seconds:g} s; below is where everything stood")


def standing(frame: FrameType | None) -> str:
    """The stacks of all threads, the main one's from this frame on, and of all tasks, and processes started."""
    names = {one.ident: one.name for one in threading.enumerate()}
    own = threading.get_ident()
    said = io.StringIO()
    for ident, top in sys._current_frames().items():
        said.write(f"thread {names.get(ident, ident)}\n")
        said.writelines(traceback.format_stack(frame if ident == own and frame is not None else top))
    for task in [one for one in gc.get_objects() if isinstance(one, asyncio.Task)]:
        if not task.done():
            said.write(f"task {task.get_name()}\n")
            task.print_stack(file=said)
    for process in descendants(os.getpid()):
        said.write(f"process {process}: {_words(process)}\n")
    return said.getvalue()


def descendants(root: int) -> list[int]:
    """Processes that descend from this one, on Linux; parents come before their children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            _, _, fields = (entry / "stat").read_text().rpartition(")")
        except OSError:
            continue  # it has ended since
        children.setdefault(int(fields.split()[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, ())
    return found[1:]


def _words(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:300]
    except OSError:
        return "has ended"
