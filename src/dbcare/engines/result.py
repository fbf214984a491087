"""`Evaluation`, the result of evaluating a policy on a bandit: how it is built, shown and drawn."""

from __future__ import annotations

import math
import textwrap
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dbcare
from dbcare.base.figures import ACCENT, LOSS, MUTED, DisplayedFigure, drawing_figure
from dbcare.base.files import check_figure_path, replace_non_finite
from dbcare.base.html import make_display, make_facts
from dbcare.engines.exact.law import TwoArmLaw
from dbcare.engines.pooling.estimates import Estimates, combine
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.statistics import QUANTILES, Estimate, Moments, clopper_pearson, estimate_mean, losses_by_arm
from dbcare.policies.policy import Pace, Policy
from dbcare.problem.risk import Loss, Risk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def build_from_runs(
    outcomes: Outcomes, moments: Moments, simulator: Simulator, policy: Policy, risk: Risk, seed: int, began: float
) -> Evaluation:
    """Build the evaluation of simulated runs; `began` is the time when work on it started."""
    levels = np.quantile(outcomes.pulls, QUANTILES, method="inverted_cdf")
    pulls, paid, unit = estimate_mean(outcomes.pulls), estimate_mean(outcomes.paid), moments.unit(risk)
    return Evaluation(
        risks={loss: moments.total(loss, unit) for loss in Loss},
        losses={loss: moments.total(loss, 0.0) for loss in Loss},
        error_interval=clopper_pearson(moments.errors, moments.runs),
        pulls=Pulls(pulls.value, pulls.standard_error, dict(zip(QUANTILES, levels.tolist(), strict=True))),
        spend=Estimate(unit * paid.value, unit * paid.standard_error),
        capped=0.0 if policy.pace is Pace.PLANNED else float(np.mean(outcomes.undecided)),
        averages_labels=False,
        runs=len(outcomes.pulls),
        plain_runs=moments.plain_runs(risk.loss, unit),
        engine=simulator.engine,
        guarantee=simulator.guarantee,
        control=_control_variate(moments, risk),
        pulls_simulated=int(outcomes.pulls.sum()),
        **_common_fields(policy, risk, seed, began),
    )


def build_from_averages(
    outcomes: Outcomes,
    estimates: Estimates,
    simulator: Simulator,
    policy: Policy,
    risk: Risk,
    seed: int,
    began: float,
    place: int = 0,
) -> Evaluation:
    """Build the evaluation of runs whose losses were averaged over labels; the bandit is at `place` in `estimates`."""
    levels = np.quantile(outcomes.pulls, QUANTILES, method="inverted_cdf")
    cost, pulls = risk.single_cost, estimates.at(place, (0.0, 0.0, 1.0))
    return Evaluation(
        risks={loss: estimates.at(place, combine(loss, cost)) for loss in Loss},
        losses={loss: estimates.at(place, combine(loss, 0.0)) for loss in Loss},
        error_interval=None,
        pulls=Pulls(pulls.value, pulls.standard_error, dict(zip(QUANTILES, levels.tolist(), strict=True))),
        spend=Estimate(cost * pulls.value, cost * pulls.standard_error),
        capped=float(np.mean(outcomes.undecided)),
        averages_labels=True,
        runs=len(outcomes.pulls),
        plain_runs=float(estimates.plain_runs(combine(risk.loss, cost))[place]),
        engine=simulator.engine,
        guarantee=f"{simulator.guarantee}, losses averaged over labels",
        control=None,
        pulls_simulated=int(outcomes.pulls.sum()),
        **_common_fields(policy, risk, seed, began),
    )


def _control_variate(moments: Moments, risk: Risk) -> ControlVariate | None:
    if moments.control is None:
        return None
    return ControlVariate(
        checkpoint=moments.control.checkpoint,
        known_error=float(losses_by_arm(moments.gaps, Loss.MISIDENTIFICATION) @ moments.control.law),
        coefficient=float(np.mean(moments.slopes(risk.loss, moments.unit(risk)))),
        disagreements=moments.disagreements,
    )


def build_from_law(law: TwoArmLaw, policy: Policy, risk: Risk, seed: int, began: float) -> Evaluation:
    """Build the evaluation of an exact law, given as arrays of one entry."""
    error, regret, pulls = float(law.error[0]), float(law.regret[0]), float(law.mean_pulls[0])
    cost = risk.single_cost
    losses = {Loss.MISIDENTIFICATION: error, Loss.SIMPLE_REGRET: regret}
    return Evaluation(
        risks={loss: Estimate(value + cost * pulls, 0.0) for loss, value in losses.items()},
        losses={loss: Estimate(value, 0.0) for loss, value in losses.items()},
        error_interval=(error, error),
        pulls=Pulls(pulls, 0.0, dict(zip(QUANTILES, law.quantiles[0].tolist(), strict=True))),
        spend=Estimate(cost * pulls, 0.0),
        capped=float(law.capped[0]),
        averages_labels=False,
        runs=0,
        plain_runs=math.inf,
        engine="exact",
        guarantee=f"no Monte Carlo, mass conserved to {law.mass_defect:.1g}",
        control=None,
        pulls_simulated=0,
        **_common_fields(policy, risk, seed, began),
    )


def _common_fields(policy: Policy, risk: Risk, seed: int, began: float) -> dict[str, Any]:
    return {
        "policy": repr(policy),
        "loss": risk.loss,
        "cost": risk.cost if risk.costs_differ else risk.single_cost,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "version": dbcare.__version__,
    }


MAX_LINES = 3  # of the title


def draw_evaluation(evaluation: Evaluation) -> DisplayedFigure:
    """Draw both risks as expected loss plus cost of pulls, with 2 standard errors, and quantiles of the pulls."""
    with drawing_figure(8.4, 3.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_risks(left, evaluation)
        _draw_pulls(right, evaluation)
        lines = textwrap.wrap(evaluation.policy, 100, max_lines=MAX_LINES)
        figure.suptitle("\n".join(lines), fontsize=10, parse_math=False)
    return figure


def _draw_risks(axes: Axes, evaluation: Evaluation) -> None:
    losses = sorted(evaluation.risks, key=lambda loss: loss is not evaluation.loss)  # the one asked for comes first
    spend = evaluation.spend.value
    loss = [max(evaluation.losses[each].value, 0.0) for each in losses]  # an estimate may be negative, a loss not
    error = [2.0 * evaluation.risks[each].standard_error for each in losses]
    places = range(len(losses))
    axes.barh(places, loss, color=LOSS, height=0.5, label="expected loss of the choice")
    axes.barh(
        places, spend, left=loss, color=ACCENT, height=0.5, label="expected cost of pulls",
        xerr=error if any(error) else None, capsize=3,
        ecolor="black",
    )  # fmt: skip
    for place, each in enumerate(losses):
        risk = max(evaluation.risks[each].value, 0.0)
        axes.annotate(
            f"{risk:.4g}", (risk + error[place], place), xytext=(5, 0), textcoords="offset points", va="center"
        )
    axes.margins(x=0.25)
    axes.set_xlim(left=0.0)
    axes.set_yticks(places, [str(each).replace("_", "\n") for each in losses])
    axes.invert_yaxis()
    axes.set_xlabel("risk, in units of the loss" + (" (whiskers: 2 standard errors)" if any(error) else ""))
    axes.grid(True, axis="x", alpha=0.25)
    figure = axes.figure
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)


def _draw_pulls(axes: Axes, evaluation: Evaluation) -> None:
    pulls = evaluation.pulls
    levels = {f"{100.0 * level:g}%": value for level, value in pulls.quantiles.items()}
    axes.plot(list(levels.values()), list(levels), "o-", color=ACCENT, linewidth=1.8)
    axes.axvline(pulls.mean, color=MUTED, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"mean {pulls.mean:,.4g}", (pulls.mean, 0.0), xycoords=("data", "axes fraction"), xytext=(4, 5),
        textcoords="offset points", color=MUTED,
    )  # fmt: skip
    axes.set_xlabel("pulls of a run")
    axes.set_ylabel("share of runs with no more")
    axes.grid(True, alpha=0.25)


@dataclass(frozen=True)
class Pulls:
    """Pulls of a run: their mean, its standard error, and quantiles by level.

    Parameters
    ----------
    mean, standard_error : float
        Their mean, and its standard error.
    quantiles : dict
        Quantiles by level.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, evaluate
    >>> from dbcare.policies import Uniform
    >>> evaluate(Uniform(arms=2, pulls=10), Bandit.two_arm(0.5), Risk.simple_regret(1e-3)).pulls.quantiles[0.5]
    20.0
    """

    mean: float
    standard_error: float
    quantiles: dict[float, float]


@dataclass(frozen=True)
class ControlVariate:
    """How the control variate was used.

    Its arm is the one that leads at `checkpoint` pulls of each; `known_error` is the probability that this arm is
    not the best, `coefficient` how much of it entered the risk, `disagreements` in how many runs the policy chose
    another arm.

    Parameters
    ----------
    checkpoint : int
        Pulls of each arm at the checkpoint.
    known_error, coefficient : float
        As above.
    disagreements : int
        As above.

    Examples
    --------
    >>> from dbcare import DBCARE, Bandit, Risk, evaluate
    >>> policy = DBCARE(Risk.misidentification(1e-2), arms=3)
    >>> evaluate(policy, Bandit.one_sparse(3, 0.5), runs=100).control.checkpoint
    13
    """

    checkpoint: int
    known_error: float
    coefficient: float
    disagreements: int


@dataclass(frozen=True)
class Evaluation:
    """A policy's performance on a bandit, and how it was measured; print it for a table.

    Parameters
    ----------
    policy : str
        The policy's description.
    loss : Loss
        The loss that was asked for; figures for the other one are in `risks` and `losses`.
    cost : float or tuple of float
        Cost of a pull, in units of the loss, or one per arm.
    risks, losses : dict
        Expected loss with and without the cost of pulls, each with its standard error, by loss.
    error_interval : tuple of float or None
        Exact 95% interval of the error from the count of wrong runs; None if losses were averaged over labels, as
        there is no count.
    pulls : Pulls
        Pulls of a run.
    spend : Estimate
        Cost of all pulls of a run, in units of the loss.
    capped : float
        Share of runs that stopped with more than one arm left: at their budget, or their cap on pulls.
    averages_labels : bool
        Whether losses were averaged over the labels of the arms: what a run says under every labeling that is as
        likely, rather than the 0 or 1 of its own error.
    runs : int
        Simulated runs; 0 where the engine is exact, and then every standard error is 0.
    plain_runs : float
        Plain runs that would have the same standard error of the risk; more than `runs` if losses were averaged over
        labels or corrected by a control variate, infinite where the engine is exact.
    engine, guarantee : str
        The engine, and what it guarantees.
    control : ControlVariate or None
        How a control variate was used, if one was.
    seconds, pulls_simulated, seed, version
        What it took, and what is needed to repeat it.

    Examples
    --------
    >>> from dbcare import Bandit, Risk, evaluate
    >>> from dbcare.policies import Uniform
    >>> evaluation = evaluate(Uniform(arms=2, pulls=10), Bandit.two_arm(0.5), Risk.simple_regret(1e-3))
    >>> evaluation.pulls.mean, evaluation.standard_error
    (20.0, 0.0)
    """

    policy: str
    loss: Loss
    cost: float | tuple[float, ...]
    risks: dict[Loss, Estimate]
    losses: dict[Loss, Estimate]
    error_interval: tuple[float, float] | None
    pulls: Pulls
    spend: Estimate
    capped: float
    averages_labels: bool
    runs: int
    plain_runs: float
    engine: str
    guarantee: str
    control: ControlVariate | None
    seconds: float
    pulls_simulated: int
    seed: int
    version: str

    @property
    def risk(self) -> float:
        """E[loss] + E[cost of all pulls], for the loss that was asked for."""
        return self.risks[self.loss].value

    @property
    def standard_error(self) -> float:
        """Standard error of the risk."""
        return self.risks[self.loss].standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """Risk minus and plus 2 standard errors, as the paper's figures show it."""
        return self.risk - 2.0 * self.standard_error, self.risk + 2.0 * self.standard_error

    @property
    def error(self) -> float:
        """P(an arm below the best is recommended)."""
        return self.losses[Loss.MISIDENTIFICATION].value

    @property
    def simple_regret(self) -> float:
        """E[best mean - recommended mean]."""
        return self.losses[Loss.SIMPLE_REGRET].value

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain values, ready for JSON, with None for infinite ones."""
        plain = asdict(self)
        plain["loss"] = str(self.loss)
        for name in ("risks", "losses"):
            plain[name] = {str(loss): asdict(estimate) for loss, estimate in getattr(self, name).items()}
        plain["error_interval"] = None if self.error_interval is None else list(self.error_interval)
        plain["pulls"]["quantiles"] = {str(level): value for level, value in self.pulls.quantiles.items()}
        known = {"risk": self.risk, "standard_error": self.standard_error, "interval": list(self.interval)}
        return {name: replace_non_finite(value) for name, value in {**plain, **known}.items()}

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what both risks consist of, and how many pulls a run takes.

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

        return draw_evaluation(self).saved(wanted)

    def _repr_html_(self) -> str:
        return make_display(self._title(), "", make_facts(self._list_figures()))

    def _title(self) -> str:
        cost = self.cost if isinstance(self.cost, tuple) else f"{self.cost:g}"
        return f"{self.policy}, cost {cost}"

    def _list_figures(self) -> list[tuple[str, str]]:
        """Return names and figures, line by line."""
        other = next(loss for loss in Loss if loss is not self.loss)
        quantiles = "  ".join(f"{100 * level:g}%: {value:g}" for level, value in self.pulls.quantiles.items())
        rows = [
            (f"risk ({_words(self.loss)})", _estimate(self.risks[self.loss])),
            (f"risk ({_words(other)})", _estimate(self.risks[other])),
            ("error", f"{_estimate(self.losses[Loss.MISIDENTIFICATION])}{self._interval()}"),
            ("simple regret", _estimate(self.losses[Loss.SIMPLE_REGRET])),
            ("pulls", _estimate(Estimate(self.pulls.mean, self.pulls.standard_error))),
            ("", quantiles),
            ("stopped at a limit", f"{100 * self.capped:.3g}% of the runs"),
            ("engine", f"{self.engine}: {self.guarantee}{self._runs()}"),
        ]
        if self.control is not None:
            known, seen = self.control.known_error, self.control.disagreements
            rows.append(("control variate", f"error {known:.6g} known, {seen:,} runs disagreed"))
        rows.append(("", f"seed {self.seed}, {self.seconds:.3g} s, version {self.version}"))
        return rows

    def __str__(self) -> str:
        rows, title = self._list_figures(), self._title()
        width = max(len(name) for name, _ in rows)
        return "\n".join([title, "-" * len(title), *(f"{name:<{width}}  {text}" for name, text in rows)])

    def _runs(self) -> str:
        if not self.runs:
            return ""
        worth = f" (worth {self.plain_runs:,.0f} plain ones)" if self.plain_runs > 1.5 * self.runs else ""
        return f", {self.runs:,} runs{worth}"

    def _interval(self) -> str:
        if self.error_interval is None or self.error_interval[0] == self.error_interval[1]:
            return ""
        return f", 95% by count: {self.error_interval[0]:.4g} to {self.error_interval[1]:.4g}"


def _words(loss: Loss) -> str:
    return str(loss).replace("_", " ")


def _estimate(estimate: Estimate) -> str:
    """Format what cannot be negative: a control variate may push its estimate below 0, which is shown as 0."""
    value = max(estimate.value, 0.0)
    if estimate.standard_error == 0.0:
        return f"{value:.6g}"
    return f"{value:.6g} \N{PLUS-MINUS SIGN} {2.0 * estimate.standard_error:.2g} (2 s.e.)"
