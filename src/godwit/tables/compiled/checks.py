"""The checked mode: every access of compiled code to memory is compared with what is there, and told when it is wrong.

Compiled code trusts its indices and addresses; each of its modules argues why it may. In the checked mode nothing is
trusted. It is switched on by numba's own variable, which is read when numba is imported:

    NUMBA_BOUNDSCHECK=1 python ...

- An index of a vector, a matrix or an array of records must be below its length, and not negative.
- What is read or written by an address (texts, rows of masks, Arrow's buffers) must lie inside of memory lent for this
  call. That is the arrays of the books, and what the Arrow specification says that its structs point to.
- A book must be one that Python has made and still holds.

The first access that breaks a rule is not done: a `BoundsError` says what was asked for, how much there is, and in
which function; the index that it happened to is not to be used any more. What is not checked: that a chunk of the
arena belongs to whoever reads it, since the arena is one array. Off, none of this is compiled: the machine code is the
same as without this module. The caches of the two modes are apart, since the digest of `kernels` differs.
"""

# The parts of numba that let one add types to it have none themselves.
# mypy: disable-error-code="attr-defined, import-untyped, no-untyped-call"

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NoReturn, cast

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from godwit.tables.compiled.books import BOOKS, CHECKED

I64 = ir.IntType(64)

REGIONS_MAX = 1 << 14
WHAT, ASKED, THERE, SHELF, COUNT, FIRST = range(6)
"""The board: what was wrong in the last fault, then how many regions of memory are lent, then where each begins and
ends. Compiled code finds it by its name, so that machine code from the cache finds it in any process."""

INDEX, COLUMN, ADDRESS, BOOK, BIT = range(5)

BOARD = np.zeros(FIRST + 2 * REGIONS_MAX, np.int64) if CHECKED else np.zeros(FIRST, np.int64)
SYMBOL = "godwit_checks_board"
binding.add_symbol(SYMBOL, BOARD.ctypes.data)

SHELVES = ["an array of its own"]
"""The arrays of all books by number, so that a fault can name its array."""


class BoundsError(IndexError):
    """Compiled code asked for memory that it has no right to. Only the checked mode raises it."""


def shelved(book: str, names: Mapping[str, object]) -> int:
    """Number the arrays of a book for faults; the number of the first."""
    SHELVES.extend(f"{book}.{name}" for name in names)
    return len(SHELVES) - len(names)


# What is compiled into each access.


def guard(context: Any, builder: Any, is_right: Any, what: int, asked: Any, there: Any, shelf: Any = None) -> None:
    """Go on where the condition holds; else write to the board what was asked for and raise."""
    with builder.if_then(builder.not_(is_right), likely=False):
        for at, value in ((WHAT, ir.Constant(I64, what)), (ASKED, asked), (THERE, there), (SHELF, shelf)):
            builder.store(value or ir.Constant(I64, 0), _place(builder, ir.Constant(I64, at)))
        context.call_conv.return_user_exc(builder, IndexError, (function_name(builder.function.name),))


def below(context: Any, builder: Any, at: Any, there: Any, shelf: Any, what: int = INDEX) -> None:
    """An index, as a number without a sign so that negative ones are far too large, is below the length."""
    guard(context, builder, builder.icmp_unsigned("<", at, there), what, at, there, shelf)


def inside(context: Any, builder: Any, address: Any, size: int, what: int = ADDRESS) -> None:
    """So many bytes at an address lie inside of what is lent."""
    there = ir.Constant(I64, size)
    found = context.compile_internal(builder, _is_lent, types.boolean(types.int64, types.int64), [address, there])
    guard(context, builder, builder.trunc(found, ir.IntType(1)), what, address, there)


def _is_lent(address: int, size: int) -> bool:
    for i in range(_board(COUNT)):
        at = FIRST + 2 * i
        if _board(at) <= address and address + size <= _board(at + 1):
            return True
    return False


def _place(builder: Any, at: Any) -> Any:
    board = builder.module.globals.get(SYMBOL)
    if board is None:
        board = ir.GlobalVariable(builder.module, ir.ArrayType(I64, len(BOARD)), SYMBOL)
    return builder.gep(board, [ir.Constant(I64, 0), at], inbounds=True)


def _read_board(context: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_place(builder, context.cast(builder, args[0], sig.args[0], types.int64)))

    return types.int64(at), code


_board: Callable[[int], int] = cast(Callable[[int], int], intrinsic(_read_board))


def function_name(mangled: str) -> str:
    """The readable part of the name that numba gives to machine code: module and function."""
    parts, rest = [], mangled.removeprefix("_ZN")
    while found := re.match(r"(\d+)", rest):
        size = int(found[0])
        rest = rest[found.end() :]
        parts.append(rest[:size])
        rest = rest[size:]
    return ".".join(parts[-2:]) or mangled


# What Python does around each call.


def watched(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that is told which memory is lent for the call, and whose faults are told in words."""
    if not CHECKED:
        return kernel

    @wraps(kernel)
    def call(*arguments: Any) -> Any:
        lend(list(_lent(name, arguments)))
        try:
            return kernel(*arguments)
        except BoundsError:
            raise
        except IndexError as error:
            _told(name, error)

    return call


def lend(regions: list[tuple[int, int]]) -> None:
    """Write to the board what may be read and written by address: from, and up to, for each region."""
    if len(regions) > REGIONS_MAX:
        raise BoundsError(f"{len(regions)} regions of memory: the checked mode takes at most {REGIONS_MAX}")
    BOARD[COUNT] = len(regions)
    BOARD[FIRST : FIRST + 2 * len(regions)] = np.array(regions, np.int64).reshape(-1)


ARROW = {"match_slice": (3, 4), "match_few": (3, 4), "count_slice": (3, 4), "unreadable": (0, None)}
"""Which arguments of a kernel are the addresses of Arrow's schema and array."""


def _lent(name: str, arguments: tuple[Any, ...]) -> Iterator[tuple[int, int]]:
    for argument in arguments:
        if isinstance(argument, int) and (book := BOOKS.get(argument)) is not None:
            yield from book.regions()
    if name in ARROW:
        schema, array = ARROW[name]
        yield from arrow_regions(arguments[schema], None if array is None else arguments[array])


def _told(name: str, error: IndexError) -> NoReturn:
    what, asked, there, shelf = (int(value) for value in BOARD[: SHELF + 1])
    where = f"{error.args[0] if error.args else 'somewhere'}, called by {name}"
    match what:
        case x if x == INDEX:
            said = f"entry {asked} of {SHELVES[shelf]}, which has {there}"
        case x if x == COLUMN:
            said = f"column {asked} of {SHELVES[shelf]}, which has {there}"
        case x if x == BOOK:
            said = f"a book at address {asked:#x}, where none is"
        case x if x == BIT:
            said = f"bit {asked} of a row, which has {there}"
        case _:
            said = f"{there} bytes at address {asked:#x}, which are in nothing that was lent"
    raise BoundsError(f"{where}: {said}") from None


# What Arrow's C data interface promises to be there; the layout of its structs is in its specification.

SCHEMA_BYTES, ARRAY_BYTES = 72, 80
WIDTHS = {"c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "l": 8, "L": 8, "f": 4, "g": 8}
OFFSETS = {"u": 4, "z": 4, "U": 8, "Z": 8}


def arrow_regions(schema: int, array: int | None) -> Iterator[tuple[int, int]]:
    """Where the structs and the buffers of a batch are, from what its structs say; the validity of the structs
    themselves is the one thing that must be believed."""
    form = ctypes.string_at(_word(schema)).decode()
    yield schema, schema + SCHEMA_BYTES
    yield _word(schema), _word(schema) + len(form) + 1
    count, children, words = _word(schema + 32), _word(schema + 40), _word(schema + 48)
    if array is not None:
        yield array, array + ARRAY_BYTES
        yield from _buffers(form, array)
    theirs = None if array is None else _word(array + 48)
    if count:
        yield children, children + 8 * count
        if theirs is not None:
            yield theirs, theirs + 8 * count
    for i in range(count):
        yield from arrow_regions(_word(children + 8 * i), None if theirs is None else _word(theirs + 8 * i))
    if words:
        yield from arrow_regions(words, None if array is None else _word(array + 56))


def _buffers(form: str, array: int) -> Iterator[tuple[int, int]]:
    length, count, buffers = _word(array) + _word(array + 16), _word(array + 24), _word(array + 40)
    yield buffers, buffers + 8 * count
    sizes = [-(-length // 8)]
    if form in WIDTHS:
        sizes.append(WIDTHS[form] * length)
    elif form == "b":
        sizes.append(-(-length // 8))
    elif form in OFFSETS:
        width, offsets = OFFSETS[form], _word(buffers + 8)
        sizes.append(width * (length + 1))
        end = ctypes.string_at(offsets + width * length, width) if offsets else b""
        sizes.append(int.from_bytes(end, "little"))
    for i, size in enumerate(sizes[:count]):
        if at := _word(buffers + 8 * i):
            yield at, at + size


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value
