"""`plan`, the `Plan` that it returns, and checks of what it takes."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import dbcare
from dbcare.base import checks
from dbcare.base.files import check_figure_path
from dbcare.base.frames import make_frame
from dbcare.base.times import SECONDS_PER_DAY, parse_duration
from dbcare.errors import InvalidValueError
from dbcare.planner.outlook import Omission, Outlook
from dbcare.planner.recipe import StudyRecipe, list_amounts, make_recipe, name_arms
from dbcare.planner.runs import Cell, Found, build_cells, choose_strategies, evaluate_cells
from dbcare.planner.setting import MAX_TRIALS, ControlArm, PlanSetting, find_label, strategy_names
from dbcare.planner.show import format_plan
from dbcare.planner.words import find_lowest, format_figures, give_advice
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.problem.risk import Loss, Risk
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS, Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MAX_ARMS = 500  # about the most for which three seconds on two CPUs are enough


def check_count(arms: Any) -> int:
    """Return the number of arms, if a plan for so many does not take minutes."""
    count = checks.arms(len(arms) if isinstance(arms, Sequence) and not isinstance(arms, str) else arms)
    if count > MAX_ARMS:
        raise InvalidValueError(
            f"`arms` must be at most {MAX_ARMS} for a plan, which simulates many runs, but got {count}; plan with "
            f"{MAX_ARMS} to see what to expect."
        )
    return count


def check_gaps(setting: PlanSetting, gaps: Any) -> tuple[float, ...]:
    """Return the gaps, each once, in ascending order."""
    if isinstance(gaps, numbers.Real | str):
        return (setting.check_gap("gaps", gaps),)
    listed = checks.items("gaps", gaps, "a number or several")
    checked = {setting.check_gap(f"gaps[{place}]", gap) for place, gap in enumerate(listed)}
    if not checked:
        raise InvalidValueError("`gaps` must be at least one number but got none.")
    return tuple(sorted(checked))


def count_trials(not_before: Any, per_day: Any) -> int:
    """Return the number of trials before which there is no stop, which may be given as a duration."""
    if not isinstance(not_before, str):
        return 0 if not_before is None else checks.whole("not_before", not_before, at_least=0, at_most=MAX_TRIALS)
    seconds = parse_duration("not_before", not_before, ", or a number of observations")
    if per_day is None:
        raise InvalidValueError(f"`per_day` is required for a duration but got `not_before` {not_before} without it.")
    trials = math.ceil(seconds / SECONDS_PER_DAY * checks.positive("per_day", per_day) * (1.0 - 1e-12))
    return checks.whole("not_before", trials, at_least=0, at_most=MAX_TRIALS)


def find_control(control: Any, arms: Any, count: int) -> ControlArm | None:
    """Return the control arm by its name, which for a mere number of arms is that in the study: A, B, C and so on."""
    if control is None:
        return None
    names = name_arms(arms, count)
    if names is None:
        raise InvalidValueError(f"`control` requires the names of the arms but got `arms` {count}, which are too many.")
    return ControlArm(names.index(checks.one_of("control", control, names)), control)


Result = TypeVar("Result", Outlook, Omission)
# Of columns of `records`; all others are numbers with decimals.
TYPES = {"policy": str, "control_is_best": bool, "is_known": bool, "engine": str, "runs": int}


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
        Policies that cannot take part, or not at all gaps, and why.
    runs : int, optional
        Runs of each simulation, if that was asked for; None if each has as many as its figures need.
    seed : int
        Random seed of the simulations.
    omissions : tuple of Omission
        Gaps and policies that did not fit into the budget of work, if there was one.
    study : StudyRecipe, optional
        The study that runs what was planned: with Breakeven, or else with the first policy that can run live.
    without_waiting : tuple of Outlook
        With `not_before`, what the default policy would do without it, by gap.
    if_control_best : tuple of Outlook
        With a control, one entry per gap and policy for the case that the control is better than all others by the
        gap; empty where an experiment then costs the same as if another arm is the best.

    Examples
    --------
    >>> import dbcare
    >>> plan = dbcare.plan(arms=2, cost=0.01, sigma=1.0, gaps=0.5, runs=200)
    >>> plan.policies
    ('breakeven', 'dbcare', 'fixed-size-test', 'best-fixed-size', 'decide-now')
    """

    setting: PlanSetting
    gaps: tuple[float, ...]
    outlooks: tuple[Outlook, ...]
    left_out: dict[str, str]
    runs: int | None
    seed: int
    omissions: tuple[Omission, ...] = ()
    study: StudyRecipe | None = None
    without_waiting: tuple[Outlook, ...] = ()
    if_control_best: tuple[Outlook, ...] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies that are compared."""
        compared = {outlook.name for outlook in self.outlooks}
        return tuple(name for name in strategy_names() if name in compared)

    def of(self, policy: str) -> tuple[Outlook, ...]:
        """Return the outlooks of one policy, by gap."""
        checks.one_of("policy", policy, self.policies)
        return tuple(outlook for outlook in self.outlooks if outlook.name == policy)

    @property
    def max_spend(self) -> float | None:
        """What a run of the default policy never exceeds, whatever the truth; None if it is not compared.

        Infinite if nothing is known in advance.
        """
        if DEFAULT_POLICY not in self.policies:
            return None
        return self.setting.loss_value * self.of(DEFAULT_POLICY)[0].policy.max_spend

    @property
    def create_command(self) -> str | None:
        """The `dbcare create` command that runs what was planned; None if there is none."""
        return None if self.study is None else self.study.command

    @property
    def create_call(self) -> str | None:
        """The call of `dbcare.create_study` that runs what was planned; None if there is none."""
        return None if self.study is None else self.study.call

    @property
    def advice(self) -> tuple[str, ...]:
        """What follows, in sentences."""
        return give_advice(self)

    def records(self) -> list[dict[str, float | str | None]]:
        """Return the table as rows, ready for a data frame: every figure with its error and the number of runs."""
        return [outlook.record() for outlook in (*self.outlooks, *self.if_control_best)]

    def to_dataframe(self, library: str | None = None) -> Any:
        """Return the rows of `records` as a data frame of pandas, polars or pyarrow. Default: the first installed."""
        records = self.records()
        columns = {name: [record[name] for record in records] for name in (records[0] if records else ())}
        return make_frame(columns, {name: TYPES.get(name, float) for name in columns}, library)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, texts, lists and dictionaries, ready for JSON.

        JSON has no infinity: an infinite `sigma_pulls` is the text "inf", and an infinite `max_spend` is None. Each row
        has its figures as the table shows them too, under "shown", and whether its total loss is the lowest.
        """
        setting, spread = self.setting, self.setting.spread
        costs = setting.risk.costs(setting.arms)
        lowest = {(gap, flipped): find_lowest(self, gap, flipped) for gap in self.gaps for flipped in (False, True)}
        is_limited = self.max_spend is not None and math.isfinite(self.max_spend)
        return {
            "arms": setting.arms,
            "risk": str(setting.risk.loss),
            "prices": None if setting.risk.value is None else [setting.loss_value * cost for cost in costs],
            "value": setting.risk.value,
            "costs": list(costs),
            "sigma": spread.sigma,
            "baseline": spread.baseline,
            "bounds": None if spread.bounds is None else list(spread.bounds),
            "binary": spread.binary,
            "sigma_pulls": spread.sigma_pulls if math.isfinite(spread.sigma_pulls) else "inf",
            "runs": self.runs,
            "seed": self.seed,
            "version": dbcare.__version__,
            "per_day": setting.per_day,
            "not_before": setting.not_before or None,
            "control": None if setting.control is None else setting.control.name,
            "max_spend": self.max_spend if is_limited else None,
            "left_out": dict(self.left_out),
            "advice": list(self.advice),
            "rows": [
                {
                    **outlook.record(),
                    "label": find_label(outlook.name, setting),
                    "shown": format_figures(setting, outlook),
                    "is_lowest": outlook.name == lowest[outlook.gap, outlook.control_is_best],
                }
                for outlook in (*self.outlooks, *self.if_control_best)
            ],
            "omissions": [omission.record() for omission in self.omissions],
            "create_command": self.create_command,
            "create_call": self.create_call,
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the total loss against the gap, one line per policy.

        Parameters
        ----------
        path : str or Path, optional
            A .png, .svg or .pdf file to write it to.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which notebooks show. This requires the extra `lab`.
        """
        wanted = None if path is None else check_figure_path(path)
        from dbcare.planner.show import draw_plan  # noqa: PLC0415  # matplotlib is an extra

        return draw_plan(self).saved(wanted)

    def _repr_html_(self) -> str:
        from dbcare.planner.show import display_plan  # noqa: PLC0415  # only for notebooks

        return display_plan(self)

    def __str__(self) -> str:
        return format_plan(self)


def plan(
    arms: int | Sequence[str],
    price: float | Sequence[float] | Mapping[str, float] | None = None,
    value: float | None = None,
    *,
    cost: float | Sequence[float] | Mapping[str, float] | None = None,
    currency: str | None = None,
    sigma: float | None = None,
    baseline: float | None = None,
    bounds: tuple[float, float] | None = None,
    binary: bool = False,
    sigma_pulls: float = DEFAULT_SIGMA_PULLS,
    risk: str = "simple_regret",
    gaps: float | Iterable[float] | None = None,
    per_day: float | None = None,
    not_before: int | str | None = None,
    control: str | None = None,
    policies: str | Iterable[str] | None = None,
    runs: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Plan:
    """Plan an experiment: what it would cost and bring before any data, for each gap and policy.

    What is assumed, and what to do where that fails, is on the page "Assumptions and limitations" of the documentation,
    docs/explanation/assumptions.md.

    Parameters
    ----------
    arms : int or sequence of str
        Number of options to choose from, at most 500, or their names.
    price : float, sequence of float or mapping, optional
        Price of an observation, or one per arm: in the order of the arms, or by their names.
    value : float, optional
        What one unit of reward is worth in the same currency; with the risk "misidentification", what a wrong choice
        costs.
    cost : float, sequence of float or mapping, optional
        price / value, instead of both.
    currency : str, optional
        Currency of `price` and `value`, such as "EUR".
    sigma : float, optional
        Standard deviation of a reward. State the spread of the rewards in one way, by `sigma`, `baseline`, `bounds` or
        `binary`, as you would for the study; only `sigma` and `bounds` go together. Rewards are simulated as Gaussian.
    baseline : float, optional
        For rewards of 0 or 1: their usual rate, which all arms but the best have.
    bounds : tuple of float, optional
        Range of possible rewards, the lower end first. Without `sigma`, rewards are simulated as Gaussian with half
        the width as their standard deviation, the largest possible.
    binary : bool
        Whether rewards are 0 or 1, with a rate that nobody knows. Rates are simulated around 1/2, where rewards vary
        the most.
    sigma_pulls : float
        How many rewards the stated spread counts as against those that come in; `math.inf` if it is certain.
    risk : {"simple_regret", "misidentification"}
        What a wrong choice loses: its gap in means, or the same whatever the gap.
    gaps : float or iterable of float, optional
        Gaps between the best arm and the others. Default: a range of plausible ones.
    per_day : float, optional
        Observations per day. Every row then says how many days a run takes.
    not_before : int or str, optional
        Observations before which no run stops, or, with `per_day`, a duration such as "14d". The advice says what that
        costs. Policies that cannot wait are left out, and the fixed-size test makes at least so many observations.
    control : str, optional
        Name of the arm in use today, A, B, C and so on if `arms` is a number. "decide-now" then keeps it, and the best
        arm is another one.
    policies : str or iterable of str, optional
        Compare only these: registered policies that run live, "fixed-size-test" (two-sided 5%, 80% power at the gap of
        the row, which nobody knows) and "decide-now" (choose at random without data).
    runs : int, optional
        Runs of each simulation. Default: as many as the figures need, each to an error of a fifth at most, within about
        three seconds on two CPUs in all; the same number on every machine. What does not fit is left out.
    seed : int
        Random seed of the runs.
    threads : int, optional
        Number of threads. Default: all CPUs.

    Returns
    -------
    Plan
        A table of outlooks; print it. Its end says how to create the study.

    Raises
    ------
    InvalidValueError
        If an argument is invalid.
    WorkCancelledError
        If a switch that applies (`dbcare.engines.simulate.halt`) was set.

    Examples
    --------
    >>> import dbcare
    >>> plan = dbcare.plan(arms=2, cost=0.9, binary=True, gaps=0.5, runs=200)
    >>> print(plan.advice[0][:43])
    Experimenting is not worth it at all: decid
    """
    count = check_count(arms)
    loss = checks.one_of("risk", risk, list(Loss))
    make = Risk.simple_regret if loss == Loss.SIMPLE_REGRET else Risk.misidentification
    prices, costs = list_amounts("price", price, arms), list_amounts("cost", cost, arms)
    spread = Spread(sigma, baseline, bounds, binary, sigma_pulls)
    trials, kept = count_trials(not_before, per_day), find_control(control, arms, count)
    setting = PlanSetting(count, make(costs, price=prices, value=value), spread, per_day, trials, kept, currency)
    checked = setting.default_gaps if gaps is None else check_gaps(setting, gaps)
    names, left_out = choose_strategies(setting, policies, checked)
    study = make_recipe(arms, setting, names, price=prices, value=value, cost=costs)
    threads = None if threads is None else checks.whole("threads", threads, at_least=1)
    runs = None if runs is None else checks.whole("runs", runs, at_least=2)  # one has no standard error
    seed = checks.whole("seed", seed, at_least=0)
    cells = build_cells(setting, names, checked)
    flipped = setting.flipped
    if_best = [] if flipped is None else build_cells(flipped, names, flipped.list_possible(checked))
    is_waiting = trials > 0 and DEFAULT_POLICY in names
    free = build_cells(replace(setting, not_before=0), [DEFAULT_POLICY], checked) if is_waiting else []
    found = evaluate_cells([*cells, *if_best, *free], runs, seed, threads)
    return Plan(
        setting,
        checked,
        _choose(Outlook, found, cells),
        left_out,
        runs,
        seed,
        _choose(Omission, found, [*cells, *if_best]),
        study,
        _choose(Outlook, found, free),
        _choose(Outlook, found, if_best),
    )


def _choose(kind: type[Result], found: Found, cells: Iterable[Cell]) -> tuple[Result, ...]:
    """Return what was found of cells, as far as it is of that kind."""
    return tuple(each for each in map(found.__getitem__, cells) if isinstance(each, kind))
