"""A folder in step with a collection: own files are published, those of others come, and changes are merged.

Each owner has an object of its own for a file, which says what of others is in it. What others say is merged into ours
against what of ours they know, or what they said the time before, so that everybody ends with the same. Where two
contradict each other ours stays, and theirs is put beside it as NAME.OWNER. The last time is kept in `.godwit`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from godwit.collection.library import Collection, CollectionError, Description, Library
from godwit.collection.merging import merged
from godwit.events import Value

STATE = ".godwit"
BASED_ON = "based_on"
"""The attribute of an object by which its owner says what of others is in it."""
EARLIER_MAX = 10

Context = Callable[[Path], tuple[Mapping[str, Value], str]]
"""Attributes and profile of a file."""


class Known(msgspec.Struct):
    """What is known of a file from the last time."""

    published: str = ""
    """The hash of what we published of it."""
    theirs: dict[str, str] = msgspec.field(default_factory=dict)
    """By owner: the hash of what was taken from it."""
    own: bool = False
    """It was here before anybody else had it."""
    earlier: list[str] = msgspec.field(default_factory=list)
    """What we published of it before, the newest first."""


class Report(msgspec.Struct):
    """What one synchronisation did, by the names of files."""

    published: list[str] = msgspec.field(default_factory=list)
    fetched: list[str] = msgspec.field(default_factory=list)
    merged: list[str] = msgspec.field(default_factory=list)
    conflicts: list[str] = msgspec.field(default_factory=list)
    deleted: list[str] = msgspec.field(default_factory=list)


class Folder:
    """`push` publishes what is here, `pull` takes what others have; `sync` does both, in the order that converges."""

    def __init__(self, library: Library, folder: Path, context: Context) -> None:
        self.library = library
        self.folder = folder
        self.context = context
        self._state = folder / STATE
        self._bases = self._state / "bases"
        self._bases.mkdir(parents=True, exist_ok=True)
        self._file = self._state / "known.json"
        self._known: dict[str, Known] = {}
        if self._file.exists():
            self._known = msgspec.json.decode(self._file.read_bytes(), type=dict[str, Known])

    async def sync(self, collection: Collection) -> Report:
        report = Report()
        await collection.refresh()
        await self.pull(collection, report)
        await self.push(report)
        return report

    async def push(self, report: Report) -> None:
        """All files of ours, and those of others that we changed, as far as they are not what we published last. What
        we published and is here no longer is gone for everybody."""
        for path in sorted(self.folder.iterdir()):
            if path.is_file() and not path.name.startswith("."):
                await self._publish(path, report)
        for name, known in self._known.items():
            if known.published and not (self.folder / name).exists():
                size = len(self._base(known.published) or b"")
                uri, owner = f"{self.library.owner}/{name}", self.library.owner
                await self.library.remove(
                    Description(uri=uri, owner=owner, name=name, sha256=known.published, size=size)
                )
                known.published = ""
                report.deleted.append(name)
        self._save()

    async def _publish(self, path: Path, report: Report) -> None:
        content = path.read_bytes()
        known = self._known.setdefault(path.name, Known(own=True))
        is_anothers = not known.own and _hash(content) in known.theirs.values()
        if _hash(content) == known.published or is_anothers:
            return
        attributes, profile = self.context(path)
        if known.theirs:
            attributes = {**attributes, BASED_ON: " ".join(sorted(known.theirs.values()))}
        await self.library.add(path.name, content, attributes, profile=profile)
        known.earlier = [known.published, *known.earlier][:EARLIER_MAX] if known.published else known.earlier
        known.published = self._keep(content)
        report.published.append(path.name)

    async def pull(self, collection: Collection, report: Report) -> None:
        """What others have and we do not know yet. What is gone everywhere else and was never ours goes here too."""
        others = [one for one in collection.members.values() if one.owner != self.library.owner]
        for description in sorted(others, key=lambda one: one.uri):
            if "/" not in description.name and not description.name.startswith("."):
                await self._take(description, report)
        self._let_go({(one.name, one.owner) for one in others}, report)
        self._save()

    async def _take(self, description: Description, report: Report) -> None:
        name, owner = description.name, description.owner
        path, known = self.folder / name, self._known.setdefault(name, Known())
        last = known.theirs.get(owner)
        if last == description.sha256:
            return
        try:
            theirs = await self.library.content(description)
        except CollectionError:
            return  # the next time
        known.theirs[owner] = self._keep(theirs)
        ours = path.read_bytes() if path.exists() else None
        if ours is None:
            path.write_bytes(theirs)
            report.fetched.append(name)
            return
        base = self._common(known, description) or (self._base(last) if last else None)
        both = merged(name, base, ours, theirs) if base is not None else ours if ours == theirs else None
        if both is None:
            (self.folder / f"{name}.{owner}").write_bytes(theirs)
            report.conflicts.append(name)
        elif both != ours:
            path.write_bytes(both)
            report.merged.append(name)

    def _common(self, known: Known, description: Description) -> bytes | None:
        """What of ours is in theirs already, where they say so: what was changed since then on both sides is merged."""
        hashes = str(description.attributes.get(BASED_ON, "")).split()
        ours = [known.published, *known.earlier]
        return next((found for one in ours if one in hashes and (found := self._base(one)) is not None), None)

    def _let_go(self, present: set[tuple[str, str]], report: Report) -> None:
        for name, known in self._known.items():
            gone = [owner for owner in known.theirs if (name, owner) not in present]
            path = self.folder / name
            for owner in gone:
                is_theirs = path.exists() and _hash(path.read_bytes()) == known.theirs[owner]
                del known.theirs[owner]
                if is_theirs and not known.theirs and not known.own:
                    path.unlink()
                    report.deleted.append(name)

    def _keep(self, content: bytes) -> str:
        name = _hash(content)
        (self._bases / name).write_bytes(content)
        return name

    def _base(self, name: str) -> bytes | None:
        path = self._bases / name
        return path.read_bytes() if path.exists() else None

    def _save(self) -> None:
        self._file.write_bytes(msgspec.json.encode(self._known))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
