"""The conditions that most subscribers send, read in one pass: comparisons with literals, joined by AND.

A parser builds a tree that only says so again, which takes ten times as long. What is read here means exactly what the
grammar of `text` says; every other text, wrong ones included, is left to the grammar and its errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from godwit.events import NAME_MAX
from godwit.filters import predicates
from godwit.filters.areas import WORLD, Area, Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.errors import FilterError
from godwit.filters.filters import TYPE_ATTRIBUTE, FilterSet, attribute, conjunction
from godwit.filters.predicates import EXISTS, AnyPredicate, Flag, Kind, Number, Within
from godwit.filters.syntax import INFINITY, RESERVED, Limits

CHARACTERS_MAX = 512
PREDICATES_MAX = 16
"""Few enough that comparing each with each stays far below any limit of effort."""
PATTERN_MAX = 64
EFFORT_MIN = 10_000

_S = r"[ \t\r\n]"
_NAME = r"[a-z_]\w*(?:\.[a-z_]\w*)*"
_NUMBER = r"-?\d+(?:\.\d+)?(?![\w.])"
_TEXT = r"'[^'\\]*'(?!')"
_PREDICATE = re.compile(
    rf"""{_S}*(?:
        (?P<name>{_NAME})(?:
            {_S}*(?P<sign><>|!=|<=|>=|=|<|>){_S}*(?:
                (?P<number>{_NUMBER}) | (?P<text>{_TEXT}) | (?P<truth>TRUE|FALSE)(?![\w.])
            )
            | {_S}+BETWEEN{_S}+(?P<low>{_NUMBER}){_S}+AND{_S}+(?P<high>{_NUMBER})
            | {_S}+LIKE{_S}+(?P<pattern>{_TEXT})
            | {_S}+IN{_S}*\({_S}*(?:
                (?P<texts>{_TEXT}(?:{_S}*,{_S}*{_TEXT})*) | (?P<numbers>{_NUMBER}(?:{_S}*,{_S}*{_NUMBER})*)
            ){_S}*\)
        )
        | within{_S}*\({_S}*(?P<lat>{_NAME}){_S}*,{_S}*(?P<lon>{_NAME}){_S}*,
            {_S}*(?P<lat0>{_NUMBER}){_S}*,{_S}*(?P<lon0>{_NUMBER}){_S}*,{_S}*(?P<radius>-?\d+(?:\.\d+)?)(?P<unit>km|m)?{_S}*\)
        | within_box{_S}*\({_S}*(?P<lat_in>{_NAME}){_S}*,{_S}*(?P<lon_in>{_NAME}){_S}*,
            {_S}*(?P<edges>{_NUMBER}(?:{_S}*,{_S}*{_NUMBER}){{3}}){_S}*\)
    )(?:{_S}+(?P<more>AND){_S}+|{_S}*\Z)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_QUOTED = re.compile(_TEXT)
_COUNTED = re.compile(r"-?\d+(?:\.\d+)?")
_WORDS = RESERVED | {INFINITY}
_METRES = {"": 1, "m": 1, "km": 1000}

_SIGNS: Mapping[str, Callable[[Number], AnyPredicate]] = {
    "=": predicates.equ,
    "<>": predicates.neq,
    "!=": predicates.neq,
    "<": predicates.lt,
    "<=": predicates.lte,
    ">": predicates.gr,
    ">=": predicates.gre,
}
_EITHER: Mapping[str, Callable[[str | bool], AnyPredicate]] = {
    "=": predicates.equ,
    "<>": predicates.neq,
    "!=": predicates.neq,
}


class _NotPlainError(Exception):
    """The grammar has to read this one."""


def read(text: str, limits: Limits) -> FilterSet | None:
    """What a plain condition means; None where it is not plain, or where limits are tighter than usual."""
    if len(text) > min(CHARACTERS_MAX, limits.characters) or limits.effort < EFFORT_MIN:
        return None
    try:
        wanted = _attributes(text, min(PREDICATES_MAX, limits.predicates), limits)
    except (_NotPlainError, FilterError):
        return None
    found = conjunction(wanted)
    return FilterSet((found,) if found is not None else ())


def _attributes(text: str, most: int, limits: Limits) -> list[AttributeFilter]:
    wanted: list[AttributeFilter] = []
    at, more = 0, True
    while more:
        found = _PREDICATE.match(text, at)
        if found is None or len(wanted) == most:
            raise _NotPlainError
        wanted.append(_attribute(found, limits))
        at, more = found.end(), found["more"] is not None
    return wanted


def _attribute(found: re.Match[str], limits: Limits) -> AttributeFilter:
    if found["lat"] is not None:
        return _place(found["lat"], found["lon"], _circle(found))
    if found["edges"] is not None:
        edges = (float(_number(edge)) for edge in _COUNTED.findall(found["edges"]))
        return _place(found["lat_in"], found["lon_in"], Box(*edges))
    name, sign = _name(found["name"]), found["sign"]
    if found["number"] is not None:
        return _one(name, Kind.NUMBER, _SIGNS[sign](_number(found["number"])))
    if sign is not None:
        if sign not in _EITHER:
            raise _NotPlainError
        if found["text"] is not None:
            return _one(name, Kind.STRING, _EITHER[sign](found["text"][1:-1]))
        return _one(name, Kind.BOOL, Flag((found["truth"].upper() == "TRUE") is (sign == "=")))
    if found["low"] is not None:
        return _one(name, Kind.NUMBER, predicates.rng(_number(found["low"]), _number(found["high"])))
    if found["pattern"] is not None:
        pattern = found["pattern"][1:-1]
        if len(pattern) > min(PATTERN_MAX, limits.pattern_characters):
            raise _NotPlainError
        return _one(name, Kind.STRING, predicates.like(pattern))
    return _list(name, found, limits)


def _list(name: str, found: re.Match[str], limits: Limits) -> AttributeFilter:
    if found["texts"] is not None:
        kind, items = Kind.STRING, [predicates.equ(text[1:-1]) for text in _QUOTED.findall(found["texts"])]
    else:
        kind, items = Kind.NUMBER, [predicates.equ(_number(item)) for item in _COUNTED.findall(found["numbers"])]
    if len(items) > min(PREDICATES_MAX, limits.list_items):
        raise _NotPlainError
    return _one(name, kind, *items)


def _place(lat: str, lon: str, area: Area) -> AttributeFilter:
    names = f"{_name(lat)},{_name(lon)}"
    return attribute(names, EXISTS if area.covers(WORLD) else Within(area), kind=Kind.PLACE)


def _circle(found: re.Match[str]) -> Circle:
    metres = _METRES[(found["unit"] or "").lower()]
    radius_m = float(Decimal(found["radius"]) * metres)
    return Circle(float(_number(found["lat0"])), float(_number(found["lon0"])), radius_m)


def _one(name: str, kind: Kind, *wishes: AnyPredicate) -> AttributeFilter:
    own = attribute(name, *wishes, kind=kind)
    # One event type an alternative: several are for the grammar to part.
    if not own.clause or (name == TYPE_ATTRIBUTE and len(own.clause) > 1):
        raise _NotPlainError
    return own


def _name(name: str) -> str:
    if len(name) > NAME_MAX or name.upper() in _WORDS:
        raise _NotPlainError
    return name


def _number(written: str) -> Number:
    """Up to fifteen digits tell every float from every other, so that a whole float was written as a whole number."""
    if len(written) > 15:
        raise _NotPlainError
    if "." not in written:
        return int(written)
    value = float(written)
    return int(value) if value.is_integer() else value
