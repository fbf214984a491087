"""All studies at a glance."""

from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from dbcare.live.report import Recommendation, Status
from dbcare.live.stored_study import Study
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.drawing import Sparkline, sparkline
from dbcare.server.pages.formatting import amount
from dbcare.server.pages.rendering import Pages

STATES = ("running", "paused", "stopped")


@dataclass(frozen=True)
class StudyRow:
    """A study in one line."""

    status: Status
    choice: Recommendation
    spent: str
    loss: str | None
    sparkline: Sparkline | None

    @classmethod
    def of(cls, study: Study) -> "StudyRow":
        """That line."""
        status, choice = study.status(), study.recommendation()
        loss = status.expected_loss
        return cls(
            status,
            choice,
            amount(study.settings, status.spent),
            None if loss is None else amount(study.settings, loss),
            _drawn(study, (status.counted, status.spent, loss, choice.arm)),
        )


_pictures: WeakKeyDictionary[Study, tuple[object, Sparkline | None]] = WeakKeyDictionary()


def _drawn(study: Study, standing: object) -> Sparkline | None:
    """How it went; drawn again only if it stands elsewhere by now, as the list may be long."""
    known = _pictures.get(study)
    if known is None or known[0] != standing:
        known = _pictures[study] = standing, sparkline(study.history())
    return known[1]


def routes(pages: Pages, catalogue: OpenStudies) -> APIRouter:
    """The first page."""
    router = pages.router()

    @router.get("/")
    def studies(visitor: Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]) -> HTMLResponse:
        lines = catalogue.each(StudyRow.of)
        lines.reverse()  # the newest first, within each state
        lines.sort(key=lambda line: STATES.index(line.status.state))
        return pages.show("studies.html", visitor, lines=lines)

    return router
