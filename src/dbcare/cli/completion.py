"""What a shell suggests for the name of a study."""

import contextlib
import os

import typer


def complete_study(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of stored studies that begin like this; none if they cannot be read."""
    storage = context.params.get("storage") or os.environ.get("DBCARE_STORAGE")
    if storage is None:
        return []
    import dbcare
    from dbcare.errors import DbcareError

    with contextlib.suppress(DbcareError):
        return [name for name in dbcare.list_studies(storage) if name.startswith(incomplete)]
    return []
