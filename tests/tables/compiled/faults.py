"""Faults that were planted: the checked mode must find each. Run by `test_checks`, in a process in that mode."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from godwit.filters.filters import EVERYTHING
from godwit.filters.text import parse
from godwit.tables.compiled import books, checks, layout
from godwit.tables.compiled.kernels import KERNELS
from godwit.tables.compiled.state import Arrays
from godwit.tables.matching.batch import Batch, Piece
from godwit.tables.matching.index import Index
from godwit.tables.matching.population import Population

EVENTS = Batch.from_events([{"a": 5, "b": "x"}, {"a": 7, "b": "yes"}])


def filled() -> tuple[Index, Arrays]:
    index = Index()
    index.add_many(range(3), [parse("a > 3 AND b = 'x'"), parse("b LIKE '%e%'"), parse("a < 9 OR b = 'q'")])
    assert index.count_batch(EVENTS).tolist() == [2, 2]
    return index, index._state


def test_this_process_is_checked() -> None:
    assert books.CHECKED


def test_an_array_that_is_too_short_is_named_with_the_function_and_the_index() -> None:
    index, state = filled()
    state.resize("terms", 3)
    with pytest.raises(
        checks.BoundsError, match=r"\w+\.\w+, called by match_event: entry 4 of State.terms, which has 3$"
    ):
        index.match({"a": 5, "b": "x"})


def test_a_term_that_is_none_is_found_in_the_hot_loop() -> None:
    index, state = filled()
    bucket = next(row for row in state["buckets"] if row["n"] and row["k"])
    state["arena"][bucket["at"] + 2 * bucket["room"]] = 10**6
    index._matcher._slices = 1  # nothing is to be learned: two events of three filters are a slice
    with pytest.raises(checks.BoundsError, match=r"called by match_slice: entry 1000000 of State.rows, which has"):
        index.match_batch(EVENTS)


@pytest.mark.parametrize("broken", [-1, 2**30])
def test_a_row_number_or_an_index_below_zero_is_found(broken: int) -> None:
    index, state = filled()
    state["lists"]["at"][state["lists"]["n"] > 0] = broken
    with pytest.raises(checks.BoundsError, match=r"of State.arena, which has"):
        index.match_batch(EVENTS)


def test_a_free_list_that_leads_nowhere_is_found() -> None:
    index, state = filled()
    state["heads"][layout.SLOT_FREE] = 10**5
    with pytest.raises(checks.BoundsError, match=r"called by add: entry 100000 of State.slots, which has"):
        index.add(9, parse("c > 1"))


def test_a_text_outside_of_what_was_lent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    index, _ = filled()
    texts = pa.array(["x", "yes"])
    at = texts.buffers()[2].address
    regions = checks.arrow_regions

    def shorter(schema: int, array: int | None) -> Iterator[tuple[int, int]]:
        return ((start, at + 3 if start == at else end) for start, end in regions(schema, array))

    monkeypatch.setattr(checks, "arrow_regions", shorter)
    batch = Batch.from_arrow(pa.RecordBatch.from_arrays([texts], names=["b"]))
    with pytest.raises(checks.BoundsError, match=rf"1 bytes at address {at + 3:#x}, which are in nothing"):
        index.match_batch(batch)


@pytest.mark.parametrize("apart", [True, False])
def test_events_beyond_the_end_of_a_batch_are_found(apart: bool) -> None:
    index, _ = filled()
    piece = Piece(pa.RecordBatch.from_pydict({"a": [1, 2, 3]}))
    source = index._matcher._source(piece, np.zeros((0, 3), np.bool_))
    with pytest.raises(checks.BoundsError, match=r"slices.take_\w+, .*8 bytes at address"):
        index._matcher._match(piece, source, 0, 4, [], [], apart=apart)


def test_a_column_that_is_shorter_than_its_bits_is_found() -> None:
    things = Population()
    for number in range(100):
        things.put(number, {"x": number})
    assert things.find(parse("x > 97")) == [98, 99]
    values, bits, line = things._columns["x"]._places
    things._columns["x"]._places = values + 2**40, bits, line
    with pytest.raises(checks.BoundsError, match=r"columns.is_between, called by rows_between: 8 bytes at address"):
        things.find(parse("x > 97"))


def test_a_book_that_is_gone_is_found() -> None:
    _, state = filled()
    address = state.address
    del books.BOOKS[address]
    with pytest.raises(checks.BoundsError, match=r"called by knows: a book at address 0x[0-9a-f]+, where none is"):
        KERNELS.knows(address, 1)


def test_many_conditions_on_numbers_that_are_no_ranges_get_their_blocks() -> None:
    index = Index()
    index.add(1, parse(" AND ".join(f"a{k} != 1" for k in range(250))))
    assert index.match({f"a{k}": 2 for k in range(250)}).tolist() == [1]


def test_removing_takes_no_room_that_is_not_there() -> None:
    index = Index()
    index.add_many(range(20_000), [EVERYTHING] * 20_000)
    top = int(index._state["heads"][layout.ARENA_TOP])
    index._state.put({"arena": index._state["arena"][:top].copy()})
    numbers = list(range(20_000))
    Random(1).shuffle(numbers)
    for number in numbers[:19_900]:
        index.remove(number)
    assert sorted(index.match({}).tolist()) == sorted(numbers[19_900:])
