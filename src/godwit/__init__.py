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
    from godwit.client.client import Client as Client
    from godwit.client.client import connect as connect
    from godwit.client.errors import ClientError as ClientError
    from godwit.client.errors import RefusedError as RefusedError
    from godwit.client.errors import TakenOverError as TakenOverError
    from godwit.client.errors import UnreachableError as UnreachableError
    from godwit.client.query import Change as Change
    from godwit.client.query import Query as Query
    from godwit.client.received import Received as Received
    from godwit.client.received import Subscription as Subscription
    from godwit.client.thread import SyncClient as SyncClient
    from godwit.client.thread import SyncSubscription as SyncSubscription
    from godwit.errors import GodwitError as GodwitError
    from godwit.events import Event as Event
    from godwit.events import EventError as EventError
    from godwit.events import Place as Place
    from godwit.filters.errors import FilterError as FilterError
    from godwit.filters.filters import Filter as Filter
    from godwit.filters.filters import FilterSet as FilterSet
    from godwit.filters.text import parse as parse
    from godwit.net.address import AddressError as AddressError
    from godwit.tables.matching.index import Index as Index

__version__ = "0.1.0"

_HOME = {
    "AddressError": "godwit.net.address",
    "Change": "godwit.client.query",
    "Client": "godwit.client.client",
    "ClientError": "godwit.client.errors",
    "Event": "godwit.events",
    "EventError": "godwit.events",
    "Filter": "godwit.filters.filters",
    "FilterError": "godwit.filters.errors",
    "FilterSet": "godwit.filters.filters",
    "GodwitError": "godwit.errors",
    "Index": "godwit.tables.matching.index",
    "Place": "godwit.events",
    "Query": "godwit.client.query",
    "Received": "godwit.client.received",
    "RefusedError": "godwit.client.errors",
    "Subscription": "godwit.client.received",
    "SyncClient": "godwit.client.thread",
    "SyncSubscription": "godwit.client.thread",
    "TakenOverError": "godwit.client.errors",
    "UnreachableError": "godwit.client.errors",
    "connect": "godwit.client.client",
    "parse": "godwit.filters.text",
}

__all__ = [
    "AddressError",
    "Client",
    "ClientError",
    "Event",
    "EventError",
    "Filter",
    "FilterError",
    "FilterSet",
    "GodwitError",
    "Index",
    "Place",
    "Received",
    "RefusedError",
    "Subscription",
    "SyncClient",
    "SyncSubscription",
    "TakenOverError",
    "UnreachableError",
    "__version__",
    "connect",
    "parse",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'godwit' has no attribute {name!r}")
    try:
        value: object = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(_advice(name, missing.name or ""), name=missing.name) from None
    globals()[name] = value
    return value


def _advice(name: str, missing: str) -> str:
    """What to install for a name that `godwit-client` alone does not have."""
    wanted = "'godwit-client[filters]'" if missing == "sqlglot" else "godwit"
    return f"godwit.{name} needs {missing}, which is not installed: pip install {wanted}"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
