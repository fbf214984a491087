"""What a server responds, as the library's own results and exceptions."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from dbcare import errors
from dbcare.errors import AccessError, DbcareError, InvalidValueError, StorageError
from dbcare.studies.results.status import Activity, ArmStatus, Lift, Recommendation, Status
from dbcare.studies.settings import Settings
from dbcare.studies.show.export import TrialRow

if TYPE_CHECKING:
    import httpx2

Built = TypeVar("Built")

MAX_QUOTED_LENGTH = 80
REQUEST_ID = "X-Request-ID"
JSON_LINES = "application/jsonl"
BY_STATUS: dict[int, type[DbcareError]] = {  # if the problem names no exception of the library
    HTTPStatus.FORBIDDEN: AccessError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidValueError,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidValueError,
    HTTPStatus.TOO_MANY_REQUESTS: StorageError,
    HTTPStatus.INTERNAL_SERVER_ERROR: StorageError,
}


def read_response(response: httpx2.Response) -> Any:
    """Return what a server responded; an error that it reports is raised as if it had happened here."""
    _require_success(response)
    return None if response.status_code == HTTPStatus.NO_CONTENT else _parse_json(response)


def require_lines(response: httpx2.Response) -> None:
    """Check that a response consists of JSON Lines; an error is raised as in `read_response`."""
    _require_success(response)
    if response.headers.get("content-type", "").partition(";")[0] != JSON_LINES:
        raise _unexpected(response)


def _require_success(response: httpx2.Response) -> None:
    if response.is_redirect:
        target = response.headers.get("location", "nowhere")
        raise StorageError(f"{_url(response)} redirects to {target!r}; connect there if it's correct.")
    if not response.is_success:
        raise read_error(response)


def read_error(response: httpx2.Response) -> DbcareError:
    """Return the exception that a problem (RFC 9457) describes, with the request's id as in the server's log."""
    identity = response.headers.get(REQUEST_ID) or response.request.headers.get(REQUEST_ID)
    error = _read_error(response)
    return error if identity is None else type(error)(f"{error} (Request {identity})")


def _read_error(response: httpx2.Response) -> DbcareError:
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        if "authorization" in response.request.headers:
            problem = "does not accept this API key, which is unknown, expired, or revoked: correct"
        else:
            problem = "requires an API key: pass"
        return AccessError(f"The server {problem} `key=` of `dbcare.connect`, or the environment variable DBCARE_KEY.")
    try:
        problem = _parse_json(response)
        detail = str(problem["detail"])
    except (StorageError, TypeError, KeyError):
        return _unexpected(response)
    kind = getattr(errors, str(problem.get("error")), None)
    if isinstance(kind, type) and issubclass(kind, DbcareError):
        return kind(detail)
    by_status = BY_STATUS.get(response.status_code)
    return _unexpected(response, detail) if by_status is None else by_status(detail)


def require_part(plain: Any, name: str) -> Any:
    """Return a part that a response must have."""
    try:
        return plain[name]
    except (KeyError, TypeError):
        raise _incomplete(repr(name), plain) from None


def require_list(plain: Any) -> list[Any]:
    """Return a response that must be a list."""
    if not isinstance(plain, list):
        raise _incomplete("a list", plain)
    return plain


def build(kind: type[Built], plain: Any) -> Built:
    """Build a dataclass from its JSON, lists as tuples; whatever else a newer server sends is ignored."""
    try:
        values = {name: plain[name] for name in _field_names(kind)}  # type: ignore[arg-type]  # a class is hashable
        return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
    except (KeyError, TypeError):
        raise _incomplete(f"a {kind.__name__}", plain) from None


@lru_cache  # a study may have a million trials
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def build_row(line: str) -> TrialRow:
    """Build a trial's row from a line of JSON."""
    try:
        return build(TrialRow, json.loads(line))
    except (ValueError, RecursionError):
        raise _incomplete("a TrialRow", line) from None


def build_settings(plain: Any) -> Settings:
    """Build a study's settings."""
    try:
        return Settings.from_dict(plain)
    except (AttributeError, TypeError):
        raise _incomplete("settings", plain) from None
    except InvalidValueError as error:  # such as a policy that is installed on the server only
        raise StorageError(f"This study cannot be used here: {error}") from None


def build_status(plain: Any) -> Status:
    """Build a status with its arms and activities."""
    status = build(Status, plain)
    arms = [_build_with_lift(ArmStatus, arm) for arm in status.arms]
    activities = [build(Activity, activity) for activity in status.activities]
    return build(Status, {**plain, "arms": arms, "activities": activities})


def build_recommendation(plain: Any) -> Recommendation:
    """Build a recommendation with its lift."""
    return _build_with_lift(Recommendation, plain)


def _build_with_lift(kind: type[Built], plain: Any) -> Built:
    lift = require_part(plain, "lift")
    return build(kind, {**plain, "lift": None if lift is None else build(Lift, lift)})


def _parse_json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        raise _unexpected(response) from None


def _incomplete(expected: str, plain: Any) -> StorageError:
    return StorageError(f"The server must send {expected} but sent {str(plain)[:MAX_QUOTED_LENGTH]!r}.")


def _unexpected(response: httpx2.Response, detail: str = "") -> StorageError:
    content = detail or response.headers.get("content-type", "nothing")
    return StorageError(
        f"{_url(response)} does not respond like a dbcare server: it sent {content!r} "
        f"with status {response.status_code}."
    )


def _url(response: httpx2.Response) -> str:
    return str(response.request.url)
