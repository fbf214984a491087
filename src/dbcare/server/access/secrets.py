"""Secrets of keys and sessions, and their hashes."""

from __future__ import annotations

import hashlib
from secrets import token_hex

SECRET_BYTES = 32


def make_secret() -> str:
    """Return 256 random bits, as text without `_` or `-`."""
    return token_hex(SECRET_BYTES)


def make_digest(salt: str, secret: str) -> str:
    """Return the hash of a secret; a slow hash is not needed, since secrets are long and random."""
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()
