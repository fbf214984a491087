"""Connections with limits from the first byte on: how many, how fast, and which must give way.

Every connection is in one phase, and each phase lists its connections in the order in which they entered it: the first
is the one to close if a new connection needs its place.

What a client sends is counted before it is parsed. A request that is too large, too slow or malformed is answered
without the application, and the connection is closed. So is one whose client does not read its response.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, OrderedDict
from enum import StrEnum
from http import HTTPStatus
from typing import Any, ClassVar, Protocol

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import get_remote_addr

from dbcare.errors import InvalidValueError
from dbcare.server.access.gate import VISITOR
from dbcare.server.limits import TrustedProxies, identify_client
from dbcare.server.metrics import Metrics, Refusal
from dbcare.server.problems import make_problem
from dbcare.server.service_limits import ServiceLimits


class Phase(StrEnum):
    """What a connection is doing."""

    LEAVING = "leaving"  # refused or closed; its last response may not have been read yet
    HEADERS = "headers"  # the request's headers are incomplete
    IDLE = "idle"  # between two requests
    BODY = "body"  # the request's body is incomplete
    RESPONDING = "responding"  # the request is complete, its response is not


GIVING_WAY = (Phase.LEAVING, Phase.HEADERS, Phase.IDLE, Phase.BODY)  # in this order; responses are always completed
SWEEPS_PER_TIMEOUT = 4  # a connection may overstay by as much
MAX_SWEEP_SECONDS = 1.0


class PooledConnection(Protocol):
    """A connection, as far as the pool knows it."""

    phase: Phase
    client_network: str  # what counts as one address

    def abort(self) -> None:
        """Close the connection at once."""

    def expire(self) -> None:
        """Refuse a request that takes too long to arrive."""


class ConnectionPool:
    """The connections of one server."""

    def __init__(self, limits: ServiceLimits, metrics: Metrics, trusted: TrustedProxies) -> None:
        self.limits = limits
        self.metrics = metrics
        self._trusted = trusted
        self._phases: dict[Phase, OrderedDict[PooledConnection, float]] = {phase: OrderedDict() for phase in Phase}
        self._size = 0
        self._per_client: Counter[str] = Counter()
        self._timeouts = {Phase.HEADERS: limits.header_seconds, Phase.BODY: limits.body_seconds}
        self._sweep_seconds = min(MAX_SWEEP_SECONDS, min(self._timeouts.values()) / SWEEPS_PER_TIMEOUT)
        self._sweeping = False
        for phase, connections in self._phases.items():
            metrics.connections.labels(phase).set_function(connections.__len__)

    def admit(self, connection: PooledConnection, address: str) -> Refusal | None:
        """Admit a new connection, closing one that waits if there are too many; return why if it must be refused."""
        client = connection.client_network
        if self._per_client[client] >= self.limits.connections_per_address and address not in self._trusted:
            return Refusal.ADDRESS_FULL
        if self._size >= self.limits.connections and not self._make_room():
            return Refusal.FULL
        self._size += 1
        self._per_client[client] += 1
        self._phases[Phase.HEADERS][connection] = time.monotonic()
        if not self._sweeping:
            self._sweeping = True
            self._sweep_later()
        return None

    def enter(self, connection: PooledConnection, phase: Phase) -> None:
        """Note that a connection enters a phase, unless it was refused or is closed."""
        if self._phases[connection.phase].pop(connection, None) is not None:
            self._phases[phase][connection] = time.monotonic()
        connection.phase = phase

    def release(self, connection: PooledConnection) -> None:
        """Forget a connection that is closed."""
        if self._phases[connection.phase].pop(connection, None) is None:
            return
        client = connection.client_network
        self._size -= 1
        self._per_client[client] -= 1
        if self._per_client[client] == 0:
            del self._per_client[client]

    def _make_room(self) -> bool:
        for phase in GIVING_WAY:
            if self._phases[phase]:
                self.metrics.refuse(Refusal.GAVE_WAY)
                next(iter(self._phases[phase])).abort()
                return True
        return False

    def _sweep_later(self) -> None:
        asyncio.get_running_loop().call_later(self._sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        """Let connections expire whose time is up; sweep again as long as there are any."""
        now = time.monotonic()
        for phase, seconds in self._timeouts.items():
            expired = [connection for connection, since in self._phases[phase].items() if now - since > seconds]
            for connection in expired:
                connection.expire()
        self._sweeping = self._size > 0
        if self._sweeping:
            self._sweep_later()


OTHER_FILES = 200  # the database, the program itself, and connections about to be refused


def allow_connections(connections: int) -> None:
    """Raise this process's limit on open files as far as its connections need; an error if the system forbids it."""
    if sys.platform == "win32":
        return  # there is no such limit
    import resource  # noqa: PLC0415  # not on Windows

    needed = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InvalidValueError(
            f"`connections` must be at most {hard - OTHER_FILES} here but got {connections}: this process may open "
            f"{hard} files; raise that limit (ulimit -Hn, or LimitNOFILE in systemd) or lower `connections`."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


LEAVING_SECONDS = 1.0  # for a refused client to read why
LAST_REQUEST_SECONDS = 1.0  # for a client's next request after the server was told to stop
DISCARDED_BYTES = 2**20  # of a refused body, so that its client can send the next request on the same connection
READ_STEP = 48 * 1024  # bytes that a client must read of a long response before its time starts anew

# Answers to refusals, where there is an answer; the limits fill in the numbers.
ANSWERS = {
    Refusal.ADDRESS_FULL: (429, "Too many connections: one address may have {connections_per_address}. Close some."),
    Refusal.FULL: (503, "All {connections} connections are in use; retry later."),
    Refusal.MALFORMED: (400, "The request is not valid HTTP/1.1."),
    Refusal.LARGE_HEADERS: (
        431,
        "The headers are too large: the limit is {header_bytes:,} bytes and {header_count} headers.",
    ),
    Refusal.SLOW_HEADERS: (408, "The headers did not arrive within {header_seconds:g} seconds."),
    Refusal.SLOW_BODY: (408, "The body did not arrive within {body_seconds:g} seconds."),
}


class StopParsingError(Exception):
    """The request was refused in the middle of what arrived; uvicorn takes it for a malformed one."""


class LimitedConnection(HttpToolsProtocol):
    """A connection with limits; `limit_connections` binds it to a pool."""

    pool: ClassVar[ConnectionPool]
    answers: ClassVar[dict[Refusal, bytes]]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.limits = self.pool.limits
        self.phase = Phase.HEADERS
        self.client_network = ""
        self._in_headers = True  # of a request that has begun or is yet to come; else in its body
        self._unframed = 0  # bytes since a request's headers were complete, or a part of its body arrived
        self._advanced = False  # whether one of these happened just now
        self._discarded = 0  # bytes of a body whose request was answered before they came
        self._deaf = False  # whatever else arrives is ignored
        self._running: RequestResponseCycle | None = None
        self._was_known = False  # whether the last response was to a visitor who was identified
        self._is_ending = False  # whether the server was told to stop
        self._leaving: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Admit the connection, or refuse it at once."""
        self.transport = transport
        address = (get_remote_addr(transport) or ("?", 0))[0]
        self.client_network = identify_client(address)
        refused = self.pool.admit(self, address)
        if refused is None:
            super().connection_made(transport)
            return
        self._deaf = True
        self.pool.metrics.refuse(refused)
        transport.write(self.answers[refused])
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and tell whoever works on its requests."""
        self.pool.release(self)
        for timer in (self._leaving, self._reading):
            if timer is not None:
                timer.cancel()
        self._disconnect_all()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, in pieces that cannot exceed a limit by much."""
        if self._deaf:
            self._ignore(len(data))
            return
        start = 0
        while start < len(data) and not self._deaf:
            end = start + self.limits.header_bytes - self._unframed
            piece = data[start:end]
            self._advanced = False
            super().data_received(piece)
            self._unframed = 0 if self._advanced else self._unframed + len(piece)
            if not self._deaf and self._has_large_headers():
                self._refuse(Refusal.LARGE_HEADERS)
            start = end
        self._settle()

    def _ignore(self, size: int) -> None:
        """Read no more for now; close the connection if its client goes on and on after a refusal."""
        self._discarded += size
        if self._discarded > self.limits.body_bytes:
            self.abort()
        else:
            self.flow.pause_reading()

    def _has_large_headers(self) -> bool:
        """Return whether there are too many headers, or trailers, or too many bytes that are not part of a body."""
        return self._unframed >= self.limits.header_bytes or (
            self.headers is not None and len(self.headers) > self.limits.header_count
        )

    def on_headers_complete(self) -> None:
        """Begin to work on a request, or let it wait for those before it."""
        if len(self.headers) > self.limits.header_count:
            self._refuse(Refusal.LARGE_HEADERS)
            raise StopParsingError
        if len(self.pipeline) >= self.limits.pipelined_requests or self._is_busy_for_stranger():
            self._refuse(Refusal.PIPELINED)
            raise StopParsingError
        super().on_headers_complete()
        if self._is_ending:
            self.cycle.keep_alive = False
        self._in_headers, self._advanced = False, True

    def _is_busy_for_stranger(self) -> bool:
        """Return whether a response is under way to a client that has shown no valid key on this connection."""
        if self._running is None or self._running.response_complete:
            return False
        return not self._was_known and VISITOR not in self._running.scope

    def on_body(self, body: bytes) -> None:
        """Collect the body; wake the application when all of it is there, or more than should wait."""
        self._advanced = True
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > DISCARDED_BYTES:
                self._refuse(Refusal.LARGE_BODY)
                raise StopParsingError
            return
        self.cycle.body += body
        if len(self.cycle.body) > HIGH_WATER_LIMIT:
            if self.pipeline:  # nobody will take it for some time
                self._refuse(Refusal.PIPELINED)
                raise StopParsingError
            self.flow.pause_reading()
            self.cycle.message_event.set()

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_headers, self._advanced, self._discarded = True, True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End a response; a client that must not send more has some time to read it."""
        self._was_known = self._running is not None and VISITOR in self._running.scope
        super().on_response_complete()
        if self.transport.is_closing():
            self._leave()
        else:
            self._settle()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def shutdown(self) -> None:
        """Answer one more request, for which the connection is closed.

        A proxy may be sending one just now. If the connection were closed instead, the proxy could not know whether the
        request had an effect, and would respond with 502.
        """
        self._is_ending = True
        if self.cycle is None or self.cycle.response_complete:
            self._leaving = self.loop.call_later(LAST_REQUEST_SECONDS, super().shutdown)
        else:
            super().shutdown()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer a request to change the protocol as if it had not been made, then close the connection."""
        self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; our answer says so instead of `msg`."""
        if not self._deaf:
            self._refuse(Refusal.MALFORMED)

    def _settle(self) -> None:
        """Tell the pool if the connection has entered another phase."""
        if self.phase is Phase.LEAVING:
            return
        if not self._in_headers:
            phase = Phase.RESPONDING if self.pipeline else Phase.BODY
        elif self.cycle is not None and not self.cycle.response_complete:
            phase = Phase.RESPONDING
        elif self.cycle is None or self._has_begun():
            phase = Phase.HEADERS
        else:
            phase = Phase.IDLE
        if phase is not self.phase:
            self.pool.enter(self, phase)

    def _has_begun(self) -> bool:
        """Return whether anything has arrived of a request whose headers are incomplete."""
        return self._unframed > 0 or self.scope is not (None if self.cycle is None else self.cycle.scope)

    def _refuse(self, reason: Refusal) -> None:
        """Listen no more; send a refusal, unless a response is under way: then close the connection after it."""
        self._deaf = True
        self.pool.metrics.refuse(reason)
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy and self._in_headers:  # the requests before this one are in order
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if is_busy and (self.pipeline or self.cycle.response_started):
            self.abort()
            return
        if is_busy:
            _disconnect(self.cycle)
        if self._in_headers or is_busy:
            self.transport.write(self.answers[reason])
        # To close now would tell the client's system to throw the answer away, since it still sends.
        self.transport.write_eof()
        self.flow.pause_reading()
        self._leave()
        self._leaving = self.loop.call_later(LEAVING_SECONDS, self.transport.abort)

    def expire(self) -> None:
        """Refuse a request that takes too long to arrive; close a connection on which nothing did."""
        if self.phase is Phase.BODY:
            self._refuse(Refusal.SLOW_BODY)
        elif self._has_begun():
            self._refuse(Refusal.SLOW_HEADERS)
        else:
            self.pool.metrics.refuse(Refusal.SLOW_HEADERS)
            self._deaf = True
            self.transport.close()
            self._leave()

    def abort(self) -> None:
        """Close the connection at once, with whatever was not read."""
        self._deaf = True
        self.pool.release(self)
        self._disconnect_all()
        self.transport.abort()

    def _disconnect_all(self) -> None:
        # Uvicorn tells the last request only, so that one before it would go on forever.
        for cycle in (self._running, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                _disconnect(cycle)

    def _leave(self) -> None:
        self.pool.enter(self, Phase.LEAVING)
        self._watch_reader()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        super().timeout_keep_alive_handler()
        self._leave()

    def pause_writing(self) -> None:
        """Wait for the client to read, but not forever."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """Go on with the response."""
        super().resume_writing()
        if self._reading is not None and self.phase is not Phase.LEAVING:
            self._reading.cancel()
            self._reading = None

    def _watch_reader(self) -> None:
        if self._reading is None:
            self._check_reader_later()

    def _check_reader_later(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.limits.write_seconds, self._check_reader, unread)

    def _check_reader(self, unread_before: int) -> None:
        if unread_before - self.transport.get_write_buffer_size() < min(unread_before, READ_STEP):
            self.pool.metrics.refuse(Refusal.SLOW_READER)
            self.abort()
        else:
            self._check_reader_later()


def limit_connections(pool: ConnectionPool) -> type[LimitedConnection]:
    """Return the class of a server's connections, which share a pool."""

    class BoundConnection(LimitedConnection):
        """A connection of one server."""

    BoundConnection.pool = pool
    BoundConnection.answers = {
        reason: _encode_answer(HTTPStatus(status), detail, pool.limits) for reason, (status, detail) in ANSWERS.items()
    }
    return BoundConnection


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Tell the application that nobody waits for its response any more."""
    cycle.disconnected = True
    cycle.message_event.set()


def _encode_answer(status: HTTPStatus, detail: str, limits: ServiceLimits) -> bytes:
    problem = make_problem(status, detail.format(**vars(limits)), headers={"Connection": "close"})
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [name + b": " + value for name, value in problem.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(problem.body)])
