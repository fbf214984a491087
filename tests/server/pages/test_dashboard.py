"""The dashboard in a real browser: a study from its plan to its end, and checks of every page."""

import csv
import itertools
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from dbcare.server.access.keys import Keys
from dbcare.server.access.records import open_records
from dbcare.studies.api import create_study, delete_study, load_study
from dbcare.studies.stores.open import open_store
from tests.helpers.browser import TIMEOUT_MILLISECONDS, BrowserWindow, launch_chromium, open_window
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

HTML_NAME = "<img src=x onerror=alert(1)>"
HTML_ARM = "<script>alert(2)</script>"
RATES = {"plain": 0.2, "question": 0.35, "emoji": 0.6}
SCREENSHOTS_VARIABLE = "DBCARE_TESTS_SAVE_SCREENSHOTS"  # set it to get pictures of all pages in out/screenshots
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}


@dataclass
class Server:
    """A service that requires keys."""

    address: str
    storage: str
    keys: dict[str, str]

    def sign_in(self, window: BrowserWindow, role: str = "admin", path: str = "/") -> None:
        """Sign in with the key of a role, on the way to a page."""
        window.page.goto(path)
        window.page.get_by_label("API key").fill(self.keys[role])
        window.page.get_by_role("button", name="Sign in").click()
        window.page.wait_for_url(lambda url: "/login" not in url)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('dashboard') / 'studies.db'}"
    records = Keys(open_records(open_store(storage, create=True)))
    keys = {role: records.create(f"the {role}", role)[1] for role in ("viewer", "worker", "admin")}
    with run_service(storage) as address:
        yield Server(address, storage, keys)


def keep_screenshot(window: BrowserWindow, name: str) -> None:
    """Save a picture for people to look at, if they ask for it: pictures take longer than the checks."""
    if os.environ.get(SCREENSHOTS_VARIABLE):
        window.take_screenshot(name)


def run_worker(server: Server, name: str) -> None:
    """Ask and tell over HTTP until the study stops."""
    generator = random.Random(1)
    headers = {"Authorization": f"Bearer {server.keys['worker']}"}
    with httpx.Client(base_url=f"{server.address}/v1/studies/{name}", headers=headers) as api:
        while True:
            asked = api.post("/ask", json={"n": 3, "worker": "shop-1"}).raise_for_status().json()
            if asked["stopped"]:
                return
            for trial in asked["trials"]:
                reward = float(generator.random() < RATES[trial["arm"]])
                api.post("/tell", json={"trial": trial["id"], "reward": reward}).raise_for_status()


def test_a_study_from_its_plan_to_its_end(browser: Browser, server: Server, tmp_path: Path) -> None:
    with open_window(browser, server.address, viewport=WIDE) as window:
        page = window.page
        page.goto("/login")
        for scheme, size in itertools.product(SCHEMES, (WIDE, PHONE)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            keep_screenshot(window, f"login-{scheme}-{size['width']}")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(WIDE)
        server.sign_in(window)
        expect(page.get_by_role("heading", name="No studies yet")).to_be_visible()
        keep_screenshot(window, "empty-light-1280")

        page.get_by_role("link", name="Create the first study").click()
        page.get_by_label("Name").fill("subject")
        page.get_by_label("Arms, one per line").fill("\n".join(RATES))
        page.get_by_label("Price of a trial").fill("-1")
        page.get_by_label("Value").fill("20000")
        page.get_by_label("Usual rate").fill("0.1")
        expect(page.locator("#plan-error")).to_contain_text("Price of a trial must be positive but got -1")
        window.ignore_message("status of 422")
        page.get_by_label("Price of a trial").fill("0,4")
        comma = "Price of a trial must be a number but got '0,4'; use a decimal point, and no commas between thousands."
        expect(page.locator("#plan-error")).to_have_text(comma)
        page.get_by_role("button", name="Create study").click()
        expect(page.locator("#error")).to_have_text(comma)
        window.ignore_message("status of 422")
        page.get_by_label("Price of a trial").fill("0.4")
        expect(page.locator("#plan-state")).to_have_text("computing…")
        # The first plan on a machine compiles its simulators.
        expect(page.locator("#plan-result table tbody tr")).not_to_have_count(0, timeout=4 * TIMEOUT_MILLISECONDS)
        expect(page.locator("#plan .advice li").first).to_contain_text("Experimenting pays")
        expect(page.locator("#plan .advice li").first).to_contain_text("USD less than deciding now")
        for width in (1280, 390):  # every column is on the screen
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("Math.max(...[...document.querySelectorAll('#plan td')].map(cell => "
                                 "cell.getBoundingClientRect().right))") < width  # fmt: skip
            assert page.get_by_text("Decide now").count() > 0
        page.set_viewport_size(WIDE)
        expect(page.locator("#plan-error")).to_be_hidden()
        page.get_by_text("More options", exact=True).click()
        page.get_by_label("Policy").select_option("breakeven-racing")
        keep_screenshot(window, "new-light-1280")
        page.get_by_role("button", name="Create study").click()

        expect(page.get_by_role("heading", name="subject")).to_be_visible()
        expect(page.locator(".sentence")).to_contain_text("No rewards have been counted, so nothing is recommended.")
        expect(page.locator("#connection")).to_have_text("live")
        page.evaluate("window.sameDocument = true")
        worker = threading.Thread(target=run_worker, args=(server, "subject"))
        worker.start()
        expect(page.locator("tr.left").first).to_contain_text("dropped at epoch")
        expect(page.locator(".sentence")).to_contain_text("Choose emoji")
        worker.join()
        study = load_study("subject", server.storage)
        choice = study.recommendation()
        expect(page.locator(".sentence")).to_have_text(choice.sentences[0])
        expect(page.locator(".explanation")).to_have_text(" ".join(choice.sentences[1:]))
        expect(page.locator("[aria-live]")).to_contain_text("The study has stopped. Choose emoji")
        expect(page.locator("#connection")).to_be_empty()  # nothing is live about it any more
        assert page.locator("ol.log li").all_text_contents() == study.explain()
        expect(page.locator("#chart .main-svg").first).to_be_visible()
        expect(page.locator("#chart")).to_contain_text("rewards counted")
        page.get_by_label("by time").check()
        expect(page.locator("#chart")).not_to_contain_text("rewards counted")
        assert page.evaluate("window.sameDocument"), "the page was reloaded"
        keep_screenshot(window, "stopped-light-1280")

        with page.expect_popup() as popup:
            page.get_by_role("link", name="Report").click()
        expect(popup.value.locator(".verdict")).to_contain_text("Choose emoji")
        assert popup.value.evaluate("getComputedStyle(document.querySelector('.verdict')).borderLeftStyle") == "solid"
        popup.value.close()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export CSV").click()
        download.value.save_as(tmp_path / "subject.csv")
        assert download.value.suggested_filename == "subject.csv"
        with (tmp_path / "subject.csv").open() as file:
            assert len(list(csv.DictReader(file))) == study.status().asked

        page.get_by_role("link", name="Studies").click()
        expect(page.locator("tr.study")).to_contain_text("emoji")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.goto("/studies/subject")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.fixture(scope="module")
def study_path(server: Server) -> str:
    """Create a running study with HTML in its names, pending trials and a retired arm; return its path."""
    arms, euros = [HTML_ARM, "B", "C", "D"], "<b>EUR</b>"
    study = create_study(HTML_NAME, arms, price=1, value=9_000, sigma=1, storage=server.storage, currency=euros)
    generator = random.Random(2)
    study.add(
        (arm, generator.gauss(mean, 3.0)) for _ in range(40) for arm, mean in ((HTML_ARM, 1.0), ("B", 0.5), ("C", 0))
    )
    study.add([("D", 0.5)])
    study.retire("D", "<i>out of stock</i>")
    study.ask(3, worker="<u>w</u>")
    assert study.status().state == "running"
    return "/studies/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"


@pytest.fixture(scope="module")
def window(browser: Browser, server: Server) -> Iterator[BrowserWindow]:
    """Open one window for several tests, since plotly.js takes a while to load."""
    with open_window(browser, server.address, viewport=WIDE) as opened:
        server.sign_in(opened)
        yield opened


def test_names_with_html_are_shown_as_text(window: BrowserWindow, study_path: str) -> None:
    page = window.page
    page.goto("/")
    page.get_by_role("link", name=HTML_NAME).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HTML_NAME)
    expect(page.locator("table.arms")).to_contain_text(HTML_ARM)
    page.get_by_text("Approximate intervals for those who look often").click()  # no range is stated
    expect(page.locator("#anytime dd").first).to_contain_text(" to ")
    expect(page.locator("table.pending").first).to_contain_text("<u>w</u>")
    expect(page.locator("#chart .ytitle")).to_have_text("<b>EUR</b>")
    expect(page.locator("#connection")).to_have_text("live")
    assert page.locator("main img, main script, main u, main b, main i").count() == 0
    expect(page.get_by_role("note")).to_contain_text("rewards have a standard deviation of")
    assert window.problems == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_page_fits_a_phone_and_both_schemes(
    window: BrowserWindow, study_path: str, scheme: Literal["light", "dark"]
) -> None:
    page = window.page
    page.emulate_media(color_scheme=scheme)
    paths = {"studies": "/", "study": study_path, "form": "/new", "api": "/docs", "problem": "/studies/none"}
    for name, path in paths.items():
        page.set_viewport_size(PHONE)
        page.goto(path)
        for size in (PHONE, WIDE):
            page.set_viewport_size(size)
            assert is_light(page.evaluate("getComputedStyle(document.body).backgroundColor")) is (scheme == "light")
            if name == "study":
                page.wait_for_selector("#chart .main-svg")
                ink = page.evaluate("getComputedStyle(document.querySelector('#chart .xtitle')).fill")
                assert is_light(ink) is (scheme == "dark")
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
            keep_screenshot(window, f"{name}-{scheme}-{size['width']}")
    window.ignore_message("status of 404")
    assert window.problems == []


def is_light(color: str) -> bool:
    """Return whether a color, "rgb(red, green, blue)", is light, by its red."""
    return int(color.split("(")[1].split(",", maxsplit=1)[0]) > 128


def test_the_keyboard_reaches_everything(window: BrowserWindow, study_path: str) -> None:
    page = window.page
    page.set_viewport_size(WIDE)
    page.goto(study_path)
    reached: list[str] = []
    while "Settings" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.innerText || document.activeElement.ariaLabel"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", reached
    order = ["Skip to content", "dbcare", "Studies", "New study", "Sign out", "Pause", "Report", "Export CSV"]
    order += ["Export JSON", "Stop for good", "Retire an arm", "Settings"]
    assert [label for label in reached if label in order] == order
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".pill")).to_have_text("paused")
    page.get_by_role("button", name="Resume").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".pill")).to_have_text("running")


def test_the_page_keeps_typed_text_and_reports_a_lost_connection(window: BrowserWindow, server: Server) -> None:
    study = create_study("watched", ["A", "B"], price=1, value=1000, sigma=1, storage=server.storage)
    page = window.page
    page.route("**/events", lambda route: route.abort())
    page.goto("/studies/watched")
    expect(page.locator("#connection")).to_contain_text("connection lost, retrying")
    page.unroute("**/events")
    expect(page.locator("#connection")).to_have_text("live")
    window.ignore_message("net::ERR_FAILED")

    page.get_by_text("Stop for good").click()
    page.get_by_label("Reason").first.fill("the season is ov")
    study.pause()
    expect(page.locator(".pill")).to_have_text("paused")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()  # until it loses the focus
    page.get_by_label("Reason").first.press_sequentially("er")
    page.get_by_role("button", name="Stop this study").click()
    expect(page.locator(".pill")).to_have_text("stopped")
    assert study.recommendation().reason == "the season is over"
    delete_study("watched", server.storage)
    expect(page.locator("#connection")).to_contain_text("this study was deleted, or you are signed out")


def test_a_viewer_has_no_buttons_and_the_chart_follows_the_scheme(
    browser: Browser, server: Server, study_path: str
) -> None:
    with open_window(browser, server.address, viewport=WIDE, color_scheme="light") as window:
        server.sign_in(window, "viewer", study_path)
        page = window.page
        expect(page.get_by_role("link", name="Export CSV")).to_be_visible()
        assert page.get_by_role("button").all_text_contents() == ["Sign out"]
        page.wait_for_selector("#chart .main-svg")
        line = page.locator("#chart .scatterlayer .js-line").first
        expect(line).to_have_css("stroke", "rgb(90, 62, 200)")
        page.emulate_media(color_scheme="dark")
        expect(line).to_have_css("stroke", "rgb(179, 161, 255)")
