"""Run the service; until a key exists, only for this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from dbcare.errors import InvalidValueError
from dbcare.live.stores.base import Store
from dbcare.live.stores.open import open_store
from dbcare.server.access.gate import is_loopback
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import AccessRecords, open_records
from dbcare.server.app import make_app

SHUTDOWN_SECONDS = 5  # for responses in progress when the server is told to stop
MAX_CONNECTIONS = 1000


def serve(
    storage: str | Store,
    host: str,
    port: int,
    announce: Callable[[str, bool], None] | None = None,
    records: AccessRecords | None = None,
) -> None:
    """Serve until told to stop; until a key exists, for this machine only.

    `storage` and `records` are as in `make_app`. Once the server listens, `announce` is called with its address and
    whether keys are required.
    """
    store = open_store(storage)
    records = open_records(store) if records is None else records
    protected = Keys(records).any()
    if not protected and not is_loopback(host):
        raise InvalidValueError(
            f"`host` must be a loopback address such as 127.0.0.1 until a key exists but got {host}; "
            "to create one: dbcare keys create --role admin --name me."
        )
    config = uvicorn.Config(
        make_app(store, records=records),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
    )
    with open_listener(host, port) as listener:
        if announce is not None:
            shown = f"[{host}]" if ":" in host else host
            announce(f"http://{shown}:{listener.getsockname()[1]}", protected)
        uvicorn.Server(config).run(sockets=[listener])


def open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections at an address of this machine."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as refused:
        raise InvalidValueError(f"Cannot listen on {host}:{port}: {refused.strerror or refused}.") from None
