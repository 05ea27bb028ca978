"""Plain memory for compiled code: arrays by address, without the reference counts and checks of numba's own.

A book is a table of (address, length) pairs, one for each of its arrays. Compiled code sees it as an object whose
attributes are those arrays: `s.terms[i].refs += 1`, `s.arena[at]`, `w.masks[row, word]`. Each of these becomes one load
or store; with numba's arrays the same code takes minutes to compile. Whatever their size, whole numbers are seen as 64
bits, so that a function is compiled once and not for each mixture of sizes. Indices are trusted, except in the checked
mode (`checks`), in which every function here that reads or writes compares first.

What this rests on: the numpy arrays of a book are contiguous, and Python keeps them and their table alive and unchanged
for as long as a call lasts. Calls hold the interpreter's lock, so that no other thread changes a book meanwhile. Rows
of masks are read 32 bytes at a time from addresses that are multiples of 8, which x86 and ARM both allow.
"""

# The parts of numba that let one add types to it have none themselves.
# mypy: disable-error-code="attr-defined, call-overload, import-untyped, misc, no-untyped-call, override"
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba._dynfunc import make_function
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import intrinsic, models, register_model
from numba.np import numpy_support

from godwit.tables.compiled import checks
from godwit.tables.compiled.books import CHECKED, WORDS, Bits, Vector, arrays

F = TypeVar("F", bound=Callable[..., Any])
B = TypeVar("B")

I64 = ir.IntType(64)
ROW = ir.VectorType(I64, WORDS)
ROW_BYTES = 8 * WORDS
"""One bit for each of 256 events."""


class PartLibrary(JITCodeLibrary):
    """The code of a function that only compiled code calls, as it was lowered: whoever calls it optimizes it.

    numba would optimize it, with all that it calls, and make machine code of it, at each level of calls anew.
    """

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):
    def define_pipelines(self) -> Any:
        self.state.library = PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.flags.no_compile = True
        return super().define_pipelines()

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        made = super().compile_extra(function)
        # What other functions know it by; there is no machine code behind it that Python could call.
        name = make_function(made.fndesc.lookup_module(), function.__name__, "", 0, made.environment, (made.library,))
        self.state.targetctx.insert_user_function(name, made.fndesc, [made.library])
        return made._replace(entry_point=name)


def compiled(function: F) -> F:
    """For functions that only compiled code calls; those that Python calls are in `kernels`."""
    made = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=PartCompiler)(
        function
    )
    resolve = made.get_call_template

    # Constants as arguments have types of their own in numba; the same code would be compiled for each of them.
    made.get_call_template = lambda args, kws: resolve(tuple(map(types.unliteral, args)), kws)
    return cast(F, made)


def native(function: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that say themselves what machine code a call of theirs becomes."""
    return cast(Callable[..., Any], intrinsic(function))


class VectorType(types.Type):
    def __init__(self, element: types.Type) -> None:
        self.element = element
        super().__init__(f"vector({element})")


class MatrixType(types.Type):
    def __init__(self, element: types.Type, width: int) -> None:
        self.element, self.width = element, width
        super().__init__(f"matrix({element}, {width})")


class RecordType(types.Type):
    """One entry of an array of records, by address."""

    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.dtype = dtype
        super().__init__(f"entry({dtype})")

    def length(self, name: str) -> int:
        """How many numbers a field has that is several in a row."""
        fields: Mapping[str, Any] = self.dtype.fields or {}
        return int(fields[name][0].shape[0])

    def field(self, name: str) -> tuple[types.Type, int]:
        fields: Mapping[str, Any] = self.dtype.fields or {}
        dtype, offset = fields[name][:2]
        if dtype.subdtype:
            return VectorType(numpy_support.from_dtype(dtype.subdtype[0])), offset
        return numpy_support.from_dtype(dtype), offset


class RecordsType(types.Type):
    def __init__(self, dtype: np.dtype[np.void]) -> None:
        self.dtype = dtype
        super().__init__(f"entries({dtype})")


class BookType(types.Type):
    def __init__(self, name: str, shelves: Mapping[str, types.Type]) -> None:
        self.shelves = tuple(shelves.items())
        self.first_shelf = checks.shelved(name, shelves)
        super().__init__(f"book({name}, {self.shelves})")

    def slot(self, name: str) -> int:
        return next(at for at, (known, _) in enumerate(self.shelves) if known == name)


def _shelf(dtype: np.dtype[Any], width: int) -> types.Type:
    if dtype.fields:
        return RecordsType(dtype)
    element = numpy_support.from_dtype(dtype)
    return VectorType(element) if width == 1 else MatrixType(element, width)


@register_model(VectorType)
@register_model(MatrixType)
@register_model(RecordsType)
class _ArrayModel(models.StructModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        parts = ("data", "length", "shelf") if CHECKED else ("data", "length")
        super().__init__(manager, kind, [(part, types.int64) for part in parts])


@register_model(RecordType)
@register_model(BookType)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: types.Type) -> None:
        super().__init__(manager, kind, I64)


@infer_getattr
class _BookAttributes(AttributeTemplate):
    key = BookType

    def generic_resolve(self, book: BookType, name: str) -> types.Type | None:
        return dict(book.shelves).get(name)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> types.Type | None:
        return _seen(record.field(name)[0]) if name in (record.dtype.names or ()) else None


def _seen(stored: types.Type) -> types.Type:
    """The type that compiled code sees of a number that is stored as this one."""
    return types.int64 if isinstance(stored, types.Integer) and stored.bitwidth < 64 else stored


def _element(array: types.Type) -> types.Type:
    return RecordType(array.dtype) if isinstance(array, RecordsType) else _seen(array.element)


def _is_index(array: types.Type, index: types.Type) -> bool:
    if isinstance(array, MatrixType):
        return isinstance(index, types.BaseTuple) and len(index) == 2
    return isinstance(array, VectorType | RecordsType) and isinstance(index, types.Integer)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        array, index = args
        return signature(_element(array), array, index) if _is_index(array, index) else None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        array, index, _ = args
        return signature(types.none, array, index, _element(array)) if _is_index(array, index) else None


@infer_global(len)
class _Length(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: object) -> Any:
        (array,) = args
        return signature(types.intp, array) if isinstance(array, VectorType | MatrixType | RecordsType) else None


@lower_getattr_generic(BookType)
def _open(context: Any, builder: Any, book: BookType, address: Any, name: str) -> Any:
    """Addresses do not change while compiled code runs, so that loops may keep them in registers."""
    constant = builder.module.add_metadata([])
    table = builder.inttoptr(address, I64.as_pointer())
    number = book.slot(name)
    made = cgutils.create_struct_proxy(dict(book.shelves)[name])(context, builder)
    for offset, part in enumerate(("data", "length")):
        value = builder.load(builder.gep(table, [ir.Constant(I64, 2 * number + offset)], inbounds=True))
        value.set_metadata("invariant.load", constant)
        setattr(made, part, value)
    if CHECKED:
        made.shelf = ir.Constant(I64, book.first_shelf + number)
    return made._getvalue()


def _field_pointer(context: Any, builder: Any, record: RecordType, address: Any, name: str) -> tuple[types.Type, Any]:
    kind, offset = record.field(name)
    at = builder.add(address, ir.Constant(I64, offset))
    if isinstance(kind, VectorType):
        return kind, at
    return kind, builder.inttoptr(at, context.get_data_type(kind).as_pointer())


@lower_getattr_generic(RecordType)
def _get_field(context: Any, builder: Any, record: RecordType, address: Any, name: str) -> Any:
    kind, pointer = _field_pointer(context, builder, record, address, name)
    if not isinstance(kind, VectorType):
        return context.cast(builder, builder.load(pointer), kind, _seen(kind))
    made = cgutils.create_struct_proxy(kind)(context, builder)
    made.data, made.length = pointer, ir.Constant(I64, record.length(name))
    return made._getvalue()


@lower_setattr_generic(RecordType)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record, kind = sig.args[0], sig.args[1]
    field, pointer = _field_pointer(context, builder, record, args[0], name)
    builder.store(context.cast(builder, args[1], kind, field), pointer)


def _pointer(context: Any, builder: Any, array: types.Type, value: Any, index: types.Type, at: Any) -> Any:
    seen = cgutils.create_struct_proxy(array)(context, builder, value=value)
    data = seen.data
    if isinstance(array, MatrixType):
        row, column = (
            context.cast(builder, part, kind, types.int64)
            for part, kind in zip(cgutils.unpack_tuple(builder, at), index, strict=True)
        )
        if CHECKED:
            checks.below(context, builder, row, seen.length, seen.shelf)
            checks.below(context, builder, column, ir.Constant(I64, array.width), seen.shelf, checks.COLUMN)
        at = builder.add(builder.mul(row, ir.Constant(I64, array.width)), column)
    else:
        at = context.cast(builder, at, index, types.int64)
        if CHECKED:
            checks.below(context, builder, at, seen.length, seen.shelf)
    if isinstance(array, RecordsType):
        return builder.add(data, builder.mul(at, ir.Constant(I64, array.dtype.itemsize)))
    pointer = builder.inttoptr(data, context.get_data_type(array.element).as_pointer())
    return builder.gep(pointer, [at], inbounds=True)


def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer = _pointer(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    if isinstance(sig.args[0], RecordsType):
        return pointer
    return context.cast(builder, builder.load(pointer), sig.args[0].element, sig.return_type)


def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer = _pointer(context, builder, sig.args[0], args[0], sig.args[1], args[1])
    builder.store(context.cast(builder, args[2], sig.args[2], sig.args[0].element), pointer)
    return context.get_dummy_value()


for _array, _index in ((VectorType, types.Integer), (RecordsType, types.Integer), (MatrixType, types.BaseTuple)):
    lower_builtin(operator.getitem, _array, _index)(_get_item)
    lower_builtin(operator.setitem, _array, _index, types.Any)(_set_item)


@lower_builtin(len, VectorType)
@lower_builtin(len, MatrixType)
@lower_builtin(len, RecordsType)
def _len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).length


def opener(book: type[B]) -> Callable[[int], B]:
    """A function for compiled code that turns an address into the book that is there."""
    kind = BookType(book.__name__, {name: _shelf(*entry) for name, entry in arrays(book).items()})

    @native
    def open_book(context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if CHECKED:
                checks.inside(context, builder, args[0], 16 * len(kind.shelves), checks.BOOK)
            return args[0]

        return kind(types.int64), code

    return open_book


@native
def _lent(context: Any, array: Any) -> Any:
    """A numba array seen as plain memory; it must outlive what is made of it."""
    dtype = numpy_support.as_dtype(array.dtype)
    kind = RecordsType(dtype) if dtype.fields else VectorType(array.dtype)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        proxy = context.make_array(sig.args[0])(context, builder, args[0])
        made = cgutils.create_struct_proxy(kind)(context, builder)
        made.data, made.length = builder.ptrtoint(proxy.data, I64), proxy.nitems
        return made._getvalue()

    return kind(array), code


lent: Callable[[Any], Any] = _lent


def _recast(element: types.Type) -> Callable[[Vector[int]], Vector[int]]:
    """See a vector of words as a vector of something else."""
    kind = VectorType(element)

    @native
    def recast(context: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if not CHECKED:
                return args[0]
            made = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
            held = builder.mul(made.length, ir.Constant(I64, vector.element.bitwidth))
            made.length = builder.udiv(held, ir.Constant(I64, element.bitwidth))
            return made._getvalue()

        return kind(vector), code

    return recast


as_bytes, as_longs = _recast(types.uint8), _recast(types.int64)


@native
def _address_of(context: Any, array: Any, at: Any) -> Any:
    """Where an element of a vector, or a row of a matrix, lies."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        seen = cgutils.create_struct_proxy(array)(context, builder, value=args[0])
        if CHECKED:
            # Of a vector the address behind its end may be taken: what is read there is checked when it is read.
            end = seen.length if isinstance(array, MatrixType) else builder.add(seen.length, ir.Constant(I64, 1))
            checks.below(context, builder, args[1], end, seen.shelf)
        size = context.get_abi_sizeof(context.get_data_type(array.element)) * getattr(array, "width", 1)
        return builder.add(seen.data, builder.mul(args[1], ir.Constant(I64, size)))

    return types.int64(array, types.int64), code


address_of: Callable[[Any, int], int] = _address_of


def _loader(kind: types.Type, bits: ir.Type) -> Callable[[int], Any]:
    @native
    def load(context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if CHECKED:
                checks.inside(context, builder, args[0], context.get_abi_sizeof(bits))
            value = builder.load(builder.inttoptr(args[0], bits.as_pointer()))
            value.align = 1
            return context.cast(builder, value, kind, _seen(kind))

        return _seen(kind)(types.int64), code

    return load


load_i1: Callable[[int], int] = _loader(types.int8, ir.IntType(8))
load_u1: Callable[[int], int] = _loader(types.uint8, ir.IntType(8))
load_i2: Callable[[int], int] = _loader(types.int16, ir.IntType(16))
load_u2: Callable[[int], int] = _loader(types.uint16, ir.IntType(16))
load_i4: Callable[[int], int] = _loader(types.int32, ir.IntType(32))
load_u4: Callable[[int], int] = _loader(types.uint32, ir.IntType(32))
load_i8: Callable[[int], int] = _loader(types.int64, I64)
load_u8: Callable[[int], Bits] = _loader(types.uint64, I64)
load_f4: Callable[[int], float] = _loader(types.float32, ir.FloatType())
load_f8: Callable[[int], float] = _loader(types.float64, ir.DoubleType())


def _fetch(context: Any, builder: Any, address: Any) -> Any:
    if CHECKED:
        checks.inside(context, builder, address, ROW_BYTES)
    value = builder.load(builder.inttoptr(address, ROW.as_pointer()))
    value.align = 8
    return value


def _row_operation(combine: Callable[[Any, list[Any]], Any], operands: int) -> Callable[..., None]:
    """Write to the first of the rows given by address what a combination of all of them is."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        store = builder.store(
            combine(builder, [_fetch(context, builder, address) for address in args]),
            builder.inttoptr(args[0], ROW.as_pointer()),
        )
        store.align = 8
        return context.get_dummy_value()

    if operands == 1:

        @native
        def one(context: Any, row: Any) -> Any:
            return types.none(types.int64), code

        return one
    if operands == 2:

        @native
        def two(context: Any, row: Any, other: Any) -> Any:
            return types.none(types.int64, types.int64), code

        return two

    @native
    def three(context: Any, row: Any, other: Any, third: Any) -> Any:
        return types.none(types.int64, types.int64, types.int64), code

    return three


row_clear = _row_operation(lambda b, rows: ir.Constant(ROW, [0] * WORDS), 1)
row_copy = _row_operation(lambda b, rows: rows[1], 2)
row_or = _row_operation(lambda b, rows: b.or_(rows[0], rows[1]), 2)
row_and = _row_operation(lambda b, rows: b.and_(rows[0], rows[1]), 2)
row_and_not = _row_operation(lambda b, rows: b.and_(rows[0], b.not_(rows[1])), 2)
row_or_xor = _row_operation(lambda b, rows: b.or_(rows[0], b.xor(rows[1], rows[2])), 3)
row_and_xor = _row_operation(lambda b, rows: b.and_(rows[0], b.xor(rows[1], rows[2])), 3)


def _some(builder: Any, row: Any) -> Any:
    whole = ir.IntType(64 * WORDS)
    return builder.icmp_unsigned("!=", builder.bitcast(row, whole), ir.Constant(whole, 0))


@native
def _row_some(context: Any, row: Any) -> Any:
    """Whether any bit of a row is set."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _some(builder, _fetch(context, builder, args[0]))

    return types.boolean(types.int64), code


row_some: Callable[[int], bool] = _row_some


def _bit_operation(combine: Callable[[Any, Any, Any], Any]) -> Callable[[int, int], None]:
    """Change one bit of the row at an address."""

    @native
    def change(context: Any, row: Any, bit: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            if CHECKED:
                checks.inside(context, builder, args[0], ROW_BYTES)
                checks.below(context, builder, args[1], ir.Constant(I64, 64 * WORDS), None, checks.BIT)
            words = builder.inttoptr(args[0], I64.as_pointer())
            pointer = builder.gep(words, [builder.lshr(args[1], ir.Constant(I64, 6))], inbounds=True)
            one = builder.shl(ir.Constant(I64, 1), builder.and_(args[1], ir.Constant(I64, 63)))
            builder.store(combine(builder, builder.load(pointer), one), pointer)
            return context.get_dummy_value()

        return types.none(types.int64, types.int64), code

    return change


set_bit = _bit_operation(lambda b, word, one: b.or_(word, one))
clear_bit = _bit_operation(lambda b, word, one: b.and_(word, b.not_(one)))


@native
def _lowest_bit(context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set; the word must not be zero."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), code


lowest_bit: Callable[[Bits], int] = _lowest_bit


LANES = 16
BETWEEN = 64
"""So many pairs of words are compared with a number by one call."""


@native
def _between(context: Any, words: Any, lows: Any, highs: Any, number: Any) -> Any:
    """A bit for each of BETWEEN words from index `lows` on: whether a number of 32 bits is not below it, and not above
    its partner from index `highs` on.

    Sixteen at a time: that many comparisons become bits in one instruction, and more are taken apart by the compiler.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        seen = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
        if CHECKED:
            for at in args[1:3]:
                checks.below(context, builder, at, seen.length, seen.shelf)
                last = builder.add(at, ir.Constant(I64, BETWEEN - 1))
                checks.below(context, builder, last, seen.length, seen.shelf)
        word = ir.IntType(32)
        many = ir.VectorType(word, LANES)
        data = builder.inttoptr(seen.data, word.as_pointer())
        one = builder.insert_element(
            ir.Constant(many, ir.Undefined), builder.trunc(args[3], word), ir.Constant(word, 0)
        )
        every = builder.shuffle_vector(one, one, ir.Constant(many, [0] * LANES))

        def fetch(first: Any, offset: int) -> Any:
            place = builder.gep(data, [builder.add(first, ir.Constant(I64, offset))], inbounds=True)
            value = builder.load(builder.bitcast(place, many.as_pointer()))
            value.align = 4
            return value

        found = ir.Constant(I64, 0)
        for offset in range(0, BETWEEN, LANES):
            is_in = builder.and_(
                builder.icmp_signed("<=", fetch(args[1], offset), every),
                builder.icmp_signed("<=", every, fetch(args[2], offset)),
            )
            bits = builder.zext(builder.bitcast(is_in, ir.IntType(LANES)), I64)
            found = builder.or_(found, builder.shl(bits, ir.Constant(I64, offset)))
        return found

    return types.uint64(words, types.int64, types.int64, types.int64), code


between: Callable[[Vector[int], int, int, int], Bits] = _between


@native
def _whole(context: Any, number: Any) -> Any:
    """An integer of any kind with a sign: bits as they are, without asking."""
    return types.int64(number), lambda context, builder, sig, args: context.cast(
        builder, args[0], sig.args[0], types.int64
    )


whole: Callable[[Any], int] = _whole


@native
def _bits_of(context: Any, number: Any) -> Any:
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(args[0], I64)


bits_of: Callable[[float], int] = _bits_of


@native
def _float_of(context: Any, bits: Any) -> Any:
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


float_of: Callable[[int], float] = _float_of


def conjunction(k: int) -> Callable[..., int]:
    """The hot loop's body for k predicates, one vector wide.

    `conjunction(masks, rows, arena, start, wanted, found, i)`: of the events in the row at `wanted`, those for which
    each of the k pairs of terms at `arena[start + 2 * k * i]` differs, written to the i-th row at `found`; 1 where any
    are left.
    """

    @native
    def found_any(context: Any, masks: Any, rows: Any, arena: Any, start: Any, wanted: Any, found: Any, i: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            def fetch(position: int, kind: Any, index: Any, aligned: int) -> Any:
                seen = cgutils.create_struct_proxy(sig.args[position])(context, builder, value=args[position])
                if CHECKED:
                    checks.below(context, builder, index, seen.length, seen.shelf)
                pointer = builder.inttoptr(seen.data, kind.as_pointer())
                value = builder.load(builder.gep(pointer, [index], inbounds=True))
                value.align = aligned
                return value

            first = builder.add(args[3], builder.mul(args[6], ir.Constant(I64, 2 * k)))
            left = _fetch(context, builder, args[4])
            width = rows.element.bitwidth
            for predicate in range(k):
                pair = []
                for half in range(2):
                    index = builder.add(first, ir.Constant(I64, 2 * predicate + half))
                    term = builder.zext(fetch(2, ir.IntType(32), index, 4), I64)
                    number = builder.zext(fetch(1, ir.IntType(width), term, width // 8), I64)
                    pair.append(fetch(0, ROW, number, 8))
                left = builder.and_(left, builder.xor(*pair))
            if CHECKED:
                found = builder.add(args[5], builder.mul(args[6], ir.Constant(I64, ROW_BYTES)))
                checks.inside(context, builder, found, ROW_BYTES)
            target = builder.gep(builder.inttoptr(args[5], ROW.as_pointer()), [args[6]], inbounds=True)
            builder.store(left, target).align = 8
            return builder.zext(_some(builder, left), I64)

        return types.int64(masks, rows, arena, types.int64, types.int64, types.int64, types.int64), code

    return found_any
