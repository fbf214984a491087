"""Metrics for Prometheus: requests and their durations by route, numbers of trials, connections and limits."""

from __future__ import annotations

import time
from dataclasses import asdict
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Receive, Scope, Send

from dbcare.live.assignment import Assignment, AssignmentReason
from dbcare.server.service_limits import ServiceLimits
from dbcare.server.watched_response import WatchedResponse


class Refusal(StrEnum):
    """Why a connection or a request was refused, or closed to make room."""

    ADDRESS_FULL = "connections_per_address"
    FULL = "connections"
    GAVE_WAY = "gave_way"
    MALFORMED = "malformed"
    LARGE_HEADERS = "large_headers"
    SLOW_HEADERS = "slow_headers"
    LARGE_BODY = "large_body"
    SLOW_BODY = "slow_body"
    SLOW_READER = "slow_reader"
    PIPELINED = "pipelined_requests"
    FREQUENT = "requests_per_second"
    STRANGERS = "stranger_requests_per_second"
    LOOKS_FULL = "waiting_looks"
    CHECKS_FULL = "waiting_checks"
    STREAMS_FULL = "streams"
    VISITOR_FULL = "streams_per_visitor"


class Metrics:
    """The metrics of this process."""

    def __init__(self, limits: ServiceLimits) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "dbcare_request_seconds", "Time to respond to a request", ["method", "route"], registry=self.registry
        )
        self.requests = Counter("dbcare_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        trials = Counter("dbcare_trials", "Trials asked, told and failed", ["what"], registry=self.registry)
        self.asked, self.told, self.failed = (trials.labels(what) for what in ("asked", "told", "failed"))
        self.connections = Gauge("dbcare_connections", "Open connections", ["phase"], registry=self.registry)
        self.refusals = Counter(
            "dbcare_refusals", "Connections and requests beyond a limit", ["reason"], registry=self.registry
        )
        limit = Gauge("dbcare_limit", "Limits of this process", ["name"], registry=self.registry)
        for name, value in asdict(limits).items():
            limit.labels(name).set(value)

    def refuse(self, reason: Refusal) -> None:
        """Count a refusal."""
        self.refusals.labels(reason).inc()

    def count_assignment(self, found: Assignment) -> None:
        """Count the trial that an assignment handed out, if it did."""
        self.asked.inc(found.reason == AssignmentReason.NEW_TRIAL)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry)


class MetricsMiddleware:
    """Counts and times requests by the route's pattern; the path itself would give away names of studies."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, response = time.perf_counter(), WatchedResponse(send)
        try:
            await self.app(scope, receive, response.send)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.requests.labels(scope["method"], route, response.status).inc()
            if not route.endswith("/events"):  # a stream lasts as long as its page is open
                self.metrics.seconds.labels(scope["method"], route).observe(time.perf_counter() - start)
