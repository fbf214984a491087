"""The application, with all of its routes, and how it is served."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from http import HTTPStatus

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

import dbcare
from dbcare.errors import InvalidValueError, StudyNotFoundError, TrialNotFoundError
from dbcare.server import pages, problems
from dbcare.server.access.gate import Gate, is_loopback
from dbcare.server.access.keys import Keys, Sessions
from dbcare.server.access.records import AccessRecords, open_records
from dbcare.server.access.roles import Role
from dbcare.server.api import planning, schemas
from dbcare.server.api.description import build_openapi
from dbcare.server.api.lean_path import LeanPath
from dbcare.server.api.studies import StudyRoutes
from dbcare.server.limits import HEALTH_PATH, READY_PATH, Limits, SecurityHeaders, TrustedProxies
from dbcare.server.metrics import Metrics, MetricsMiddleware, Readiness, Refusal, StudyFigures
from dbcare.server.request_log import RequestLog
from dbcare.server.service_limits import DEFAULT_LIMITS, ServiceLimits
from dbcare.server.sockets import ConnectionPool, allow_connections, limit_connections
from dbcare.server.stream import Streams
from dbcare.server.studies import OpenStudies
from dbcare.server.turns import Turns
from dbcare.server.webhook import make_webhook
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.open import open_store

PROBLEM_CODES = (400, 401, 403, 404, 409, 413, 422, 429, 503)
ABOUT = """Which option to try next, and when to stop: live studies over HTTP.

Every route needs a key with a role (viewer, worker or admin), sent as `Authorization: Bearer ...`. Errors are problem
details (RFC 9457).
"""


def make_app(
    storage: str | Store, limits: ServiceLimits = DEFAULT_LIMITS, records: AccessRecords | None = None
) -> FastAPI:
    """Return an ASGI application for the studies in a store; several may serve the same database.

    `storage` is an address or a store, as in `create_study`. Keys and sessions are kept in `records`. Default: in the
    store's database, or in memory if it has none. Limits on connections are up to `serve`, or to your own server, which
    must support lifespan events: from startup to shutdown, the application watches its store for /readyz and /metrics.
    """
    store = open_store(storage, create=True)
    records = open_records(store) if records is None else records
    gate = Gate(Keys(records), Sessions(records))
    readiness = Readiness(store)
    studies, metrics = OpenStudies(store), Metrics(limits)
    metrics.add_gauge("dbcare_ready", "Whether a write would succeed", lambda: float(readiness.find_problem() is None))
    figures = StudyFigures(studies, metrics, readiness)

    @asynccontextmanager
    async def watch(_app: FastAPI) -> AsyncIterator[None]:
        readiness.start()
        figures.start()
        yield
        readiness.end()
        figures.end()

    app = FastAPI(
        title="dbcare",
        version=dbcare.__version__,
        description=ABOUT,
        docs_url=None,  # these pages load scripts from another site
        redoc_url=None,
        openapi_url=None,  # only for those with a key, and made once
        redirect_slashes=False,  # to wherever the client says that this is
        lifespan=watch,
        responses={code: {"model": schemas.Problem} for code in PROBLEM_CODES},
    )
    looks = Turns(limits.waiting_looks, metrics, Refusal.LOOKS_FULL)
    long_work = Turns(limits.waiting_checks, metrics, Refusal.CHECKS_FULL)
    study_routes = StudyRoutes(gate, studies, metrics, looks, long_work).build()
    app.state.streams = Streams(limits, metrics)
    routers = (
        study_routes,
        planning.make_routes(gate, long_work),
        pages.make_routes(gate, studies, app.state.streams, looks, metrics),
    )
    for router in routers:
        app.include_router(router)

    @app.head(HEALTH_PATH, include_in_schema=False)
    @app.get(HEALTH_PATH, tags=["service"])
    async def health() -> schemas.Health:
        """Say that the process is alive, whatever its database does; open to everyone."""
        return schemas.Health(status="ok", version=dbcare.__version__)

    @app.head(READY_PATH, include_in_schema=False, response_model=None)
    @app.get(READY_PATH, tags=["service"], response_model=schemas.Health)
    async def ready() -> schemas.Health | JSONResponse:
        """Say whether an ask or a tell would succeed, as of the last seconds; 503 if not. Open to everyone."""
        if (problem := readiness.find_problem()) is not None:
            return problems.make_problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem} See the server's log.")
        return schemas.Health(status="ready", version=dbcare.__version__)

    @cache
    def describe() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False).encode()

    @app.get("/v1/openapi.json", include_in_schema=False, dependencies=[gate.needs(Role.VIEWER)])
    def show_description() -> Response:
        return Response(describe(), media_type="application/json")

    @app.get(
        "/metrics",
        tags=["service"],
        dependencies=[gate.needs(Role.VIEWER, in_time=True)],
        response_class=PlainTextResponse,
    )
    async def prometheus() -> PlainTextResponse:
        """Return the metrics of this process in the Prometheus text format."""
        return PlainTextResponse(metrics.text())

    metrics.expect([*app.routes, *(route for router in routers for route in router.routes)], PROBLEM_CODES)
    app.state.metrics = metrics
    problems.install(app)

    @app.exception_handler(StudyNotFoundError)
    def forget_study(request: Request, error: StudyNotFoundError) -> JSONResponse:
        if not isinstance(error, TrialNotFoundError):
            studies.forget(request.path_params.get("name", ""))  # it may have been re-created
        return problems.report_error(error)

    app.openapi = lambda: build_openapi(app)  # type: ignore[method-assign]  # as FastAPI documents it
    app.add_middleware(LeanPath, gate=gate, studies=studies, metrics=metrics, routes=study_routes.routes)
    app.add_middleware(Limits, limits=limits, gate=gate, metrics=metrics)
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestLog)
    return app


SHUTDOWN_SECONDS = 5  # for responses in progress when the server is told to stop
SOCKET_BYTES = 256 * 1024  # that the system holds for a connection in each direction; it would hold megabytes
THIS_MACHINE = "127.0.0.1,::1"


def serve(
    storage: str | Store,
    host: str,
    port: int,
    announce: Callable[[str, bool], None] | None = None,
    records: AccessRecords | None = None,
    webhook: str | None = None,
    limits: ServiceLimits = DEFAULT_LIMITS,
    trusted_proxies: str | None = None,
) -> None:
    """Serve until told to stop; until a key exists, for this machine only.

    `storage` and `records` are as in `make_app`. Once the server listens, `announce` is called with its address and
    whether keys are required. `webhook` is a URL to tell when a study stops, signed with DBCARE_WEBHOOK_SECRET.
    `trusted_proxies` are addresses or networks, such as "10.0.0.5,192.168.0.0/16", that say in headers whom they pass
    on; they may have any number of connections. Default: this machine, with as many connections as anyone else.
    """
    exempt = TrustedProxies(trusted_proxies or "")
    allow_connections(limits.connections)
    store = open_store(storage, create=True)
    records = open_records(store) if records is None else records
    protected = Keys(records).any()
    if not protected and not is_loopback(host):
        raise InvalidValueError(
            f"`host` must be a loopback address such as 127.0.0.1 until a key exists but got {host}; "
            "to create one: dbcare keys create --role admin --name me."
        )
    app = make_app(store, limits, records)
    notifier = None if webhook is None else make_webhook(webhook, store, app.state.metrics.count_notice)
    config = uvicorn.Config(
        app,
        http=limit_connections(ConnectionPool(limits, app.state.metrics, exempt)),
        ws="none",
        forwarded_allow_ips=trusted_proxies or THIS_MACHINE,
        log_config=None,  # logging is up to the program
        log_level="error",  # a warning is about a client, and there may be thousands; they are counted in /metrics
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    with open_listener(host, port) as listener, nullcontext() if notifier is None else notifier:
        if announce is not None:
            shown = f"[{host}]" if ":" in host else host
            announce(f"http://{shown}:{listener.getsockname()[1]}", protected)
        server = Server(config)
        app.state.streams.is_closing = lambda: server.should_exit
        server.run(sockets=[listener])


class Server(uvicorn.Server):
    """A server that stops without failing a request that was sent to it."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, but not before everything that connected was accepted."""
        await asyncio.sleep(0.0)  # meanwhile the event loop accepts
        await super().shutdown(sockets)


def open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections at an address of this machine."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as refused:
        raise InvalidValueError(f"Cannot listen on {host}:{port}: {refused.strerror or refused}.") from None
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):  # passed on to the sockets of connections
        listener.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
    return listener
