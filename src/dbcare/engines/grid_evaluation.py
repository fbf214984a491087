"""A policy's performance over a grid of gaps, by the exact engine or by pooled runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dbcare.engines.pooling.control_variates import Estimates, combine
from dbcare.errors import InvalidValueError
from dbcare.problem.risk import Loss, Risk

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GridEvaluation:
    """A policy's performance over a grid of gaps, and how it was measured; print it for a table.

    Arrays are indexed by gap.

    Parameters
    ----------
    policy : str
        The policy's description.
    gaps : array
        The gaps.
    error : array
        P(an arm below the best is recommended); 0 where the gap is 0, since a tie with the best is not an error.
    regret : array
        E[best mean - recommended mean].
    mean_pulls, deviation_pulls : array
        Mean and standard deviation of a run's pulls.
    capped : array
        P(stopped with more than one arm left): at a budget, or a cap on pulls.
    levels, quantiles : array
        quantiles[gap, level] is the least number of pulls not exceeded with probability at least levels[level].
    engine, guarantee : str
        "exact" or "pooled", and what it guarantees.
    runs : array
        Simulated runs made at each gap; 0 where the engine is exact.
    pulls_simulated : int
        Pulls of all these runs.
    estimates : Estimates or None
        The covariances that standard errors follow from; None where the engine is exact.
    seed, version
        What is needed to repeat it.

    Examples
    --------
    >>> from dbcare import Breakeven, Risk, evaluate_grid
    >>> risk = Risk.simple_regret(1e-3)
    >>> curve = evaluate_grid(Breakeven(risk, arms=4, sigma=1.0), [0.2, 0.4, 0.8], shape="one-sparse", runs=10_000)
    >>> curve.engine, bool((curve.plain_runs(risk) >= 10_000).all())
    ('pooled', True)
    """

    policy: str
    gaps: Floats
    error: Floats
    regret: Floats
    mean_pulls: Floats
    deviation_pulls: Floats
    capped: Floats
    levels: Floats
    quantiles: Floats
    engine: str
    guarantee: str
    runs: npt.NDArray[np.int64]
    pulls_simulated: int
    estimates: Estimates | None = field(repr=False)
    seed: int
    version: str

    def risk(self, risk: Risk) -> Floats:
        """Return R_MI or R_SR at every gap (Section 1.1 of the paper).

        Pooled runs need the same cost for all arms. The exact engine's policies pull both arms equally often.
        """
        loss = self.error if risk.loss is Loss.MISIDENTIFICATION else self.regret
        return loss + self.mean_pulls * self._cost_of_pull(risk)

    def standard_error(self, risk: Risk) -> Floats:
        """Return the standard error of the risk at every gap; errors at different gaps are correlated."""
        if self.estimates is None:
            return np.zeros_like(self.gaps)
        return np.sqrt(self.estimates.variances(combine(risk.loss, self._cost_of_pull(risk))))

    def plain_runs(self, risk: Risk) -> Floats:
        """Return how many plain runs at each gap would have the same standard error of the risk; infinite if exact."""
        if self.estimates is None:
            return np.full_like(self.gaps, np.inf)
        return self.estimates.plain_runs(combine(risk.loss, self._cost_of_pull(risk)))

    def __str__(self) -> str:
        figures = zip(("error", "regret", "pulls"), (self.error, self.regret, self.mean_pulls), np.eye(3), strict=True)
        columns = [["gap", *(f"{gap:.4g}" for gap in self.gaps)]]
        columns += [[name, *self._format(values, unit)] for name, values, unit in figures]
        if self.estimates is not None:
            columns.append(["runs", *(f"{runs:,}" for runs in self.runs)])
        widths = [max(map(len, column)) for column in columns]
        rows = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            for row in zip(*columns, strict=True)
        ]
        errors = "" if self.estimates is None else "; plus or minus 2 standard errors"
        return "\n".join(
            [self.policy, "-" * len(self.policy), *rows, f"{self.engine}: {self.guarantee}{errors}, seed {self.seed}"]
        )

    def _format(self, values: Floats, combination: Floats) -> list[str]:
        values = np.maximum(values, 0.0)  # a control variate may push an estimate below 0, which none of these can be
        if self.estimates is None:
            return [f"{value:.6g}" for value in values]
        errors = 2.0 * np.sqrt(self.estimates.variances(combination.tolist()))
        return [f"{value:.4g} \N{PLUS-MINUS SIGN} {error:.1g}" for value, error in zip(values, errors, strict=True)]

    def _cost_of_pull(self, risk: Risk) -> float:
        if self.estimates is None:
            return sum(risk.costs(2)) / 2.0
        if risk.costs_differ:
            raise InvalidValueError("`risk` must have the same cost for all arms; `evaluate` accepts a cost per arm.")
        return risk.single_cost
