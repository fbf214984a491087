"""A comparison as tables and as a page: its arms, who scored what, and at which price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING

from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.comparing.questions import QuestionPool
from dbcare.studies.record.events import EventKind
from dbcare.studies.results.status import ArmStatus
from dbcare.studies.show.page import ASSUMPTIONS
from dbcare.studies.study import Study

if TYPE_CHECKING:
    from dbcare.comparing.comparison import Comparison


@dataclass(frozen=True)
class ComparedAnswer:
    """An arm on a question, or on a cluster of them.

    Parameters
    ----------
    question : str
        The question's id, or the cluster.
    arm : str
        The arm.
    score : float or None
        Its score, or the mean over repeats and over the questions of a cluster; None if a call failed.
    price : float
        What all calls for it cost, the judge's and failed ones included.

    Examples
    --------
    >>> from dbcare import compare
    >>> arms = {"short": lambda question: 0.5, "long": lambda question: 0.75}
    >>> comparison = compare(arms, range(20), price=0.01, value=100, progress=False, at_once=1)
    >>> answer = next(iter(comparison.answers()))
    >>> answer.arm, answer.score, answer.price
    ('short', 0.5, 0.01)
    """

    question: str
    arm: str
    score: float | None
    price: float


def list_answers(study: Study, pool: QuestionPool) -> Iterator[ComparedAnswer]:
    """Yield the trials that have an outcome, in the order asked."""
    value = study.settings.value or 1.0
    stated = dict(zip(study.settings.arms, study.settings.costs, strict=True))
    for row in study.trials():
        if row.block is None or row.status == EventKind.ASKED:
            continue
        size = len(pool.blocks[row.block]) * pool.weight
        yield ComparedAnswer(
            question=row.block,
            arm=row.arm,
            score=None if row.reward is None else row.reward / size,
            price=stated[row.arm] * value if row.price is None else row.price,
        )


HEADINGS = ("arm", "answered", "failed", "mean score", "estimate", "95% interval", "best", "price of a question")
UNKNOWN = "-"


@dataclass(frozen=True)
class ComparedArm:
    """An arm of a comparison.

    Parameters
    ----------
    status : ArmStatus
        What its scores say; with clusters, `trials` counts clusters.
    questions : int
        Questions that it was asked.
    price : float
        Mean price of a question, all its calls included.
    failed : int
        Questions of these that it has no answer to.

    Examples
    --------
    >>> from dbcare import compare
    >>> arms = {"short": lambda question: 0.5, "long": lambda question: 0.75}
    >>> comparison = compare(arms, range(20), price={"short": 0.01, "long": 0.02}, value=100, progress=False)
    >>> [(line.status.name, line.price) for line in comparison.arms]
    [('short', 0.01), ('long', 0.02)]
    """

    status: ArmStatus
    questions: int
    price: float
    failed: int = 0

    def cells(self, currency: str | None) -> tuple[str, ...]:
        """Return the arm's cells under HEADINGS."""
        arm = self.status
        estimate, interval = UNKNOWN, UNKNOWN
        if arm.estimate is not None and arm.interval is not None:
            estimate, low, high = round_together(arm.estimate, *arm.interval, digits=3)
            interval = f"{low} to {high}"
        return (
            arm.name,
            f"{self.questions - self.failed:,}",
            f"{self.failed:,}",
            UNKNOWN if arm.mean is None else f"{arm.mean:.4g}",
            estimate,
            interval,
            UNKNOWN if arm.probability_best is None else format_chance(arm.probability_best),
            str(Money(self.price, currency)),
        )


def format_lines(arms: Sequence[ComparedArm], currency: str | None) -> list[str]:
    """Return the table as lines of text, aligned."""
    rows = [HEADINGS, *(arm.cells(currency) for arm in arms)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


CELL, ROW = 6, 18  # pixels of the picture: the width of a question, the height of an arm
LIGHTEST = 0.15  # opacity of the lowest score
MAX_PICTURED = 1_000  # questions; more would be too wide to see anything


def make_page(comparison: Comparison) -> str:
    """Return the page."""
    style = (files("dbcare.server") / "pages" / "static" / "style.css").read_text(encoding="utf-8")
    name = escape(comparison.study.name)
    answers = list(comparison.answers())
    headline, *sentences = comparison.sentences()
    parts = [
        f'<section class="card hero"><div class="heading"><h1 class="long">{name}</h1></div>'
        f'<p class="sentence">{escape(headline)}</p>'
        + "".join(f'<p class="explanation">{escape(sentence)}</p>' for sentence in sentences)
        + _format_figures(comparison)
        + "</section>",
        _format_notes(comparison),
        _format_section("Arms", _format_arms(comparison)),
        _format_section("Scores by question", _draw_scores(comparison.study.settings.arms, answers)),
        _format_failures(comparison),
        f'<details class="card"><summary>All answers ({len(answers):,})</summary>{_format_answers(answers)}</details>',
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<main class="wide">\n{"".join(parts)}\n</main>\n'
        f'<footer class="wide quiet">{escape(ASSUMPTIONS)} dbcare {version("dbcare")}</footer>\n</body>\n</html>\n'
    )


def _format_section(title: str, body: str) -> str:
    return f'<section class="card"><h2>{escape(title)}</h2>{body}</section>'


def _format_figures(comparison: Comparison) -> str:
    figures = [
        ("Spent", str(comparison.format_money(comparison.spent))),
        ("Asking everything", str(comparison.format_money(comparison.full_cost))),
        ("Saved", str(comparison.format_money(comparison.saved))),
        ("Questions asked", f"{comparison.questions_used:,}"),
    ]
    cells = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(figure)}</dd></div>" for label, figure in figures)
    return f'<dl class="figures">{cells}</dl>'


def _format_notes(comparison: Comparison) -> str:
    notes = comparison.study.status().notes
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<section class="card warning"><ul>{items}</ul></section>' if notes else ""


def _format_arms(comparison: Comparison) -> str:
    currency = comparison.study.settings.currency
    rows = (tuple(map(escape, line.cells(currency))) for line in comparison.arms)
    return _format_grid(HEADINGS, rows)


def _format_answers(answers: Iterable[ComparedAnswer]) -> str:
    rows = (
        (
            escape(answer.question),
            escape(answer.arm),
            "failed" if answer.score is None else f"{answer.score:.4g}",
            f"{answer.price:.4g}",
        )
        for answer in answers
    )
    return _format_grid(("question", "arm", "score", "price"), rows)


def _format_failures(comparison: Comparison) -> str:
    if not comparison.failures:
        return ""
    rows = (
        (escape(failure.question), escape(failure.arm), escape(_describe_error(failure.error)))
        for failure in comparison.failures
    )
    return _format_section("Failed calls", _format_grid(("question", "arm", "error"), rows))


def _describe_error(error: Exception | None) -> str:
    return "in an earlier run" if error is None else f"{type(error).__name__}: {error}"


def _draw_scores(arms: Sequence[str], answers: Sequence[ComparedAnswer]) -> str:
    """Return a picture with a row for each arm and a column for each question, more opaque for higher scores."""
    places: dict[str, int] = {}
    for answer in answers:
        places.setdefault(answer.question, len(places))
    scores = [answer.score for answer in answers if answer.score is not None]
    if not scores:
        return '<p class="quiet">No question has been scored.</p>'
    low, high = min(scores), max(scores)
    columns = min(len(places), MAX_PICTURED)
    cells = "".join(
        _draw_cell(answer, places[answer.question], arms.index(answer.arm), low, high)
        for answer in answers
        if places[answer.question] < columns
    )
    names = "".join(f'<text x="0" y="{ROW * (row + 1) - 5}">{escape(arm)}</text>' for row, arm in enumerate(arms))
    left = 8 * max(map(len, arms)) + 10
    more = f" Only the first {columns:,} questions are shown." if columns < len(places) else ""
    return (
        f'<div class="scroll"><svg width="{left + CELL * columns}" height="{ROW * len(arms)}" role="img" '
        f'aria-label="Scores by arm and question" fill="var(--text)" font-size="13">{names}'
        f'<g transform="translate({left} 0)" fill="var(--accent)">{cells}</g></svg></div>'
        f'<p class="quiet">Questions in the order asked, from {_draw_swatch(LIGHTEST)} {low:.4g} to '
        f"{_draw_swatch(1.0)} {high:.4g}; empty where an arm was not asked, or failed.{more}</p>"
    )


def _draw_cell(answer: ComparedAnswer, column: int, row: int, low: float, high: float) -> str:
    if answer.score is None:
        return ""
    share = (answer.score - low) / (high - low) if high > low else 1.0
    title = f"{answer.arm}, {answer.question}: {answer.score:.4g}"
    return (
        f'<rect x="{CELL * column}" y="{ROW * row + 2}" width="{CELL - 1}" height="{ROW - 4}" '
        f'opacity="{LIGHTEST + (1.0 - LIGHTEST) * share:.2f}"><title>{escape(title)}</title></rect>'
    )


def _draw_swatch(opacity: float) -> str:
    """Return a sample of a color: which of two is darker depends on the scheme."""
    return (
        '<svg width="12" height="12" fill="var(--accent)" style="display: inline">'
        f'<rect width="12" height="12" opacity="{opacity:.2f}"/></svg>'
    )


def _format_grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are already HTML, in a box that scrolls on narrow screens."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
