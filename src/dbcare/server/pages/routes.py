"""Routes of the dashboard."""

from __future__ import annotations

from fastapi import APIRouter

from dbcare.server.access.gate import Gate
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages import files, listing, new, sign_in, study
from dbcare.server.pages.rendering import Pages


def routes(gate: Gate, catalogue: OpenStudies) -> APIRouter:
    """All pages, and the style sheet, scripts and plotly.js that they load; none is part of the API's description."""
    pages = Pages(gate)
    router = APIRouter(include_in_schema=False)
    for part in (sign_in.routes(pages), listing.routes(pages, catalogue), new.routes(pages, catalogue)):
        router.include_router(part)
    router.include_router(study.routes(pages, catalogue))
    router.include_router(files.routes())
    return router
