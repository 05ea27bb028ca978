"""Content-based publish/subscribe for things that move.

    import godwit

    wanted = godwit.parse("kind = 'reading' AND pm25 > 150")
    index = godwit.Index()

Names are imported when they are first used, so that `import godwit` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from godwit.client.client import connect as connect
    from godwit.events import Event as Event
    from godwit.events import Place as Place
    from godwit.filters.filters import Filter as Filter
    from godwit.filters.filters import FilterSet as FilterSet
    from godwit.filters.text import parse as parse
    from godwit.tables.matching.index import Index as Index

__version__ = "0.1.0"

_HOME = {
    "Event": "godwit.events",
    "Filter": "godwit.filters.filters",
    "FilterSet": "godwit.filters.filters",
    "Index": "godwit.tables.matching.index",
    "Place": "godwit.events",
    "connect": "godwit.client.client",
    "parse": "godwit.filters.text",
}

__all__ = ["Event", "Filter", "FilterSet", "Index", "Place", "__version__", "connect", "parse"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'godwit' has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
