"""`connect`: the studies of a server, used as if they were local."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlencode, urlsplit

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.extras import say_how_to_install
from dbcare.client.responses import build_settings, require_list, require_part
from dbcare.client.study import RemoteStudy, make_study_path
from dbcare.errors import AnswerLostError, InvalidValueError, StorageError
from dbcare.planner.options import PlanOptions
from dbcare.studies.api import check_name, suggesting_names
from dbcare.studies.options import StudyOptions
from dbcare.studies.settings import Settings
from dbcare.studies.study import Study

if TYPE_CHECKING:
    from dbcare.client.transport import Transport

KEY_VARIABLE = "DBCARE_KEY"
STUDIES = "/v1/studies"
STUDIES_PER_PAGE = 1_000  # the most that a server sends


def connect(address: str, key: str | None = None, *, timeout: float = 30.0, patience: float = 30.0) -> Client:
    """Return a client for the studies of a server; nothing is sent yet.

    Parameters
    ----------
    address : str
        The server's URL, such as "http://127.0.0.1:8080".
    key : str, optional
        An API key. Default: the environment variable DBCARE_KEY. Without one, only a server on this machine that has
        no keys accepts requests.
    timeout : float
        Seconds that a request waits for each piece of its response.
    patience : float
        Seconds for which requests are retried, with growing pauses, while the server cannot be reached or is busy.

    Returns
    -------
    Client
        A client with studies by name; as a context manager, it closes its connections.

    Raises
    ------
    InvalidValueError
        If the address or the key is malformed.
    StorageError
        If httpx2 is not installed (extra `dbcare[server]`).

    Examples
    --------
    >>> import dbcare
    >>> with dbcare.connect("http://127.0.0.1:8080") as client:
    ...     print(client)
    Client('http://127.0.0.1:8080')
    """
    checked = _check_address(address)
    secret = _check_key(os.environ.get(KEY_VARIABLE) or None if key is None else key)
    try:
        from dbcare.client.transport import Transport  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as missing:
        raise StorageError(f"Connecting requires httpx2 ({missing}): {say_how_to_install('server')}.") from None
    limits = checks.positive("timeout", timeout), checks.non_negative("patience", patience)
    return Client(Transport(checked, secret, *limits))


class Client:
    """The studies of a server, by name; get one with `connect`. Safe to use from several threads.

    Its methods are those of the package: `create_study`, `load_study`, `list_studies`, `delete_study` and `plan`.

    Examples
    --------
    >>> import dbcare
    >>> client = dbcare.connect("http://127.0.0.1:8080", patience=0.0)
    >>> try:
    ...     client.list_studies()
    ... except dbcare.DbcareError as error:
    ...     print(str(error)[:39])
    The server at http://127.0.0.1:8080 doe
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create_study(
        self, name: str, arms: Sequence[str], *, load_if_exists: bool = False, **options: Unpack[StudyOptions]
    ) -> Study:
        """Create a study on the server, with the options of `dbcare.create_study`.

        If the response gets lost, an existing study of that name with identical settings is returned.
        """
        check_name(name)
        Settings.from_options(arms, **options)  # raises what the server would
        body = {"name": name, "arms": list(arms), **_spell_infinity(options)}
        key = uuid.uuid4().hex  # tells the server that a study with identical settings will do
        if load_if_exists:
            return self._study(self._transport.call("POST", STUDIES, body, key=key))
        try:
            return self._study(self._transport.call("POST", STUDIES, body, once=True))
        except AnswerLostError:
            return self._study(self._transport.call("POST", STUDIES, body, key=key))

    def load_study(self, name: str) -> Study:
        """Load a study, as `dbcare.load_study` does."""
        with suggesting_names(name, self.list_studies):
            return self._study(self._transport.call("GET", make_study_path(check_name(name))))

    def list_studies(self) -> list[str]:
        """List the names of all studies, oldest first."""
        names: list[str] = []
        while True:
            query = urlencode({"limit": STUDIES_PER_PAGE, **({"after": names[-1]} if names else {})})
            page = require_list(self._transport.call("GET", f"{STUDIES}?{query}"))
            if not page:  # one that is short need not be the last: the server leaves out studies it cannot use
                return names
            names += [str(require_part(study, "name")) for study in page]

    def delete_study(self, name: str) -> None:
        """Delete a study; not retried if the response gets lost."""
        self._transport.call("DELETE", make_study_path(check_name(name)), once=True)

    def plan(self, arms: int | Sequence[str], **options: Unpack[PlanOptions]) -> dict[str, Any]:
        """Return what `dbcare.plan(...).to_dict()` would, computed by the server with its own set of policies."""
        body = {"arms": arms if isinstance(arms, int) else list(arms), **_spell_infinity(options)}
        plan: dict[str, Any] = self._transport.call("POST", "/v1/plan", body)
        return plan

    def close(self) -> None:
        """Close all connections; they are opened again when needed."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.address!r})"

    def _study(self, plain: Any) -> Study:
        settings = build_settings(require_part(plain, "settings"))
        return RemoteStudy(self._transport, require_part(plain, "name"), settings)


def _spell_infinity(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a request: JSON has no infinity, so the server takes the word."""
    return {name: "inf" if isinstance(value, float) and value == math.inf else value for name, value in options.items()}


def _check_address(address: Any) -> str:
    message = f"`address` must be a URL such as http://127.0.0.1:8080 but got {show(address)}."
    if not isinstance(address, str):
        raise InvalidValueError(message)
    if "@" in address:  # a password must not be shown
        raise InvalidValueError(
            f"`address` must not contain credentials; pass the key as `key`, or set {KEY_VARIABLE}."
        )
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or not address.isprintable():
        raise InvalidValueError(message)
    return address.rstrip("/")


def _check_key(key: Any) -> str | None:
    if key is None or (isinstance(key, str) and key.isascii() and key.isprintable() and key and " " not in key):
        return key
    raise InvalidValueError("`key` must be an API key as `dbcare keys create` prints it (value hidden).")
