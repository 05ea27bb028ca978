"""The compiled index takes seconds to load, and a minute where it was never compiled: clients need not stand still."""

from __future__ import annotations

import logging
import sys
import threading

from godwit.events import Value

log = logging.getLogger("godwit.matching")

TURNS_S = 0.0005
"""How long the loop waits for its turn meanwhile, whenever something has come: a tenth of what is usual."""


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
        usual_s = sys.getswitchinterval()
        sys.setswitchinterval(TURNS_S)
        try:
            warm()
        except Exception:
            log.exception("the compiled index cannot be loaded; conditions are asked one by one, which is slow")
            return
        finally:
            sys.setswitchinterval(usual_s)
        self._done = True


def warm() -> None:
    """Have everything compiled, or read from where it was kept, that a broker uses of the index."""
    from godwit.filters.text import parse
    from godwit.tables.batch import Batch
    from godwit.tables.index import Index

    index = Index()
    index.add_many([1, 2], [parse("x > 1 AND y LIKE 'a%'"), parse("within(lat, lon, 0, 0, 1km)")])
    values: dict[str, Value] = {"x": 2, "y": "ab", "lat": 0.0, "lon": 0.0}
    index.match(values)
    index.match_batch(Batch.from_events([values] * 2))
    index.remove(1)
