"""The engine: a heap of (time, sequence, call).

Calls at the same time run in the order in which they were scheduled, so a run is a function of its seed and nothing
else. A call is any callable without arguments; cancelling leaves the entry in the heap and empties it, which costs less
than finding it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf

Call = Callable[[], object]
Entry = tuple[float, int, Call]


class Timer:
    """A scheduled call that can still be cancelled."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call: Call | None = call

    def cancel(self) -> None:
        self._call = None

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()

    @property
    def pending(self) -> bool:
        return self._call is not None


class Engine:
    """`at` and `after` schedule, `run` advances; nothing happens by itself."""

    def __init__(self) -> None:
        self.now = 0.0
        self.executed = 0
        self._heap: list[Entry] = []
        self._sequence = count().__next__

    def at(self, time: float, call: Call) -> None:
        """Schedule a call that nobody will cancel. The past, and never, are refused: who asks for them has a bug."""
        if not self.now <= time < inf:
            raise ValueError(f"cannot schedule at {time}: it is {self.now} already, and time never ends")
        heappush(self._heap, (time, self._sequence(), call))

    def after(self, delay_s: float, call: Call) -> Timer:
        """Schedule a call that can be cancelled. Spelled out, since nothing is called more often."""
        now = self.now
        time = now + delay_s
        if not now <= time < inf:
            raise ValueError(f"cannot schedule at {time}: it is {now} already, and time never ends")
        timer = Timer(call)
        entry: Entry = (time, self._sequence(), timer)
        heappush(self._heap, entry)
        return timer

    def run(self, until: float = inf, *, calls: int | None = None) -> bool:
        """Execute everything due up to and including `until`, at most `calls` of them; True where work remains.

        Afterwards the time is `until` if that is finite and was reached, so that a run can be continued piece by piece.
        """
        heap, left = self._heap, -1 if calls is None else calls
        started = left
        try:
            while heap and left:
                entry = heappop(heap)
                if entry[0] > until:
                    heappush(heap, entry)
                    break
                self.now = entry[0]
                left -= 1
                entry[2]()
        finally:
            self.executed += started - left
        if until < inf and (not heap or heap[0][0] > until):
            self.now = max(self.now, until)
        return bool(heap)
