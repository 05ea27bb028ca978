"""Until when a certificate is good, read from its file; standard library only."""

from __future__ import annotations

import calendar
import ssl
import time
from pathlib import Path

SEQUENCE, VERSION, UTC_TIME, GENERAL_TIME = 0x30, 0xA0, 0x17, 0x18


def expiry_of(path: Path) -> float:
    """Seconds since 1970; `ValueError` where the file is no certificate, `OSError` where it cannot be read."""
    text = path.read_text("ascii", errors="ignore")
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    if begin not in text or end not in text:
        raise ValueError(f"{path} is no certificate in PEM")
    first = begin + text.partition(begin)[2].partition(end)[0] + end
    try:
        return _expiry(ssl.PEM_cert_to_DER_cert(first))
    except IndexError:
        raise ValueError(f"{path} is no certificate") from None


def _expiry(der: bytes) -> float:
    """RFC 5280, 4.1: version, serial number, algorithm and issuer stand before the validity."""
    _, body, _ = _element(der, 0)
    _, body, _ = _element(der, body)
    at, left = body, 3
    while left:
        kind, _, after = _element(der, at)
        left -= kind != VERSION
        at = after
    _, validity, _ = _element(der, at)
    _, _, second = _element(der, validity)
    kind, begin, end = _element(der, second)
    return _time(kind, der[begin:end].decode("ascii"))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Its kind, where its content begins, and where it ends."""
    size, begin = der[at + 1], at + 2
    if size >= 0x80:
        count = size & 0x7F
        size, begin = int.from_bytes(der[begin : begin + count], "big"), begin + count
    if begin + size > len(der):
        raise IndexError("cut off")
    return der[at], begin, begin + size


def _time(kind: int, text: str) -> float:
    if kind == UTC_TIME:
        text = ("19" if int(text[:2]) >= 50 else "20") + text
    elif kind != GENERAL_TIME:
        raise ValueError(f"a time of kind {kind:#x}")
    return float(calendar.timegm(time.strptime(text, "%Y%m%d%H%M%SZ")))
