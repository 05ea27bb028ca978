"""Times as people write them: `-2h`, `2026-11-17T08:00:00Z`, or seconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
RIGHT = "right would be a time as -2h, -90s or -1d, 2026-11-17T08:00:00Z, or seconds since 1970"

_BACK = re.compile(r"-(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII)


def moment(text: str, now_s: float) -> float:
    """Seconds since 1970; `ValueError` says what would be right. A time without a zone is UTC."""
    text = text.strip()
    back = _BACK.fullmatch(text.lower())
    if back is not None and back[2] in UNITS:
        return now_s - float(back[1]) * UNITS[back[2]]
    try:
        found = _calendar(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is no time; {RIGHT}") from None
    if found > now_s + 1:
        raise ValueError(f"{text[:40]!r} is not over yet; {RIGHT}")
    return found


def _calendar(text: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
