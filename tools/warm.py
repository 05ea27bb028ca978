"""Have the compiled index made before tests ask for it: `python -m tools.warm`, beside the checks of `make test`.

Numba keeps machine code on disk for the processes that come after. Without this, both workers of the suite would
compile the same functions in the middle of some test.
"""

from __future__ import annotations

import os
import subprocess
import sys

CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1"}
"""Every access is checked: a mode with machine code of its own, for `tests/tables/compiled/test_checks.py`."""
MANY = 3_000
"""Enough subscriptions for every table of the index to grow once."""


def main() -> int:
    make()
    if CHECKED.items() <= os.environ.items():
        return 0
    return subprocess.run([sys.executable, "-m", "tools.warm"], env={**os.environ, **CHECKED}, check=False).returncode


def make() -> None:
    """Call every kernel once, by what calls it."""
    import pyarrow as pa

    from godwit.filters.text import parse
    from godwit.net.preload import warm
    from godwit.tables.matching.batch import Batch
    from godwit.tables.matching.index import Index

    warm()
    index = Index()
    texts = (f"x = {number} OR y = 'a{number}' OR (x = {number} AND y = 'b')" for number in range(MANY))
    index.add_many(list(range(MANY)), list(map(parse, texts)))
    batch = Batch.from_arrow(pa.record_batch({"x": [1, 2], "y": ["b", "a2"]}))
    index.match_batch(batch)
    index.count_batch(batch)
    assert MANY not in index


if __name__ == "__main__":
    sys.exit(main())
