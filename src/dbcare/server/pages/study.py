"""The page of a study: its updates, and what its buttons do."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from dbcare.base.options import parse_number
from dbcare.errors import InvalidValueError, StudyNotFoundError
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.metrics import Metrics
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages.rendering import Pages, quote_segment
from dbcare.server.pages.shared_views import SharedViews
from dbcare.server.pages.study_view import StudyView
from dbcare.server.stream import Streams, tell_gone
from dbcare.studies.results.words import describe_settings
from dbcare.studies.study import Study

Text = Annotated[str, Form(max_length=2000)]


def study_url(name: str) -> str:
    """Return the URL of a study's page."""
    return f"/studies/{quote_segment(name)}"


def make_routes(pages: Pages, studies: OpenStudies, streams: Streams, metrics: Metrics) -> APIRouter:
    """Return all pages under /studies."""
    router = pages.router()
    views = SharedViews(studies, pages.looks)
    Viewer = Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]  # noqa: N806  # a type
    Admin = Annotated[Visitor, Depends(pages.needs(Role.ADMIN))]  # noqa: N806  # a type

    async def find_view(request: Request, name: str, _: Viewer) -> AsyncIterator[StudyView]:
        view = await views.get(name)
        async with pages.looks.take_for(request):
            yield view

    @router.get("/studies/{name}")
    def show(visitor: Viewer, view: Annotated[StudyView, Depends(find_view, scope="function")]) -> HTMLResponse:
        study = view.study
        return pages.render(
            "study.html",
            visitor,
            name=study.name,
            parts=view.parts_for(visitor),
            chart=json.dumps(view.chart),
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
        look = _watch(lambda: pages.gate.identify(request, None), lambda: views.watch(name))
        return streams.stream(request, visitor.name, look)

    def act(name: str, visitor: Visitor, action: Callable[[Study], object]) -> Response:
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

    @router.post("/studies/{name}/give-up")
    def give_up(name: str, visitor: Admin, older_than: Text = "") -> Response:
        age = older_than.strip() or None
        return act(name, visitor, lambda study: metrics.failed.inc(study.give_up(older_than=age)))

    @router.post("/studies/{name}/max-ahead")
    def set_max_ahead(name: str, visitor: Admin, max_ahead: Text = "") -> Response:
        limit: Any = parse_number("max_ahead", max_ahead) if max_ahead.strip() else None
        return act(name, visitor, lambda study: study.set_max_ahead(limit))

    @router.post("/studies/{name}/retire")
    def retire(name: str, visitor: Admin, arm: Text = "", reason: Text = "") -> Response:
        return act(name, visitor, lambda study: study.retire(arm, reason))

    return router


def _watch(
    identify: Callable[[], Visitor | None], find_view: Callable[[], Awaitable[StudyView]]
) -> Callable[[], Awaitable[str | None]]:
    """Return a function that returns what last changed on the page, as JSON; None if the page must not be shown."""
    shown: dict[str, object] = {}
    seen: tuple[Visitor, StudyView] | None = None
    last = ""

    async def look() -> str | None:
        nonlocal last, seen
        visitor = await run_in_threadpool(identify)  # None after signing out, or once the key is revoked
        if visitor is None:
            return None
        try:
            view = await find_view()
        except (StudyNotFoundError, InvalidValueError):  # the latter if the name is invalid
            return None
        if seen is not None and seen[0] == visitor and seen[1] is view:  # the usual case
            return last
        seen = visitor, view
        now: dict[str, object] = {**view.parts_for(visitor), "chart": view.chart}
        changed = {name: piece for name, piece in now.items() if shown.get(name) != piece}
        if changed:
            shown.update(changed)
            last = json.dumps(changed)
        return last

    return look
