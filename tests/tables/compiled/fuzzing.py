"""Filters and events under atheris, in the checked mode: bytes become filters and events, and these go to an index.

    NUMBA_BOUNDSCHECK=1 python -m tests.tables.compiled.fuzzing 60          # seconds

The index must say what the filters say, and touch no memory that it has no right to; anything else ends the run.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from tests.tables.matching.test_index import (
    test_adding_and_removing_between_events_changes_exactly_the_answers_it_should as changing,
)
from tests.tables.matching.test_index import test_an_index_says_what_the_filters_say as asking

from godwit.filters import clauses, filters, predicates
from godwit.tables.compiled import books, programs
from godwit.tables.matching import batch, index

WATCHED: tuple[ModuleType, ...] = (clauses, filters, predicates, programs, batch, index)


def once(data: bytes) -> None:
    """The first byte chooses what is done with the rest."""
    if data:
        (asking if data[0] % 2 else changing).hypothesis.fuzz_one_input(data[1:])


def main(seconds: int) -> None:
    import atheris  # type: ignore[import-untyped]

    assert books.CHECKED, "set NUMBA_BOUNDSCHECK=1: unchecked, a wrong access may go unseen"
    for module in WATCHED:
        for found in vars(module).values():
            members = vars(found).values() if isinstance(found, type) else (found,)
            for one in members:
                if isinstance(one, FunctionType) and one.__module__ == module.__name__:
                    atheris.instrument_func(one)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1"], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]))
