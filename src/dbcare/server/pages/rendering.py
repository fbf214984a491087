"""What all pages share: templates, errors as pages in the library's own words, and who may see them."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

import jinja2
from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from markupsafe import Markup

import dbcare
from dbcare.errors import DbcareError
from dbcare.server.access.gate import Gate, Visitor, is_cross_site
from dbcare.server.access.roles import Role
from dbcare.server.pages import files, formatting
from dbcare.server.problems import RefusalError, said_of, status_of, words_of

LOGIN = "/login"


def segment(text: str) -> str:
    """A name as part of an address."""
    return quote(text, safe="")


templates = jinja2.Environment(
    loader=jinja2.PackageLoader("dbcare.server.pages"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.globals |= {"file": files.address, "style_marks": files.style_marks, "version": dbcare.__version__}
templates.filters |= {
    "segment": segment,
    "number": formatting.number,
    "count": formatting.count,
    "duration": formatting.duration,
}


class StrangerError(Exception):
    """Somebody who has to sign in first."""


class PageRoute(APIRoute):
    """Answers errors with a page, and strangers with the way in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As the framework's own, with errors caught."""
        answer = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await answer(request)
            except StrangerError:
                back = f"?next={quote(request.url.path)}" if request.method == "GET" else ""
                return RedirectResponse(f"{LOGIN}{back}", HTTPStatus.SEE_OTHER)
            except RefusalError as refused:
                return problem_page(refused.status, str(refused), refused.headers)
            except RequestValidationError as invalid:
                return problem_page(HTTPStatus.UNPROCESSABLE_ENTITY, said_of(invalid))
            except DbcareError as error:
                return problem_page(status_of(error), words_of(error))

        return shown


def problem_page(status: HTTPStatus, detail: str, headers: dict[str, str] | None = None) -> HTMLResponse:
    """An error, for people."""
    page = templates.get_template("problem.html").render(visitor=None, status=status, detail=detail)
    return HTMLResponse(page, int(status), headers)


def part(template: str, /, **context: Any) -> Markup:
    """A piece of a page."""
    return Markup(templates.get_template(f"parts/{template}.html").render(**context))  # it is escaped


class Pages:
    """Shows pages to those who may see them."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def router(self) -> APIRouter:
        """For routes that are pages."""
        return APIRouter(include_in_schema=False, route_class=PageRoute)

    def show(
        self, template: str, visitor: Visitor | None, status: HTTPStatus = HTTPStatus.OK, **context: Any
    ) -> HTMLResponse:
        """A page as a visitor may see it."""
        return HTMLResponse(templates.get_template(template).render(visitor=visitor, **context), int(status))

    def needs(self, role: Role) -> Callable[..., Visitor]:
        """A dependency that lets in browsers of who has the role; what changes something must come from our forms."""

        def enter(request: Request, token: Annotated[str | None, Depends(_token)]) -> Visitor:
            visitor = self.gate.visitor(request, None)
            if visitor is None:
                raise StrangerError
            if not visitor.role.allows(role):
                raise RefusalError(
                    HTTPStatus.FORBIDDEN, f"The role must be {role} for this but {visitor.name} has {visitor.role}."
                )
            changes = request.method == "POST"
            if changes and (
                is_cross_site(request) or (visitor.session is not None and not visitor.session.wrote(token))
            ):
                raise RefusalError(
                    HTTPStatus.FORBIDDEN, "This must be sent from a page of your session: go back, reload, try again."
                )
            return visitor

        return enter


async def _token(request: Request) -> str | None:
    """What a form brought along to show that it is ours."""
    if request.method != "POST":
        return None
    given = (await request.form()).get("csrf")
    return given if isinstance(given, str) else None
