"""The matcher made ready. Where it did not come as machine code it is compiled the first time: a user should know."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pyarrow as pa

from godwit.filters.filters import EVERYTHING
from godwit.tables.compiled import kernels
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index

TOLD = "compiling the matcher for this machine: this happens once and takes up to a minute ..."


def make_ready(say: Callable[[str], None]) -> None:
    """Load the kernels, or compile them and say so; later calls on any index find them ready."""
    announced: AbstractContextManager[None] = nullcontext()
    if kernels.CAME is None:
        from godwit.tables.compiled.doors import Announcer

        announced = Announcer(lambda: say(TOLD)).listening()
    with announced:
        index = Index()
        index.add_many([0], [EVERYTHING])
        index.match_batch(Batch.from_arrow(pa.RecordBatch.from_pydict({"a": ["x"], "b": [1.0]})))
