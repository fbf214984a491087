"""The dashboard: pages rendered on the server and updated by a few lines of script; no third-party resources."""

from fastapi import APIRouter

from dbcare.server.access.gate import Gate
from dbcare.server.metrics import Metrics
from dbcare.server.pages import api_reference, new, rendering, sign_in, study
from dbcare.server.pages import studies as listing
from dbcare.server.pages.rendering import Pages
from dbcare.server.stream import Streams
from dbcare.server.studies import OpenStudies
from dbcare.server.turns import Turns


def make_routes(gate: Gate, studies: OpenStudies, streams: Streams, looks: Turns, metrics: Metrics) -> APIRouter:
    """Return all pages, and the style sheet and scripts that they load; the API's description leaves them out."""
    pages = Pages(gate, looks)
    router = APIRouter(include_in_schema=False)
    router.include_router(sign_in.make_routes(pages))
    for module in (listing, new):
        router.include_router(module.make_routes(pages, studies))
    router.include_router(study.make_routes(pages, studies, streams, metrics))
    router.include_router(api_reference.make_routes(pages))
    router.include_router(rendering.make_routes())
    return router
