"""A working day in a smart office, on three brokers of which one is killed: `python examples/smart_office.py`.

Ann comes from the street with news on her phone, is noticed by the fence around the office, and goes on at her desk.
Messages go to whoever is there and on the project, calendars are merged, lunch is announced to those near by. The
newsroom and the door display speak MQTT with another library. Every line is a thing that was waited for; the program
fails where one does not come true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec
from stage import Stranger, arrived, brokers, tell, until  # type: ignore[import-not-found]

import godwit
from godwit.client.received import Subscription
from godwit.collection.folder import Folder
from godwit.collection.library import Library
from godwit.events import Value
from godwit.net.processes import BrokerProcess

OFFICE, STREET, CANTEEN = (60.17, 24.94), (60.19, 24.99), (60.1701, 24.9402)
FENCE = f"within(lat, lon, {OFFICE[0]}, {OFFICE[1]}, 150m)"
PLAN = '<calendar><event id="1">ten</event><event id="2">noon</event></calendar>'


class Person:
    """One session, whatever it is used with: a phone in the street, a desktop in the office."""

    def __init__(self, client: godwit.Client, name: str, project: str) -> None:
        self.client = client
        self.name = name
        self.project = project
        self.news: list[str] = []
        self.messages: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Feeds and messages go to the same session wherever it is."""
        feeds = await self.client.subscribe("kind = 'news'", topics="feeds/#")
        told = await self.client.subscribe(f"to = '{self.project}' OR to = '{self.name}'", topics="messages")
        self._tasks = [
            asyncio.create_task(_kept(feeds, self.news)),
            asyncio.create_task(_kept(told, self.messages)),
        ]

    async def stands(self, lat: float, lon: float) -> None:
        where: dict[str, Value] = {"lat": lat, "lon": lon, "name": self.name, "project": self.project}
        await self.client.publish(where, topic=f"people/{self.name}", retain=True)

    def end(self) -> None:
        for task in self._tasks:
            task.cancel()


async def _kept(subscription: Subscription, texts: list[str]) -> None:
    while (event := await subscription.next()) is not None:
        texts.append(str(event.attributes["text"]))
        event.ack()


async def porter(client: godwit.Client) -> None:
    """Sets everybody's presence by a fence: nobody has to say that it has come or gone."""
    async for change in await client.query(FENCE, topics="people/+", quiet=True):
        name, state = change.topic.partition("/")[2], "out" if change.sign == "-" else "in"
        await client.publish({"name": name, "state": state}, topic=f"presence/{name}", retain=True)


async def main() -> None:
    async with brokers("street", "office", "hall") as ((street, office, hall), place):
        async with (
            godwit.connect(street.address, office.address, client="ann") as ann_client,
            godwit.connect(office.address, client="bob") as bob_client,
            godwit.connect(street.address, client="carol") as carol_client,
            godwit.connect(hall.address, office.address, client="secretary") as secretary,
            godwit.connect(office.address, client="porter") as porter_client,
        ):
            people = [
                Person(ann_client, "ann", "x"),
                Person(bob_client, "bob", "x"),
                Person(carol_client, "carol", "x"),
            ]
            porter_task = asyncio.create_task(porter(porter_client))
            newsroom, display = Stranger(hall, "newsroom", old=True), Stranger(office, "display", old=True)
            present = quote("state = 'in'", safe="")
            display.subscribe(f"$lasting/$filter/{present}/presence/+")
            for one in people:
                await one.begin()
            await _morning(people, office, newsroom, display)
            await _meeting(people, secretary, (street, office, hall))
            await _calendars(people, secretary, place)
            await _lunch_and_home(people, display)
            porter_task.cancel()
            for one in people:
                one.end()
            for guest in (newsroom, display):
                guest.leave()
        tell("done")


async def _morning(people: list[Person], office: BrokerProcess, newsroom: Stranger, display: Stranger) -> None:
    ann, bob, carol = people
    await ann.client.publish({"windows": "mail, plan"}, topic="config/ann", retain=True)
    for one, where in ((ann, STREET), (bob, OFFICE), (carol, STREET)):
        await one.stands(*where)
    await until(lambda: _in(display) == {"bob"}, "the display at the door shows bob")

    async def heard() -> bool:
        await newsroom.publish("feeds/weather", msgspec.json.encode({"kind": "news", "text": "sun"}))
        await asyncio.sleep(0.5)
        return "sun" in ann.news

    await until(heard, "ann reads the news on her phone: sun")
    await ann.stands(*OFFICE)
    await until(lambda: _in(display) == {"ann", "bob"}, "ann is in: the fence around the office has noticed it")
    roaming = asyncio.create_task(ann.client.roam(office.address, away_s=1.0))
    await asyncio.sleep(0.3)
    await newsroom.publish("feeds/stocks", msgspec.json.encode({"kind": "news", "text": "up"}))
    with suppress(godwit.UnreachableError):
        await roaming
    await arrived(ann.client, office)
    config = await (await ann.client.query(topics="config/ann")).now()
    tell(f"ann's desktop starts with {config['config/ann'].attributes['windows']}")
    await until(lambda: ann.news.count("up") == 1, "what was said between phone and desktop is there, once: up")


async def _meeting(people: list[Person], secretary: godwit.Client, stage: Sequence[BrokerProcess]) -> None:
    ann, bob, _ = people
    street, office, hall = stage
    there = await secretary.query("state = 'in'", topics="presence/+")
    await until(lambda: _knows(there, {"presence/ann", "presence/bob"}), "the secretary sees who is in")
    await hall.kill()
    tell("hall, where the secretary is, is killed with kill -9")
    for topic in sorted(await there.now()):
        said = {"to": topic.partition("/")[2], "text": "meeting in 10 minutes"}
        await secretary.publish(said, topic="messages")
    await until(
        lambda: all("meeting in 10 minutes" in one.messages for one in (ann, bob)),
        "the secretary, at office by now, has told ann and bob of the meeting",
    )
    assert not people[2].messages, "carol is not in"
    await ann.client.publish({"name": "ann", "state": "meeting"}, topic="presence/ann", retain=True)
    await arrived(ann.client, street)
    await until(lambda: _knows(there, {"presence/bob"}), "ann is in the meeting, with the session on her phone again")
    await arrived(ann.client, office)
    await ann.client.publish({"name": "ann", "state": "in"}, topic="presence/ann", retain=True)
    await hall.start()
    tell("hall is back")


async def _calendars(people: list[Person], secretary: godwit.Client, place: Path) -> None:
    """The secretary's word makes both desktops synchronise; what both have changed is merged by the tree of the XML."""
    ann, bob, _ = people
    folders, calendars = {}, {}
    for one in (ann, bob):
        (place / one.name).mkdir()
        library = Library(one.client, one.name)
        folders[one.name] = Folder(library, place / one.name, lambda _: ({"type": "calendar"}, ""))
        calendars[one.name] = await library.collection("type = 'calendar'")
    files = {name: place / name / "plan.xml" for name in folders}
    files["ann"].write_text(PLAN)

    async def synchronise() -> None:
        for name, folder in folders.items():
            await folder.sync(calendars[name])

    async def until_both(what: str, *texts: str) -> None:
        async def is_so() -> bool:
            await synchronise()
            return all(file.exists() and all(text in file.read_text() for text in texts) for file in files.values())

        await until(is_so, what)

    await until_both("both desktops have the calendar", "ten")
    files["ann"].write_text(PLAN.replace("ten", "eleven"))
    files["bob"].write_text(PLAN.replace("</calendar>", '<event id="3">six</event></calendar>'))
    await secretary.publish({"to": "x", "text": "synchronise"}, topic="messages")
    await until(
        lambda: all("synchronise" in one.messages for one in (ann, bob)), "the secretary's word is at both desktops"
    )
    await until_both("both have ann's eleven and bob's six: the calendars are merged", "eleven", "six")


async def _lunch_and_home(people: list[Person], display: Stranger) -> None:
    ann, bob, carol = people
    await bob.stands(*CANTEEN)
    near = await ann.client.query("near('people/ann', 200m)", topics="people/+")
    await until(lambda: _knows(near, {"people/bob"}), "near ann is bob, and carol is not")
    for topic in sorted(await near.now()):
        await ann.client.publish({"to": topic.partition("/")[2], "text": "lunch?"}, topic="messages")
    await until(lambda: "lunch?" in bob.messages, "bob is asked to lunch")
    await carol.client.publish({"to": "carol", "text": "still here?"}, topic="messages")
    await until(lambda: "still here?" in carol.messages, "carol hears what is for her")
    assert "lunch?" not in carol.messages, "carol is in the street"
    await ann.stands(*STREET)
    await until(lambda: _in(display) == {"bob"}, "ann has left: the display shows bob alone")


async def _knows(query: godwit.Query, topics: set[str]) -> bool:
    return set(await query.now()) == topics


def _in(display: Stranger) -> set[str]:
    """Whom the display shows: what came in and did not go out, in order."""
    shown: set[str] = set()
    for topic, _ in display.heard:
        _, change, _, _, _, name = topic.split("/", 5)
        (shown.discard if change == "out" else shown.add)(name)
    return shown


if __name__ == "__main__":
    asyncio.run(main())
