"""Tell a URL when a study stops: signed, retried for a day, and without anyone waiting.

A thread of its own looks for studies that have stopped, no matter which process stopped them, and sends a notice of
each. What was told is remembered, so that a stop is told even if no server was running when it happened. A notice is
sent at least once; its id lets the receiver recognize one that is sent again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import random
import secrets
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

import dbcare
from dbcare.base.files import replace_non_finite
from dbcare.base.times import format_duration
from dbcare.errors import DbcareError, InvalidValueError
from dbcare.server.access.records import ensure
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.sql.store import SqlStore


class StudyStop(NamedTuple):
    """A stop of a study, which may stop again, or with another arm recommended, once an arm is retired."""

    identity: int  # the study's
    asked: int  # trials by then
    recommended: str


FIRST_USE = StudyStop(0, -1, "")  # remembered for every URL that has been used; no study stops like this

TABLES = sa.MetaData()
deliveries = sa.Table(
    "dbcare_webhook_deliveries",
    TABLES,
    sa.Column("url", sa.String(64), primary_key=True),  # its hash: a URL may contain a secret
    sa.Column("identity", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("asked", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("recommended", sa.String, primary_key=True),
)


class Deliveries(ABC):
    """What each URL has been told.

    `source` distinguishes identities of studies that are only unique within one process.
    """

    source = ""

    @abstractmethod
    def list_delivered(self, url: str) -> set[StudyStop]:
        """Return all stops that a URL has been told; empty if it was never used."""

    @abstractmethod
    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        """Take the stops as told, if the URL was never used before; all of them or none."""

    @abstractmethod
    def has(self, url: str, stop: StudyStop) -> bool:
        """Return whether a URL has been told a stop, by this process or another one."""

    @abstractmethod
    def add(self, url: str, stop: StudyStop) -> None:
        """Remember that a URL has been told a stop, unless that is known."""


class MemoryDeliveries(Deliveries):
    """Deliveries in memory, for stores that are not databases; lost when the process ends."""

    def __init__(self) -> None:
        self.source = secrets.token_hex(8)
        self._stops: dict[str, set[StudyStop]] = {}
        self._lock = threading.Lock()

    def list_delivered(self, url: str) -> set[StudyStop]:
        with self._lock:
            return set(self._stops.get(url, ()))

    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        with self._lock:
            self._stops.setdefault(url, {FIRST_USE, *stops})

    def has(self, url: str, stop: StudyStop) -> bool:
        with self._lock:
            return stop in self._stops.get(url, ())

    def add(self, url: str, stop: StudyStop) -> None:
        with self._lock:
            self._stops.setdefault(url, set()).add(stop)


class SqlDeliveries(Deliveries):
    """Deliveries in the database that holds the studies."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        ensure(store, TABLES)

    def list_delivered(self, url: str) -> set[StudyStop]:
        columns = [deliveries.columns[name] for name in StudyStop._fields]
        with self._store.transaction(write=False) as connection:
            rows = connection.execute(sa.select(*columns).where(deliveries.c.url == _hash(url)))
            return {StudyStop(*row) for row in rows}

    def begin(self, url: str, stops: Iterable[StudyStop]) -> None:
        self._insert(url, [FIRST_USE, *stops])

    def has(self, url: str, stop: StudyStop) -> bool:
        row = {"url": _hash(url), **stop._asdict()}
        query = sa.select(deliveries.c.url).filter_by(**row)
        with self._store.transaction(write=False) as connection:
            return connection.execute(query).first() is not None

    def add(self, url: str, stop: StudyStop) -> None:
        self._insert(url, [stop])

    def _insert(self, url: str, stops: list[StudyStop]) -> None:
        """Insert all rows, or none if one exists: another process was faster."""
        rows = [{"url": _hash(url), **stop._asdict()} for stop in stops]
        try:
            with self._store.transaction(write=True) as connection:
                connection.execute(sa.insert(deliveries), rows)
        except IntegrityError:
            return


def _hash(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()


def open_deliveries(store: Store) -> Deliveries:
    """Return the deliveries that belong to a store: in its database, or else in memory."""
    return SqlDeliveries(store) if isinstance(store, SqlStore) else MemoryDeliveries()


SILENCE_SECONDS = 10.0  # without a sign of the receiver
ATTEMPT_SECONDS = 20.0  # for a receiver that sends its response byte by byte


class PostError(Exception):
    """The receiver did not accept a request."""


def post(url: SplitResult, body: bytes, headers: dict[str, str]) -> None:
    """Send a body; PostError unless the response has a status of 200 to 299."""
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=SILENCE_SECONDS)
    aborted = threading.Event()
    watchdog = threading.Timer(ATTEMPT_SECONDS, _abort, [connection, aborted])
    watchdog.daemon = True
    watchdog.start()
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        with closing(connection):
            connection.request("POST", target, body, {**headers, "Connection": "close"})
            with connection.getresponse() as response:
                status = response.status
        if aborted.is_set():  # the response may be half of one
            raise TimeoutError
    except (OSError, HTTPException) as failure:
        # Not all of its text, which may be the receiver's.
        raise PostError(getattr(failure, "strerror", None) or type(failure).__name__) from None
    finally:
        watchdog.cancel()
    if not 200 <= status < 300:
        raise PostError(f"it responded with status {status}")


def _abort(connection: HTTPConnection, aborted: threading.Event) -> None:
    aborted.set()  # first, since the response ends at once
    if (opened := connection.sock) is not None:
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)


STOPPED = "stopped"


@dataclass(frozen=True)
class StoppedStudy:
    """A study that has stopped: its identity, as in `StoreSession`, and how it ended, as in `Standing`."""

    name: str
    identity: int
    asked: int
    rewards: int
    spent: float
    currency: str | None
    recommended: str
    verdict: str
    reason: str


def list_stopped(store: Store) -> list[StoppedStudy]:
    """List the studies that have stopped, oldest first."""
    return [
        StoppedStudy(
            name=record.name,
            identity=record.identity,
            asked=record.standing.asked,
            rewards=record.standing.rewards,
            spent=record.standing.spent,
            currency=record.currency,
            recommended=record.standing.recommended,
            verdict=record.standing.verdict,
            reason=record.standing.reason,
        )
        for record in store.find()
        if record.standing.state == STOPPED
    ]


LOG = logging.getLogger("dbcare.webhook")
SECRET_VARIABLE = "DBCARE_WEBHOOK_SECRET"
MIN_SECRET_LENGTH = 32
SIGNATURE_HEADER = "X-Dbcare-Signature"
EVENT = "study.stopped"
SPENT_DIGITS = 12  # beyond, a sum of prices has only errors of rounding

LOOK_SECONDS = 2.0  # between looks for studies that have stopped
MAX_SHARE = 0.02  # of the time is spent on looking, however many studies there are
OUTAGE_SECONDS = 15.0  # before the next look if the database failed
FIRST_DELAY_SECONDS = 2.0  # before a second attempt; each further delay is twice as long, up to the longest
MAX_DELAY_SECONDS = 15 * 60.0
GIVE_UP_SECONDS = 24 * 3600.0  # after which a notice waits for the next start


class Attempt(StrEnum):
    """What became of an attempt to send a notice."""

    DELIVERED = "delivered"
    FAILED = "failed"
    LAST_FAILED = "gave up"


@dataclass
class Notice:
    """What a URL is to be told, and when to try that next."""

    stop: StudyStop
    study: str
    body: bytes
    noticed: float
    due: float
    attempts: int = 0


class Webhook:
    """Tells one URL about the studies that `find_stopped` returns, and `count` about each attempt."""

    def __init__(
        self,
        url: str,
        secret: str,
        find_stopped: Callable[[], list[StoppedStudy]],
        deliveries: Deliveries,
        count: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._url = check_url(url)
        self._secret = check_secret(secret)
        self._find_stopped = find_stopped
        self._deliveries = deliveries
        self._count: Callable[[Attempt], None] = count or (lambda _: None)
        self._told: set[StudyStop] = set()
        self._notices: dict[StudyStop, Notice] = {}
        self._ended = threading.Event()

    def __enter__(self) -> Webhook:
        """Start telling; at the first use of a URL, studies that have stopped before are taken as told."""
        self._told = self._deliveries.list_delivered(self._address)
        if not self._told:
            self._deliveries.begin(self._address, map(_identify_stop, self._find_stopped()))
            self._told = self._deliveries.list_delivered(self._address)
        # A daemon: nobody waits for an attempt in progress when the server stops.
        threading.Thread(target=self._run, name="webhook", daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Begin no further attempts; what was not told is told after the next start."""
        self._ended.set()

    @property
    def _address(self) -> str:
        return self._url.geturl()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                began = time.monotonic()
                self._look()
                pause = max(LOOK_SECONDS, (time.monotonic() - began) / MAX_SHARE)
                self._send_due()
            except DbcareError as error:
                LOG.error("The webhook looks again in %g s: %s", OUTAGE_SECONDS, error)
                pause = OUTAGE_SECONDS
            except Exception:
                LOG.exception("The webhook looks again in %g s.", OUTAGE_SECONDS)
                pause = OUTAGE_SECONDS
            # Random, so that several servers of one database seldom tell the same stop.
            self._ended.wait(pause * random.uniform(0.5, 1.0))

    def _look(self) -> None:
        """Make notices of studies that have stopped since."""
        now = time.monotonic()
        for study in self._find_stopped():
            stop = _identify_stop(study)
            if stop not in self._told and stop not in self._notices:
                self._notices[stop] = Notice(stop, study.name, self._write_body(study), noticed=now, due=now)

    def _write_body(self, study: StoppedStudy) -> bytes:
        fields = {
            "event": EVENT,
            "id": self._make_id(_identify_stop(study)),
            "study": study.name,
            "reason": study.reason,
            "recommended": study.recommended or None,
            "verdict": study.verdict,
            "asked": study.asked,
            "rewards": study.rewards,
            "spent": float(f"{study.spent:.{SPENT_DIGITS}g}"),
            "currency": study.currency,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return json.dumps(replace_non_finite(fields), allow_nan=False).encode()

    def _make_id(self, stop: StudyStop) -> str:
        """Return the same id in every process."""
        parts = (self._deliveries.source, stop.identity, stop.asked, stop.recommended)
        return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:32]

    def _send_due(self) -> None:
        for notice in list(self._notices.values()):
            if not self._ended.is_set() and notice.due <= time.monotonic():
                self._send(notice)

    def _send(self, notice: Notice) -> None:
        """Make one attempt, and remember the notice as told or try again later."""
        if not self._deliveries.has(self._address, notice.stop):  # another server may have been faster
            headers = {
                "Content-Type": "application/json",
                "User-Agent": f"dbcare/{dbcare.__version__}",
                SIGNATURE_HEADER: sign(self._secret, int(time.time()), notice.body),
            }
            try:
                post(self._url, notice.body, headers)
            except PostError as failure:
                self._postpone(notice, failure)
                return
            self._count(Attempt.DELIVERED)
            LOG.info("Told the webhook that study %r has stopped.", notice.study)
        # From here on this process does not send it again, even if remembering it fails.
        del self._notices[notice.stop]
        self._told.add(notice.stop)
        self._deliveries.add(self._address, notice.stop)

    def _postpone(self, notice: Notice, failure: PostError) -> None:
        now = time.monotonic()
        notice.attempts += 1
        if now - notice.noticed > GIVE_UP_SECONDS:
            notice.due = float("inf")
            self._count(Attempt.LAST_FAILED)
            LOG.error(
                "Gave up telling the webhook that study %r has stopped (%s); it will be told after the next start.",
                notice.study,
                failure,
            )
            return
        delay = min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** (notice.attempts - 1)) * random.uniform(0.5, 1.0)
        notice.due = now + delay
        self._count(Attempt.FAILED)
        LOG.warning(
            "Could not tell the webhook that study %r has stopped (%s); retrying in %s.",
            notice.study,
            failure,
            format_duration(delay),
        )


def _identify_stop(study: StoppedStudy) -> StudyStop:
    return StudyStop(study.identity, study.asked, study.recommended)


def sign(secret: str, at: int, body: bytes) -> str:
    """Return the signature of a body sent `at` seconds after 1970, which a receiver must not accept much later."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def check_url(url: str) -> SplitResult:
    """Return a URL in its parts, if notices can be sent to it; errors show only its host, since it may be secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    is_clean = url.isascii() and url.isprintable() and " " not in url
    if not is_clean or parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InvalidValueError(
            "`webhook` must be a URL such as https://example.com/stopped, without credentials, "
            f"but got one with the host {parts.hostname!r}."
        )
    return parts._replace(fragment="")


def check_secret(secret: str) -> str:
    """Return a secret, if it is long enough to sign notices with."""
    if len(secret) < MIN_SECRET_LENGTH:
        raise InvalidValueError(
            f"`{SECRET_VARIABLE}` must have at least {MIN_SECRET_LENGTH} characters to sign webhooks but has "
            f"{len(secret)}; set this environment variable to the output of: openssl rand -hex 32."
        )
    return secret


def make_webhook(url: str, store: Store, count: Callable[[Attempt], None] | None = None) -> Webhook:
    """Return a webhook for the studies in a store; the secret is in the environment."""
    secret = os.environ.get(SECRET_VARIABLE, "")
    return Webhook(url, secret, partial(list_stopped, store), open_deliveries(store), count)
