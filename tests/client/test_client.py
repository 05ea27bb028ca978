"""`godwit.connect()` against whole brokers: what is awaited comes, over whichever of them can be reached."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import aiomqtt
import pytest
from tests.net.servers import cluster, parts, port, server, serving, wanted_by
from tests.net.stations import played, until

from godwit.client.client import Client, connect
from godwit.client.errors import ClientError
from godwit.client.received import Received, Subscription
from godwit.events import EventError, Place
from godwit.net.access import hashed
from godwit.net.server import Server
from godwit.protocols.broker.api import Opening, Outlet


def at(one: Server) -> str:
    return f"127.0.0.1:{port(one)}"


async def next_of(subscription: Subscription) -> Received:
    """The next event, not acknowledged."""
    async with asyncio.timeout(60):
        event = await subscription.next()
    assert event is not None, "the subscription has ended"
    return event


async def taken(subscription: Subscription, count: int, of: str = "n") -> list[object]:
    found: list[object] = []
    for _ in range(count):
        event = await next_of(subscription)
        event.ack()
        found.append(event.attributes[of])
    return found


async def comes_nothing(client: Client, subscription: Subscription) -> None:
    """Whatever was on its way is there when something published later is."""
    mark = await client.subscribe(topics="mark")
    await client.publish({"mark": True}, topic="mark")
    await taken(mark, 1, "mark")
    await mark.stop()
    assert not subscription._waiting


def waiting(one: Server, client: str) -> int:
    """How many deliveries the client has not taken."""
    assert one.parts is not None
    session = one.parts.broker.sessions[client]
    return len(session.queue.flying) + len(session.queue.waiting)


def test_publications_keep_their_order_where_there_is_no_room_for_all(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), inflight_max=3) as publisher, connect(at(a)) as client:
            subscription = await client.subscribe("n >= 0")
            async with asyncio.TaskGroup() as group:
                for number in range(400):
                    group.create_task(publisher.publish({"n": number}))
                    await asyncio.sleep(0)
            assert await taken(subscription, 400) == list(range(400))

    played(scene)


def test_a_subscription_gets_what_its_condition_describes_and_nothing_else(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            dirty = await client.subscribe("kind = 'reading' AND pm25 > 150", topics="air/#")
            for number, pm25 in enumerate((10.5, 151.0, 150.0, 300.25)):
                await client.publish({"kind": "reading", "pm25": pm25, "n": number}, topic="air/beijing")
            await client.publish({"kind": "reading", "pm25": 999.0, "n": 9}, topic="water/beijing")
            assert await taken(dirty, 2) == [1, 3]
            await comes_nothing(client, dirty)

    played(scene)


def test_attributes_travel_beside_any_payload_and_places_are_attributes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            near = await client.subscribe("within(lat, lon, 39.9, 116.4, 1000) AND camera = 7")
            await client.publish({"camera": 7}, payload=b"\xff\xd8 picture", place=Place(39.9, 116.401))
            await client.publish({"camera": 7}, payload=b"far away", place=Place(40.9, 116.4))
            event = await next_of(near)
            assert event.payload == b"\xff\xd8 picture"
            assert event.attributes["camera"] == 7
            await comes_nothing(client, near)

    played(scene)


def test_clients_of_others_can_read_what_it_publishes(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            serving(tmp_path, "a") as a,
            aiomqtt.Client("127.0.0.1", port(a)) as other,
            connect(at(a)) as client,
        ):
            await other.subscribe("air/#", qos=1)
            await client.publish({"pm25": 12.5}, topic="air/1", qos=1)
            async with asyncio.timeout(60):
                message = await anext(aiter(other.messages))
            assert message.payload == b'{"pm25":12.5}'

    played(scene)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_every_qos_keeps_the_order(tmp_path: Path, qos: int) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            all_of_it = await client.subscribe(qos=qos)
            await asyncio.gather(*(client.publish({"n": number}, qos=qos) for number in range(50)))
            assert await taken(all_of_it, 50) == list(range(50))

    played(scene)


def test_what_is_retained_comes_to_whoever_subscribes_later(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            await client.publish({"n": 1}, topic="last", retain=True)
            assert await taken(await client.subscribe(topics="last"), 1) == [1]

    played(scene)


def test_a_broker_that_cannot_be_reached_is_passed_over(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "gone") as gone:
            away = at(gone)
        async with serving(tmp_path, "a") as a, connect(away, at(a)) as client:
            assert str(client.broker) == at(a)
            await client.publish({"n": 1})

    played(scene)


def test_a_client_waits_for_the_first_broker_to_appear(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            where = port(a)
        async with asyncio.TaskGroup() as group:
            client = connect(f"127.0.0.1:{where}", retry_max_s=0.2)
            entering = group.create_task(client.__aenter__())
            await asyncio.sleep(0.2)
            async with serving(tmp_path, "a", listen__mqtt=[f"127.0.0.1:{where}"]):
                await entering
                await client.publish({"n": 1})
                await client.close()

    played(scene)


def test_what_is_awaited_goes_on_where_the_client_is_now(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b") as (a, b),
            connect(at(a), at(b), client="c", retry_max_s=0.2) as client,
            connect(at(b), client="speaker") as speaker,
        ):
            numbers = await client.subscribe("n >= 0")
            await wanted_by(a, [b])
            await speaker.publish({"n": 0})
            assert await taken(numbers, 1) == [0]
            await client.roam(at(b))
            assert str(client.broker) == at(b)
            await speaker.publish({"n": 1})
            assert await taken(numbers, 1) == [1]
            await a.stop()
            await client.publish({"n": 2})
            await speaker.publish({"n": 3})
            assert await taken(numbers, 2) == [2, 3]

    played(scene)


def test_a_broker_that_restarts_finds_its_clients_as_they_were(tmp_path: Path) -> None:
    async def scene() -> None:
        first = server(tmp_path, "a")
        await first.start()
        where = port(first)
        async with connect(f"127.0.0.1:{where}", client="c", retry_max_s=0.2) as client:
            numbers = await client.subscribe("n >= 0")
            await client.publish({"n": 0})
            assert await taken(numbers, 1) == [0]
            await first.stop()
            publishing = [asyncio.create_task(client.publish({"n": number})) for number in range(1, 20)]
            async with serving(tmp_path, "a", listen__mqtt=[f"127.0.0.1:{where}"]):
                assert await taken(numbers, 19) == list(range(1, 20))
                await asyncio.gather(*publishing)
                await comes_nothing(client, numbers)

    played(scene)


def test_whoever_roams_under_load_gets_everything_once_and_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", "c") as (a, b, c),
            connect(at(a), client="walker") as walker,
            connect(at(b), client="speaker") as speaker,
        ):
            numbers = await walker.subscribe("n >= 0")
            await wanted_by(a, [b, c])
            async with asyncio.TaskGroup() as group:
                group.create_task(spoken(speaker, 120))
                taking = group.create_task(taken(numbers, 120))
                for there in (c, b, a, c, a, b):
                    await walker.roam(at(there), away_s=0.02)
                    assert str(walker.broker) == at(there)
            assert taking.result() == list(range(120))
            await comes_nothing(walker, numbers)

    played(scene)


@pytest.mark.feature("proactive-handoff F13", "proactive-handoff F17", "proactive-handoff F24")
def test_whoever_goes_where_many_go_finds_a_copy_of_its_session_there(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", "c") as (a, b, c),
            connect(at(a), client="walker") as walker,
            connect(at(b), client="speaker") as speaker,
        ):
            numbers = await walker.subscribe("n >= 0")
            await wanted_by(a, [b, c])
            async with asyncio.TaskGroup() as group:
                group.create_task(spoken(speaker, 150, pause_s=0.02))
                taking = group.create_task(taken(numbers, 150))
                for there in (c, a, c, a, c):
                    await walker.roam(at(there), away_s=0.5)
            assert taking.result() == list(range(150))
            await comes_nothing(walker, numbers)
            assert walker._token
            used = [one.parts.broker.counts.copies_used for one in (a, c) if one.parts is not None]
            assert sum(used) > 0

    played(scene)


async def spoken(speaker: Client, count: int, pause_s: float = 0.0) -> None:
    for number in range(count):
        await speaker.publish({"n": number})
        await asyncio.sleep(pause_s)


@pytest.mark.parametrize(
    ("condition", "said"),
    [("pm25 >", "filter"), ("within(lat, lon, 1, 2)", "within"), ("a = 1 OR", "filter")],
)
def test_a_bad_condition_is_refused_with_its_reason_and_everything_else_works(
    tmp_path: Path, condition: str, said: str
) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            good = await client.subscribe("n >= 0")
            with pytest.raises(ClientError, match=said):
                await client.subscribe(condition)
            await client.publish({"n": 1})
            assert await taken(good, 1) == [1]

    played(scene)


def test_a_wrong_password_is_refused_in_words_and_not_tried_for_ever(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[users.ann]\npassword = "{hashed("right")}"\n')

    async def scene() -> None:
        async with serving(tmp_path, "a", access__users=users) as a:
            with pytest.raises(ClientError, match=rf"{at(a)} refuses us: .*password"):
                await connect(at(a), user="ann", password="wrong").__aenter__()
            async with connect(at(a), user="ann", password="right") as client:
                await client.publish({"n": 1})

    played(scene)


def test_what_a_grant_does_not_cover_is_refused_and_the_client_stays(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[users.ann]\npassword = "{hashed("pw")}"\npublish = ["air/#"]\nsubscribe = ["air/#"]\n')

    async def scene() -> None:
        async with (
            serving(tmp_path, "a", access__users=users) as a,
            connect(at(a), user="ann", password="pw") as client,
        ):
            with pytest.raises(ClientError, match="not covered"):
                await client.subscribe(topics="water/#")
            with pytest.raises(ClientError):
                await client.publish({"n": 0}, topic="water/1")
            air = await client.subscribe(topics="air/#")
            await client.publish({"n": 1}, topic="air/1")
            assert await taken(air, 1) == [1]

    played(scene)


@pytest.mark.parametrize("attributes", [{"pm25": float("nan")}, {"": 1}, {"n": 2**70}])
def test_an_event_that_cannot_be_is_refused_before_it_leaves(tmp_path: Path, attributes: dict[str, float]) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a)) as client:
            with pytest.raises(EventError):
                await client.publish(attributes)
            await client.publish({"n": 1})

    played(scene)


def test_a_program_that_starts_again_gets_what_came_while_it_was_away(tmp_path: Path) -> None:
    """Deliveries come before the program has said again what it wants, and wait for that."""

    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), client="speaker") as speaker:
            async with connect(at(a), client="listener") as listener:
                await listener.subscribe("n >= 0")
            for number in range(3):
                await speaker.publish({"n": number})
            async with connect(at(a), client="listener") as listener:
                await until(lambda: listener._early)
                again = await listener.subscribe("n >= 0")
                await speaker.publish({"n": 3})
                assert await taken(again, 4) == [0, 1, 2, 3]

    played(scene)


def test_an_event_that_was_not_acknowledged_comes_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), client="speaker") as speaker:
            async with connect(at(a), client="listener") as listener:
                numbers = await listener.subscribe("n >= 0")
                for number in range(3):
                    await speaker.publish({"n": number})
                (await next_of(numbers)).ack()
                await next_of(numbers)
                await until(lambda: waiting(a, "listener") == 2)
            async with connect(at(a), client="listener") as listener:
                assert await taken(await listener.subscribe("n >= 0"), 2) == [1, 2]

    played(scene)


@pytest.mark.parametrize(("left_by", "again"), [("break", [2]), ("an exception", [1, 2])])
def test_the_event_in_hand_is_taken_when_the_block_is_left_in_order_and_comes_again_after_an_exception(
    tmp_path: Path, left_by: str, again: list[int]
) -> None:
    async def listened(a: Server, speaker: Client) -> None:
        async with connect(at(a), client="listener") as listener:
            numbers = await listener.subscribe("n >= 0")
            for number in range(3):
                await speaker.publish({"n": number})
            async with asyncio.timeout(60):
                async for event in numbers:
                    if event.attributes["n"] == 1:
                        break
            # The loop has asked for the second event, so that the first is taken.
            await until(lambda: waiting(a, "listener") == 2)
            if left_by == "an exception":
                raise LookupError(left_by)

    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), client="speaker") as speaker:
            with contextlib.suppress(LookupError):
                await listened(a, speaker)
            async with connect(at(a), client="listener") as listener:
                assert await taken(await listener.subscribe("n >= 0"), len(again)) == again

    played(scene)


def test_an_event_for_two_subscriptions_is_done_with_when_both_have_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), client="c") as client:
            low, all_of_it = await client.subscribe("n < 10"), await client.subscribe("n >= 0")
            await client.publish({"n": 1})
            first, second = await next_of(low), await next_of(all_of_it)
            assert first.attributes["n"] == second.attributes["n"] == 1
            first.one_has_it()
            assert waiting(a, "c") == 1
            second.one_has_it()
            await until(lambda: waiting(a, "c") == 0)

    played(scene)


def test_a_stopped_subscription_gets_nothing_more_and_a_closed_client_ends_its_loops(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            client = connect(at(a))
            async with client:
                stopped, lasting = await client.subscribe("n < 10"), await client.subscribe("n >= 0")
                await stopped.stop()
                await client.publish({"n": 1})
                assert await taken(lasting, 1) == [1]
                assert await stopped.next() is None
            assert await lasting.next() is None
            with pytest.raises(ClientError, match="closed"):
                await client.publish({"n": 2}, qos=0)

    played(scene)


def test_a_client_that_moves_names_the_broker_where_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with cluster(tmp_path, "a", "b") as (a, b), connect(at(a), client="van") as van:
            openings: list[Opening] = []
            opened = parts(b).broker.open

            def noted(opening: Opening, outlet: Outlet) -> None:
                openings.append(opening)
                opened(opening, outlet)

            parts(b).broker.open = noted  # type: ignore[method-assign]
            await van.roam(at(b))
            assert [opening.previous for opening in openings] == ["a"]

    played(scene)
