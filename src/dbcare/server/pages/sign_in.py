"""In with a key, out again. Every sign-in is a new session, so that nobody can plant one beforehand."""

import threading
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from dbcare.server.access.gate import COOKIE, Visitor, is_cross_site
from dbcare.server.access.roles import Role
from dbcare.server.access.sessions import LASTS
from dbcare.server.limits import Bucket
from dbcare.server.pages.rendering import LOGIN, Pages
from dbcare.server.problems import RefusalError

RATE, BURST = 0.2, 10.0  # attempts a second from one address, and at once


def routes(pages: Pages) -> APIRouter:
    """/login and /logout."""
    router = pages.router()
    keys, sessions = pages.gate.keys, pages.gate.sessions
    attempts, lock = Bucket(RATE, BURST), threading.Lock()

    def form(status: HTTPStatus, way_back: str, message: str | None = None) -> HTMLResponse:
        return pages.show("login.html", None, status, way_back=way_back, message=message)

    @router.get(LOGIN)
    def ask(request: Request, next: str = "/") -> Response:  # noqa: A002  # its name in the address
        if pages.gate.visitor(request, None) is not None:
            return RedirectResponse(_ours(next), HTTPStatus.SEE_OTHER)
        return form(HTTPStatus.OK, _ours(next))

    @router.post(LOGIN)
    def enter(
        request: Request,
        key: Annotated[str, Form(max_length=1000)] = "",
        next: Annotated[str, Form(max_length=1000)] = "/",  # noqa: A002  # as above
    ) -> Response:
        if is_cross_site(request):
            raise RefusalError(HTTPStatus.FORBIDDEN, "The key must be sent from our own page.")
        known = keys.known(key.strip())
        if known is None:  # who has a key gets in, whatever others at the same address try
            with lock:
                wait = attempts.wait(request.client.host if request.client else "?")
            if wait > 0.0:
                seconds = int(wait) + 1
                answer = form(
                    HTTPStatus.TOO_MANY_REQUESTS, _ours(next), f"Too many attempts: try again in {seconds} seconds."
                )
                answer.headers["Retry-After"] = str(seconds)
                return answer
            return form(HTTPStatus.UNAUTHORIZED, _ours(next), "This key is not known here, or has been revoked.")
        _end(request)
        welcome = RedirectResponse(_ours(next), HTTPStatus.SEE_OTHER)
        welcome.set_cookie(
            COOKIE,
            sessions.open(known),
            max_age=int(LASTS),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return welcome

    @router.post("/logout")
    def leave(request: Request, _visitor: Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]) -> Response:
        _end(request)
        farewell = RedirectResponse(LOGIN, HTTPStatus.SEE_OTHER)
        farewell.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return farewell

    def _end(request: Request) -> None:
        """Of the session that the browser has, if it has one."""
        if (before := request.cookies.get(COOKIE)) is not None:
            sessions.close(before)

    return router


def _ours(address: str) -> str:
    """A path of this server to go on to; never another site's."""
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    return address if plain else "/"
