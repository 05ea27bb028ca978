"""Sensor Measurement Lists (RFC 8428): packs in JSON or CBOR to resolved records, and what a filter sees of them.

A pack is a list of records. Base fields (`bn`, `bt`, `bu`, `bv`, `bs`) hold from their record to the end of the pack;
a record is resolved when they have been applied to it and its time is no longer relative (4.6).
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import cbor2
import msgspec

from godwit.events import NAME_MAX, Value

JSON_TYPES = ("application/senml+json", "application/sensml+json")
CBOR_TYPES = ("application/senml+cbor", "application/sensml+cbor")

VERSION = 10
RELATIVE_BELOW_S = 2.0**28
"""A time below this is counted from now, in seconds (4.5.3)."""

_CBOR_LABELS: dict[object, str] = {
    -1: "bver",
    -2: "bn",
    -3: "bt",
    -4: "bu",
    -5: "bv",
    -6: "bs",
    **dict(enumerate(("n", "u", "v", "vs", "vb", "s", "t", "ut", "vd"))),
}
_NUMBERS, _TEXTS = ("bt", "bv", "bs", "v", "s", "t", "ut"), ("bn", "bu", "n", "u", "vs")
_VALUES = ("v", "vs", "vb", "vd")
_NAME_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-:./_")


class SenmlError(ValueError):
    """No pack that this version of SenML allows: the message names the record, from 1, and what would be right."""


class SenmlRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement, resolved."""

    name: str
    base_name: str = ""
    """The part of `name` that was the pack's base: often the device."""
    time_s: float
    """Since 1970."""
    unit: str | None = None
    value: float | str | bool | bytes | None = None
    """None where there is a sum only."""
    sum: float | None = None
    update_s: float | None = None

    @property
    def local_name(self) -> str:
        return self.name[len(self.base_name) :]


def decoded(payload: bytes, now_s: float, content_type: str | None = None) -> list[SenmlRecord]:
    """The records of a pack, in order of time; `SenmlError` where it is none.

    Without a content type the first bytes decide between JSON and CBOR.
    """
    is_cbor = content_type in CBOR_TYPES or (content_type not in JSON_TYPES and _begins_as_cbor(payload))
    try:
        pack = cbor2.loads(payload) if is_cbor else msgspec.json.decode(payload)
    except (cbor2.CBORError, msgspec.DecodeError, ValueError, ArithmeticError, RecursionError, TypeError) as error:
        raise SenmlError(f"no {'CBOR' if is_cbor else 'JSON'}: {error}") from None
    return resolved(pack, now_s)


def looks_like(payload: bytes, content_type: str | None) -> bool:
    """Whether it is worth to decode: declared as a pack, or by its first bytes a list of maps."""
    if content_type is not None and content_type.startswith("application/sen"):
        return content_type in JSON_TYPES or content_type in CBOR_TYPES
    return _begins_as_cbor(payload) or payload[:16].translate(None, b" \t\r\n")[:2] == b"[{"


def _begins_as_cbor(payload: bytes) -> bool:
    """An array of at most 23 maps, or one of unknown length (RFC 8949, 3.1)."""
    return len(payload) > 2 and (0x81 <= payload[0] <= 0x97 or payload[0] == 0x9F) and 0xA1 <= payload[1] <= 0xBF


def resolved(pack: object, now_s: float) -> list[SenmlRecord]:
    """Base values applied and times absolute, oldest first; `SenmlError` at the first record that is wrong."""
    if not isinstance(pack, list) or not pack:
        raise SenmlError("a pack is a list of one record or more")
    base = dict[str, Any]()
    found = list[SenmlRecord]()
    for number, fields in enumerate(pack, 1):
        record = _checked(fields, number)
        base |= {label: value for label, value in record.items() if label in ("bn", "bt", "bu", "bv", "bs")}
        found.append(_resolved(record, base, number, now_s))
    return sorted(found, key=lambda record: record.time_s)


def _checked(fields: object, number: int) -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        raise SenmlError(f"record {number}: is no map of labels")
    record = dict[str, Any]()
    for key, value in fields.items():
        label = _CBOR_LABELS.get(key) if type(key) is int else key
        if not isinstance(label, str):
            raise SenmlError(f"record {number}: {key!r} is no label")
        if label.endswith("_"):
            raise SenmlError(f"record {number}: {label!r} must be understood, and is not")
        record[label] = _typed(label, value, number)
    if record.get("bver", VERSION) > VERSION:
        raise SenmlError(f"record {number}: version {record['bver']}; the newest known is {VERSION}")
    return record


def _typed(label: str, value: Any, number: int) -> Any:
    """The value in its label's type. Decimal fractions of CBOR are numbers too (section 6)."""
    if label in _NUMBERS:
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            try:
                finite = float(value)
            except OverflowError:
                finite = math.inf
            if math.isfinite(finite):
                return finite
        raise SenmlError(f"record {number}: {label!r} is {value!r:.40}; it must be a finite number")
    wanted = str if label in _TEXTS else {"vb": bool, "bver": int}.get(label)
    if wanted is not None and type(value) is not wanted:
        raise SenmlError(f"record {number}: {label!r} is {value!r:.40}; it must be {wanted.__name__}")
    return _data(value, number) if label == "vd" else value


def _data(value: object, number: int) -> bytes:
    """Bytes in CBOR; in JSON base64 with the URL-safe alphabet and no padding (section 5)."""
    if isinstance(value, bytes):
        return value
    try:
        if isinstance(value, str):
            return b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except ValueError:
        pass
    raise SenmlError(f"record {number}: 'vd' is {value!r:.40}; it must be bytes, in JSON as URL-safe base64")


def _resolved(record: Mapping[str, Any], base: Mapping[str, Any], number: int, now_s: float) -> SenmlRecord:
    name = base.get("bn", "") + record.get("n", "")
    if not name or not name[0].isascii() or not name[0].isalnum() or not _NAME_LETTERS.issuperset(name):
        raise SenmlError(
            f"record {number}: name {name!r}; it must be letters, digits and -:./_ after a letter or digit"
        )
    time_s = base.get("bt", 0.0) + record.get("t", 0.0)
    return SenmlRecord(
        name=name,
        base_name=base.get("bn", ""),
        time_s=time_s if time_s >= RELATIVE_BELOW_S else now_s + time_s,
        unit=record.get("u", base.get("bu")),
        value=_value(record, base, number),
        sum=base.get("bs", 0.0) + record.get("s", 0.0) if "s" in record or "bs" in base else None,
        update_s=record.get("ut"),
    )


def _value(record: Mapping[str, Any], base: Mapping[str, Any], number: int) -> float | str | bool | bytes | None:
    there = [label for label in _VALUES if label in record]
    if len(there) > 1:
        raise SenmlError(f"record {number}: has {' and '.join(there)}; one value is allowed")
    if there and there != ["v"]:
        value: str | bool | bytes = record[there[0]]
        return value
    if there or "bv" in base:
        return float(base.get("bv", 0.0) + record.get("v", 0.0))
    if "s" in record or "bs" in base:
        return None
    raise SenmlError(f"record {number}: has neither a value ({', '.join(_VALUES)}) nor a sum")


def seen(records: Sequence[SenmlRecord]) -> Iterator[tuple[str, Value]]:
    """What a filter sees of a pack; of several records of one name, the newest.

    The value under the record's name, and under its name without the base; beside either, `.u` and `.sum`. Values in
    the units lat and lon are the attributes `lat` and `lon`. A pack of one record also has `n`, `u` and `v`.
    """
    for record in records:
        for name in {record.name, record.local_name} - {""}:
            yield from _named(name, record)
        if record.unit in ("lat", "lon") and isinstance(record.value, float):
            yield record.unit, record.value
        if record.base_name:
            yield "bn", record.base_name
    if len(records) == 1:
        yield "n", records[0].name
        yield from (
            (key, value) for key, value in (("u", records[0].unit), ("v", _plain(records[0]))) if value is not None
        )


def _named(name: str, record: SenmlRecord) -> Iterator[tuple[str, Value]]:
    for end, value in (("", _plain(record)), (".u", record.unit), (".sum", record.sum)):
        if value is not None and len(name) + len(end) <= NAME_MAX:
            yield name + end, value


def _plain(record: SenmlRecord) -> Value | None:
    """Bytes are carried, never looked at."""
    return None if isinstance(record.value, bytes) else record.value
