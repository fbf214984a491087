"""The page that lists studies, with small pictures of how each has gone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from dbcare.base.numbers import Money
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.pages.rendering import Pages
from dbcare.server.studies import OpenStudies
from dbcare.studies.api import find_in
from dbcare.studies.stores.base import Standing, StudyRecord

WIDTH, HEIGHT, EDGE = 120.0, 30.0, 2.0  # of a sparkline


@dataclass(frozen=True)
class Sparkline:
    """Spending, and the expected loss if there is one, as points of SVG lines on one logarithmic scale."""

    spent: str
    loss: str


def draw_sparkline(curve: str) -> Sparkline | None:
    """Return the sparkline of a study, from its standing's curve; None if there is too little to draw."""
    points = [[float(number) for number in point.split()] for point in curve.split(",") if point]
    spent = [(place, math.log(point[0])) for place, point in enumerate(points) if point[0] > 0.0]
    loss = [(place, math.log(point[1])) for place, point in enumerate(points) if point[0] > 0.0 and point[1:] > [0.0]]
    if len(spent) < 2:
        return None
    heights = [height for _, height in (*spent, *loss)]
    left, right, low, high = spent[0][0], spent[-1][0], min(heights), max(heights)

    def coordinates(line: Sequence[tuple[int, float]]) -> str:
        return " ".join(
            f"{WIDTH * (x - left) / (right - left):.1f},"
            f"{HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * (y - low) / ((high - low) or 1.0):.1f}"
            for x, y in line
        )

    return Sparkline(coordinates(spent), coordinates(loss))


STUDIES_PER_PAGE = 50

Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class StudyRow:
    """A study in one row."""

    name: str
    standing: Standing
    spent: Money
    loss: Money | None
    sparkline: Sparkline | None


def make_row(record: StudyRecord) -> StudyRow:
    """Make the row of a study."""
    standing, currency = record.standing, record.currency
    loss = None if standing.expected_loss is None else Money(standing.expected_loss, currency)
    return StudyRow(record.name, standing, Money(standing.spent, currency), loss, draw_sparkline(standing.curve))


def make_routes(pages: Pages, studies: OpenStudies) -> APIRouter:
    """Return the page /."""
    router = pages.router()

    @router.get("/")
    def show_studies(
        visitor: Annotated[Visitor, pages.looking(Role.VIEWER)], q: Text = "", after: Text | None = None
    ) -> HTMLResponse:
        search = q.strip()
        found = find_in(studies.store, search, after=after, limit=STUDIES_PER_PAGE + 1, by_state=True)
        shown, has_more = found[:STUDIES_PER_PAGE], len(found) > STUDIES_PER_PAGE
        following = {"after": shown[-1].name, **({"q": search} if search else {})} if has_more else None
        return pages.render(
            "studies.html",
            visitor,
            rows=[make_row(record) for record in shown],
            search=search,
            is_first=after is None,
            total=studies.store.count(search),
            next_page=None if following is None else f"/?{urlencode(following)}",
        )

    return router
