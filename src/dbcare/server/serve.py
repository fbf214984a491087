"""Run the service, and refuse to stand open to the world."""

from __future__ import annotations

import ipaddress

import uvicorn

from dbcare.errors import InvalidValueError
from dbcare.live.sql import SqlStore
from dbcare.server.access.keys import Keys
from dbcare.server.app import make_app


def serve(storage: str, host: str, port: int) -> None:
    """Serve until told to stop; without any key, on this machine only."""
    check_access(storage, host)
    uvicorn.run(
        make_app(storage), host=host, port=port, log_level="warning", server_header=False, timeout_keep_alive=60
    )


def check_access(storage: str, host: str) -> bool:
    """Whether keys are asked for; an error if they are not and others could reach the server."""
    store = SqlStore(storage)
    protected = Keys(store).any()
    store.close()
    if not protected and not is_loopback(host):
        raise InvalidValueError(
            f"`host` must be a loopback address such as 127.0.0.1 as long as there is no key but got {host}; "
            "make one: dbcare keys create --role admin --name me."
        )
    return protected


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
