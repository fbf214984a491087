"""Which policy's side a study needs: with or without blocks, and with a pool of them or in rounds."""

from __future__ import annotations

from dbcare.live.decision import Decision
from dbcare.live.pool_decision import PoolDecision
from dbcare.live.round_decision import RoundDecision
from dbcare.live.settings import Settings


def make_decision(settings: Settings, retired: frozenset[int] = frozenset()) -> Decision:
    """Return the policy's side of a study, as its settings require."""
    if not settings.has_blocks:
        return Decision(settings, retired)
    return PoolDecision(settings, retired) if settings.pool is not None else RoundDecision(settings, retired)
