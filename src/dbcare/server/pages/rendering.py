"""What all pages share: templates, styles and scripts, errors as pages, and access."""

import gzip
import hashlib
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from markupsafe import Markup, escape

import dbcare
from dbcare.base import numbers
from dbcare.base.times import format_duration, format_minute
from dbcare.errors import DbcareError
from dbcare.server.access.gate import Gate, Visitor, is_cross_site
from dbcare.server.access.roles import Role
from dbcare.server.problems import RefusalError, describe_invalid, find_status, public_message
from dbcare.server.request_trace import get_trace
from dbcare.server.turns import Turns

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
CACHE_FOREVER = "public, max-age=31536000, immutable"
STATIC = files("dbcare.server.pages") / "static"
PLOTLY = "plotly.js"
STYLE_MARK = re.compile(rb'getElementById\("([0-9a-f]{64})"\)')

_compressing = threading.Lock()  # plotly.js takes a moment to compress


@cache
def file_url(name: str) -> str:
    """Return the URL of a file."""
    return f"/static/{_served_name(name)}"


def _served_name(name: str) -> str:
    if name == PLOTLY:
        return f"plotly-{version('plotly')}.min.js"
    stem, _, suffix = name.rpartition(".")
    return f"{stem}-{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}.{suffix}"


@cache
def _files_by_served_name() -> dict[str, str]:
    """Map the name under which a file is served to the file's own name."""
    return {_served_name(name): name for name in (PLOTLY, *(file.name for file in STATIC.iterdir()))}


@cache
def _read(name: str) -> bytes:
    return (files("plotly") / "package_data" / "plotly.min.js" if name == PLOTLY else STATIC / name).read_bytes()


@cache
def _compress(name: str) -> bytes:
    return gzip.compress(_read(name), compresslevel=6, mtime=0)


@cache
def style_marks() -> list[str]:
    """Return the ids of the styles that plotly.js would add, against our security policy, if it did not find them."""
    return sorted({mark.decode() for mark in STYLE_MARK.findall(_read(PLOTLY))})


def make_routes() -> APIRouter:
    """Return the route /static."""
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{served}")
    def send_file(request: Request, served: str) -> Response:
        name = _files_by_served_name().get(served)
        if name is None:
            raise RefusalError(HTTPStatus.NOT_FOUND, "No such file.")
        headers = {"Cache-Control": CACHE_FOREVER, "Vary": "Accept-Encoding"}
        kind = TYPES[name[name.rindex(".") :]]
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(_read(name), media_type=kind, headers=headers)
        with _compressing:
            compressed = _compress(name)
        return Response(compressed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})

    return router


LOGIN_PATH = "/login"
CODE = re.compile(r"`([^`]+)`")


def quote_segment(text: str) -> str:
    """Return a name as part of a URL."""
    return quote(text, safe="")


def mark_code(text: str) -> Markup:
    """Return a text as HTML, with what it has in backticks as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # escaped first


templates = jinja2.Environment(
    loader=jinja2.PackageLoader("dbcare.server.pages"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals |= {
    "file": file_url,
    "style_marks": style_marks,
    "version": dbcare.__version__,
    "zip": zip,
}
templates.filters |= {
    "segment": quote_segment,
    "code": mark_code,
    "number": numbers.format_number,
    "count": numbers.format_count,
    "duration": format_duration,
    "minute": format_minute,
}


class StrangerError(Exception):
    """The visitor must sign in first."""


class PageRoute(APIRoute):
    """A route that shows errors as a page, and sends strangers to the sign-in page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, with errors caught."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except StrangerError:
                back = f"?next={quote(request.url.path)}" if request.method == "GET" else ""
                return RedirectResponse(f"{LOGIN_PATH}{back}", HTTPStatus.SEE_OTHER)
            except RefusalError as refused:
                return render_problem(refused.status, str(refused), refused.headers)
            except RequestValidationError as invalid:
                return render_problem(HTTPStatus.UNPROCESSABLE_ENTITY, describe_invalid(invalid))
            except DbcareError as error:
                return render_problem(find_status(error), public_message(error))

        return handle_errors


def render_problem(status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> HTMLResponse:
    """Render an error as a page."""
    trace = get_trace()
    if trace is not None:
        trace.reason = detail
    request = trace and trace.id
    page = templates.get_template("problem.html").render(visitor=None, status=status, detail=detail, request=request)
    return HTMLResponse(page, int(status), headers)


def render_part(template: str, /, **context: Any) -> Markup:
    """Render a piece of a page."""
    return Markup(templates.get_template(f"parts/{template}.html").render(**context))  # already escaped


class Pages:
    """Renders pages, and checks who may see them."""

    def __init__(self, gate: Gate, looks: Turns) -> None:
        self.gate = gate
        self.looks = looks

    def router(self) -> APIRouter:
        """Return a router for pages."""
        return APIRouter(include_in_schema=False, route_class=PageRoute)

    def render(
        self, template: str, visitor: Visitor | None, status: HTTPStatus = HTTPStatus.OK, **context: Any
    ) -> HTMLResponse:
        """Render a page for a visitor; None if nobody is signed in."""
        return HTMLResponse(templates.get_template(template).render(visitor=visitor, **context), int(status))

    def needs(self, role: Role) -> Callable[..., Visitor]:
        """Return a dependency that admits browsers of visitors with the role; changes must come from our own forms."""

        def enter(request: Request, token: Annotated[str | None, Depends(_read_token)]) -> Visitor:
            visitor = self.gate.identify(request, None)
            if visitor is None:
                raise StrangerError
            if not visitor.role.allows(role):
                raise RefusalError(
                    HTTPStatus.FORBIDDEN, f"This requires the role {role}; {visitor.name} has the role {visitor.role}."
                )
            changes = request.method == "POST"
            if changes and (
                is_cross_site(request) or (visitor.session is not None and not visitor.session.issued(token))
            ):
                raise RefusalError(HTTPStatus.FORBIDDEN, "This form has expired. Go back, reload, and try again.")
            return visitor

        return enter

    def looking(self, role: Role) -> Any:
        """Return a dependency that admits browsers of visitors with the role when their turn to look comes."""

        async def look(
            request: Request, visitor: Annotated[Visitor, Depends(self.needs(role))]
        ) -> AsyncIterator[Visitor]:
            async with self.looks.take_for(request):
                yield visitor

        return Depends(look, scope="function")


async def _read_token(request: Request) -> str | None:
    """Return the token of a form, which proves that the form is ours."""
    if request.method != "POST":
        return None
    token = (await request.form()).get("csrf")
    return token if isinstance(token, str) else None
