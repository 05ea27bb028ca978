"""What people type and do not mean: found in a condition or a message, and told beside doing as they say."""

from __future__ import annotations

import re

import msgspec

QUOTED = re.compile(r'(?:=|<>|!=)\s*"([^"]+)"')


def of_condition(condition: str) -> list[str]:
    """`kind = "taxi"` compares two attributes, as SQL has it, which hardly anybody means."""
    return [
        f"\"{name}\" in double quotes is an attribute of that name; a text stands in single quotes: '{name}'"
        for name in QUOTED.findall(condition)
    ]


def of_message(topic: str, payload: bytes, *, said: bool) -> list[str]:
    """A message that was forgotten (`said` is False), or that looks like JSON and is none."""
    if not said:
        return [f"an empty message; right would be: godwit pub {topic} '{{\"pm25\": 163.5}}'"]
    if payload.lstrip()[:1] != b"{":
        return []
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return [f"this looks like JSON and is none, so that no filter sees into it: {error}"]
    return []
