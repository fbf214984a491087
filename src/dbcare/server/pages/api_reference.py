"""The API reference, from the service's own description."""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api.description import build_reference
from dbcare.server.pages.rendering import Pages


def make_routes(pages: Pages) -> APIRouter:
    """Return the page /docs."""
    router = pages.router()

    @router.get("/docs")
    def show_reference(request: Request, visitor: Annotated[Visitor, pages.looking(Role.VIEWER)]) -> HTMLResponse:
        reference, address = build_reference(request.app.openapi()), str(request.base_url).rstrip("/")
        return pages.render("api_reference.html", visitor, reference=reference, address=address)

    return router
