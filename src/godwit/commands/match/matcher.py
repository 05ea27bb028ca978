"""The matcher made ready: its kernels are compiled for this machine the first time, which a user should know."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from numba.core import event

from godwit.filters.filters import EVERYTHING
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index


class Announcer(event.Listener):
    """Says once that something is being compiled; what comes from the cache on disk is not."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.told = False

    def on_start(self, event: object) -> None:
        if not self.told:
            self.told = True
            self.say("compiling the matcher for this machine: this happens once and takes up to a minute ...")

    def on_end(self, event: object) -> None:
        """Nothing to say."""


def make_ready(say: Callable[[str], None]) -> None:
    """Load the kernels, or compile them and say so; later calls on any index find them ready."""
    with event.install_listener("numba:compile", Announcer(say)):
        index = Index()
        index.add_many([0], [EVERYTHING])
        index.match_batch(Batch.from_arrow(pa.RecordBatch.from_pydict({"a": ["x"], "b": [1.0]})))
