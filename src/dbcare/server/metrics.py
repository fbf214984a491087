"""What Prometheus is told: requests and their times by route, and trials."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Metrics:
    """The figures of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "dbcare_request_seconds", "Time to answer", ["method", "route"], registry=self.registry
        )
        self.answers = Counter(
            "dbcare_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self.trials = Counter("dbcare_trials", "Trials, by what was done", ["what"], registry=self.registry)

    def text(self) -> bytes:
        """All of it, in Prometheus' own format."""
        return generate_latest(self.registry)


class Measured:
    """Counts and times every request, by the route's pattern, not by its address: names of studies are nobody's."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.answers.labels(scope["method"], route, status).inc()
            if not route.endswith("/events"):  # they last as long as somebody looks
                self.metrics.seconds.labels(scope["method"], route).observe(time.perf_counter() - began)
