"""Roles: what the holder of a key may do."""

from enum import StrEnum


class Role(StrEnum):
    """A role; each includes those before it."""

    VIEWER = "viewer"  # reads
    WORKER = "worker"  # asks and tells
    ADMIN = "admin"  # creates, pauses, stops, deletes

    def allows(self, needed: "Role") -> bool:
        """Return whether this role includes `needed`."""
        return RANKS[self] >= RANKS[needed]


RANKS = {role: rank for rank, role in enumerate(Role)}
