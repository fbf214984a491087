"""A transaction on one study in a database, in the driver's own terms."""

from __future__ import annotations

import json
from dataclasses import fields
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.stores.base import PlacedEvent, Standing, StoreSession
from dbcare.studies.stores.sql.errors import corruption_error
from dbcare.studies.stores.sql.tables import about, events, standings, studies, summaries

EVENT_FIELDS = [field.name for field in fields(Event)]
STANDING_FIELDS = [field.name for field in fields(Standing)]
stored_fields = attrgetter(*("kind.value" if name == "kind" else name for name in EVENT_FIELDS))

standing_fields = attrgetter(*STANDING_FIELDS)


class Statements:
    """The statements of a session as text for one kind of database: compiling them takes longer than running them.

    Parameters are positional.
    """

    def __init__(self, dialect: sa.Dialect) -> None:
        self.dialect = dialect
        own: sa.BindParameter[int] = sa.bindparam("own")
        # The layout comes with the study: another statement would take longer, and the number may change at any time.
        layout = sa.select(about.c.version).scalar_subquery()
        study = sa.select(layout, studies.c.id, studies.c.identity).where(studies.c.name == sa.bindparam("name"))
        self.find = self._text(study)
        # In SQLite a transaction for writing is alone anyway; elsewhere the study's row is the lock.
        self.lock = self._text(study.with_for_update(of=studies))
        columns = [events.c.position, *(events.columns[name] for name in EVENT_FIELDS)]
        found = sa.select(*columns).where(events.c.study == own)
        placed = found.where(events.c.position > sa.bindparam("after")).order_by(events.c.position)
        self.events_after = self._text(placed)
        self.page_after = f"{self.events_after} LIMIT {self._text(sa.select(sa.bindparam('limit'))).split()[1]}"
        in_range = events.c.trial.between(sa.bindparam("first"), sa.bindparam("last"))
        by_trial = found.where(in_range).order_by(events.c.trial, events.c.position)
        self.events_of_trials = self._text(by_trial, "events_of_trials")
        is_ask = sa.text(f"kind = '{EventKind.ASKED}'")  # as the index has it; a parameter would not match
        with_note = found.where(is_ask, events.c.note == sa.bindparam("words")).order_by(events.c.position)
        self.asks_with_note = self._text(with_note, "asks_with_notes")
        self.last = self._text(sa.select(sa.func.max(events.c.position)).where(events.c.study == own))
        self.append = self._text(sa.insert(events))
        self.summary = self._text(sa.select(summaries.c.position, summaries.c.state).where(summaries.c.study == own))
        self.update_summary = self._update(summaries, ["position", "state"])
        self.insert_summary = self._insert(summaries, ["position", "state"])
        self.update_standing = self._update(standings, STANDING_FIELDS)
        self.insert_standing = self._insert(standings, STANDING_FIELDS)

    def _update(self, table: sa.Table, columns: list[str]) -> str:
        """Return an update of a study's row: the columns come first, then the study."""
        values: dict[str, sa.BindParameter[Any]] = {name: sa.bindparam(f"new_{name}") for name in columns}
        return self._text(sa.update(table).where(table.c.study == sa.bindparam("own")).values(values))

    def _insert(self, table: sa.Table, columns: list[str]) -> str:
        """Return an insertion of a study's row, with the parameters in the same order as for an update."""
        marks = ", ".join([self._text(sa.select(sa.bindparam("mark"))).split()[1]] * (len(columns) + 1))
        return f"INSERT INTO {table.name} ({', '.join([*columns, 'study'])}) VALUES ({marks})"

    def _text(self, statement: sa.Executable, index: str | None = None) -> str:
        text = str(statement.compile(dialect=self.dialect))  # type: ignore[attr-defined]  # all of these have it
        if index is not None and self.dialect.name == "sqlite":  # which would rather read the whole study
            text = text.replace(f"FROM {events.name}", f"FROM {events.name} INDEXED BY {index}")
        return text


class SqlSession(StoreSession):
    """A transaction on one study; `connection` is the driver's."""

    def __init__(self, statements: Statements, url: sa.URL, connection: Any, study: int, identity: int) -> None:
        super().__init__(identity)
        self._statements = statements
        self._url = url
        self._connection = connection
        self._study = study
        self._last: int | None = None  # position of the last event, if it is known

    def events_after(self, position: int, limit: int | None = None) -> list[PlacedEvent]:
        if limit is None:
            placed = self._events(self._statements.events_after, position)
        else:
            placed = self._events(self._statements.page_after, position, limit)
        if limit is None or len(placed) < limit:
            # That nothing comes after `position` does not mean that there is an event at it.
            self._last = placed[-1][0] if placed else (0 if position == 0 else self._last)
        return placed

    def events_of_trials(self, first: int, last: int) -> list[Event]:
        return [event for _, event in self._events(self._statements.events_of_trials, first, last)]

    def asks_with_note(self, note: str) -> list[Event]:
        return [event for _, event in self._events(self._statements.asks_with_note, note)]

    def append(self, events: list[Event]) -> list[int]:
        if not events:
            return []
        if self._last is None:
            self._last = self._connection.execute(self._statements.last, (self._study,)).fetchone()[0] or 0
        first = self._last + 1
        rows = [(self._study, place, *stored_fields(event)) for place, event in enumerate(events, first)]
        if len(rows) == 1:
            self._connection.execute(self._statements.append, rows[0])
        else:
            self._connection.cursor().executemany(self._statements.append, rows)
        self._last += len(rows)
        return list(range(first, first + len(rows)))

    def summary(self) -> tuple[int, dict[str, Any]] | None:
        row = self._connection.execute(self._statements.summary, (self._study,)).fetchone()
        return None if row is None else (int(row[0]), parse_json(self._url, row[1]))

    def save_summary(self, position: int, plain: dict[str, Any]) -> None:
        values = (position, json.dumps(plain, allow_nan=False), self._study)
        self._replace(self._statements.update_summary, self._statements.insert_summary, values)

    def save_standing(self, standing: Standing) -> None:
        values = (*standing_fields(standing), self._study)
        self._replace(self._statements.update_standing, self._statements.insert_standing, values)

    def _replace(self, update: str, insert: str, values: tuple[Any, ...]) -> None:
        if self._connection.execute(update, values).rowcount == 0:
            self._connection.execute(insert, values)

    def _events(self, statement: str, *conditions: int | str) -> list[PlacedEvent]:
        # All at once: a statement that is not finished keeps SQLite's connection at its moment.
        rows = self._connection.execute(statement, (self._study, *conditions)).fetchall()
        try:
            return [
                (position, Event(EventKind(kind), at, trial, arm, reward, bool(charged), *others))
                for position, kind, at, trial, arm, reward, charged, *others in rows
            ]
        except ValueError as failure:
            raise corruption_error(self._url, failure) from failure


def parse_json(url: sa.URL, text: str) -> dict[str, Any]:
    """Parse what was stored as JSON."""
    try:
        plain = json.loads(text)
    except (TypeError, ValueError) as failure:
        raise corruption_error(url, failure) from failure
    if not isinstance(plain, dict):
        raise corruption_error(url, ValueError(f"an object was stored but {type(plain).__name__} was read"))
    return plain
