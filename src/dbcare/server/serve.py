"""Run the service, and refuse to stand open to the world."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from dbcare.errors import InvalidValueError
from dbcare.live.stores.sql.store import SqlStore
from dbcare.server.access.gate import is_loopback
from dbcare.server.access.keys import Keys
from dbcare.server.app import make_app

LAST_WORDS = 5  # seconds that answers in progress have, once the server is told to stop
MOST_AT_ONCE = 1000  # connections


def serve(storage: str, host: str, port: int, said: Callable[[str, bool], None] | None = None) -> None:
    """Serve until told to stop; without any key, on this machine only.

    `said` is told the address, and whether keys are asked for, once it listens.
    """
    protected = is_protected(storage)
    if not protected and not is_loopback(host):
        raise InvalidValueError(
            f"`host` must be a loopback address such as 127.0.0.1 as long as there is no key but got {host}; "
            "make one: dbcare keys create --role admin --name me."
        )
    config = uvicorn.Config(
        make_app(storage),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=LAST_WORDS,
        limit_concurrency=MOST_AT_ONCE,
    )
    with listening(host, port) as listener:
        if said is not None:
            shown = f"[{host}]" if ":" in host else host
            said(f"http://{shown}:{listener.getsockname()[1]}", protected)
        uvicorn.Server(config).run(sockets=[listener])


def is_protected(storage: str) -> bool:
    """Whether keys are asked for."""
    store = SqlStore(storage)
    try:
        return Keys(store).any()
    finally:
        store.close()


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections there."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as refused:
        raise InvalidValueError(
            f"`host` and `port` must be a free address of this machine but got {host} and {port}: "
            f"{refused.strerror or refused}."
        ) from None
