"""A real Chromium for tests, and a window that records problems."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

EXECUTABLES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # Chromium's sandbox does not run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SKIP_VARIABLE = "DBCARE_TESTS_WITHOUT_BROWSER"  # set it to skip these tests where there is no browser
TIMEOUT_MILLISECONDS = 60_000.0  # the machine may be busy, and only a failure takes that long
SCREENSHOTS = Path(__file__).parents[2] / "out" / "screenshots"

expect.set_options(timeout=TIMEOUT_MILLISECONDS)


@contextmanager
def launch_chromium() -> Iterator[Browser]:
    """Launch the installed Chromium; if there is none, the test fails unless the environment says to skip."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        if os.environ.get(SKIP_VARIABLE):
            pytest.skip(f"{SKIP_VARIABLE} is set")
        pytest.fail("Chromium is not installed: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


class BrowserWindow:
    """A page in a browser context of its own; its console must stay empty, and it must load from one host only."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(base_url=address, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT_MILLISECONDS)
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.host = urlsplit(address).netloc

    def ignore_message(self, expected: str) -> None:
        """Drop messages that a test provokes on purpose; there must be one."""
        others = [problem for problem in self.problems if expected not in problem]
        assert len(others) < len(self.problems), self.problems
        self.problems = others

    def take_screenshot(self, name: str) -> None:
        """Save a picture of the whole page, for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def close(self) -> None:
        """Close the window; there must have been no problems."""
        self.context.close()
        assert self.problems == [], self.problems
        assert self.hosts == {self.host}, self.hosts


@contextmanager
def open_window(browser: Browser, address: str, **options: Any) -> Iterator[BrowserWindow]:
    """Open a window, and close it in the end with its checks."""
    window = BrowserWindow(browser, address, **options)
    try:
        yield window
    except BaseException:
        window.take_screenshot("failed")
        window.context.close()
        raise
    window.close()
