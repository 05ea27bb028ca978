"""What a command says on stderr while it works: bad lines, notes, errors and, when it takes long, a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

SHOWN_MAX = 20
"""Bad lines that are told one by one; the others are only counted."""

BAR_AFTER_S = 2.0


class InputError(Exception):
    """Input that cannot be read, or read any further: the message says which and why; exit status 2."""


class Reports:
    """One command's voice on stderr. `bad` counts every bad line, told or not."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.bad = 0

    def say(self, text: str) -> None:
        self.console.print(printable(text), markup=False)

    def bad_line(self, file: str, number: int, reason: str) -> None:
        self.bad += 1
        if self.bad <= SHOWN_MAX:
            self.say(f"{file}:{number}: {reason}")
        elif self.bad == SHOWN_MAX + 1:
            self.say("more bad lines follow; they are counted, not shown")


class Bar:
    """A progress bar that appears only on a terminal, and only when the work outlasts a user's patience."""

    def __init__(self, console: Console, title: str) -> None:
        self.console = console
        self.title = title
        self.started = time.monotonic()
        self.progress: Progress | None = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.progress is not None:
            self.progress.stop()

    def update(self, share: float, detail: str = "") -> None:
        """Say how much of the work is done, 0 to 1."""
        if self.progress is None:
            if not self.console.is_terminal or time.monotonic() - self.started < BAR_AFTER_S:
                return
            self.progress = _progress(self.console)
            self.progress.add_task(self.title, total=1.0, detail="")
            self.progress.start()
        self.progress.update(self.progress.task_ids[0], completed=share, detail=detail)


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Progress(*columns, TextColumn("{task.fields[detail]}"), console=console, transient=True)


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn an `InputError` into one line on stderr and exit status 2, and Ctrl-C into status 130."""
    try:
        yield
    except InputError as error:
        Reports().say(f"godwit: {error}")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        Reports().say("interrupted")
        raise typer.Exit(130) from None


def print_json(told: object) -> None:
    """For programs, on stdout: one object over several lines."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(told)).decode() + "\n")


def printable(text: str) -> str:
    """The text with control characters spelled out: what stands in a file must not steer the terminal."""
    return "".join(c if c.isprintable() or c in "\n" else repr(c)[1:-1] for c in text)


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
