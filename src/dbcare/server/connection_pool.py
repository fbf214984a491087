"""All connections of a server: how many there may be, by address and in total, and which must give way.

Every connection is in one phase, and each phase lists its connections in the order in which they entered it: the first
is the one to close if a new connection needs its place.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from enum import StrEnum
from typing import Protocol

from dbcare.server.addresses import TrustedProxies
from dbcare.server.metrics import Metrics, Refusal
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
