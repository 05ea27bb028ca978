"""A browser that looks at the console, and notes what it should not have to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium") or ""
OUT = Path(__file__).resolve().parents[2] / "out" / "console"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT_MS = 30_000


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    import pytest

    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


class Eyes:
    """A page that notes where it went and what it complained of."""

    def __init__(self, browser: Browser, url: str, **more: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 820}, **more})
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.hosts: set[str] = set()
        self.complaints: list[str] = []
        self.url = url
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2].partition(":")[0]))
        self.page.on("websocket", lambda socket: self.hosts.add(socket.url.split("/")[2].partition(":")[0]))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    def see(self, view: str, text: str) -> None:
        """Returns when the view has what the brokers have to say."""
        self.page.goto(f"{self.url}/#/{view}")
        self.page.locator("#main").get_by_text(text).first.wait_for()
        self.page.locator("#main > .asking").wait_for(state="detached")

    def confirm(self, word: str) -> None:
        self.page.locator("dialog").get_by_role("button", name=word).click()

    def told(self, text: str) -> None:
        """Wait until the page says so in a corner."""
        self.page.locator(".toast").get_by_text(text).first.wait_for()

    def shoot(self, name: str) -> None:
        OUT.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(OUT / f"{name}.png"), full_page=True)
