"""All limits of the service in one place; the options of `dbcare serve` and the gauges of /metrics are made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, get_type_hints

from dbcare.base import checks


@dataclass(frozen=True)
class ServiceLimits:
    """How much strangers, visitors and all of them together may take of one server process."""

    header_bytes: Annotated[int, "Size of a request line and its headers."] = 64 * 1024
    header_count: Annotated[int, "Headers per request."] = 100
    header_seconds: Annotated[float, "Time for all headers to arrive."] = 10.0
    body_bytes: Annotated[int, "Size of a request body."] = 4 * 1024 * 1024
    stranger_body_bytes: Annotated[int, "Size of a request body sent without a valid key."] = 64 * 1024
    body_seconds: Annotated[float, "Time for a body to arrive."] = 30.0
    idle_seconds: Annotated[int, "Time between two requests on a connection."] = 60
    write_seconds: Annotated[float, "Time for which a client may read nothing of its response."] = 30.0
    pipelined_requests: Annotated[int, "Requests waiting on a connection for the response to an earlier one."] = 16
    connections: Annotated[int, "Connections in total; at the limit, those that wait for a request are closed."] = 1000
    connections_per_address: Annotated[int, "Connections from one address that is not a trusted proxy."] = 200
    requests_per_second: Annotated[float, "Requests from one address."] = 20_000.0
    stranger_requests_per_second: Annotated[float, "Requests from one address without a valid key."] = 50.0
    waiting_looks: Annotated[int, "Views and exports waiting in line, for the owner of one key."] = 200
    waiting_checks: Annotated[int, "Checks, plans and retirements waiting in line, for the owner of one key."] = 3
    streams: Annotated[int, "Pages updated live, in total."] = 200
    streams_per_visitor: Annotated[int, "Pages updated live for the owner of one key."] = 50

    def __post_init__(self) -> None:
        """Check that all limits are positive, and those that count something whole."""
        for name, kind, _ in describe_limits():
            value = getattr(self, name)
            if kind is int:
                checks.whole(name, value, at_least=1)
            else:
                checks.positive(name, value)


def describe_limits() -> Iterator[tuple[str, type[int] | type[float], str]]:
    """Yield the name, type and meaning of every limit."""
    hints = get_type_hints(ServiceLimits, include_extras=True)
    for field in fields(ServiceLimits):
        hint = hints[field.name]
        yield field.name, hint.__origin__, hint.__metadata__[0]


DEFAULT_LIMITS = ServiceLimits()
