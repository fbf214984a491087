"""All studies at a glance."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from dbcare.live.outlook import Recommendation, Status
from dbcare.live.study import Study
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.catalogue import Catalogue
from dbcare.server.pages.amounts import amount
from dbcare.server.pages.drawing import Sparkline, sparkline
from dbcare.server.pages.page import Pages

STATES = ("running", "paused", "stopped")


@dataclass(frozen=True)
class Line:
    """A study in one line."""

    status: Status
    choice: Recommendation
    spent: str
    loss: str | None
    sparkline: Sparkline | None

    @classmethod
    def of(cls, study: Study) -> "Line":
        """That line."""
        status = study.status()
        loss = status.expected_loss
        return cls(
            status,
            study.recommendation(),
            amount(study.settings, status.spent),
            None if loss is None else amount(study.settings, loss),
            sparkline(study.history()),
        )


def routes(pages: Pages, catalogue: Catalogue) -> APIRouter:
    """The first page."""
    router = pages.router()

    @router.get("/")
    def studies(visitor: Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]) -> HTMLResponse:
        newest_first = [Line.of(each) for each in reversed(catalogue.all())]
        lines = sorted(newest_first, key=lambda line: STATES.index(line.status.state))
        return pages.show("studies.html", visitor, lines=lines)

    return router
