"""Changes of studies, carried out together in one transaction; each has its own result or error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from dbcare.errors import StorageError, StudyNotFoundError
from dbcare.live.stores.base import StoreSession
from dbcare.live.stores.group_commit import Operation
from dbcare.live.synced_ledger import SyncedLedger
from dbcare.live.transaction import Transaction

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
        """Carry out operations on studies of one store, in order of arrival, in one transaction."""
        by_ledger: dict[SyncedLedger, list[StudyOperation[Any]]] = {}
        for operation in group:
            by_ledger.setdefault(operation.ledger, []).append(operation)
        with ExitStack() as locks:
            for ledger in sorted(by_ledger, key=id):  # always in the same order, so that no two wait for each other
                locks.enter_context(ledger.lock)
            _carry_out_locked(by_ledger)


def _carry_out_locked(by_ledger: dict[SyncedLedger, list[StudyOperation[Any]]]) -> None:
    is_committing = False
    try:
        for ledger in by_ledger:
            ledger.prepare()
        store = next(iter(by_ledger)).store
        with store.group(sorted({ledger.name for ledger in by_ledger})) as sessions:
            for ledger, operations in by_ledger.items():
                _carry_out_on(ledger, sessions.get(ledger.name), operations)
            is_committing = True
    except BaseException as failure:
        for ledger in by_ledger:
            ledger.forget()
        if len(by_ledger) > 1 and not is_committing and isinstance(failure, Exception):
            for ledger, operations in by_ledger.items():  # one study's trouble is not that of the others
                _carry_out_locked({ledger: operations})
            return
        for operations in by_ledger.values():
            _fail(operations, failure)
        if not isinstance(failure, Exception):
            raise


def _carry_out_on(ledger: SyncedLedger, session: StoreSession | None, operations: list[StudyOperation[Any]]) -> None:
    """Carry out operations on one study; those that raise leave nothing, the others stand."""
    if session is None:
        _fail(operations, StudyNotFoundError(f"Study {ledger.name!r} not found."))
        return
    try:
        transaction = ledger.begin(session)
    except StudyNotFoundError as deleted:
        _fail(operations, deleted)
        return
    for operation in operations:
        kept = len(transaction.recorded)
        try:
            operation.result = operation.act(transaction)
        except StorageError:
            raise
        except Exception as error:
            operation.error = error
            if len(transaction.recorded) > kept:
                transaction = ledger.begin_again(transaction, kept)
    ledger.finish(transaction)


def _fail(operations: list[StudyOperation[Any]], failure: BaseException) -> None:
    if not isinstance(failure, Exception):  # such as Ctrl-C in the thread that led
        failure = StorageError("The change was interrupted before it was stored; retry.")
    for operation in operations:
        operation.result, operation.error = None, failure
