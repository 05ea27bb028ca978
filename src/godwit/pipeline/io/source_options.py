"""What a source of godwit's can be told, checked, and the archives that it names."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from godwit.filters.errors import FilterError
from godwit.net.address import Address, AddressError
from godwit.net.archive.client import RemoteArchive
from godwit.net.archive.log import Archive, ArchiveError, FolderArchive, wish
from godwit.pipeline.errors import PipelineError

PLAIN, SECURE = "godwit://", "godwits://"
EVENTS, TRACES, RECORDS = "events", "traces", "records"
"""What a source tells. Records are measurements one by one, where a source has several in an event."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options, checked."""

    places: tuple[str, ...]
    kind: str = EVENTS
    condition: str = ""
    topics: str = ""
    rows_max: int | None = None
    from_latest: bool = False
    fail_on_loss: bool = True
    user: str | None = None
    password: str | None = None
    authority: str | None = None


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs may ask of a live source; empty texts ask for everything."""

    filter: str = ""
    topics: str = ""
    events_per_batch: int | None = None

    def options(self) -> dict[str, str]:
        told = {"filter": self.filter, "topics": self.topics, "maxEventsPerBatch": self.events_per_batch or ""}
        return {name: str(value) for name, value in told.items() if value}


EVERYTHING = Live()


def is_live(path: str) -> bool:
    return path.startswith((PLAIN, SECURE))


def asked(options: Mapping[str, str]) -> Asked:
    """The options in their types; `PipelineError` names the one that is wrong."""
    told = {name.lower(): value for name, value in options.items()}
    places = tuple(place.strip().rstrip("/") for place in told.get("path", "").split(",") if place.strip())
    if not places:
        raise PipelineError(f"path: name a folder, or {PLAIN}host:port of a broker's archive.listen; or several")
    found = Asked(
        places=places,
        kind=_one_of(told, "kind", EVENTS, TRACES),
        condition=told.get("filter", ""),
        topics=told.get("topics", ""),
        rows_max=_count(told, "maxEventsPerBatch"),
        from_latest=_one_of(told, "startingOffsets", "earliest", "latest") == "latest",
        fail_on_loss=_one_of(told, "failOnDataLoss", "true", "false") == "true",
        user=told.get("user", os.environ.get("GODWIT_USER")),
        password=told.get("password", os.environ.get("GODWIT_PASSWORD")),
        authority=told.get("authority"),
    )
    _check(found)
    return found


def _check(found: Asked) -> None:
    for place in found.places:
        archive_at(place, found)
    if found.kind != EVENTS and (found.condition or found.topics):
        raise PipelineError(f"filter: {found.kind} have no attributes; only events can be filtered")
    try:
        wish(found.condition, found.topics)
    except FilterError as error:
        raise PipelineError(f"filter: {error}") from None
    except ArchiveError as error:
        raise PipelineError(f"topics: {error}") from None


def _one_of(told: Mapping[str, str], name: str, default: str, *others: str) -> str:
    value = told.get(name.lower(), default).lower()
    if value not in (default, *others):
        raise PipelineError(f"{name}: {value!r}; right would be {' or '.join(sorted({default, *others}))}")
    return value


def _count(told: Mapping[str, str], name: str) -> int | None:
    value = told.get(name.lower())
    if value is None:
        return None
    if not value.isascii() or not value.isdecimal() or int(value) < 1:
        raise PipelineError(f"{name}: {value!r}; right would be a number from 1")
    return int(value)


@lru_cache(maxsize=64)
def archive_at(place: str, asked: Asked) -> Archive:
    """Remembered, since a folder is looked through again and again."""
    if not is_live(place):
        if "://" in place:
            raise PipelineError(f"path: {place}: right would be {PLAIN}host:port, or a folder of this machine")
        if not Path(place).is_dir():
            raise PipelineError(f"path: {place}: there is no such folder")
        return FolderArchive(Path(place), asked.kind)
    secure, where = place.startswith(SECURE), place.partition("://")[2]
    try:
        address = Address.parse(where, port=0)
    except AddressError as error:
        raise PipelineError(f"path: {error}") from None
    if not address.port:
        raise PipelineError(f"path: {place}: names no port; right would be that of the broker's archive.listen")
    tls = ssl.create_default_context(cafile=asked.authority) if secure else None
    return RemoteArchive(address, asked.kind, user=asked.user, password=asked.password, tls=tls)
