"""What a key allows."""

from enum import StrEnum


class Role(StrEnum):
    """Each role may do everything that those before it may."""

    VIEWER = "viewer"  # reads
    WORKER = "worker"  # asks and tells
    ADMIN = "admin"  # creates, pauses, stops, deletes

    def allows(self, needed: "Role") -> bool:
        """Return whether this role may do what `needed` may."""
        return list(Role).index(self) >= list(Role).index(needed)
