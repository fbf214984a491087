"""Metrics for Prometheus: requests and their durations by route, and numbers of trials."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Metrics:
    """The metrics of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "dbcare_request_seconds", "Time to respond to a request", ["method", "route"], registry=self.registry
        )
        self.requests = Counter("dbcare_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        self.trials = Counter("dbcare_trials", "Trials asked, told and failed", ["what"], registry=self.registry)

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
        start = time.perf_counter()
        status = 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.requests.labels(scope["method"], route, status).inc()
            if not route.endswith("/events"):  # a stream lasts as long as its page is open
                self.metrics.seconds.labels(scope["method"], route).observe(time.perf_counter() - start)
