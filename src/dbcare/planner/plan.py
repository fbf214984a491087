"""`plan`: what each way to decide would cost before any data, against the gap between the best arm and the others."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbcare import validation
from dbcare.engines.evaluate import evaluate
from dbcare.engines.evaluation import Evaluation
from dbcare.errors import InvalidValueError
from dbcare.planner import presentation
from dbcare.planner.setting import POLICIES, PlanSetting
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.policy import Policy
from dbcare.risk import Loss, Risk

PILOT_RUNS = 16
WORK = 6e6  # pulls of few arms that are simulated in all if the number of runs is not given: about a second
FEWEST_RUNS, MOST_RUNS = 200, 20_000
FIGURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Outlook:
    """One policy at one gap; amounts in money, or in units of the loss where no `value` was given."""

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
        """Probability of choosing an arm below the best."""
        return self.evaluation.error

    @property
    def total_loss(self) -> float:
        """Expected loss of the choice plus expected spend: the risk, in money."""
        return self.unit * self.evaluation.risk

    @property
    def standard_error(self) -> float:
        """Of the total loss; 0 where it is exact."""
        return self.unit * self.evaluation.standard_error

    def record(self) -> dict[str, float | str]:
        """The figures by name, as one row of a table."""
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
class Plan:
    """A table of outlooks, by gap and policy; print it, or take `records`, `to_dict`, `advice` and `plot`."""

    setting: PlanSetting
    gaps: tuple[float, ...]
    outlooks: tuple[Outlook, ...]
    left_out: dict[str, str]  # policies that cannot take part, and why
    runs: int
    seed: int

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies that are compared."""
        return tuple(dict.fromkeys(each.name for each in self.outlooks))

    def of(self, policy: str) -> tuple[Outlook, ...]:
        """The outlooks of one policy, by gap."""
        validation.one_of("policy", policy, self.policies)
        return tuple(each for each in self.outlooks if each.name == policy)

    @property
    def max_spend(self) -> float | None:
        """What a run of Breakeven never spends more than, whatever the truth; None if it is not compared."""
        policy = next((each.policy for each in self.outlooks if isinstance(each.policy, Breakeven)), None)
        return None if policy is None else self.setting.unit * policy.max_spend

    @property
    def advice(self) -> tuple[str, ...]:
        """What follows, in sentences."""
        return presentation.advice(self)

    def records(self) -> list[dict[str, float | str]]:
        """The table as rows, ready for a data frame."""
        return [each.record() for each in self.outlooks]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, texts, lists and dictionaries, ready for JSON."""
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
            "sigma_of_breakeven": setting.sigma_of_breakeven,
            "runs": self.runs,
            "seed": self.seed,
            "max_spend": self.max_spend,
            "left_out": dict(self.left_out),
            "advice": list(self.advice),
            "rows": self.records(),
        }

    def plot(self, path: str | Path) -> Path:
        """Draw total loss against the gap into a .png, .svg or .pdf file; needs the extra `lab`."""
        checked = figure_file(path)
        from dbcare.planner.figure import draw  # noqa: PLC0415  # matplotlib is an extra

        return draw(self, checked)

    def __str__(self) -> str:
        return presentation.text(self)


def figure_file(path: str | Path) -> Path:
    """A file that a figure can be drawn into."""
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
) -> Plan:
    """What experimenting would cost and bring, before any data: a row for each gap and policy.

    A pull has a `price`, one for all arms or one for each, and a unit of loss a `value` in money; or give the `cost`,
    price / value. The loss is a unit of reward ("simple_regret") or a wrong choice ("misidentification"). Rewards are
    Gaussian with standard deviation `sigma`, or 0 or 1 with the rate `baseline` for all arms but the best. `bound` is
    the largest possible difference of two means, if there is one.

    The policies: breakeven, dbcare, fixed-size-test (two-sided 5%, 80% power at the gap of the row, which nobody knows)
    and decide-now (choose at random without data). Figures are those of `evaluate` with `runs` runs and `seed`; if
    `runs` is not given, as many as take about a second, a number that is the same on every machine.
    """
    loss = validation.one_of("risk", risk, list(Loss))
    make = Risk.simple_regret if loss == Loss.SIMPLE_REGRET else Risk.misidentification
    setting = PlanSetting(arms, make(cost, price=price, value=value), sigma, baseline, bound)
    listed = setting.default_gaps if gaps is None else _gaps(setting, gaps)
    names, left_out = _names(setting, policies)
    entries = [(name, gap, *POLICIES[name](setting, gap, listed[-1])) for gap in listed for name in names]
    if runs is None:
        runs = _affordable_runs(setting, listed, seed, threads) if "breakeven" in names else MOST_RUNS
    else:
        runs = validation.whole("runs", runs, at_least=2)  # one has no standard error
    found = [
        Outlook(
            name,
            gap,
            policy,
            evaluate(policy, setting.bandit(gap), own_risk, runs, seed, threads=threads),
            setting.unit,
        )
        for name, gap, policy, own_risk in entries
    ]
    return Plan(setting, listed, tuple(found), left_out, int(runs), int(seed))


def _gaps(setting: PlanSetting, gaps: Any) -> tuple[float, ...]:
    if isinstance(gaps, numbers.Real | str):
        return (setting.checked_gap("gaps", gaps),)
    if not isinstance(gaps, Iterable):
        raise InvalidValueError(f"`gaps` must be a number or several but got {gaps!r}.")
    checked = {setting.checked_gap(f"gaps[{place}]", gap) for place, gap in enumerate(gaps)}
    if not checked:
        raise InvalidValueError("`gaps` must be at least one number but got none.")
    return tuple(sorted(checked))


def _names(setting: PlanSetting, policies: Any) -> tuple[tuple[str, ...], dict[str, str]]:
    """Names of the policies that take part, in the table's order, and those left out."""
    cannot = {}
    if setting.risk.costs_differ:
        cannot["dbcare"] = "it needs the same price for all arms"
    else:
        try:
            setting.dbcare(largest=1.0)
        except InvalidValueError:
            cannot["dbcare"] = "an observation costs so little that its tables would be too long"
    if policies is None:
        return tuple(name for name in POLICIES if name not in cannot), cannot
    if not isinstance(policies, Iterable):
        raise InvalidValueError(f"`policies` must be names of policies but got {policies!r}.")
    asked = [
        validation.one_of("policies", name, POLICIES)
        for name in ([policies] if isinstance(policies, str) else policies)
    ]
    if not asked:
        raise InvalidValueError("`policies` must be at least one name but got none.")
    for name in asked:
        if name in cannot:
            raise InvalidValueError(f"`policies` must not have {name}, as {cannot[name]}, but got {', '.join(asked)}.")
    return tuple(name for name in POLICIES if name in asked), {}


def _affordable_runs(setting: PlanSetting, gaps: Sequence[float], seed: int, threads: int | None) -> int:
    """Runs of Breakeven at all gaps that are about WORK, by a short pilot; a pull takes longer with many arms."""
    policy = setting.breakeven()
    pulls = sum(
        evaluate(policy, setting.bandit(gap), setting.risk, PILOT_RUNS, seed, threads=threads).pulls.mean
        for gap in gaps
    )
    affordable = WORK / (max(1.0, pulls) * (1.0 + setting.arms / 20.0))
    return int(min(MOST_RUNS, max(FEWEST_RUNS, round(affordable, -2))))
