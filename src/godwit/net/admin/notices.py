"""What went wrong lately, from the broker's own log: refusals, take-overs, drops, silent links. Bounded, in memory."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from godwit.net.admin.rows import Notice

NOTICES_MAX = 500
TOGETHER_S = 10.0
"""The same from the same client within so long is one notice with a count."""
TEXT_MAX = 300
ELSEWHERE = ("godwit.client", "godwit.audit")
"""What clients in the same process say is not the broker's, and actions have a log of their own."""

KINDS = (
    ("subscription of", "refused"),
    ("refused", "refused"),
    ("taken over", "taken over"),
    ("dropped", "dropped"),
    ("for client", "dropped"),
    ("link with", "link"),
    ("no link with", "link"),
    ("%s has been silent", "link"),
    ("closed", "closed"),
    ("users and grants", "users"),
)
"""By how the words begin with which the log was called; what is none of these and no warning is not noticed."""


def kind_of(record: logging.LogRecord) -> str:
    """Empty: nothing that operators must know."""
    said = str(record.msg)
    for words, kind in KINDS:
        if said.startswith(words):
            return kind
    return "trouble" if record.levelno >= logging.WARNING else ""


class Notices(logging.Handler):
    """Put it at the logger `godwit`. `since(serial)` tells what is newer."""

    def __init__(self, most: int = NOTICES_MAX) -> None:
        super().__init__(logging.INFO)
        self.serial = 0
        self._kept: deque[Notice] = deque(maxlen=most)

    def emit(self, record: logging.LogRecord) -> None:
        kind = kind_of(record)
        if not kind or record.name.startswith(ELSEWHERE):
            return
        text, client = record.getMessage()[:TEXT_MAX], str(getattr(record, "client", ""))[:TEXT_MAX]
        count = self._counted(kind, text, record.created)
        self.serial += 1
        self._kept.append(
            Notice(
                serial=self.serial,
                time=record.created,
                kind=kind,
                level=record.levelname.lower(),
                text=text,
                client=client,
                count=count,
            )
        )

    def _counted(self, kind: str, text: str, now: float) -> int:
        """How often it was said, this time included; the earlier notice goes."""
        for place in range(len(self._kept) - 1, max(-1, len(self._kept) - 20), -1):
            one = self._kept[place]
            if one.kind == kind and one.text == text and now - one.time < TOGETHER_S:
                del self._kept[place]
                return one.count + 1
        return 1

    def since(self, serial: int) -> list[Notice]:
        """The newest first."""
        return [one for one in reversed(self._kept) if one.serial > serial]


def noticing(notices: Notices) -> Callable[[], None]:
    """Begin; the answer ends it."""
    logger = logging.getLogger("godwit")
    logger.addHandler(notices)
    return lambda: logger.removeHandler(notices)
