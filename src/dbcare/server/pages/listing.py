"""The list of studies."""

from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from dbcare.live.status import Recommendation, Status
from dbcare.live.study import Study
from dbcare.money import Money
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.drawing import Sparkline, draw_sparkline
from dbcare.server.pages.rendering import Pages

STATES = ("running", "paused", "stopped")


@dataclass(frozen=True)
class StudyRow:
    """A study in one row."""

    status: Status
    choice: Recommendation
    spent: Money
    loss: Money | None
    sparkline: Sparkline | None


class StudyList:
    """Makes the rows, and redraws a sparkline only after its study has changed, since the list may be long."""

    def __init__(self) -> None:
        self._drawn: WeakKeyDictionary[Study, tuple[object, Sparkline | None]] = WeakKeyDictionary()

    def make_row(self, study: Study) -> StudyRow:
        """Make the row of a study."""
        status, choice, currency = study.status(), study.recommendation(), study.settings.currency
        loss = status.expected_loss
        return StudyRow(
            status,
            choice,
            Money(status.spent, currency),
            None if loss is None else Money(loss, currency),
            self._draw(study, (status.counted, status.spent, loss, choice.arm)),
        )

    def _draw(self, study: Study, version: object) -> Sparkline | None:
        known = self._drawn.get(study)
        if known is None or known[0] != version:
            known = self._drawn[study] = version, draw_sparkline(study.history())
        return known[1]


def make_routes(pages: Pages, studies: OpenStudies) -> APIRouter:
    """Return the page /."""
    router, study_list = pages.router(), StudyList()

    @router.get("/")
    def show_studies(visitor: Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]) -> HTMLResponse:
        rows = studies.view_all(study_list.make_row)
        rows.reverse()  # newest first within each state
        rows.sort(key=lambda row: STATES.index(row.status.state))
        return pages.render("studies.html", visitor, rows=rows)

    return router
