"""The page of a study: its updates, and what its buttons do."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from dbcare.errors import InvalidValueError, StudyNotFoundError
from dbcare.live.option_text import parse_number
from dbcare.live.settings_texts import describe_settings
from dbcare.live.status import Status
from dbcare.live.stored_study import StoredStudy
from dbcare.live.study import Study
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.rendering import Pages, quote_segment
from dbcare.server.pages.study_view import make_chart, render_parts
from dbcare.server.stream import Streams, tell_gone

REDRAW_SECONDS = 10.0  # after which the ages of trials are updated although nothing has happened

Text = Annotated[str, Form(max_length=2000)]


def study_url(name: str) -> str:
    """Return the URL of a study's page."""
    return f"/studies/{quote_segment(name)}"


def make_routes(pages: Pages, studies: OpenStudies, streams: Streams) -> APIRouter:
    """Return all pages under /studies."""
    router = pages.router()
    Viewer = Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]  # noqa: N806  # a type
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    @router.get("/studies/{name}")
    def show(name: str, visitor: Viewer) -> HTMLResponse:
        study = studies.get(name)
        return pages.render(
            "study.html",
            visitor,
            name=study.name,
            parts=render_parts(study, visitor),
            chart=json.dumps(make_chart(study)),
            settings=describe_settings(study.settings, study.status().max_ahead),
            breaks_even=study.settings.built_policy.breaks_even,
            patience=study.settings.built_policy.patience,
            cap=study.settings.cap,
            in_rounds=study.settings.rounds,
        )

    @router.get("/studies/{name}/events")
    def events(request: Request, name: str) -> Response:
        visitor = pages.gate.identify(request, None)  # other sites are refused
        if visitor is None:  # a script cannot see a redirect
            return tell_gone()
        look = _watch(lambda: pages.gate.identify(request, None), lambda: studies.get(name))
        return streams.stream(request, visitor.name, look)

    def act(name: str, visitor: Visitor, action: Callable[[Study], None]) -> Response:
        action(studies.get(name).on_behalf_of(visitor.name))
        return RedirectResponse(study_url(name), HTTPStatus.SEE_OTHER)

    @router.post("/studies/{name}/pause")
    def pause(name: str, visitor: Admin) -> Response:
        return act(name, visitor, lambda study: study.pause())

    @router.post("/studies/{name}/resume")
    def resume(name: str, visitor: Admin) -> Response:
        return act(name, visitor, lambda study: study.resume())

    @router.post("/studies/{name}/stop")
    def stop(name: str, visitor: Admin, reason: Text = "") -> Response:
        return act(name, visitor, lambda study: study.stop(reason))

    @router.post("/studies/{name}/describe")
    def describe(name: str, visitor: Admin, description: Text = "") -> Response:
        return act(name, visitor, lambda study: study.describe(" ".join(description.split()) or None))

    @router.post("/studies/{name}/max-ahead")
    def set_max_ahead(name: str, visitor: Admin, max_ahead: Text = "") -> Response:
        limit: Any = parse_number("max_ahead", max_ahead) if max_ahead.strip() else None
        return act(name, visitor, lambda study: study.set_max_ahead(limit))

    @router.post("/studies/{name}/retire")
    def retire(name: str, visitor: Admin, arm: Text = "", reason: Text = "") -> Response:
        return act(name, visitor, lambda study: study.retire(arm, reason))

    return router


def _watch(identify: Callable[[], Visitor | None], find: Callable[[], StoredStudy]) -> Callable[[], str | None]:
    """Return a function that returns what last changed on the page, as JSON; None if the page must not be shown."""
    shown: dict[str, object] = {}
    status: Status | None = None
    last, drawn = "", 0.0

    def look() -> str | None:
        nonlocal last, drawn, status
        visitor = identify()  # None after signing out, or once the key is revoked
        if visitor is None:
            return None
        try:
            study = find()
            before, status = status, replace(study.status(), oldest=None)
            if status == before and time.monotonic() - drawn < REDRAW_SECONDS:  # the usual case
                return last
            drawn = time.monotonic()
            now: dict[str, object] = {**render_parts(study, visitor), "chart": make_chart(study)}
        except (StudyNotFoundError, InvalidValueError):  # the latter if the name is invalid
            return None
        changed = {name: piece for name, piece in now.items() if shown.get(name) != piece}
        if changed:
            shown.update(changed)
            last = json.dumps(changed)
        return last

    return look
