"""What one subscription costs a broker before anything is sent: reading its text, and filing it in the index.

    python benchmarks/subscribing.py

The baseline is the grammar (sqlglot), in the same run. Times are of the processor, the best of several rounds, so that
a busy machine disturbs them little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from godwit.filters.filters import FilterSet
from godwit.filters.text import by_grammar, parse
from godwit.tables.matching.index import Index

TEXTS = (
    "pm25 > 150",
    "kind = 'reading' AND pm25 > 150 AND speed BETWEEN 3 AND 9.5",
    "kind = 'reading' AND pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)",
    "kind IN ('bus', 'tram') AND (delay > 300 OR NOT running)",
)
ROUNDS, CALLS = 9, 200


def best_us(call: Callable[[], object]) -> float:
    """Microseconds of the processor for one call."""
    found = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(CALLS):
            call()
        found.append((time.process_time() - begun) / CALLS * 1e6)
    return min(found)


def _file(index: Index, ids: Iterator[int], wanted: FilterSet) -> None:
    index.add(next(ids), wanted)


def main() -> None:
    print(f"{'read':>8} {'grammar':>8} {'ratio':>6} {'file':>8}  condition")
    for text in TEXTS:
        index, ids, wanted = Index(), count(), parse(text)
        index.add(next(ids), wanted)
        read, grammar = best_us(partial(parse, text)), best_us(partial(by_grammar, text))
        filed = best_us(partial(_file, index, ids, wanted))
        print(f"{read:>6.1f}us {grammar:>6.1f}us {grammar / read:>6.1f} {filed:>6.1f}us  {text}")


if __name__ == "__main__":
    main()
