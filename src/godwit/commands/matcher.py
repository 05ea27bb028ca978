"""The matcher made ready: its kernels are compiled for this machine the first time, which a user should know."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from godwit.commands.reports import told_if_slow
from godwit.filters.filters import EVERYTHING
from godwit.tables.batch import Batch
from godwit.tables.index import Index


def make_ready(say: Callable[[str], None]) -> None:
    """Load the kernels, or compile them and say so; later calls on any index find them ready."""
    with told_if_slow(
        say, "getting the matcher ready; the first time on a machine it is compiled, which takes a minute ..."
    ):
        index = Index()
        index.add_many([0], [EVERYTHING])
        index.match_batch(Batch.from_arrow(pa.RecordBatch.from_pydict({"a": ["x"], "b": [1.0]})))
