"""The expected loss of stopping, as the study went on: computed when somebody wants to know, at few moments.

The moments depend on the number of rewards alone, so everybody sees the same curve, whoever looked before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

GROWTH = 1.15  # rewards from one moment to the next: 89 moments in a million rewards

Compute = Callable[[], float | None]


@dataclass
class LossCurve:
    """Numbers of rewards counted, and the expected loss of stopping then; `pending` are those not computed yet."""

    points: list[list[float]] = field(default_factory=list)
    seen: int = 0  # rewards at the last moment taken
    pending: list[tuple[int, Compute]] = field(default_factory=list)

    def add(self, rewards: int, prepare: Callable[[], Compute]) -> None:
        """Take a moment, if it is due; `prepare` keeps what the loss is computed from."""
        if rewards >= GROWTH * self.seen:
            self.seen = rewards
            self.pending.append((rewards, prepare()))

    def compute(self) -> list[list[float]]:
        """Return all points, after computing what is pending."""
        for rewards, compute in self.pending:
            loss = compute()
            if loss is not None:
                self.points.append([rewards, loss])
        self.pending.clear()
        return self.points

    def latest(self) -> float | None:
        """Return the loss at the last moment that has one."""
        points = self.compute()
        return points[-1][1] if points else None

    def at(self, rewards: list[int], now: float | None) -> list[float | None]:
        """Return the loss at other moments, the last of which is `now`: None before the first that is known.

        In between, its logarithm is on a line.
        """
        known = list(self.compute())
        if now is not None and rewards and (not known or known[-1][0] < rewards[-1]):
            known.append([rewards[-1], now])
        if not known:
            return [None] * len(rewards)
        counts, losses = np.array(known).T
        logs = np.interp(rewards, counts, np.log(np.maximum(losses, np.finfo(float).tiny)))
        return [None if count < counts[0] else math.exp(log) for count, log in zip(rewards, logs.tolist(), strict=True)]
