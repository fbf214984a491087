"""What notebooks show: everything is escaped, nothing is loaded or run, and all numbers are those of the object."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

import dbcare
from dbcare.base.html import make_code, make_facts, make_list, make_paragraph, make_table

HOSTILE = '<script>alert("1")</script>&\'<img src=x onerror=alert(1)>'
VOID = {"meta", "img", "line", "circle", "polyline"}


class Reader(HTMLParser):
    """Collects elements, attributes and texts, and checks that elements are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.texts.append(data)
            if self._open and self._open[-1] in ("td", "th"):
                self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return "".join(self.texts)


def check_harmless(page: str) -> Reader:
    """Return what a page consists of, if nothing in it is run or loaded."""
    reader = Reader(page)
    assert not {"script", "img", "iframe", "link", "object", "a", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert "url(" not in page
    assert "@import" not in page
    return reader


def make_hostile_study() -> dbcare.Study:
    study = dbcare.create_study(
        f"{HOSTILE.replace('/', '')} \N{SNOWMAN}",
        [HOSTILE, "B"],
        price=0.4,
        value=2_000.0,
        currency=HOSTILE,
        sigma=0.5,
        description=HOSTILE,
        control="B",
    )
    study.add([(HOSTILE, 0.5), ("B", 0.25), (HOSTILE, 0.75), ("B", 0.5)] * 9)
    return study


@pytest.fixture
def hostile() -> Any:
    study = make_hostile_study()
    yield study
    dbcare.delete_study(study.name)


def test_names_are_shown_as_text(hostile: dbcare.Study) -> None:
    for shown in (hostile, hostile.status(), hostile.recommendation()):
        reader = check_harmless(shown._repr_html_())
        assert HOSTILE in reader.text
    hostile.retire("B", HOSTILE)
    check_harmless(hostile._repr_html_())


def test_pieces_escape_everything() -> None:
    for piece in (
        make_table([HOSTILE], [[HOSTILE]]),
        make_facts([(HOSTILE, HOSTILE)]),
        make_list([HOSTILE, HOSTILE]),
        make_paragraph(HOSTILE),
        make_code([HOSTILE]),
    ):
        reader = check_harmless(piece)
        assert reader.text.replace("\n", "") in (HOSTILE, 2 * HOSTILE)
    assert make_list([]) == make_code([]) == ""


def test_the_check_finds_what_it_should() -> None:
    """Negative control."""
    for page in ("<script></script>", '<p onclick="x"></p>', "<b><i></b></i>", "<p style='background:url(x)'></p>"):
        with pytest.raises(AssertionError):
            check_harmless(page)


def test_a_study_shows_its_numbers() -> None:
    study = dbcare.create_study("display", ["A", "B"], price=0.5, value=1_000.0, sigma=0.5)
    assert "No rewards have been counted" in check_harmless(study._repr_html_()).text
    study.add([("A", 1.0), ("B", 0.0)] * 2)
    status, choice = study.snapshot()
    reader = check_harmless(study._repr_html_())
    assert " ".join(choice.sentences) in reader.text
    assert reader.rows[0][:3] == ["arm", "trials", "naive mean"]
    assert [row[:3] for row in reader.rows[1:3]] == [
        [arm.name, str(arm.trials), f"{arm.mean:.4g}"] for arm in status.arms
    ]
    assert ["spent", "2.00 USD"] in reader.rows
    assert 'class="strong"><td data-label="arm">A</td>' in study._repr_html_()
    status_rows = check_harmless(status._repr_html_()).rows
    assert ["spent", "2.00"] in status_rows
    choice_rows = check_harmless(choice._repr_html_()).rows
    assert ["verdict", choice.verdict] in choice_rows


def test_very_many_arms_are_not_all_shown() -> None:
    study = dbcare.create_study("many arms", [f"arm {number}" for number in range(300)], cost=1e-6, sigma=1.0)
    study.add([("arm 299", 5.0)])
    page = study._repr_html_()
    assert "249 more arms are not shown" in page
    assert "arm 299" in page
    assert "arm 298" not in page


def test_an_evaluation_shows_what_it_prints() -> None:
    evaluation = dbcare.evaluate(
        dbcare.policies.Uniform(arms=2, pulls=10), dbcare.Bandit.two_arm(0.5), dbcare.Risk.simple_regret(1e-3)
    )
    shown = check_harmless(evaluation._repr_html_()).rows
    printed = [re.split(r"\s{2,}", line, maxsplit=1) for line in str(evaluation).splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in shown] == [[cell.strip() for cell in row] for row in printed]


def test_a_plan_shows_what_it_prints() -> None:
    plan = dbcare.plan(arms=["<b>", "B"], price=0.4, value=100.0, sigma=0.5, gaps=[0.1, 0.5], runs=200, per_day=9)
    reader = check_harmless(plan._repr_html_())
    headers, *rows = reader.rows
    assert headers == ["gap", "policy", "observations", "days", "spend", "wrong", "total loss", "runs", ""]
    assert len(rows) == len(plan.outlooks)
    printed = [line.split() for line in str(plan).splitlines()]
    for row in rows:
        assert [word for cell in row for word in cell.split()] in printed
    assert all(sentence in reader.text for sentence in plan.advice)
    assert plan.create_call is not None
    assert plan.create_call in reader.text
