"""A photo library that fills itself, on three brokers of which one is killed: `python examples/photo_library.py`.

Ann takes photos, a camera of another make does too, and Bob gathers those of concerts in Helsinki into a folder. A
display that speaks MQTT 3.1.1 counts them. Bob's broker dies with kill -9 in the middle. Every line is a thing that was
waited for; the program fails where one does not come true.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import msgspec
from stage import Stranger, brokers, tell, until  # type: ignore[import-not-found]

import godwit
from godwit.collection.folder import Folder, Report
from godwit.collection.library import Collection, Library
from godwit.events import Value

CONCERTS = (
    "type = 'photo' AND location = 'Helsinki' AND (contains(description, 'concert') OR contains(description, 'rock'))"
)
TAKEN = {
    "gig.jpg": "a concert in the park",
    "cat.jpg": "my cat",
    "encore.jpg": "the last song of the concert",
}


def context(path: Path) -> tuple[Mapping[str, Value], str]:
    return {"type": "photo", "location": "Helsinki", "description": TAKEN.get(path.name, "")}, ""


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.is_file())


async def has(folder: Folder, collection: Collection, *expected: str) -> bool:
    await folder.sync(collection)
    return names(folder.folder) == sorted(expected)


async def photo_by_camera(camera: Stranger, name: str, content: bytes, description: str) -> None:
    """What `godwit.collection` writes, by hand: a content under its hash, and a description."""
    sha256 = hashlib.sha256(content).hexdigest()
    told = {"type": "photo", "location": "Helsinki", "description": description, "owner": "camera", "name": name}
    await camera.publish(f"contents/camera/{sha256}", content, retain=True)
    described = msgspec.json.encode({**told, "sha256": sha256, "size": len(content)})
    await camera.publish(f"objects/camera/{name}", described, retain=True)


async def main() -> None:
    async with brokers("north", "east", "south") as ((north, east, south), place):
        async with (
            godwit.connect(north.address, client="ann") as ann,
            godwit.connect(east.address, south.address, client="bob") as bob,
        ):
            for who in ("ann", "bob"):
                (place / who).mkdir()
            taken = Folder(Library(ann, "ann"), place / "ann", context)
            gathered = Folder(Library(bob, "bob"), place / "bob", context)
            concerts = await gathered.library.collection(CONCERTS)
            display = Stranger(south, "display", old=True)
            display.subscribe(f"$lasting/$filter/{quote(CONCERTS, safe='')}/objects/+/+")
            for name, description in TAKEN.items():
                (place / "ann" / name).write_bytes(description.encode())
            await taken.push(Report())
            tell(f"ann has taken {', '.join(TAKEN)}")
            await until(lambda: has(gathered, concerts, "gig.jpg", "encore.jpg"), "bob has gig.jpg and encore.jpg")
            await until(lambda: len(display.heard) == 2, "the display has counted 2")
            await east.kill()
            tell("east, where bob is, is killed with kill -9")
            camera = Stranger(south, "camera")
            await photo_by_camera(camera, "park.jpg", b"\xff\xd8 park", "rock in the park")
            tell("a camera of another make has taken park.jpg at south")
            await until(
                lambda: has(gathered, concerts, "gig.jpg", "encore.jpg", "park.jpg"), "bob has park.jpg, at south"
            )
            (place / "ann" / "gig.jpg").unlink()
            await taken.push(Report())
            tell("ann has removed gig.jpg")
            await until(lambda: has(gathered, concerts, "encore.jpg", "park.jpg"), "it is gone from bob's folder")
            await until(
                lambda: [topic.split("/")[1] for topic, _ in display.heard] == ["in", "in", "in", "out"],
                "the display was told of 3 that came and 1 that went, each once",
            )
            await east.start()
            tell("east is back")
            (place / "ann" / "encore.jpg").write_bytes(b"a better print")
            await taken.push(Report())
            await until(
                lambda: _synced(gathered, concerts, place / "bob" / "encore.jpg", b"a better print"),
                "bob has the better print of encore.jpg",
            )
            numbers = [int(topic.split("/")[2]) for topic, _ in display.heard]
            assert numbers == list(range(1, len(numbers) + 1)), numbers
            for one in (display, camera):
                one.leave()
        tell("done")


async def _synced(folder: Folder, collection: Collection, path: Path, content: bytes) -> bool:
    await folder.sync(collection)
    return path.exists() and path.read_bytes() == content


if __name__ == "__main__":
    asyncio.run(main())
