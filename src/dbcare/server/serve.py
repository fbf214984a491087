"""Run the service; until a key exists, only for this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import nullcontext

import uvicorn

from dbcare.errors import InvalidValueError
from dbcare.server.access.gate import is_loopback
from dbcare.server.access.keys import Keys
from dbcare.server.access.records import AccessRecords, open_records
from dbcare.server.addresses import TrustedProxies
from dbcare.server.app import make_app
from dbcare.server.connection_pool import ConnectionPool
from dbcare.server.connections import limit_connections
from dbcare.server.open_files import allow_connections
from dbcare.server.service_limits import DEFAULT_LIMITS, ServiceLimits
from dbcare.server.webhook import make_webhook
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.open import open_store

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
