"""Objects with a context profile, and collections of them that keep themselves up to date.

    async with godwit.connect("127.0.0.1:1883", client="ann") as client:
        library = Library(client, "ann")
        await library.add("gig.jpg", picture, {"type": "photo", "location": "Helsinki", "description": "rock"})
        photos = await library.collection("type = 'photo' AND location = 'Helsinki'")
        async for update in photos:
            print(update.sign, update.description.uri)

A description is a retained publication under `objects/OWNER/NAME`; its content is another one, under the hash of it.
So brokers do the rest: they match descriptions and queries, number what changes, tell the newest only, and forget what
has expired. Only the owner can change an object where the users file grants `objects/OWNER/#` and `contents/OWNER/#` to
nobody else; a query must be covered by what its user may see.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote, unquote

import msgspec

from godwit.client.client import Client
from godwit.client.query import Change, Query
from godwit.errors import GodwitError
from godwit.events import Value

OBJECTS, CONTENTS = "objects", "contents"
CONTENT_BYTES_MAX = 900_000
"""What fits into one packet of a broker with its usual limits."""


class CollectionError(GodwitError):
    """Something that a library cannot do; the text says what would be right."""


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """An object without its content."""

    uri: str
    """`OWNER/NAME`: no other object has it."""
    owner: str
    name: str
    sha256: str
    size: int
    attributes: Mapping[str, Value] = {}
    profile: str = ""
    """The subspace of contexts in which it is of interest; empty: its attributes are a point."""


class Update(msgspec.Struct, frozen=True):
    """What has changed of a collection."""

    sign: str
    """`+` it has come, `~` it has changed, `-` it is gone."""
    uri: str
    number: int
    """Of the query that told it; each is used once."""
    description: Description | None
    because: str = ""


class Library:
    """What one owner does: objects are its own, collections are of everybody's."""

    def __init__(self, client: Client, owner: str) -> None:
        if not owner or "/" in owner:
            raise CollectionError(f"owner {owner!r}: not empty, and without a slash")
        self.client = client
        self.owner = owner

    async def add(
        self,
        name: str,
        content: bytes,
        attributes: Mapping[str, Value] | None = None,
        *,
        profile: str = "",
        lasts_s: int | None = None,
    ) -> Description:
        """The object is there, or is another from now on; after `lasts_s` it is not, unless it is added again."""
        if len(content) > CONTENT_BYTES_MAX:
            raise CollectionError(f"{name}: {len(content):,} bytes; at most {CONTENT_BYTES_MAX:,}")
        sha256 = hashlib.sha256(content).hexdigest()
        told: dict[str, Value] = {"name": name, "owner": self.owner, "sha256": sha256, "size": len(content)}
        more = {key: value for key, value in (attributes or {}).items() if key not in told}
        topic = f"{CONTENTS}/{self.owner}/{sha256}"
        await self.client.publish(topic=topic, payload=content or b"\0", retain=True, expiry_s=lasts_s)
        await self.client.publish(
            {**more, **told}, topic=_topic(self.owner, name), retain=True, expiry_s=lasts_s, profile=profile
        )
        return Description(
            uri=f"{self.owner}/{name}",
            owner=self.owner,
            name=name,
            sha256=sha256,
            size=len(content),
            attributes=more,
            profile=profile,
        )

    async def remove(self, description: Description) -> None:
        """It is gone, for everybody."""
        if description.owner != self.owner:
            raise CollectionError(f"{description.uri}: only {description.owner} may remove it")
        await self.client.publish(topic=_topic(self.owner, description.name), payload=b"", retain=True)
        await self.client.publish(topic=f"{CONTENTS}/{self.owner}/{description.sha256}", payload=b"", retain=True)

    async def get(self, condition: str = "") -> list[Description]:
        """What matches now, asked once."""
        query = await self.client.query(condition, topics=f"{OBJECTS}/+/+")
        found = [described(change) for change in (await query.now()).values()]
        await query.stop()
        return sorted((one for one in found if one is not None), key=lambda one: one.uri)

    async def content(self, description: Description) -> bytes:
        """What is in it; `CollectionError` where that is gone."""
        topic = f"{CONTENTS}/{description.owner}/{description.sha256}"
        query = await self.client.query(topics=topic)
        found = (await query.now()).get(topic)
        await query.stop()
        if found is None:
            raise CollectionError(f"{description.uri}: its content is gone, or not here yet")
        content = found.payload if description.size else b""
        if hashlib.sha256(content).hexdigest() != description.sha256:
            raise CollectionError(f"{description.uri}: its content is not what it was described to be")
        return content

    async def collection(self, *conditions: str, cover: bool = False) -> Collection:
        """All that meets one of the conditions, from now on."""
        made = Collection(self, cover=cover)
        for condition in conditions:
            await made.add(condition)
        return made


class Collection:
    """What its queries gather. `members` is as of the last update that was read, of all queries together."""

    def __init__(self, library: Library, *, cover: bool = False) -> None:
        self.library = library
        self.cover = cover
        self.members: dict[str, Description] = {}
        self._queries: dict[str, Query] = {}
        self._found: dict[str, dict[str, Description]] = {}
        """By query: it may be that one finds what another does not any longer."""

    async def add(self, condition: str) -> None:
        """One more query; what it finds now is a member at once."""
        if condition in self._queries:
            return
        query = await self.library.client.query(condition, topics=f"{OBJECTS}/+/+", cover=self.cover)
        self._queries[condition], self._found[condition] = query, {}
        for change in (await query.now()).values():
            self._take(condition, change)

    async def remove(self, condition: str) -> None:
        """That query gathers no more."""
        query = self._queries.pop(condition, None)
        if query is not None:
            await query.stop()
            for uri in self._found.pop(condition):
                self._settle(uri)

    async def refresh(self) -> list[Update]:
        """All updates that have come by now, without waiting."""
        updates = []
        for condition, query in list(self._queries.items()):
            while query.is_waiting:
                updates.append(self._take(condition, await anext(query)))
        return [update for update in updates if update is not None]

    async def __aiter__(self) -> AsyncIterator[Update]:
        """Updates of a collection with one query, as they come."""
        if len(self._queries) != 1:
            raise CollectionError("several queries: use refresh()")
        ((condition, query),) = self._queries.items()
        async for change in query:
            update = self._take(condition, change)
            if update is not None:
                yield update

    def _take(self, condition: str, change: Change) -> Update | None:
        uri = _uri(change.topic)
        description = described(change)
        if description is None:
            self._found[condition].pop(uri, None)
        else:
            self._found[condition][uri] = description
        before, now = self._settle(uri)
        if before == now:
            return None
        sign = "-" if now is None else "+" if before is None else "~"
        return Update(sign, uri, change.number, now, change.because)

    def _settle(self, uri: str) -> tuple[Description | None, Description | None]:
        before = self.members.pop(uri, None)
        now = next((found[uri] for found in self._found.values() if uri in found), None)
        if now is not None:
            self.members[uri] = now
        return before, now


def described(change: Change) -> Description | None:
    """None where it is gone, or is no description."""
    told = dict(change.attributes)
    owner, name, sha256, size = (told.pop(key, None) for key in ("owner", "name", "sha256", "size"))
    if change.sign == "-" or not isinstance(sha256, str) or not isinstance(size, int):
        return None
    if _topic(str(owner), str(name)) != change.topic:
        return None  # somebody describes what is another one's
    profile = str(told.pop("profile", ""))
    attributes = {key: value for key, value in told.items() if not key.startswith("topic")}
    return Description(
        uri=f"{owner}/{name}",
        owner=str(owner),
        name=str(name),
        sha256=sha256,
        size=size,
        attributes=attributes,
        profile=profile,
    )


def _topic(owner: str, name: str) -> str:
    return f"{OBJECTS}/{owner}/{quote(name, safe='')}"


def _uri(topic: str) -> str:
    _, owner, name = topic.split("/", 2)
    return f"{owner}/{unquote(name)}"
