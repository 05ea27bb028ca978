"""Folders in step: the photo library and the office, on three brokers of which one dies."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from tests.net.servers import cluster, port, serving
from tests.net.stations import played

import godwit
from godwit.client.client import Client, connect
from godwit.collection.folder import Folder, Report
from godwit.collection.library import Collection, CollectionError, Library
from godwit.events import Value
from godwit.net.access import hashed
from godwit.net.server import Server

WAIT_S = 60.0


def at(*ones: Server) -> list[str]:
    return [f"127.0.0.1:{port(one)}" for one in ones]


def folder(library: Library, path: Path, attributes: Mapping[str, Value]) -> Folder:
    path.mkdir(exist_ok=True)
    return Folder(library, path, lambda file: (attributes, ""))


async def gathered(collection: Collection, *uris: str) -> None:
    """Until these are its members."""
    async with asyncio.timeout(WAIT_S):
        while set(collection.members) != set(uris):
            await collection.refresh()
            await asyncio.sleep(0.01)


async def in_step(one: Folder, collection: Collection, done: str, *names: str) -> None:
    """Until a synchronisation has done this with these files."""
    found: list[str] = []
    async with asyncio.timeout(WAIT_S):
        while not set(names) <= set(found):
            report: Report = await one.sync(collection)
            found += getattr(report, done)
            await asyncio.sleep(0.01)


def publish_by_another_program(port: int, name: str, content: bytes, attributes: dict[str, Value]) -> None:
    """A camera that knows MQTT 5 and nothing of Godwit."""
    camera = paho.Client(CallbackAPIVersion.VERSION2, "camera", protocol=paho.MQTTv5)
    camera.connect("127.0.0.1", port)
    camera.loop_start()
    sha256 = hashlib.sha256(content).hexdigest()
    told = {**attributes, "owner": "camera", "name": name, "sha256": sha256, "size": len(content)}
    said = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    said.UserProperty = [("profile", "hour >= 20 AND hour < 23")]
    camera.publish(f"contents/camera/{sha256}", content, qos=1, retain=True).wait_for_publish(WAIT_S)
    camera.publish(
        f"objects/camera/{name}", msgspec.json.encode(told), qos=1, retain=True, properties=said
    ).wait_for_publish(WAIT_S)
    camera.disconnect()
    camera.loop_stop()


CONCERTS = (
    "type = 'photo' AND location = 'Helsinki' AND (contains(description, 'concert') OR contains(description, 'rock'))"
)
PHOTO: dict[str, Value] = {"type": "photo", "location": "Helsinki"}


@pytest.mark.feature("content-routing F43", "content-routing F44")
def test_a_photo_library_gathers_what_others_take_also_after_a_broker_has_died(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", "c") as (a, b, c),
            connect(*at(a), client="ann") as ann,
            connect(*at(b, c), client="bob") as bob,
        ):
            mine = folder(Library(ann, "ann"), tmp_path / "ann", PHOTO | {"description": "a rock concert"})
            (tmp_path / "ann" / "gig.jpg").write_bytes(b"\xff\xd8 gig")
            his = folder(Library(bob, "bob"), tmp_path / "bob", PHOTO)
            concerts = await his.library.collection(CONCERTS)
            late = await his.library.collection("hour = 21")
            await mine.push(Report())
            await mine.library.add("cat.jpg", b"cat", PHOTO | {"description": "my cat"})
            await gathered(concerts, "ann/gig.jpg")
            await in_step(his, concerts, "fetched", "gig.jpg")
            assert (tmp_path / "bob" / "gig.jpg").read_bytes() == b"\xff\xd8 gig"
            await b.stop()
            wild = PHOTO | {"description": "rock in the park"}
            await asyncio.to_thread(publish_by_another_program, port(c), "park.jpg", b"park", wild)
            await gathered(concerts, "ann/gig.jpg", "camera/park.jpg")
            await gathered(late, "camera/park.jpg")
            await in_step(his, concerts, "fetched", "park.jpg")
            (tmp_path / "ann" / "gig.jpg").unlink()
            await mine.push(Report())
            await gathered(concerts, "camera/park.jpg")
            await in_step(his, concerts, "deleted", "gig.jpg")
            assert sorted(one.name for one in (tmp_path / "bob").iterdir() if one.is_file()) == ["park.jpg"]

    played(scene)


@pytest.mark.feature("content-routing F44")
def test_an_office_keeps_its_calendar_in_step_and_tells_those_who_are_there(tmp_path: Path) -> None:
    """News, presence, a message to those present and on the project, calendars merged, lunch near by, and leaving."""

    async def scene() -> None:
        async with (
            cluster(tmp_path, "phone", "desk", "hall") as (phone, desk, hall),
            connect(*at(phone, desk), client="ann") as ann,
            connect(*at(desk, hall), client="bob") as bob,
            connect(*at(hall), client="secretary") as secretary,
        ):
            news = await ann.subscribe("kind = 'news'", topics="feeds/#")
            assert await _said(secretary, {"kind": "news", "text": "sun"}, "feeds/weather", news) == "sun"
            await _office(tmp_path, (phone, desk, hall), ann, bob, secretary)

    played(scene)


async def _office(
    tmp_path: Path, brokers: tuple[Server, Server, Server], ann: Client, bob: Client, secretary: Client
) -> None:
    phone, desk, _ = brokers
    present = await secretary.query("project = 'x' AND state = 'in'", topics="people/+")
    for who, client in (("ann", ann), ("bob", bob)):
        place: dict[str, Value] = {"lat": 60.0, "lon": 25.0 if who == "ann" else 25.001}
        await client.publish({"project": "x", "state": "in", **place}, topic=f"people/{who}", retain=True)
    assert sorted([(await _change(present)), (await _change(present))]) == ["+ people/ann", "+ people/bob"]
    to_ann = await ann.subscribe("to = 'x'", topics="messages")
    await ann.roam(at(desk)[0])
    await phone.stop()
    meeting: dict[str, Value] = {"to": "x", "text": "meeting in 10 minutes"}
    assert await _said(secretary, meeting, "messages", to_ann) == meeting["text"]
    plan = {"type": "calendar", "project": "x"}
    folders = {}
    for who, client in (("ann", ann), ("bob", bob)):
        folders[who] = folder(Library(client, who), tmp_path / who, plan)
    first = b'<c><e id="1">ten</e><e id="2">noon</e></c>'
    (tmp_path / "ann" / "plan.xml").write_bytes(first)
    calendars = {who: await one.library.collection("type = 'calendar'") for who, one in folders.items()}
    await folders["ann"].sync(calendars["ann"])
    await in_step(folders["bob"], calendars["bob"], "fetched", "plan.xml")
    (tmp_path / "ann" / "plan.xml").write_bytes(first.replace(b"ten", b"eleven"))
    (tmp_path / "bob" / "plan.xml").write_bytes(first.replace(b"</c>", b'<e id="3">six</e></c>'))
    await folders["ann"].push(Report())
    await in_step(folders["bob"], calendars["bob"], "merged", "plan.xml")
    both = (tmp_path / "bob" / "plan.xml").read_bytes()
    assert b'<e id="1">eleven</e>' in both
    assert b'<e id="3">six</e>' in both
    near = await ann.query("near('people/ann', 200m)", topics="people/+")
    assert await _change(near) == "+ people/bob"
    await bob.publish(topic="people/bob", payload=b"", retain=True)
    assert await _change(near) == "- people/bob"
    assert await _change(present) == "- people/bob"


async def _said(who: Client, what: dict[str, Value], topic: str, to: godwit.Subscription) -> object:
    """Said until it is heard: brokers have yet to hear that somebody wants it."""
    async with asyncio.timeout(WAIT_S):
        while True:
            await who.publish(what, topic=topic)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    return (await anext(to)).attributes["text"]


async def _change(query: godwit.Query) -> str:
    async with asyncio.timeout(WAIT_S):
        change = await anext(query)
    return f"{change.sign} {change.topic}"


@pytest.mark.feature("content-routing F43")
def test_only_the_owner_changes_an_object_and_a_query_must_be_covered(tmp_path: Path) -> None:
    secret = hashed("pass", "low")
    users = tmp_path / "users.toml"
    own = '["objects/{0}/#", "contents/{0}/#"]'
    users.write_text(
        "".join(
            f'[users.{who}]\npassword = "{secret}"\npublish = {own.format(who)}\nsubscribe = {seen}\n'
            for who, seen in (("ann", "true"), ("bob", '["objects/# WHERE type = \'photo\'", "contents/#"]'))
        )
    )

    async def scene() -> None:
        async with (
            serving(tmp_path, "a", access__users=users) as a,
            connect(*at(a), client="ann", user="ann", password="pass") as ann,
            connect(*at(a), client="bob", user="bob", password="pass") as bob,
        ):
            mine, his = Library(ann, "ann"), Library(bob, "bob")
            photo = await mine.add("a.jpg", b"1", {"type": "photo"}, lasts_s=3600)
            await mine.add("pay.txt", b"2", {"type": "letter"})
            assert [one.uri for one in await his.get("type = 'photo'")] == ["ann/a.jpg"]
            assert await his.content(photo) == b"1"
            with pytest.raises(godwit.RefusedError):
                await his.get("type = 'letter'")
            with pytest.raises(CollectionError, match="only ann"):
                await his.remove(photo)
            with pytest.raises(godwit.RefusedError):
                await bob.publish(topic="objects/ann/a.jpg", payload=b"", retain=True)
            with pytest.raises(CollectionError, match="at most"):
                await mine.add("film.mp4", bytes(10**6))
            several = await mine.collection("type = 'photo'", "type = 'letter'")
            await gathered(several, "ann/a.jpg", "ann/pay.txt")
            await several.remove("type = 'photo'")
            assert list(several.members) == ["ann/pay.txt"]
            one = await mine.collection("type = 'photo'")
            await mine.add("a.jpg", b"3", {"type": "photo"})
            async for update in one:
                assert (update.sign, update.uri) == ("~", "ann/a.jpg")
                assert update.number == 2
                break

    played(scene)
