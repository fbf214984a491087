"""Bandits whose arms share blocks: questions that all prompts answer, folds that all models are fitted on, hours.

Rewards in one block move together, so a policy that compares arms within blocks sees less noise. Where a policy has no
blocks of its own, each of its pulls is in a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dbcare import validation
from dbcare.bandit import Bandit
from dbcare.errors import InvalidValueError
from dbcare.rewards import Empirical, Gaussian, Reward
from dbcare.validation import show


@dataclass(frozen=True)
class GaussianBlocks(Bandit):
    """Gaussian arms whose rewards are correlated within a block, and may drift together.

    The reward of arm k in block b, after t pulls of the run, is

    mean_k + sigma_k * (sqrt(correlation) * u_b + sqrt(1 - correlation) * e) + drift * sin(2 pi (t / period + phase)),

    where u_b is one standard normal number for all arms of the block, whenever they are pulled, e a new one for each
    pull, and the phase is uniform, one for each run.

    Parameters
    ----------
    arms : tuple of Gaussian
        The distribution of each arm's rewards without drift; `of` builds them.
    names : tuple of str, optional
        Names of the arms.
    bound : float, optional
        The B of the paper: no two means differ by more.
    correlation : float
        Correlation of two arms' rewards in the same block, from 0 to 1.
    drift : float
        Amplitude of the sine wave that all arms share.
    period : float
        Number of pulls in one wave.

    Examples
    --------
    >>> from dbcare import GaussianBlocks, Risk, Uniform, evaluate
    >>> bandit = GaussianBlocks.of([0.5, 0.0], correlation=0.9)
    >>> evaluate(Uniform(arms=2, pulls=5), bandit, Risk.simple_regret(1e-3), runs=100).engine
    'direct'
    """

    correlation: float = 0.0
    drift: float = 0.0
    period: float = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for index, arm in enumerate(self.arms):
            if not isinstance(arm, Gaussian):
                raise InvalidValueError(f"`arms[{index}]` must be a Gaussian but got {show(arm)}.")
        validation.set_fields(
            self,
            correlation=validation.unit("correlation", self.correlation),
            drift=validation.non_negative("drift", self.drift),
            period=validation.positive("period", self.period),
        )

    @classmethod
    def of(
        cls,
        means: Iterable[float],
        sigma: float | Iterable[float] = 1.0,
        correlation: float = 0.0,
        drift: float = 0.0,
        period: float = 300.0,
    ) -> GaussianBlocks:
        """Create arms with these means, and one `sigma` for all or one per arm."""
        return cls(Bandit.gaussian(means, sigma).arms, correlation=correlation, drift=drift, period=period)


@dataclass(frozen=True, init=False)
class ScoreTable(Bandit):
    """Recorded scores that are replayed: a finite pool of blocks, each with one score per arm.

    Each run takes the rows in a random order of its own, the same for all arms, and begins again after the last one.
    The mean of an arm is the mean of its column, so regret is about these very blocks.

    Parameters
    ----------
    scores : sequence of sequences of float
        One row per block, with one finite score per arm; an array is kept as a tuple of tuples.
    names : tuple of str, optional
        Names of the arms.
    bound : float, optional
        The B of the paper: no two means differ by more.

    Examples
    --------
    >>> from dbcare import ScoreTable
    >>> table = ScoreTable([[1, 0], [1, 1], [0, 0], [1, 0]])
    >>> table.means, table.blocks
    ((0.75, 0.25), 4)
    """

    arms: tuple[Reward, ...] = field(init=False, repr=False, compare=False)  # the columns
    scores: tuple[tuple[float, ...], ...] = field(kw_only=True)

    def __init__(
        self, scores: Iterable[Sequence[float]], names: tuple[str, ...] | None = None, bound: float | None = None
    ) -> None:
        rows = _check_scores(scores)
        arms = tuple(Empirical(column) for column in zip(*rows, strict=True))
        validation.set_fields(self, scores=rows, arms=arms, names=names, bound=bound)
        super().__post_init__()

    @property
    def blocks(self) -> int:
        """Number of blocks in the pool."""
        return len(self.scores)


BlockBandit = GaussianBlocks | ScoreTable


def _check_scores(scores: Iterable[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return the rows as tuples of numbers; a score that is not one is an error that names its row and column."""
    checked: list[tuple[float, ...]] = []
    for row, values in enumerate(validation.items("scores", scores, "rows with one score per arm")):
        listed = validation.items(f"scores[{row}]", values, "a row with one score per arm")
        if checked and len(listed) != len(checked[0]):
            raise InvalidValueError(
                f"`scores[{row}]` must have {len(checked[0])} scores, as the rows above, but got {len(listed)}."
            )
        checked.append(tuple(_check_score(f"scores[{row}][{column}]", each) for column, each in enumerate(listed)))
    if not checked:
        raise InvalidValueError(f"`scores` must have at least one row but got {show(scores)}.")
    return tuple(checked)


def _check_score(name: str, value: Any) -> float:
    # Answers are often recorded as right or wrong.
    return float(value) if isinstance(value, bool | np.bool_) else validation.real(name, value)
