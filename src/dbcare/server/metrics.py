"""Figures for Prometheus, of the service and of single studies, and whether a write would succeed now.

All of them are in memory, and answered from there. Series exist from the start, at zero: `increase()` does not see the
first event of a series that begins with it.

A server has the studies that are open in it, and those with pending trials that were open before: a study that nobody
asks for any more is the one to hear about.
"""

from __future__ import annotations

import logging
import math
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

from dbcare.errors import DbcareError, StudyNotFoundError
from dbcare.server.request_log import WatchedResponse
from dbcare.server.service_limits import ServiceLimits
from dbcare.server.studies import MAX_OPEN_STUDIES, OpenStudies
from dbcare.server.webhook import Attempt
from dbcare.studies.record.ask_and_tell import AskOutcome
from dbcare.studies.record.ledger import RefusalReason
from dbcare.studies.results.status import VitalSigns
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.base import Standing, Store

LOG = logging.getLogger("dbcare")
PROBE_SECONDS = 5.0  # without a write, until one is tried
MAX_PROBE_SECONDS = 3.0  # that a trial write may take: together less than 10 s
FAILURE_SECONDS = 15.0  # for which the failure of a real write counts for more than trial writes, which are smaller


class Readiness:
    """Watches one store from a thread of its own; whoever asks gets what is known, without waiting."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended = threading.Event()
        self._succeeded = -math.inf  # when a trial write last succeeded, or failed
        self._failed = -math.inf
        self._began = math.inf  # when the trial write under way began

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._run, name="readiness", daemon=True).start()

    def end(self) -> None:
        """Try no further writes."""
        self._ended.set()

    def find_problem(self) -> str | None:
        """Return why a write would not succeed, as far as is known; None if it would."""
        stored, failed = self._store.stored, self._store.failed
        succeeded, began, now = max(self._succeeded, stored), self._began, time.monotonic()
        if failed > stored and now - failed < FAILURE_SECONDS:
            return "A write failed."
        if now - began > MAX_PROBE_SECONDS and succeeded < began:
            return f"A trial write has taken more than {MAX_PROBE_SECONDS:g} seconds."
        if succeeded > self._failed:
            return None
        return "No write has been tried yet." if math.isinf(self._failed) else "A trial write failed."

    def _run(self) -> None:
        wait = 0.0
        while not self._ended.wait(wait):
            idle = time.monotonic() - max(self._succeeded, self._store.stored)
            if idle >= PROBE_SECONDS:
                self._try_write()
                idle = 0.0
            wait = PROBE_SECONDS - idle

    def _try_write(self) -> None:
        self._began = time.monotonic()
        was_ready = self._succeeded > self._failed
        try:
            self._store.try_write()
            self._succeeded = time.monotonic()
            if not was_ready and not math.isinf(self._failed):
                LOG.info("A trial write succeeded: the service is ready again.")
        except Exception as failure:
            self._failed = time.monotonic()
            if was_ready or self._failed - self._began > MAX_PROBE_SECONDS:
                LOG.error("The service is not ready: %s", failure, exc_info=not isinstance(failure, DbcareError))
        finally:
            self._began = math.inf


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


REFRESH_SECONDS = 15.0
MAX_SHARE = 0.05  # of the time is spent on refreshing, however many studies are open
MAX_STUDY_BYTES = 800_000  # of the series of single studies; those of the others are left out
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

FAMILIES = {
    "dbcare_study_rewards_total": ("counter", "Rewards told for a study, to this server"),
    "dbcare_study_empty_answers_total": ("counter", "Asks and assignments that got no trial, from this server"),
    "dbcare_study_pending_trials": ("gauge", "Trials that wait for an answer, unless the study has stopped"),
    "dbcare_study_oldest_pending_seconds": ("gauge", "Seconds since the oldest of them was asked; 0 without any"),
    "dbcare_study_notes": ("gauge", "Notes on the page of a study, such as an assumption that its data contradict"),
}


@dataclass(frozen=True)
class Figures:
    """The figures of one study; `closed` is its standing when it was closed here, after which only time goes on."""

    signs: VitalSigns
    closed: Standing | None = None

    def age(self, now: float) -> float:
        """Return the seconds since the oldest pending trial was asked."""
        return 0.0 if self.signs.oldest is None else max(0.0, now - self.signs.oldest)


class StudyFigures:
    """Refreshes the figures of studies in a thread of its own, and hands them to the metrics."""

    def __init__(self, studies: OpenStudies, metrics: Metrics, readiness: Readiness) -> None:
        self._studies = studies
        self._metrics = metrics
        self._readiness = readiness
        self._ended = threading.Event()
        self._figures: dict[str, Figures] = {}
        self._left_out = 0
        self._refreshed = time.monotonic()
        for name, meaning, measure in (
            ("dbcare_refresh_age_seconds", "Seconds since the figures of studies were read", self._find_age),
            ("dbcare_open_studies", "Studies whose figures are read", lambda: len(self._figures)),
            ("dbcare_pending_trials", "Trials that wait for an answer, in all of these", self._count_pending),
            ("dbcare_oldest_pending_seconds", "Seconds since the oldest of them was asked", self._find_oldest),
            ("dbcare_notes", "Notes on the pages of all of these", self._count_notes),
            ("dbcare_left_out_studies", "Studies without series of their own, for lack of room", self._count_left_out),
        ):
            metrics.add_gauge(name, meaning, measure)
        self._render()

    def start(self) -> None:
        """Begin to refresh."""
        threading.Thread(target=self._run, name="study figures", daemon=True).start()

    def end(self) -> None:
        """Refresh no more."""
        self._ended.set()

    def _find_age(self) -> float:
        return time.monotonic() - self._refreshed

    def _count_pending(self) -> float:
        return sum(each.signs.waiting for each in self._figures.values())

    def _find_oldest(self) -> float:
        now = time.time()
        return max((each.age(now) for each in self._figures.values()), default=0.0)

    def _count_notes(self) -> float:
        return sum(each.signs.notes for each in self._figures.values())

    def _count_left_out(self) -> float:
        return self._left_out

    def _run(self) -> None:
        while not self._ended.wait(REFRESH_SECONDS):
            self.refresh()

    def refresh(self) -> None:
        """Read all figures; if the database fails, the old ones stay, and their age says so."""
        found: dict[str, Figures] = {}
        for study in self._studies.list_open():
            if (figures := self._read(study)) is not None:
                found[study.name] = figures
            elif self._readiness.find_problem() is not None:
                return
        closed = {name: each for name, each in self._figures.items() if name not in found and each.signs.waiting}
        for name, figures in list(closed.items())[: max(0, MAX_OPEN_STUDIES - len(found))]:
            if (still := self._follow(name, figures)) is not None:
                found[name] = still
        self._figures, self._refreshed = found, time.monotonic()
        self._render()

    def _read(self, study: StoredStudy) -> Figures | None:
        """Return the figures of an open study; None if it cannot be read."""
        began = time.monotonic()
        try:
            figures = Figures(study.vital_signs())
        except DbcareError:  # which whoever asks for a trial hears
            figures = None
        # Asks and tells go first: a thousand studies are read in as many short moments.
        self._ended.wait(min(1.0, (time.monotonic() - began) * (1.0 / MAX_SHARE - 1.0)))
        return figures

    def _follow(self, name: str, figures: Figures) -> Figures | None:
        """Return the figures of a study that was closed here, as long as nothing has happened in it since."""
        try:
            standing = self._studies.store.record(name).standing
        except StudyNotFoundError:
            return None
        except DbcareError:
            return figures
        if figures.closed is None:
            return Figures(figures.signs, standing)
        return figures if standing == figures.closed else None

    def _render(self) -> None:
        """Render the series, the studies first whose trials have been pending for the longest time."""
        now = time.time()
        tallies = self._metrics.keep_tallies(self._figures)
        lines: dict[str, list[str]] = {family: [] for family in FAMILIES}
        size = shown = 0
        for name in sorted(self._figures, key=lambda name: -self._figures[name].age(now)):
            own = list(_make_series(name, self._figures[name], tallies[name], now))
            size += sum(len(line.encode()) for _, line in own)
            if size > MAX_STUDY_BYTES:
                break
            shown += 1
            for family, line in own:
                lines[family].append(line)
        self._left_out = len(self._figures) - shown
        texts = (
            f"# HELP {family} {meaning}.\n# TYPE {family} {kind}\n{''.join(lines[family])}"
            for family, (kind, meaning) in FAMILIES.items()
        )
        self._metrics.text_of_studies = "".join(texts).encode()


def _make_series(name: str, figures: Figures, tally: StudyTally, now: float) -> Iterable[tuple[str, str]]:
    """Yield the lines of a study, each with its family."""
    rewards, empty, pending, oldest, notes = FAMILIES
    study = f'study="{name.translate(ESCAPES)}"'
    yield rewards, f"{rewards}{{{study}}} {tally.told}\n"
    for lack in LACKS:
        yield empty, f'{empty}{{{study},reason="{lack}"}} {tally.empty[lack]}\n'
    yield pending, f"{pending}{{{study}}} {figures.signs.waiting}\n"
    yield oldest, f"{oldest}{{{study}}} {figures.age(now):.1f}\n"
    yield notes, f"{notes}{{{study}}} {figures.signs.notes}\n"
