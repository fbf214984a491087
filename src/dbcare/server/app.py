"""The service put together: one application over one database. It keeps nothing that others could not know."""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse

import dbcare
from dbcare.errors import StudyNotFoundError
from dbcare.live.stores.sql.store import SqlStore
from dbcare.server import problems
from dbcare.server.access.gate import Gate
from dbcare.server.access.keys import Keys
from dbcare.server.access.roles import Role
from dbcare.server.access.sessions import Sessions
from dbcare.server.api import planning, schemas, studies
from dbcare.server.api.openapi import described
from dbcare.server.headers import SecurityHeaders
from dbcare.server.limits import Limits
from dbcare.server.metrics import Measured, Metrics
from dbcare.server.open_studies import OpenStudies
from dbcare.server.pages import routes as pages

RATE = 2000.0  # requests a second from one address
ABOUT = """Which option to try next, what came of it, and when to stop: live studies over HTTP.

Every route needs a key with a role (viewer, worker or admin), sent as `Authorization: Bearer ...`. Errors are problem
details (RFC 9457).
"""


def make_app(storage: str, rate: float = RATE) -> FastAPI:
    """An ASGI application for the studies at an address; several may serve the same database."""
    store = SqlStore(storage)
    gate = Gate(Keys(store), Sessions(store))
    catalogue, metrics = OpenStudies(store), Metrics()
    refusals = {code: {"model": schemas.Problem} for code in (400, 401, 403, 404, 409, 413, 422, 429, 503)}
    app = FastAPI(
        title="dbcare",
        version=dbcare.__version__,
        description=ABOUT,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=refusals,  # type: ignore[arg-type]  # keys may be numbers
    )
    app.include_router(studies.routes(gate, catalogue, metrics))
    app.include_router(planning.routes(gate))
    app.include_router(pages.routes(gate, catalogue))

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["service"])
    def health() -> schemas.Health:
        """Whether the database answers; open to all."""
        store.names()
        return schemas.Health(status="ok", version=dbcare.__version__)

    @app.get(
        "/metrics",
        tags=["service"],
        dependencies=[Depends(gate.needs(Role.VIEWER))],
        response_class=PlainTextResponse,
    )
    def prometheus() -> PlainTextResponse:
        """Figures of this process, for Prometheus."""
        return PlainTextResponse(metrics.text())

    problems.install(app)

    @app.exception_handler(StudyNotFoundError)
    def gone(request: Request, error: StudyNotFoundError) -> JSONResponse:
        catalogue.forget(request.path_params.get("name", ""))  # it may have been made anew
        return problems.of_the_library(error)

    app.openapi = lambda: described(app)  # type: ignore[method-assign]  # the way that FastAPI documents
    app.add_middleware(Limits, rate=rate)
    app.add_middleware(Measured, metrics=metrics)
    app.add_middleware(SecurityHeaders)
    return app
