"""Styles and scripts, each under a name that changes with its content, so that browsers can cache it forever."""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from dbcare.server.problems import RefusalError

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
