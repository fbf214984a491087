"""Routes of the dashboard."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from dbcare.server.access.gate import Gate
from dbcare.server.catalogue import Catalogue


def routes(gate: Gate, catalogue: Catalogue) -> APIRouter:
    """All pages; none of them is part of the API's description."""
    return APIRouter(include_in_schema=False)


def mount_files(app: FastAPI) -> None:
    """The style sheet, the scripts, and plotly.js as the plotly package carries it."""
