"""How many files this process may have open: every connection is one."""

from __future__ import annotations

import sys

from dbcare.errors import InvalidValueError

OTHER_FILES = 200  # the database, the program itself, and connections about to be refused


def allow_connections(connections: int) -> None:
    """Raise this process's limit on open files as far as its connections need; an error if the system forbids it."""
    if sys.platform == "win32":
        return  # there is no such limit
    import resource  # noqa: PLC0415  # not on Windows

    needed = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InvalidValueError(
            f"`connections` must be at most {hard - OTHER_FILES} here but got {connections}: this process may open "
            f"{hard} files; raise that limit (ulimit -Hn, or LimitNOFILE in systemd) or lower `connections`."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
