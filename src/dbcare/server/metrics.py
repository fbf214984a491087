"""Metrics for Prometheus: requests, trials, studies, connections, limits, and whether the service is ready.

All of them are in memory, and answered from there. Series exist from the start, at zero: `increase()` does not see the
first event of a series that begins with it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dbcare.server.service_limits import ServiceLimits
from dbcare.server.watched_response import WatchedResponse
from dbcare.server.webhook import Attempt
from dbcare.studies.record.ask_and_tell import AskOutcome
from dbcare.studies.record.ledger import RefusalReason

LACKS = (*map(str, RefusalReason), "paused", "stopped")  # why an ask gets no trial
NO_ROUTE = "none"  # of a request that no route matches


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


@dataclass
class StudyTally:
    """What this process has answered for one study."""

    told: int = 0
    empty: Tally[str] = field(default_factory=Tally)


class Metrics:
    """The metrics of this process."""

    def __init__(self, limits: ServiceLimits) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._tallies: dict[str, StudyTally] = {}
        self.text_of_studies = b""  # their series, of which there may be thousands; `study_figures` renders them
        self.seconds = Histogram(
            "dbcare_request_seconds", "Time to respond to a request", ["method", "route"], registry=self.registry
        )
        self.requests = Counter("dbcare_requests", "Requests", ["method", "route", "status"], registry=self.registry)
        trials = Counter("dbcare_trials", "Trials asked, told and failed", ["what"], registry=self.registry)
        self.asked, self.told, self.failed = (trials.labels(what) for what in ("asked", "told", "failed"))
        self.empty = Counter(
            "dbcare_empty_answers", "Asks and assignments that got no trial", ["reason"], registry=self.registry
        )
        self.notices = Counter(
            "dbcare_webhook_attempts", "Attempts to tell the webhook that a study stopped", ["outcome"],
            registry=self.registry,
        )  # fmt: skip
        for counter, values in ((self.empty, LACKS), (self.notices, Attempt)):
            for value in values:
                counter.labels(str(value))
        self.connections = Gauge("dbcare_connections", "Open connections", ["phase"], registry=self.registry)
        self.refusals = Counter(
            "dbcare_refusals", "Connections and requests beyond a limit", ["reason"], registry=self.registry
        )
        for refusal in Refusal:
            self.refusals.labels(refusal)
        limit = Gauge("dbcare_limit", "Limits of this process", ["name"], registry=self.registry)
        for name, value in asdict(limits).items():
            limit.labels(name).set(value)

    def refuse(self, reason: Refusal) -> None:
        """Count a refusal."""
        self.refusals.labels(reason).inc()

    def add_gauge(self, name: str, meaning: str, measure: Callable[[], float]) -> None:
        """Add a gauge that is measured whenever somebody looks."""
        Gauge(name, meaning, registry=self.registry).set_function(measure)

    def expect(self, routes: Iterable[BaseRoute], problems: Iterable[int]) -> None:
        """Begin the series of all routes, with the status of success and those of problems."""
        found = [(route.path, route.methods or (), getattr(route, "status_code", None)) for route in _flatten(routes)]
        for path, methods, status in (*found, (NO_ROUTE, ("GET", "POST"), None)):
            for method in methods:
                for code in {status or HTTPStatus.OK, *problems, HTTPStatus.INTERNAL_SERVER_ERROR}:
                    self.requests.labels(method, path, int(code))
                if not _is_stream(path):
                    self.seconds.labels(method, path)

    def count_ask(self, study: str, outcome: AskOutcome) -> None:
        """Count what an ask or an assignment brought."""
        if outcome.lack is not None:
            self.empty.labels(outcome.lack).inc()
            with self._lock:
                self._find_tally(study).empty[outcome.lack] += 1
        elif outcome.new:
            self.asked.inc(outcome.new)

    def count_told(self, study: str, rewards: int = 1) -> None:
        """Count rewards that were told."""
        self.told.inc(rewards)
        with self._lock:
            self._find_tally(study).told += rewards

    def count_notice(self, outcome: Attempt) -> None:
        """Count an attempt to tell the webhook something."""
        self.notices.labels(str(outcome)).inc()

    def _find_tally(self, study: str) -> StudyTally:
        found = self._tallies.get(study)
        if found is None:
            found = self._tallies[study] = StudyTally()
        return found

    def keep_tallies(self, studies: Iterable[str]) -> dict[str, StudyTally]:
        """Return what was counted for these studies, and forget all others."""
        with self._lock:
            self._tallies = {study: self._tallies.get(study) or StudyTally() for study in studies}
            return dict(self._tallies)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self.registry) + self.text_of_studies


def _flatten(routes: Iterable[BaseRoute]) -> Iterable[Route]:
    return (route for route in routes if isinstance(route, Route))


def _is_stream(path: str) -> bool:
    """Return whether a response lasts as long as its page is open, so that its time says nothing."""
    return path.endswith("/events")


class MetricsMiddleware:
    """Counts and times requests by the route's pattern; the path itself would give away names of studies."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._requests = cache(metrics.requests.labels)  # which would check and format the labels each time
        self._seconds = cache(metrics.seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, response = time.perf_counter(), WatchedResponse(send)
        try:
            await self.app(scope, receive, response.send)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            self._requests(scope["method"], route, response.status).inc()
            if not _is_stream(route):
                self._seconds(scope["method"], route).observe(time.perf_counter() - start)
