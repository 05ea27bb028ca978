"""Many independent pieces of work, over several processes, and nothing that has finished is lost."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

Task = TypeVar("Task")
Done = TypeVar("Done")

PROCESSES = 2


def each(
    work: Callable[[Task], Done],
    tasks: Sequence[Task],
    keep: Callable[[Task, Done], None],
    *,
    processes: int | None = None,
) -> None:
    """Call `keep(task, work(task))` for every task, in this process and as they finish.

    `work` must be importable by name, tasks and results picklable. Whatever ends this early, Ctrl-C or a failure of
    one task, what was kept stays kept, unfinished work is dropped, and the exception goes on. With one process
    everything happens here, one after the other.
    """
    processes = processes or PROCESSES
    if processes == 1 or len(tasks) < 2:
        for task in tasks:
            keep(task, work(task))
        return
    with _workers(processes) as workers:
        futures = {workers.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            keep(futures[future], future.result())


@contextmanager
def _workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Workers leave Ctrl-C to us; those that are still busy when we leave are ended, not waited for."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    workers = ProcessPoolExecutor(processes, context, initializer=_ignore_interrupts)
    try:
        yield workers
    except BaseException:
        workers.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    workers.shutdown()


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
