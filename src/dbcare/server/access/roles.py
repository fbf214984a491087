"""What a key is good for."""

from enum import StrEnum


class Role(StrEnum):
    """Each may do all that those before it may."""

    VIEWER = "viewer"  # looks
    WORKER = "worker"  # asks and tells
    ADMIN = "admin"  # creates, pauses, stops, deletes

    def allows(self, needed: "Role") -> bool:
        """Whether this role may do what `needed` may."""
        return list(Role).index(self) >= list(Role).index(needed)
