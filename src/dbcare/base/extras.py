"""How to install an extra, for messages that say one is missing."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def say_how_to_install(extra: str) -> str:
    """Return the command that adds an extra to this installation: from where dbcare itself came, if that is a file.

    Pip keeps that place as "direct URL origin" (PEP 610).

    Examples
    --------
    >>> from dbcare.base.extras import say_how_to_install
    >>> say_how_to_install("server").endswith("[server]'")
    True
    """
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415  # slow, and rarely needed

    origin: dict[str, Any] = {}
    with suppress(PackageNotFoundError, ValueError):
        origin = json.loads(distribution("dbcare").read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    place = Path(unquote(url.path))
    if url.scheme != "file" or not place.exists():
        return f"pip install 'dbcare[{extra}]'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{place}[{extra}]'"
