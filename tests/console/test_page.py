"""The console in a real browser: every view, actions with their confirmation, the login, and names that are attacks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.console.eyes import CHROMIUM, Eyes, chromium
from tests.console.scene import EVIL, Scene
from tests.net.servers import parts

import godwit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = [
    pytest.mark.skipif(not CHROMIUM, reason="Debian's chromium is not here"),
    pytest.mark.xdist_group("console"),
]

VIEWS = {
    "cluster": "delivered a second",
    "clients": "van-0",
    "client/roamer": "Last moves",
    "map": "things",
    "problems": "Refused, since the start",
    "bench": "Why did a client not get an event?",
    "backlogs": "sleeper",
    "handoffs": "Who goes where",
    "data": "Last values",
    "users": "May somebody do that?",
    "wire": "Received",
    "archive": "No broker keeps an archive",
    "structures": "Covering tests",
    "context": "changes to be told",
    "audit": "Audit log",
    "reference": "/v1/clients",
}


MOVING = {
    "map": "() => Number(document.querySelector('canvas').dataset.things) >= 60",
    "data": "() => document.querySelector('#main').innerText.includes('taxi')",
}
"""Views that show what is published meanwhile, and when they do."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    one = Scene(tmp_path_factory.mktemp("console"))
    try:
        one.call(one.populate())
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture
def eyes(scene: Scene, browser: Browser) -> Iterator[Eyes]:
    one = Eyes(browser, scene.url)
    yield one
    assert one.hosts <= {"127.0.0.1"}
    assert one.complaints == []
    assert one.page.evaluate("window.hacked") is None
    one.context.close()


@pytest.mark.parametrize(
    ("look", "views"),
    [
        pytest.param("light", tuple(VIEWS), id="light"),
        pytest.param("phone", tuple(VIEWS), id="phone"),
        # The map alone chooses its colours by itself; all other views have those of the style sheet.
        pytest.param("dark", ("cluster", "map"), id="dark"),
        pytest.param("dark", tuple(VIEWS), id="dark in every view", marks=pytest.mark.explore),
    ],
)
def test_every_view_shows_what_it_is_for_and_asks_no_other_host(
    scene: Scene, browser: Browser, look: str, views: tuple[str, ...]
) -> None:
    more: dict[str, Any] = {"color_scheme": "dark" if look == "dark" else "light"}
    if look == "phone":
        more["viewport"] = {"width": 390, "height": 800}
    eyes = Eyes(browser, scene.url, **more)
    for view in views:
        eyes.see(view, VIEWS[view])
        if view in MOVING:
            eyes.page.wait_for_timeout(1_000)  # brokers look at publications once somebody watches
            scene.call(scene.drive(60, 1, 0.0), 120)
            eyes.page.wait_for_function(MOVING[view])
        eyes.shoot(f"{look}-{view.replace('/', '-')}")
        width = eyes.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, f"{view} is wider than the screen"
        assert eyes.page.locator("h1").count() == 1
    assert eyes.hosts == {"127.0.0.1"}
    assert eyes.complaints == []
    assert eyes.page.evaluate("window.hacked") is None
    eyes.context.close()


def test_names_topics_payloads_and_filters_that_are_markup_stay_text(scene: Scene, eyes: Eyes) -> None:
    scene.call(hostile(scene))
    eyes.see("clients", EVIL)
    eyes.page.get_by_text(EVIL).first.click()
    eyes.page.get_by_text("<script>window.hacked=1</script>").first.wait_for()
    eyes.see("backlogs", "sleeper")
    eyes.page.get_by_role("link", name="sleeper").click()
    eyes.page.get_by_text(f"air/{EVIL}").first.wait_for()
    eyes.see("data", EVIL)
    eyes.see("bench", EVIL)
    eyes.see("problems", EVIL)
    assert eyes.page.evaluate("document.querySelectorAll('#main img, #main script').length") == 0


async def hostile(scene: Scene) -> None:
    """Publishes and is refused, under a name that is markup, until the scene ends."""

    async def publishing() -> None:
        async with godwit.connect(scene.at("north"), client=f"{EVIL}2") as hub:
            with contextlib.suppress(godwit.ClientError):
                await hub.subscribe(f"note = {EVIL}", topics="air/#")
            for _ in range(120):
                await hub.publish({"note": EVIL, EVIL: 1}, topic=f"air/{EVIL}")
                await asyncio.sleep(0.5)

    scene.background = asyncio.create_task(publishing())


def test_a_page_carries_no_inline_script_and_forbids_it(scene: Scene, eyes: Eyes) -> None:
    answer = eyes.page.goto(scene.url)
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert eyes.page.evaluate("document.querySelectorAll('script:not([src])').length") == 0
    eyes.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.hacked=1'}))"
    )
    assert eyes.page.evaluate("window.hacked") is None
    eyes.complaints.clear()  # the browser says that it refused it


def test_an_operator_disconnects_a_client_after_a_confirmation_and_it_is_audited(scene: Scene, eyes: Eyes) -> None:
    before = parts(scene.server("south")).broker.counts.connected
    eyes.see("client/van-5", "Where it is")
    eyes.page.get_by_role("button", name="Disconnect").click()
    eyes.page.get_by_role("button", name="Cancel").click()
    assert parts(scene.server("south")).broker.counts.connected == before
    eyes.page.get_by_role("button", name="Disconnect").click()
    eyes.page.locator("dialog").get_by_role("button", name="Disconnect").click()
    eyes.page.locator(".toast").get_by_text("disconnected; its session stays").wait_for()
    eyes.see("audit", "disconnected; its session stays")
    eyes.see("backlogs", "sleeper")
    eyes.page.get_by_role("row", name="sleeper").get_by_role("button", name="Purge").click()
    eyes.page.locator("dialog").get_by_role("button", name="Purge").click()
    eyes.page.locator(".toast").get_by_text("that waited were dropped").wait_for()


def test_a_broker_is_cordoned_and_opened_again(scene: Scene, eyes: Eyes) -> None:
    eyes.see("cluster", "delivered a second")
    card = eyes.page.get_by_role("region", name="east")
    card.get_by_role("button", name="Cordon").click()
    eyes.page.locator("dialog").get_by_role("button", name="Cordon").click()
    card.get_by_text("cordoned").wait_for()
    assert parts(scene.server("east")).balance.cordoned
    card.get_by_role("button", name="Uncordon").click()
    card.get_by_text("well").wait_for()
    assert not parts(scene.server("east")).balance.cordoned


def test_the_bench_explains_a_filter_finds_who_wants_an_event_and_says_why_somebody_did_not(eyes: Eyes) -> None:
    eyes.see("bench/roamer", "Try a filter")
    page = eyes.page
    page.get_by_label("Filter", exact=True).fill("pm25 > 150 AND pm25 < 200")
    page.get_by_label("Event, a JSON object").fill('{"pm25": 20}')
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("the event does not match").wait_for()
    page.get_by_label("Event, a JSON object").fill('{"pm25": 200}')
    page.get_by_label("Topic of the event").fill("air/x")
    page.get_by_role("button", name="Who would get the event?").click()
    page.get_by_role("link", name="roamer").wait_for()
    # Copies of its session at other brokers are none of it.
    assert page.get_by_role("link", name="sleeper").count() == 1
    page.get_by_label("Topic", exact=True).fill("air/x")
    page.get_by_label("Payload").fill('{"pm25": 20}')
    page.get_by_role("button", name="Ask why").click()
    page.get_by_text("fails at pm25 > 150: pm25 is 20").first.wait_for()
    eyes.shoot("why")


def test_what_was_recorded_answers_why_an_event_of_the_list_was_not_delivered(scene: Scene, eyes: Eyes) -> None:
    eyes.see("bench/roamer", "Why did a client not get an event?")
    page = eyes.page
    page.get_by_role("button", name="Record for ten minutes").click()
    page.get_by_text("3 of 3 brokers record what happens.").wait_for()
    for pm25 in (21, 222):
        scene.call(said(scene, pm25))
    for pm25, sentence in ((21, "pm25 is 21"), (222, "roamer did get it.")):
        item = page.locator(".feed .item").filter(has_text=f'"pm25":{pm25}').first
        item.get_by_role("button").click()
        page.locator(".answer").get_by_text(sentence).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Nothing is recorded any more.").wait_for()


async def said(scene: Scene, pm25: int) -> None:
    async with godwit.connect(scene.at("north"), client="station") as station:
        await station.publish({"pm25": pm25}, topic="air/recorded")


def test_a_browser_publishes_and_subscribes_over_a_websocket(eyes: Eyes) -> None:
    eyes.see("wire", "Received")
    page = eyes.page
    page.wait_for_function("() => document.querySelector('#main select').value.startsWith('ws')")
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_text("Connected to").wait_for()
    page.get_by_label("Topics").fill("page/#")
    page.get_by_label("Condition").fill("n > 5")
    page.get_by_role("button", name="Subscribe").click()
    page.get_by_text("Subscribed to page/#").wait_for()
    for number in (3, 7):
        page.get_by_label("Topic", exact=True).fill("page/x")
        page.get_by_label("Payload").fill(f'{{"n": {number}}}')
        page.get_by_role("button", name="Publish", exact=True).click()
    page.locator(".feed").get_by_text('{"n": 7}').wait_for()
    assert page.locator(".feed .item").count() == 1
    page.get_by_label("Condition").fill("n >")
    page.get_by_role("button", name="Subscribe").click()
    page.get_by_text("Refused: ").wait_for()


def test_the_map_draws_thousands_of_moving_points_and_says_what_a_frame_costs(scene: Scene, eyes: Eyes) -> None:
    eyes.page.goto(f"{scene.url}/#/map")
    canvas = eyes.page.locator("canvas")
    canvas.wait_for()
    eyes.page.wait_for_timeout(1200)
    scene.call(scene.drive(3_000, 1, 0.0), 120)
    eyes.page.wait_for_function("() => Number(document.querySelector('canvas').dataset.things) >= 2000")
    eyes.page.wait_for_timeout(1500)
    eyes.shoot("map-thousands")
    # How many frames a second that makes is measured by benchmarks/console.py.
    assert float(canvas.get_attribute("data-cost") or 0) > 0
    canvas.focus()
    eyes.page.keyboard.press("+")
    eyes.page.keyboard.press("ArrowLeft")


def test_the_keyboard_leads_everywhere(eyes: Eyes) -> None:
    eyes.see("cluster", "delivered a second")
    eyes.page.keyboard.press("6")
    eyes.page.get_by_role("heading", name="Backlogs").wait_for()
    eyes.page.keyboard.press("/")
    eyes.page.wait_for_function("() => document.activeElement.type === 'search'")
    eyes.page.keyboard.type("roam")
    eyes.page.get_by_role("link", name="roamer").wait_for()
    eyes.page.wait_for_function(
        "document.querySelectorAll('#main tbody tr').length === 1 || document.activeElement.value === 'roam'"
    )


def test_may_somebody_is_answered_by_every_broker(eyes: Eyes) -> None:
    eyes.see("users", "May somebody do that?")
    eyes.page.get_by_label("User").fill("bob")
    eyes.page.get_by_label("Topic, or topic filter").fill("air/#")
    eyes.page.get_by_role("button", name="May it?").click()
    eyes.page.get_by_text("no grant covers it").first.wait_for()
    eyes.page.get_by_label("Condition of a subscription").fill("pm25 > 150")
    eyes.page.get_by_role("button", name="May it?").click()
    eyes.page.get_by_text("a grant covers it").first.wait_for()


def test_a_broker_that_dies_is_named_and_the_others_stay_in_view(tmp_path: Path, browser: Browser) -> None:
    one = Scene(tmp_path)
    try:
        eyes = Eyes(browser, one.url)
        eyes.see("cluster", "delivered a second")
        eyes.page.get_by_role("region", name="south").wait_for()
        one.call(one.server("south").stop())
        eyes.page.get_by_role("alert").get_by_text("south does not answer").wait_for()
        assert eyes.page.get_by_role("region", name="north").count() == 1
        assert "1 of 3 in trouble" in eyes.page.locator("#health").inner_text()
        eyes.shoot("broker-down")
        eyes.page.keyboard.press("2")
        eyes.page.get_by_text("No clients").wait_for()
        eyes.page.get_by_text("south: ").first.wait_for()
        eyes.context.close()
    finally:
        one.stop()


def test_where_brokers_want_a_login_a_viewer_sees_no_actions(tmp_path: Path, browser: Browser) -> None:
    closed = Scene(tmp_path, role="none")
    try:
        eyes = Eyes(browser, closed.url)
        page = eyes.page
        page.goto(closed.url)
        page.get_by_label("User").fill("bob")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("wrong user name or password").wait_for()
        eyes.shoot("login")
        page.wait_for_timeout(700)
        page.get_by_label("Password").fill("pass")
        page.get_by_role("button", name="Log in").click()
        page.get_by_text("delivered a second").wait_for()
        assert page.get_by_role("button", name="Cordon").count() == 0
        refused = page.evaluate(
            "fetch('/api/one/north/actions/reload', {method: 'POST', headers: {'Content-Type': 'application/json'},"
            " body: '{}'}).then((answer) => answer.status)"
        )
        assert refused == 403
        (cookie,) = eyes.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Password").wait_for()
        assert page.evaluate("fetch('/api/all/clients').then((answer) => answer.status)") == 401
        eyes.context.close()
    finally:
        closed.stop()


@pytest.mark.feature("content-routing F47")
def test_structures_and_contexts_follow_the_running_brokers(scene: Scene, eyes: Eyes) -> None:
    """A question is asked and a thing moves while somebody looks; nothing of the page is loaded again."""

    async def ask() -> None:
        asking = await scene.enter(godwit.connect(scene.at("north"), client="asks"))
        await asking.publish({"kind": "room"}, topic="rooms/7", retain=True, profile="start >= 9 AND start < 11")
        await asking.query("kind = 'room' AND start >= 10", topics="rooms/+")

    async def clear() -> None:
        async with godwit.connect(scene.at("south")) as hub:
            await hub.publish(topic="rooms/7", payload=b"", retain=True)

    eyes.see("structures", "Covering tests")
    eyes.page.locator("ul.forest code").first.wait_for()
    assert "differ" not in eyes.page.locator("#main").inner_text()
    eyes.page.get_by_label("Structure").select_option("FP")
    eyes.page.locator("h3", has_text="filters poset").first.wait_for()
    eyes.page.locator("body").press("c")
    eyes.page.locator("h1", has_text="Context").wait_for()
    scene.call(ask())
    eyes.page.locator("#main td", has_text="rooms/7").first.wait_for()
    eyes.page.get_by_text("Forest of questions").first.wait_for()
    assert "differs" not in eyes.page.locator("#main").inner_text()
    scene.call(clear())
    eyes.page.locator("#main td", has_text="rooms/7").first.wait_for(state="detached")
