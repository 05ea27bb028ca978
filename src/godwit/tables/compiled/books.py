"""How arrays are declared that compiled code shares with Python: books of arrays, and records of fields.

Nothing here needs a compiler, and so a broker that came with its machine code does without numba.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, TypeVar, get_args, get_origin, get_type_hints
from weakref import WeakValueDictionary

import numpy as np

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Bits: TypeAlias = Any
"""64 bits, without a sign: `numpy.uint64` all along, or numba makes floats of them."""

WORDS = 4
"""One bit for each of 256 events takes so many words."""

CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "") not in ("", "0")
"""Whether every access of compiled code is compared with what is there; `checks` tells the rest."""


class Vector(Protocol[T]):
    """Plain numbers, as compiled code sees them."""

    def __getitem__(self, at: Any) -> T: ...
    def __setitem__(self, at: Any, value: T) -> None: ...
    def __len__(self) -> int: ...


class Matrix(Protocol[T]):
    """Rows of numbers."""

    def __getitem__(self, at: tuple[int, int]) -> T: ...
    def __setitem__(self, at: tuple[int, int], value: T) -> None: ...
    def __len__(self) -> int: ...


class Records(Protocol[T_co]):
    """Entries with named fields."""

    def __getitem__(self, at: int) -> T_co: ...
    def __len__(self) -> int: ...


def record(description: type) -> np.dtype[np.void]:
    """The record whose fields a class declares, as `Annotated[int, "i4"]`, or with a length for several in a row."""
    hints = get_type_hints(description, include_extras=True)
    return np.dtype([(name, *hint.__metadata__) for name, hint in hints.items()])


def arrays(book: type) -> dict[str, tuple[np.dtype[Any], int]]:
    """The arrays that a class declares, each with the type of its entries and how many there are in a row."""
    found: dict[str, tuple[np.dtype[Any], int]] = {}
    for name, hint in get_type_hints(book, include_extras=True).items():
        if get_origin(hint) is Records:
            found[name] = (record(get_args(hint)[0]), 1)
        else:
            found[name] = (np.dtype(hint.__metadata__[0]), *(hint.__metadata__[1:] or (1,)))
    return found


class Book(Protocol):
    """What can be lent to compiled code: a table of addresses and lengths, and the arrays that it speaks of."""

    address: int

    def regions(self) -> Iterator[tuple[int, int]]: ...


BOOKS: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""The books that Python holds, by their address."""


def known(book: Book) -> None:
    if CHECKED:
        BOOKS[book.address] = book
