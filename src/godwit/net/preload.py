"""What takes long to load is loaded beside the broker's work: clients need not stand still meanwhile.

The compiled index takes seconds, and a minute where it was never compiled; what reads conditions takes a third of one.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from godwit.events import Value

log = logging.getLogger("godwit.matching")

TURNS_S = 0.0005
"""How long the loop waits for its turn meanwhile, whenever something has come: a tenth of what is usual."""


_changing = threading.Lock()
_loading: list[float] = []
"""What was usual before each of those began that load now."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Threads take shorter turns until all are done that asked for it."""
    with _changing:
        _loading.append(_loading[0] if _loading else sys.getswitchinterval())
        sys.setswitchinterval(TURNS_S)
    try:
        yield
    finally:
        with _changing:
            usual_s = _loading.pop()
            if not _loading:
                sys.setswitchinterval(usual_s)


class IndexLoader:
    """Loads it in a thread when it is first asked for."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._done = False

    def prepared(self) -> bool:
        """Whether it can be used at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._load, name="godwit-index", daemon=True)
            self._thread.start()
        return self._done

    def _load(self) -> None:
        try:
            with short_turns():
                warm()
        except Exception:
            log.exception("the compiled index cannot be loaded; conditions are asked one by one, which is slow")
            return
        self._done = True


class ParserLoader:
    """Loads in a thread what reads conditions. A broker whose own clients have none may be handed sessions of clients
    that have, and those should not wait for it."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None

    def begin(self) -> None:
        """Once, however often it is called."""
        if self.thread is None:
            self.thread = threading.Thread(target=_load_parser, name="godwit-parser", daemon=True)
            self.thread.start()


def _load_parser() -> None:
    with short_turns():
        import numpy  # noqa: F401 (filters of others are compared by the array where they are many)

        import godwit.filters.text  # noqa: F401


def warm() -> None:
    """Have everything compiled, or read from where it was kept, that a broker uses of the index."""
    from godwit.filters.text import parse
    from godwit.tables.matching.index import BATCHED, Index

    index = Index()
    index.add_many([1, 2], [parse("x > 1 AND y LIKE 'a%'"), parse("within(lat, lon, 0, 0, 1km)")])
    values: dict[str, Value] = {"x": 2, "y": "ab", "lat": 0.0, "lon": 0.0}
    index.match(values)
    index.match_each([values] * BATCHED)
    index.remove(1)
