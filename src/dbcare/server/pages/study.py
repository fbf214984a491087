"""The page of a study, its updates, and its buttons."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from dbcare.errors import InvalidValueError, StudyNotFoundError
from dbcare.live.report import Status
from dbcare.live.stored_study import Study
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.rendering import Pages, segment
from dbcare.server.pages.study_view import chart_of, described, parts_of
from dbcare.server.stream import stream

AGES = 10.0  # seconds after which the ages of trials are drawn again, though nothing has happened

Text = Annotated[str, Form(max_length=2000)]


def address_of(name: str) -> str:
    """Of a study's page."""
    return f"/studies/{segment(name)}"


def routes(pages: Pages, catalogue: OpenStudies) -> APIRouter:
    """All under /studies."""
    router = pages.router()
    Viewer = Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]  # noqa: N806  # a type
    admin = Depends(pages.needs(Role.ADMIN))

    @router.get("/studies/{name}")
    def look(name: str, visitor: Viewer) -> HTMLResponse:
        study = catalogue.study(name)
        return pages.show(
            "study.html",
            visitor,
            name=study.name,
            parts=parts_of(study, visitor),
            chart=json.dumps(chart_of(study)),
            settings=described(study.settings),
            breaks_even=study.settings.policy == "breakeven",
        )

    @router.get("/studies/{name}/events")
    def events(request: Request, name: str) -> Response:
        # Strangers are told that it is gone, since a script cannot see a redirect. Other sites are refused here.
        pages.gate.visitor(request, None)
        return stream(request, _news(lambda: pages.gate.visitor(request, None), lambda: catalogue.study(name)))

    def act(name: str, action: Callable[[Study], None]) -> Response:
        action(catalogue.study(name))
        return RedirectResponse(address_of(name), HTTPStatus.SEE_OTHER)

    @router.post("/studies/{name}/pause", dependencies=[admin])
    def pause(name: str) -> Response:
        return act(name, Study.pause)

    @router.post("/studies/{name}/resume", dependencies=[admin])
    def resume(name: str) -> Response:
        return act(name, Study.resume)

    @router.post("/studies/{name}/stop", dependencies=[admin])
    def stop(name: str, reason: Text = "") -> Response:
        return act(name, lambda study: study.stop(reason))

    @router.post("/studies/{name}/retire", dependencies=[admin])
    def retire(name: str, arm: Text = "", reason: Text = "") -> Response:
        return act(name, lambda study: study.retire(arm, reason))

    return router


def _news(who: Callable[[], Visitor | None], find: Callable[[], Study]) -> Callable[[], str | None]:
    """What has changed on the page since the last look, as JSON; None once it is not to be seen any more."""
    shown: dict[str, object] = {}
    status: Status | None = None
    last, drawn = "", 0.0

    def look() -> str | None:
        nonlocal last, drawn, status
        visitor = who()  # signing out, or losing the key, ends it
        if visitor is None:
            return None
        try:
            study = find()
            before, status = status, replace(study.status(), oldest=None)
            if status == before and time.monotonic() - drawn < AGES:  # as mostly: nothing to draw
                return last
            drawn = time.monotonic()
            now: dict[str, object] = {**parts_of(study, visitor), "chart": chart_of(study)}
        except (StudyNotFoundError, InvalidValueError):  # the latter: no study can have that name
            return None
        changed = {name: piece for name, piece in now.items() if shown.get(name) != piece}
        if changed:
            shown.update(changed)
            last = json.dumps(changed)
        return last

    return look
