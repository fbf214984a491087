"""Tells a URL when a study stops: signed, retried for a day, and without anyone waiting for it.

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
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from urllib.parse import SplitResult, urlsplit

import dbcare
from dbcare.base.files import replace_non_finite
from dbcare.base.times import format_duration
from dbcare.errors import DbcareError, InvalidValueError
from dbcare.server.deliveries import Deliveries, StudyStop, open_deliveries
from dbcare.server.post import PostError, post
from dbcare.server.stopped_studies import StoppedStudy, list_stopped
from dbcare.studies.stores.base import Store

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
