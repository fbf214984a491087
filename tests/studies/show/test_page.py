"""The report of a study in a real browser: readable on screens and on paper, and alone in the world."""

import itertools
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

import dbcare
from dbcare.errors import InvalidValueError
from tests.helpers.browser import launch_chromium

pytestmark = pytest.mark.service

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LONG = "a name that is as long as names of arms may be in practice, and then some more to see where it breaks"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of a finished study with everything, of a new one, and of one with blocks."""
    folder = tmp_path_factory.mktemp("reports")
    arms = ["old", "new", LONG]
    full = dbcare.create_study(
        "full report",
        arms,
        price=0.4,
        value=200_000.0,
        sigma=0.5,
        control="old",
        not_before=150,
        description="Which page sells best?",
    )
    means = dict(zip(arms, (0.1, 0.6, 0.2), strict=True))

    def measure(trial: dbcare.Trial) -> float:
        return means[trial.arm] + random.Random(trial.id).gauss(0.0, 0.5)

    full.run(measure, progress=False)
    full.retire(LONG, "out of stock")
    full.run(measure, progress=False)  # more trials may be needed now
    plan = dbcare.plan(arms, price=0.4, value=200_000.0, sigma=0.5, control="old", gaps=[0.1, 0.5], runs=100)
    new = dbcare.create_study("new report", ["A", "B"], cost=0.01, sigma=1.0)
    rounds = dbcare.create_study("report in rounds", ["A", "B"], cost=1e-4, rounds=True)
    rounds.run(lambda trial: (trial.arm == "A") + int(trial.block or 0) % 3 + trial.id % 4 / 9, progress=False)
    return {
        "full": full.report(folder / "full.html", plan),
        "new": new.report(folder / "new.html"),
        "rounds": rounds.report(str(folder / "rounds.html")),
    }


@pytest.mark.parametrize("name", ["full", "new", "rounds"])
def test_pages_fit_every_screen(browser: Browser, reports: dict[str, Path], name: str) -> None:
    """No message in the console, no request but for the file itself, and nothing wider than the screen."""
    context = browser.new_context()
    page = context.new_page()
    requests, messages = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.goto(reports[name].as_uri())
    papers = set()
    for width, scheme in itertools.product((390, 1280), SCHEMES):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ends = page.evaluate(
            "[...document.querySelectorAll('td, figure, svg')].map(part => part.getBoundingClientRect().right)"
        )
        assert max(ends) <= width  # no column is out of sight
        colors = [page.evaluate(f"getComputedStyle(document.body).{which}") for which in ("color", "backgroundColor")]
        assert contrast(*colors) > 7.0
        papers.add(colors[1])
    assert len(papers) == len(SCHEMES)
    assert requests == [reports[name].as_uri()]
    assert messages == []
    context.close()


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colors by WCAG 2.2."""

    def luminance(color: str) -> float:
        parts = [int(part) / 255.0 for part in re.findall(r"\d+", color)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_pages_are_printed(browser: Browser, reports: dict[str, Path], paper: str) -> None:
    """On a few pages, dark on white even if the screen is dark, and with nothing cut off at the right."""
    page = browser.new_page(color_scheme="dark")
    page.goto(reports["full"].as_uri())
    pdf = page.pdf(format=paper, prefer_css_page_size=True)
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    inches = {"A4": 210 / 25.4, "Letter": 8.5}[paper]
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": math.floor(96 * (inches - 30 / 25.4)), "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 26, 34)"
    page.close()


def test_everything_is_on_the_page(browser: Browser, reports: dict[str, Path]) -> None:
    page = browser.new_page()
    page.goto(reports["full"].as_uri())
    assert page.locator("h2").all_inner_texts() == [
        "Result", "Arms", "What it cost", "What was asked", "Plan", "When it stops", "Doubts", "What people did",
        "For the record",
    ]  # fmt: skip
    text = page.locator("main").inner_text()
    for expected in (
        "Probability of being best",
        "Most that can be spent",
        "It stops once choosing the leader is expected to lose no more to its strongest rival than has been spent.",
        "retired",
        "In each section one arm is better",
        f"Made by dbcare {dbcare.__version__}.",
    ):
        assert expected in text
    # Every number has its meaning.
    assert all(page.locator(".numbers td:last-child").all_inner_texts())
    assert page.locator("svg").count() == 2
    page.close()


def test_a_plan_for_something_else_is_refused(tmp_path: Path) -> None:
    study = dbcare.create_study("other plan", ["A", "B"], price=0.4, value=2_000.0, sigma=0.5)
    plan = dbcare.plan(["A", "B"], price=0.5, value=2_000.0, sigma=0.5, gaps=0.5, runs=20)
    with pytest.raises(InvalidValueError, match="`plan` must be for this study but has other arms, prices"):
        study.report(tmp_path / "x.html", plan)
    assert list(tmp_path.iterdir()) == []
