"""A complete store of a third kind, for tests: one JSON document per study, in a dictionary."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from dbcare.errors import StudyExistsError, StudyNotFoundError
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.stores.base import PlacedEvent, Standing, Store, StoreSession, StudyRecord


class DictSession(StoreSession):
    """A study's document, parsed; the store writes it back when a session for writing commits."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document["identity"])
        self.document = document

    def events_after(self, position: int, limit: int | None = None) -> list[PlacedEvent]:
        rows = self.document["events"][position:][:limit]
        return [(place, _parse_event(row)) for place, row in enumerate(rows, start=position + 1)]

    def events_of_trials(self, first: int, last: int) -> list[Event]:
        rows = [row for row in self.document["events"] if first <= row["trial"] <= last]
        return [_parse_event(row) for row in sorted(rows, key=lambda row: row["trial"])]

    def asks_with_note(self, note: str) -> list[Event]:
        return [_parse_event(row) for row in self.document["events"] if (row["kind"], row["note"]) == ("asked", note)]

    def append(self, events: list[Event]) -> list[int]:
        rows = self.document["events"]
        first = len(rows) + 1
        rows += [asdict(event) for event in events]
        return list(range(first, len(rows) + 1))

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        summary = self.document["summary"]
        return None if summary is None else (summary["position"], summary["state"])

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        self.document["summary"] = {"position": position, "state": plain}

    def save_standing(self, standing: Standing) -> None:
        self.document["standing"] = asdict(standing)


class DictStore(Store):
    """Studies as JSON documents by name. Writers take turns; readers use the document as it was when they began."""

    max_writers = 1

    def __init__(self) -> None:
        self._documents: dict[str, str] = {}
        self._lock = threading.RLock()

    def share(self) -> "DictStore":
        """Return another store over the same documents."""
        other = DictStore()
        other._documents, other._lock = self._documents, self._lock
        return other

    def create(
        self, name: str, settings: dict[str, Any], at: float, by: str | None = None, standing: Standing = Standing()
    ) -> None:
        document: dict[str, Any] = {
            "identity": secrets.randbits(62),
            "created": at,
            "created_by": by,
            "settings": settings,
            "events": [],
            "summary": None,
            "standing": asdict(standing),
        }
        with self._lock:
            if name in self._documents:
                raise StudyExistsError(f"Study {name!r} already exists.")
            self._documents[name] = json.dumps(document)

    def record(self, name: str) -> StudyRecord:
        document = self._read(name)
        known = {field: document[field] for field in ("identity", "settings", "created", "created_by")}
        return StudyRecord(name, **known, standing=Standing(**document["standing"]))

    def names(self) -> list[str]:
        return list(self._documents)

    def delete(self, name: str) -> None:
        with self._lock:
            self._read(name)
            del self._documents[name]

    @contextmanager
    def session(self, name: str, *, write: bool) -> Iterator[StoreSession]:
        if not write:
            yield DictSession(self._read(name))
            return
        with self._lock:
            session = DictSession(self._read(name))
            yield session
            self._documents[name] = json.dumps(session.document)  # not reached after an exception

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _read(self, name: str) -> dict[str, Any]:
        try:
            text = self._documents[name]
        except KeyError:
            raise StudyNotFoundError(f"Study {name!r} not found.") from None
        return dict(json.loads(text))


def _parse_event(row: dict[str, Any]) -> Event:
    return Event(**{**row, "kind": EventKind(row["kind"])})
