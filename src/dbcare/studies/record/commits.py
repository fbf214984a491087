"""Changes of studies, carried out together in one transaction; each has its own result or error."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from dbcare.errors import DbcareError, StorageError, StudyNotFoundError
from dbcare.studies.record.sync import SyncedLedger, Transaction
from dbcare.studies.stores.base import StoreSession
from dbcare.studies.stores.group_commit import Operation

Result = TypeVar("Result")


class StudyOperation(Operation[Result]):
    """A change of one study: `act` records what happens, and returns what the caller wants to know.

    What it returns is handed out only after everything recorded is stored. An operation that raises leaves nothing.
    """

    def __init__(self, ledger: SyncedLedger, act: Callable[[Transaction], Result], weight: int = 1) -> None:
        super().__init__(ledger.name, weight)
        self.ledger = ledger
        self.act = act

    @staticmethod
    def carry_out(group: list[Any]) -> None:
        """Carry out operations on studies of one store, each study's in order of arrival, in one transaction."""
        with ExitStack() as locks:
            for ledger in {operation.ledger: None for operation in group}:
                locks.enter_context(ledger.lock)
            in_time = [operation for operation in group if operation.is_in_time()]
            if in_time:
                _carry_out_together(in_time)

    def is_in_time(self) -> bool:
        """Return whether the operation is worth trying; it fails if it has waited long for others that failed."""
        store = self.ledger.store
        if store.failed < self.began or (waited := time.monotonic() - self.began) <= store.max_wait:
            return True
        self.fail(StorageError(f"Study {self.ledger.name!r} had no turn within {waited:.0f} seconds; retry."))
        return False


class Turn:
    """Consecutive operations on one ledger."""

    def __init__(self, ledger: SyncedLedger) -> None:
        self.ledger = ledger
        self.operations: list[StudyOperation[Any]] = []

    def fail(self, failure: BaseException) -> None:
        """Let all operations of the turn fail."""
        for operation in self.operations:
            operation.fail(failure)


def _divide(group: list[StudyOperation[Any]]) -> list[Turn]:
    """Divide operations into turns; a study that was opened twice has two ledgers, which alternate as needed."""
    turns: list[Turn] = []
    latest: dict[str, Turn] = {}
    for operation in group:
        turn = latest.get(operation.ledger.name)
        if turn is None or turn.ledger is not operation.ledger:
            turn = latest[operation.ledger.name] = Turn(operation.ledger)
            turns.append(turn)
        turn.operations.append(operation)
    return turns


def _carry_out_together(group: list[StudyOperation[Any]]) -> None:
    """Carry out operations in one transaction; if one of them spoils it, only that one fails in the end."""
    turns = [turn for turn in _divide(group) if _prepare(turn)]
    if not turns:
        return
    is_under_way = False
    try:
        with turns[0].ledger.store.group(sorted({turn.ledger.name for turn in turns})) as sessions:
            is_under_way = True
            has_recorded = [_carry_out(turn, sessions.get(turn.ledger.name)) for turn in turns]
            is_under_way = False
        if any(has_recorded):
            turns[0].ledger.store.stored = time.monotonic()
    except BaseException as failure:
        if isinstance(failure, StorageError):
            turns[0].ledger.store.failed = time.monotonic()
        for turn in turns:
            turn.ledger.forget()
        parts = _divide_after(failure, turns) if is_under_way else []
        if len(parts) > 1:
            for part in parts:
                _carry_out_together(part)
            return
        for turn in turns:
            turn.fail(failure)
        if not isinstance(failure, Exception):
            raise


def _divide_after(failure: BaseException, turns: list[Turn]) -> list[list[StudyOperation[Any]]]:
    """Divide the operations of a transaction that failed into those to try again together.

    Where the database fails (StorageError), studies are tried one by one: it may be able to read and write the others.
    Anything else is the fault of one operation, such as a text that the database refuses: halves find it with fewer
    commits than single operations.
    """
    if isinstance(failure, StorageError):
        return [turn.operations for turn in turns]
    if not isinstance(failure, Exception):
        return []
    operations = [operation for turn in turns for operation in turn.operations]
    middle = len(operations) // 2
    return [part for part in (operations[:middle], operations[middle:]) if part]


def _prepare(turn: Turn) -> bool:
    """Open the ledger before others have to wait for that; return whether it could be opened."""
    try:
        turn.ledger.prepare()
    except DbcareError as failure:
        turn.fail(failure)
        return False
    return True


def _carry_out(turn: Turn, session: StoreSession | None) -> bool:
    """Carry out operations through one ledger; those that raise leave nothing, the others stand.

    Return whether anything was recorded.
    """
    try:
        if session is None:
            raise StudyNotFoundError(f"Study {turn.ledger.name!r} not found.")
        transaction = turn.ledger.begin(session)
    except (StudyNotFoundError, StorageError) as failure:  # deleted or damaged; database errors abort the group
        turn.fail(failure)
        return False
    for operation in turn.operations:
        kept = len(transaction.recorded)
        try:
            operation.result, operation.error = operation.act(transaction), None
        except DbcareError as error:
            operation.fail(error)
            if len(transaction.recorded) > kept:
                transaction = turn.ledger.begin_again(transaction, kept)
    turn.ledger.finish(transaction)
    return bool(transaction.recorded)
