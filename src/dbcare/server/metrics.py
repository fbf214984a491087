"""Metrics for Prometheus: requests and their durations by route, and trials."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Metrics:
    """The metrics of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "dbcare_request_seconds", "Time to respond", ["method", "route"], registry=self.registry
        )
        self.requests = Counter(
            "dbcare_requests", "Requests responded to", ["method", "route", "status"], registry=self.registry
        )
        self.trials = Counter("dbcare_trials", "Trials, by what was done", ["what"], registry=self.registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' own format."""
        return generate_latest(self.registry)


class Measured:
    """Counts and times every request by the route's pattern, not by its path, so that names of studies stay private."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.requests.labels(scope["method"], route, status).inc()
            if not route.endswith("/events"):  # streams last as long as somebody looks
                self.metrics.seconds.labels(scope["method"], route).observe(time.perf_counter() - began)
