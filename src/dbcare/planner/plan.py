"""`plan`: what each way to decide would cost before any data, by the gap between the best arm and the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbcare import validation
from dbcare.engines.evaluate_within import evaluate_within
from dbcare.engines.evaluation import Evaluation
from dbcare.engines.work_budget import TooMuchWorkError, WorkBudget
from dbcare.planner import presentation
from dbcare.planner.cells import (
    MAX_RUNS,
    Cell,
    build_cells,
    check_budget,
    check_gaps,
    choose_strategies,
    count_affordable_runs,
    sort_by_work,
)
from dbcare.planner.setting import PlanSetting
from dbcare.planner.strategies import strategy_names
from dbcare.policies.policy import Policy
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.risk import Loss, Risk

FIGURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Outlook:
    """One policy at one gap; amounts in money, or in units of the loss without a `value`.

    Parameters
    ----------
    name : str
        Name of the policy.
    gap : float
        The gap between the best arm and the others.
    policy : Policy
        The policy as it was built for the gap.
    evaluation : Evaluation
        Its evaluation there.
    unit : float
        What one unit of loss is worth.

    Examples
    --------
    >>> import dbcare
    >>> outlook = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, policies="decide-now").outlooks[0]
    >>> outlook.observations, outlook.total_loss
    (0.0, 0.25)
    """

    name: str
    gap: float
    policy: Policy
    evaluation: Evaluation
    unit: float

    @property
    def observations(self) -> float:
        """Expected number of pulls."""
        return self.evaluation.pulls.mean

    @property
    def spend(self) -> float:
        """Expected cost of all pulls."""
        if isinstance(self.evaluation.cost, float):
            return self.unit * self.evaluation.cost * self.observations
        loss = self.evaluation.loss
        return self.unit * (self.evaluation.risks[loss].value - self.evaluation.losses[loss].value)

    @property
    def chance_wrong(self) -> float:
        """Probability of choosing an arm other than the best."""
        return self.evaluation.error

    @property
    def total_loss(self) -> float:
        """Expected loss of the choice plus expected spend: the risk, in money."""
        return self.unit * self.evaluation.risk

    @property
    def standard_error(self) -> float:
        """Standard error of the total loss; 0 where it is exact."""
        return self.unit * self.evaluation.standard_error

    def record(self) -> dict[str, float | str]:
        """Return the figures by name, as one row of a table."""
        evaluation = self.evaluation
        return {
            "gap": self.gap,
            "policy": self.name,
            "observations": self.observations,
            "observations_standard_error": evaluation.pulls.standard_error,
            "spend": self.spend,
            "chance_wrong": self.chance_wrong,
            "chance_wrong_standard_error": evaluation.losses[Loss.MISIDENTIFICATION].standard_error,
            "total_loss": self.total_loss,
            "total_loss_standard_error": self.standard_error,
            "engine": evaluation.engine,
            "runs": evaluation.runs,
        }


@dataclass(frozen=True)
class Omission:
    """One policy at one gap that does not fit into the budget of work; `why` is a clause that says how much it is."""

    name: str
    gap: float
    why: str

    def record(self) -> dict[str, float | str]:
        """Return the fields by name."""
        return {"gap": self.gap, "policy": self.name, "why": self.why}


@dataclass(frozen=True)
class Plan:
    """What each way to decide would cost, by gap and policy.

    Print it for a table with advice, or use `records`, `to_dict`, `advice` and `plot`.

    Parameters
    ----------
    setting : PlanSetting
        What was planned for.
    gaps : tuple of float
        The gaps between the best arm and the others, ascending.
    outlooks : tuple of Outlook
        One entry per gap and policy, except for `omissions`.
    left_out : dict
        Policies that cannot take part, and why.
    runs, seed : int
        Those of the simulations.
    omissions : tuple of Omission
        Gaps and policies that did not fit into the budget of work, if there was one.

    Examples
    --------
    >>> import dbcare
    >>> plan = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, runs=200)
    >>> plan.policies
    ('breakeven', 'dbcare', 'fixed-size-test', 'decide-now')
    """

    setting: PlanSetting
    gaps: tuple[float, ...]
    outlooks: tuple[Outlook, ...]
    left_out: dict[str, str]
    runs: int
    seed: int
    omissions: tuple[Omission, ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies that are compared."""
        compared = {outlook.name for outlook in self.outlooks}
        return tuple(name for name in strategy_names() if name in compared)

    def of(self, policy: str) -> tuple[Outlook, ...]:
        """Return the outlooks of one policy, by gap."""
        validation.one_of("policy", policy, self.policies)
        return tuple(outlook for outlook in self.outlooks if outlook.name == policy)

    @property
    def max_spend(self) -> float | None:
        """What a run of the default policy never exceeds, whatever the truth; None if it is not compared."""
        if DEFAULT_POLICY not in self.policies:
            return None
        return self.setting.unit * self.of(DEFAULT_POLICY)[0].policy.max_spend

    @property
    def advice(self) -> tuple[str, ...]:
        """What follows, in sentences."""
        return presentation.advice(self)

    def records(self) -> list[dict[str, float | str]]:
        """Return the table as rows, ready for a data frame."""
        return [outlook.record() for outlook in self.outlooks]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts, lists and dictionaries, ready for JSON."""
        setting = self.setting
        costs = setting.risk.costs(setting.arms)
        return {
            "arms": setting.arms,
            "risk": str(setting.risk.loss),
            "prices": None if setting.risk.value is None else [setting.unit * cost for cost in costs],
            "value": setting.risk.value,
            "costs": list(costs),
            "sigma": setting.sigma,
            "baseline": setting.baseline,
            "bound": setting.bound,
            "sigma_of_breakeven": setting.likely_sigma,
            "runs": self.runs,
            "seed": self.seed,
            "max_spend": self.max_spend,
            "left_out": dict(self.left_out),
            "advice": list(self.advice),
            "rows": self.records(),
            "omissions": [omission.record() for omission in self.omissions],
        }

    def plot(self, path: str | Path) -> Path:
        """Draw total loss against the gap into a .png, .svg or .pdf file; requires the extra `lab`."""
        checked = check_figure_path(path)
        from dbcare.planner.figure import draw  # noqa: PLC0415  # matplotlib is an extra

        return draw(self, checked)

    def __str__(self) -> str:
        return presentation.format_plan(self)


def check_figure_path(path: str | Path) -> Path:
    """Return a path that a figure can be drawn into."""
    validation.one_of("plot", Path(path).suffix.lower(), FIGURES)
    return Path(path)


def plan(
    arms: int,
    price: float | Sequence[float] | None = None,
    value: float | None = None,
    *,
    cost: float | Sequence[float] | None = None,
    sigma: float | None = None,
    baseline: float | None = None,
    risk: str = "simple_regret",
    bound: float | None = None,
    gaps: float | Iterable[float] | None = None,
    policies: str | Iterable[str] | None = None,
    runs: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    budget: WorkBudget | None = None,
) -> Plan:
    """Plan an experiment: what it would cost and bring before any data, for each gap and policy.

    Parameters
    ----------
    arms : int
        Number of options to choose from.
    price : float or sequence of float, optional
        Price of an observation, or one per arm.
    value : float, optional
        What one unit of reward is worth in the same currency; with the risk "misidentification", what a wrong choice
        costs.
    cost : float or sequence of float, optional
        price / value, instead of both.
    sigma : float, optional
        Standard deviation of Gaussian rewards.
    baseline : float, optional
        For rewards of 0 or 1: the rate of all arms but the best, instead of `sigma`.
    risk : {"simple_regret", "misidentification"}
        What a wrong choice loses: its gap in means, or the same whatever the gap.
    bound : float, optional
        The largest possible difference of two means, if there is one.
    gaps : float or iterable of float, optional
        Gaps between the best arm and the others. Default: a range of plausible ones.
    policies : str or iterable of str, optional
        Compare only these: registered policies that run live, "fixed-size-test" (two-sided 5%, 80% power at the gap of
        the row, which nobody knows) and "decide-now" (choose at random without data).
    runs : int, optional
        Runs per estimate. Default: as many as fit in about a second, the same number on every machine.
    seed : int
        Random seed of the runs.
    threads : int, optional
        Number of threads. Default: all CPUs.
    budget : WorkBudget, optional
        How much work to do in all, and a way to cancel it. What does not fit is left out, and listed in `omissions`;
        the other figures are the same as without a budget. Default: no limit.

    Returns
    -------
    Plan
        A table of outlooks; print it.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    WorkCancelledError
        If the budget was cancelled.

    Examples
    --------
    >>> import dbcare
    >>> plan = dbcare.plan(arms=2, cost=0.9, sigma=1.0, bound=1.0, gaps=0.5, runs=200)
    >>> print(plan.advice[0][:43])
    Experimenting is not worth it at all: decid
    """
    loss = validation.one_of("risk", risk, list(Loss))
    make = Risk.simple_regret if loss == Loss.SIMPLE_REGRET else Risk.misidentification
    setting = PlanSetting(arms, make(cost, price=price, value=value), sigma, baseline, bound)
    checked = setting.default_gaps if gaps is None else check_gaps(setting, gaps)
    names, left_out = choose_strategies(setting, policies)
    budget = WorkBudget() if budget is None else check_budget(budget)
    cells = build_cells(setting, names, checked)
    if runs is None:
        runs = count_affordable_runs(setting, checked, seed, threads, budget) if DEFAULT_POLICY in names else MAX_RUNS
    else:
        runs = validation.whole("runs", runs, at_least=2)  # one has no standard error
    found: dict[Cell, Outlook | Omission] = {}
    for cell in sort_by_work(cells):
        try:
            evaluation = evaluate_within(budget, cell.policy, setting.bandit(cell.gap), cell.risk, runs, seed, threads)
            found[cell] = Outlook(cell.name, cell.gap, cell.policy, evaluation, setting.unit)
        except TooMuchWorkError as why:
            found[cell] = Omission(cell.name, cell.gap, str(why))
    in_order = [found[cell] for cell in cells]
    return Plan(
        setting,
        checked,
        tuple(each for each in in_order if isinstance(each, Outlook)),
        left_out,
        int(runs),
        int(seed),
        tuple(each for each in in_order if isinstance(each, Omission)),
    )
