"""One event, laid out for compiled code as `compiled.layout.SingleEvent` says.

Events of one kind have the same names, and values of the same types behind them, in the same order. What follows from
that alone is kept as a form: which attributes are asked for, and where each value goes. An event of a known form is
laid out by a few calls, however many values it has. Everything else goes value by value, to the same effect.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from godwit.events import EventError, Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.predicates import place_of
from godwit.tables.compiled import layout
from godwit.tables.compiled.programs import Names
from godwit.tables.compiled.state import Arrays

TOLD_APART = 2**53
"""Whole numbers below it are floats."""

FORMS_MAX = 256
"""So many forms are kept; who sends more kinds of events than that has them made again."""

_VALUE = "dqiiq"
_NUMBER_AT, _REST_AT, _SIZE_AT, _FIELDS = 0, 1, 4, len(_VALUE)
_VALUE_BYTES = layout.EVENT_VALUE.itemsize
_VALUES_FIRST, _TEXT_FIRST = 64, 1024
_NUMBER, _STRING, _TRUE, _FALSE = layout.NUMBER, layout.STRING, layout.TRUE, layout.FALSE
_UNMATCHABLE = layout.UNMATCHABLE

Getter = Callable[[Mapping[str, Value]], tuple[Any, ...]]


@lru_cache(4096)
def _values_of(count: int) -> struct.Struct:
    """So many values of an event, one after the other."""
    return struct.Struct("<" + _VALUE * count)


class _Form:
    """Events with these names and types of values: whole numbers and truths first, then floats, then texts."""

    def __init__(self, names: tuple[str, ...], types: tuple[type, ...], known: Mapping[str, int]) -> None:
        asked = [(name, kind) for name, kind in zip(names, types, strict=True) if name in known]
        self.is_plain = all(kind in (int, bool, float, str, type(None)) for _, kind in asked)
        """Whether every value is of a type that needs no look at it."""
        rests = [name for name, kind in asked if kind in (int, bool)]
        floats = [name for name, kind in asked if kind is float]
        texts = [name for name, kind in asked if kind is str]
        kinds = dict(asked)
        told = {int: layout.WHOLE, bool: layout.FLAG, float: _NUMBER, str: _STRING}
        self.fields: list[float] = []
        """What is the same in all such events, and room for what is not."""
        for name in [*rests, *floats, *texts] if self.is_plain else ():
            self.fields += (0.0, 0, known[name], told[kinds[name]], 0)
        self.count = len(self.fields) // _FIELDS
        self.rests, self.floats, self.texts = _getter(rests), _getter(floats), _getter(texts)
        self.rests_end = _FIELDS * len(rests)
        self.floats_end = self.rests_end + _FIELDS * len(floats)
        self.pack_into = _values_of(self.count).pack_into


def _getter(names: list[str]) -> Getter | None:
    """What takes the values of these names, in their order; None where there are no names."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda values: (values[names[0]],)) if names else None


class SingleEvent(Arrays):
    """Buffers that single events are laid out in, one after the other; making arrays for each took longer."""

    def __init__(self, names: Names, outer: Mapping[int, AttributeFilter]) -> None:
        super().__init__(layout.SingleEvent, {})
        self._names = names
        self._outer = outer
        self._forms: dict[tuple[tuple[str, ...], tuple[type, ...]], _Form] = {}
        self._forms_of = names.count
        """How many attributes there were when the forms were made."""
        self._make_room(_VALUES_FIRST, _TEXT_FIRST)

    def take(self, values: Mapping[str, Value]) -> None:
        """Lay one event out for compiled code."""
        if self._names.count != self._forms_of or len(self._forms) > FORMS_MAX:
            self._forms, self._forms_of = {}, self._names.count
        kind = tuple(values), tuple(map(type, values.values()))
        form = self._forms.get(kind)
        if form is None:
            form = self._forms[kind] = _Form(*kind, self._names.values)
        if not (form.is_plain and self._fill(form, values)):
            self._take_each(values)
        self._take_rest(values)

    def _fill(self, form: _Form, values: Mapping[str, Value]) -> bool:
        """Lay out what an event of this form has; False where one of its numbers needs more than 64 bits."""
        fields, letters = form.fields.copy(), b""
        if form.rests is not None:
            fields[_REST_AT : form.rests_end : _FIELDS] = form.rests(values)
        if form.floats is not None:
            fields[form.rests_end + _NUMBER_AT : form.floats_end : _FIELDS] = form.floats(values)
        if form.texts is not None:
            texts = form.texts(values)
            joined = "".join(texts)
            if joined.isascii():
                letters, sizes = joined.encode(), map(len, texts)
            else:
                encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
                letters, sizes = b"".join(encoded), map(len, encoded)
            fields[form.floats_end + _SIZE_AT :: _FIELDS] = sizes
        self._fit(form.count, len(letters))
        try:
            form.pack_into(self._packed, 0, *fields)
        except struct.error:
            return False
        self._put_text(form.count, letters)
        return True

    def _take_each(self, values: Mapping[str, Value]) -> None:
        known, fields, letters = self._names.values, list[float](), b""
        for name, value in values.items():
            attr = known.get(name)
            if attr is None or value is None:
                continue
            if isinstance(value, str):
                text = value.encode("utf-8", "surrogatepass")
                letters += text
                fields += (0.0, 0, attr, _STRING, len(text))
            elif value is True or value is False:
                fields += (0.0, 0, attr, _TRUE if value else _FALSE, 0)
            elif isinstance(value, int):
                fields += (*_parts(name, value), attr, _NUMBER, 0)
            elif isinstance(value, float):
                fields += (value, 0, attr, _NUMBER, 0)
            else:
                fields += (0.0, 0, attr, _UNMATCHABLE, 0)
        count = len(fields) // _FIELDS
        self._fit(count, len(letters))
        _values_of(count).pack_into(self._packed, 0, *fields)
        self._put_text(count, letters)

    def _take_rest(self, values: Mapping[str, Value]) -> None:
        """Places, and what only Python can decide."""
        if self._names.places:
            places = [(attr, place_of(name, values)) for name, attr in self._names.places.items()]
            there = [(attr, place) for attr, place in places if place is not None]
            self.put(
                {
                    "places": np.array([attr for attr, _ in there], np.int32),
                    "degrees": np.array([place for _, place in there], np.float64).reshape(-1, 2),
                }
            )
        else:
            self.resize("places", 0)
        if self._outer:
            holding = [term for term, one in self._outer.items() if one.matches(values)]
            self.put({"outer": np.array(holding, np.int32)})
        else:
            self.resize("outer", 0)

    def _put_text(self, count: int, letters: bytes) -> None:
        self._letters[: len(letters)] = letters
        self.resize("values", count)
        self.resize("text", len(letters) + 1)

    def _fit(self, count: int, letters: int) -> None:
        if count * _VALUE_BYTES > len(self._packed) or letters >= len(self._letters):
            self._make_room(2 * count + _VALUES_FIRST, 2 * letters + _TEXT_FIRST)

    def _make_room(self, values: int, text: int) -> None:
        rows, letters = np.zeros(values, layout.EVENT_VALUE), np.zeros(text, np.uint8)
        self.put({"values": rows, "text": letters})
        self._packed, self._letters = rows.view(np.uint8).data, letters.data


def _parts(name: str, number: int) -> tuple[float, int]:
    """An integer as the nearest float and the rest."""
    if not -(2**63) <= number < 2**64:
        raise EventError(f"attribute {name!r} = {number} does not fit 64 bits")
    if -TOLD_APART < number < TOLD_APART:
        return number, 0
    high = float(number)
    return high, number - int(high)
