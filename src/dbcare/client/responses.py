"""What a server said, as the library's own results and exceptions."""

from __future__ import annotations

from dataclasses import fields
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from dbcare import errors
from dbcare.errors import AccessError, DbcareError, InvalidValueError, StorageError
from dbcare.live.report import ArmStatus, Status
from dbcare.live.settings import Settings

if TYPE_CHECKING:
    import httpx2

Made = TypeVar("Made")

BY_STATUS: dict[int, type[DbcareError]] = {  # where the problem names no error of the library
    HTTPStatus.UNAUTHORIZED: AccessError,
    HTTPStatus.FORBIDDEN: AccessError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidValueError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidValueError,
    HTTPStatus.TOO_MANY_REQUESTS: StorageError,
    HTTPStatus.INTERNAL_SERVER_ERROR: StorageError,
}


def understood(answer: httpx2.Response) -> Any:
    """What a server answered; an error that it reports is raised as if it had happened here."""
    if answer.is_redirect:
        raise StorageError(
            f"{_place(answer)} must answer itself but sends to {answer.headers.get('location', 'nowhere')!r}: "
            "connect to that address if it is the right one."
        )
    if not answer.is_success:
        raise reported(answer)
    return None if answer.status_code == HTTPStatus.NO_CONTENT else _plain(answer)


def reported(answer: httpx2.Response) -> DbcareError:
    """The error that a problem (RFC 9457) tells of."""
    try:
        problem = _plain(answer)
        detail = str(problem["detail"])
    except (StorageError, TypeError, KeyError):
        return _strange(answer)
    kind = getattr(errors, str(problem.get("error")), None)
    if isinstance(kind, type) and issubclass(kind, DbcareError):
        return kind(detail)
    by_status = BY_STATUS.get(answer.status_code)
    return _strange(answer, detail) if by_status is None else by_status(detail)


def part(plain: Any, name: str) -> Any:
    """One of the things that an answer must have."""
    try:
        return plain[name]
    except (KeyError, TypeError):
        raise StorageError(f"The server must send {name!r} but sent {str(plain)[:80]!r}.") from None


def made(kind: type[Made], plain: Any) -> Made:
    """A dataclass from its JSON, lists as tuples; what else a newer server says is left out."""
    try:
        given = {field.name: plain[field.name] for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
        return kind(**{name: tuple(each) if isinstance(each, list) else each for name, each in given.items()})
    except (KeyError, TypeError):
        raise StorageError(f"The server must send a {kind.__name__} but sent {str(plain)[:80]!r}.") from None


def made_settings(plain: Any) -> Settings:
    """A study's settings."""
    try:
        return Settings.from_dict(plain)
    except (AttributeError, TypeError, InvalidValueError):
        raise StorageError(f"The server must send settings but sent {str(plain)[:80]!r}.") from None


def listed(plain: Any) -> list[Any]:
    """What must be a list."""
    if not isinstance(plain, list):
        raise StorageError(f"The server must send a list but sent {str(plain)[:80]!r}.")
    return plain


def made_status(plain: Any) -> Status:
    """A status, with its arms."""
    status = made(Status, plain)
    return made(Status, {**plain, "arms": [made(ArmStatus, each) for each in status.arms]})


def _plain(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError):
        raise _strange(answer) from None


def _strange(answer: httpx2.Response, detail: str = "") -> StorageError:
    kind = answer.headers.get("content-type", "nothing")
    return StorageError(
        f"{_place(answer)} must answer as dbcare's server does but sent {detail or kind!r} "
        f"with status {answer.status_code}."
    )


def _place(answer: httpx2.Response) -> str:
    return str(answer.request.url)
