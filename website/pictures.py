"""Take the docs' pictures of the dashboard anew: `python website/pictures.py`. It needs Chromium.

Run it when the dashboard has changed, and look at the result.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import dbcare

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH = 1280


def create_headlines(storage: str) -> None:
    """Create the study of the page on the first dashboard."""
    study = dbcare.create_study(
        "headlines", ["short", "long", "funny"], price=0.40, value=20_000, sigma=0.5, storage=storage
    )
    readers = random.Random(1)
    means = {"short": 0.1, "long": 0.2, "funny": 0.3}
    study.add((arm, readers.gauss(means[arm], 0.5)) for arm in ["short", "long", "funny"] * 10)


def create_checkout(storage: str) -> None:
    """Create a study with a control that has stopped."""
    study = dbcare.create_study(
        "checkout", ["old", "new", "bold"], price=0.05, value=60_000, baseline=0.05, control="old", storage=storage
    )
    study.describe("Which checkout page sells best?")
    visitors = random.Random(5)
    rates = {"old": 0.05, "new": 0.075, "bold": 0.06}
    study.run(lambda trial: float(visitors.random() < rates[trial.arm]), progress=False)


@contextmanager
def serve(storage: str) -> Iterator[str]:
    """Run the service for a database, and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "dbcare", "serve", "--quiet", "--storage", storage, "--port", str(port)]
    with subprocess.Popen(command) as server:
        try:
            while server.poll() is None and not is_ready(address):
                time.sleep(0.1)
            yield address
        finally:
            server.terminate()


def is_ready(address: str) -> bool:
    """Return whether a server answers."""
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as response:
            return bool(response.status == 200)
    except urllib.error.URLError:
        return False


def take_picture(page: Page, name: str) -> None:
    """Write a picture of a study's page, once its chart is drawn."""
    page.wait_for_selector("#chart .main-svg")
    page.wait_for_timeout(1_000)  # for transitions
    page.screenshot(path=IMAGES / name, full_page=True)
    page.close()  # a page that is updated live would keep the server from stopping at once


def picture_headlines(browser: Browser, folder: Path) -> None:
    """Show what a reader of the page on the first dashboard sees, without a key."""
    storage = f"sqlite:///{folder}/first.db"
    create_headlines(storage)
    with serve(storage) as address:
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(f"{address}/studies/headlines")
        take_picture(page, "first_dashboard.png")


def picture_checkout(browser: Browser, folder: Path) -> None:
    """Show a decision that has been made, to somebody who has signed in."""
    storage = f"sqlite:///{folder}/shop.db"
    create_checkout(storage)
    keys = [sys.executable, "-m", "dbcare", "keys", "create", "--role", "admin", "--name", "me", "--storage", storage]
    key = subprocess.run(keys, capture_output=True, text=True, check=True).stdout.split()[0]
    with serve(storage) as address:
        page = browser.new_page(viewport={"width": WIDTH, "height": 900})
        page.goto(address)
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="checkout").click()
        take_picture(page, "dashboard.png")


if __name__ == "__main__":
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        executable = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        chromium = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        picture_headlines(chromium, Path(temporary))
        picture_checkout(chromium, Path(temporary))
        chromium.close()
