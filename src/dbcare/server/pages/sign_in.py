"""Signing in with a key, and out. Every sign-in opens a new session, so that nobody can plant one in advance."""

import threading
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from dbcare.server.access.gate import COOKIE, KEY, VISITOR, Visitor, is_cross_site
from dbcare.server.access.keys import SESSION_SECONDS
from dbcare.server.access.roles import Role
from dbcare.server.limits import Bucket
from dbcare.server.pages.rendering import LOGIN_PATH, Pages
from dbcare.server.problems import RefusalError

ATTEMPTS_PER_SECOND, MAX_ATTEMPTS_AT_ONCE = 0.2, 10.0  # from one address


def make_routes(pages: Pages) -> APIRouter:
    """Return the pages /login and /logout."""
    router = pages.router()
    keys, sessions = pages.gate.keys, pages.gate.sessions
    attempts, lock = Bucket(ATTEMPTS_PER_SECOND, MAX_ATTEMPTS_AT_ONCE), threading.Lock()

    def render_form(status: HTTPStatus, return_path: str, message: str | None = None) -> HTMLResponse:
        return pages.render("login.html", None, status, return_path=return_path, message=message)

    @router.get(LOGIN_PATH)
    def show_form(request: Request, next: str = "/") -> Response:  # noqa: A002  # as in the URL
        if pages.gate.identify(request, None) is not None:
            return RedirectResponse(_local_path(next), HTTPStatus.SEE_OTHER)
        return render_form(HTTPStatus.OK, _local_path(next))

    @router.post(LOGIN_PATH)
    def sign_in(
        request: Request,
        key: Annotated[str, Form(max_length=1000)] = "",
        next: Annotated[str, Form(max_length=1000)] = "/",  # noqa: A002  # as in the form
    ) -> Response:
        if is_cross_site(request):
            raise RefusalError(HTTPStatus.FORBIDDEN, "Sign in from this server's own page.")
        active_key = keys.find(key.strip())
        if active_key is None:  # only failed attempts are limited: others may share the address
            with lock:
                wait = attempts.take(request.client.host if request.client else "?")
            if wait > 0.0:
                seconds = int(wait) + 1
                response = render_form(
                    HTTPStatus.TOO_MANY_REQUESTS, _local_path(next), f"Too many attempts; retry in {seconds} seconds."
                )
                response.headers["Retry-After"] = str(seconds)
                return response
            return render_form(HTTPStatus.UNAUTHORIZED, _local_path(next), "Unknown, expired, or revoked key.")
        request.scope[VISITOR], request.scope[KEY] = active_key.name, active_key
        close_session(request)
        redirect = RedirectResponse(_local_path(next), HTTPStatus.SEE_OTHER)
        redirect.set_cookie(
            COOKIE,
            sessions.open(active_key),
            max_age=int(SESSION_SECONDS),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return redirect

    @router.post("/logout")
    def sign_out(request: Request, _visitor: Annotated[Visitor, Depends(pages.needs(Role.VIEWER))]) -> Response:
        close_session(request)
        redirect = RedirectResponse(LOGIN_PATH, HTTPStatus.SEE_OTHER)
        redirect.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return redirect

    def close_session(request: Request) -> None:
        """Close the browser's session, if it has one."""
        if (cookie := request.cookies.get(COOKIE)) is not None:
            sessions.close(cookie)

    return router


def _local_path(address: str) -> str:
    """Return the address if it is a path on this server, else /."""
    is_local = (
        address.startswith("/") and not address.startswith("//") and "\\" not in address and address.isprintable()
    )
    return address if is_local else "/"
