"""Who did what to this broker: a line of JSON for each action, beside its disk and in its log."""

from __future__ import annotations

import logging
import os
from collections import deque
from pathlib import Path

import msgspec

from godwit.net.admin.rows import AuditRow

log = logging.getLogger("godwit.audit")

FILE = "audit.jsonl"
SHOWN_MAX = 500
FILE_BYTES_MAX = 8 * 1024 * 1024
"""A longer file becomes `audit.jsonl.1`, and the one before it is forgotten."""


class AuditLog:
    """Only ever added to. It is written before the action, and its result after."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._rows: deque[AuditRow] = deque(maxlen=SHOWN_MAX)
        self._rows.extend(_read(self.path))

    def add(self, row: AuditRow) -> None:
        """`OSError` where it cannot be written: then the action must not be done."""
        if self.path.exists() and self.path.stat().st_size > FILE_BYTES_MAX:
            self.path.replace(self.path.with_name(f"{FILE}.1"))
        number = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(number, "ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")
        self._rows.append(row)
        log.info(
            "%s %s by %r from %s: %s",
            row.action,
            row.target or "this broker",
            row.user or "anybody",
            row.address,
            row.result,
            extra={"user": row.user, "address": row.address, "action": row.action, "target": row.target},
        )

    def last(self, most: int = SHOWN_MAX) -> list[AuditRow]:
        """The newest first."""
        return list(reversed(self._rows))[:most]


def _read(path: Path) -> list[AuditRow]:
    """A line that was cut off by a crash is left out."""
    found: list[AuditRow] = []
    if not path.exists():
        return found
    for line in path.read_bytes().splitlines()[-SHOWN_MAX:]:
        try:
            found.append(msgspec.json.decode(line, type=AuditRow))
        except msgspec.DecodeError:
            continue
    return found
