"""The list of studies."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from dbcare.base.numbers import Money
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.drawing import Sparkline, draw_sparkline
from dbcare.server.pages.rendering import Pages
from dbcare.studies.api import find_in
from dbcare.studies.stores.base import Standing, StudyRecord

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
