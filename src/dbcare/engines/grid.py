"""Evaluate a policy over a grid of gaps, exactly or by pooled runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import dbcare
from dbcare.base import checks
from dbcare.engines.evaluate import check_settings, choose_risk
from dbcare.engines.exact import FAMILIES, is_covered, two_arm_curve
from dbcare.engines.exact.law import TwoArmLaw, check_gaps
from dbcare.engines.pooling.estimates import Estimates, combine
from dbcare.engines.pooling.evaluate import Target, evaluate_pooled
from dbcare.engines.statistics import QUANTILES
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies.policy import Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss, Risk, check_risk

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


SHAPES = ("two-arm", "one-sparse", "linear-decay")


def evaluate_grid(
    policy: Policy | Callable[[float], Policy],
    gaps: npt.ArrayLike,
    family: str = "gaussian",
    sigma: float = 1.0,
    *,
    shape: str | npt.ArrayLike | None = None,
    risk: Risk | None = None,
    runs: int = 100_000,
    precision: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> GridEvaluation:
    """Evaluate a policy at every gap of a grid, at once.

    Without `shape`, a two-arm policy is evaluated by the exact engine: on Gaussian arms with means +-gap/2 and standard
    deviation `sigma`, or Bernoulli arms with means 1/2 +- gap/2. Pass a policy that knows the gap as a function of the
    gap: `lambda gap: KnownGapOracle(risk, gap)`.

    With `shape`, arms are Gaussian with means gap * shape, any policy that does not know the gap is simulated, and the
    runs at all gaps are pooled: what a run says about one gap, it says about the others, too (`engines.pooling`). Runs
    are added where they are needed, until the standard error of the risk at every gap is as requested.

    Parameters
    ----------
    policy : Policy or callable
        A policy, or a function that returns one for a gap, for policies that know it.
    gaps : array_like
        What the shape is multiplied by; for the named shapes, the difference of the best two means.
    family : {"gaussian", "bernoulli"}
        Distribution of the rewards; with `shape`, they are Gaussian.
    sigma : float
        Standard deviation of Gaussian rewards.
    shape : {"two-arm", "one-sparse", "linear-decay"} or array_like, optional
        Means of the arms at a gap of 1, by name (as the bandits of these names have them) or as numbers, one of which
        is the largest.
    risk : Risk, optional
        What a pull costs and what a wrong choice loses. Default: the policy's own. Only pooled runs need it.
    runs : int
        Pooled estimates are at least as precise as this number of plain runs at every gap.
    precision : float, optional
        Instead of `runs`: the standard error of the risk at every gap is this fraction of it.
    seed : int
        Random seed; the same seed gives the same bits for any number of threads.
    threads : int, optional
        Number of threads. Default: all CPUs.

    Returns
    -------
    GridEvaluation
        Error, regret, pulls and both risks as arrays over the gaps, with standard errors.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    EngineError
        If the engine cannot answer for the policy; the message says which one can.

    Examples
    --------
    >>> from dbcare import DBCARE, Risk, evaluate_grid
    >>> risk = Risk.misidentification(1e-3)
    >>> curve = evaluate_grid(DBCARE(risk, arms=2), [0.5, 1.0, 2.0])
    >>> curve.mean_pulls.round(1)
    array([318. ,  92.6,  21.5])
    """
    grid = check_gaps(gaps, np.inf if checks.one_of("family", family, FAMILIES) == "gaussian" else 1.0)
    if not isinstance(policy, Policy) and not callable(policy):
        raise InvalidValueError(f"`policy` must be a Policy or a function of the gap but got {checks.show(policy)}.")
    checks.positive("sigma", sigma)
    runs, seed, width = check_settings(runs, seed, "auto", threads)
    if precision is not None:
        checks.open_unit("precision", precision)
    if risk is not None:
        check_risk(risk)
    if shape is not None:
        known = _require_poolable(policy, family)
        if not (isinstance(shape, str) and shape == "two-arm" and is_covered(known)):
            target = Target(runs=None if precision is not None else runs, precision=precision)
            return _pool(known, grid, _read_shape(shape, known.arms), sigma, risk, target, seed, width)
    law = _evaluate_exactly(policy, grid, family, sigma)
    return GridEvaluation(
        policy=repr(policy),
        **{field.name: getattr(law, field.name) for field in fields(law) if field.name != "mass_defect"},
        engine="exact",
        guarantee=f"no Monte Carlo, mass conserved to {law.mass_defect:.1g}",
        runs=np.zeros(grid.size, np.int64),
        pulls_simulated=0,
        estimates=None,
        seed=seed,
        version=dbcare.__version__,
    )


def _evaluate_exactly(
    policy: Policy | Callable[[float], Policy], grid: npt.NDArray[np.float64], family: str, sigma: float
) -> TwoArmLaw:
    if isinstance(policy, Policy):
        checks.spread_within(policy.largest_spread, float(grid.max()))
        return two_arm_curve(policy, grid, family=family, sigma=sigma, levels=QUANTILES)
    laws = [
        two_arm_curve(_call(policy, float(gap)), [gap], family=family, sigma=sigma, levels=QUANTILES) for gap in grid
    ]
    joined = {
        field.name: np.concatenate([getattr(law, field.name) for law in laws])
        for field in fields(TwoArmLaw)
        if field.name not in ("levels", "mass_defect")
    }
    return TwoArmLaw(**joined, levels=laws[0].levels, mass_defect=max(law.mass_defect for law in laws))


def _call(function: Callable[[float], Policy], gap: float) -> Policy:
    policy = function(gap)
    if not isinstance(policy, Policy):
        raise InvalidValueError(f"`policy` must return a Policy for each gap but got {checks.show(policy)}.")
    return policy


def _require_poolable(policy: Policy | Callable[[float], Policy], family: str) -> Policy:
    """Return the policy, if its runs on Gaussian arms can be pooled over gaps."""
    if not isinstance(policy, Policy) or policy.knows_gap:
        raise EngineError(
            f"Pooled runs need a policy that does not know the gap but got {checks.show(policy)}; without `shape`, "
            "the exact engine accepts a function of the gap."
        )
    if family != "gaussian":
        raise EngineError(
            f"Pooled runs over a `shape` need Gaussian rewards but got {family!r}; without `shape`, the exact engine "
            "evaluates two Bernoulli arms, and `evaluate` any bandit."
        )
    return policy


def _read_shape(shape: Any, arms: int) -> list[float]:
    """Return the means of the arms at a gap of 1."""
    if isinstance(shape, str):
        name = checks.one_of("shape", shape, SHAPES)
        if name == "two-arm":
            if arms != 2:
                raise InvalidValueError(f"`shape` two-arm needs a policy for two arms but got one for {arms}.")
            return list(Bandit.two_arm(1.0).means)
        return list((Bandit.one_sparse if name == "one-sparse" else Bandit.linear_decay)(arms, 1.0).means)
    means = [checks.real("shape", mean) for mean in checks.items("shape", shape, "one number per arm")]
    if len(means) != arms:
        raise InvalidValueError(f"`shape` must have one number per arm ({arms}) but got {len(means)}.")
    if means.count(max(means)) > 1:
        raise InvalidValueError(
            f"`shape` must have one best arm but got {means}; `evaluate` accepts bandits whose best arms are tied."
        )
    return means


def _pool(
    policy: Policy,
    grid: npt.NDArray[np.float64],
    shape: list[float],
    sigma: float,
    risk: Risk | None,
    target: Target,
    seed: int,
    threads: int,
) -> GridEvaluation:
    bandits = [Bandit.gaussian([gap * mean for mean in shape], sigma) for gap in grid.tolist()]
    chosen, *_ = [choose_risk(policy, bandit, risk) for bandit in bandits]  # all are checked
    if chosen.costs_differ:
        raise InvalidValueError("`risk` must have the same cost for all arms; `evaluate` accepts a cost per arm.")
    pooled = evaluate_pooled(policy, bandits, [(chosen.loss, chosen.single_cost)], target, seed, threads)
    estimates, levels = pooled.estimates, np.array(QUANTILES)
    averages_labels = len(pooled.model.labelings.moves) > 1
    return GridEvaluation(
        policy=repr(policy),
        gaps=grid,
        error=estimates.means[:, 0],
        regret=estimates.means[:, 1],
        mean_pulls=estimates.mean_pulls,
        deviation_pulls=np.sqrt(np.maximum(estimates.plain_covariance[:, 2, 2], 0.0)),
        capped=estimates.capped,
        levels=levels,
        quantiles=pooled.source.quantiles(pooled.model, levels),
        engine="pooled",
        guarantee="runs at all gaps serve each gap" + (", losses averaged over labels" if averages_labels else ""),
        runs=pooled.runs,
        pulls_simulated=pooled.source.pulls,
        estimates=estimates,
        seed=seed,
        version=dbcare.__version__,
    )
