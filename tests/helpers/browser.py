"""A real Chromium for tests, and a page that remembers what went wrong in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # Chromium's own does not run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WITHOUT = "DBCARE_TESTS_WITHOUT_BROWSER"  # set to skip where there can be none
PATIENCE = 60_000.0  # milliseconds: the machine may be busy, and only a failure takes that long
SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"

expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The machine's own; its absence is a failure unless the environment says that it is meant."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if os.environ.get(WITHOUT):
            pytest.skip(f"{WITHOUT} is set")
        pytest.fail("Chromium must be installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """A page in a browser of its own, whose console must stay empty and which must load from one host only."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=address, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.troubles: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.host = urlsplit(address).netloc

    def forgive(self, known: str) -> None:
        """Notes of the browser on what a test does on purpose."""
        left = [trouble for trouble in self.troubles if known not in trouble]
        assert len(left) < len(self.troubles), self.troubles
        self.troubles = left

    def keep(self, name: str) -> None:
        """A picture of the whole page, for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        self.context.close()
        assert self.troubles == [], self.troubles
        assert self.hosts == {self.host}, self.hosts


@contextmanager
def watched(browser: Browser, address: str, **options: Any) -> Iterator[Watched]:
    """Closed in the end, with its checks."""
    window = Watched(browser, address, **options)
    try:
        yield window
    except BaseException:
        window.keep("failed")
        window.context.close()
        raise
    window.close()
