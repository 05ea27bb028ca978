"""What a broker writes into its log: one line for each event worth one, as text or as JSON, and never a flood.

A call of the logger may say things for programs beside its words, `extra={"client": "van-7"}`: JSON has them by name.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TextIO

import msgspec

TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
USUAL = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "more"))
"""What every record has; anything else was said by whoever made it."""


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Sparing(logging.Filter):
    """Lets so many records of one kind through in each period; the next one that comes through says how many did not.

    A kind is what the logger was called with before its arguments were filled in.
    """

    def __init__(self, most: int = 20, period_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most = most
        self._period_s = period_s
        self._clock = clock
        self._kinds: dict[tuple[str, str], list[float]] = {}
        """By kind: when its period began, how many came in it, and how many were held back since the last one told."""

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        kind = self._kinds.setdefault((record.name, str(record.msg)), [now, 0, 0])
        if now - kind[0] >= self._period_s:
            kind[:2] = now, 0
        kind[1] += 1
        if kind[1] > self._most:
            kind[2] += 1
            return False
        record.more, kind[2] = int(kind[2]), 0
        return True


class Lines(logging.Formatter):
    """Text, one line a record where nothing went wrong."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        more = getattr(record, "more", 0)
        # What clients call themselves must not begin another line.
        record.message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        return super().formatMessage(record) + (f" ({more} more like this were not told)" if more else "")


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {name: value for name, value in vars(record).items() if name not in USUAL}
        if more := getattr(record, "more", 0):
            told["not_told"] = more
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told, enc_hook=str).decode()


def begin(form: Form, level: Level, stream: TextIO | None = None) -> None:
    """Write the log to stderr, or to `stream`, from now on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form is Form.JSON else Lines())
    handler.addFilter(Sparing())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=stream is not None)
    for library in ("asyncio", "websockets"):  # they tell of each connection in words of their own
        logging.getLogger(library).setLevel(logging.WARNING)
