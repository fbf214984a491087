"""Whether a write would succeed now: known from real ones, or from trial writes when there are none."""

from __future__ import annotations

import logging
import math
import threading
import time

from dbcare.errors import DbcareError
from dbcare.studies.stores.base import Store

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
