"""Measure how well plans know their rows, how long they take, and whether their errors are right.

Twenty settings; gaps go from a tenth to ten times
W = (sigma^2 price / value)^(1/3), below which a gap is too small to be worth finding. A row is known if two standard
errors of its observations and its total loss are at most a fifth of them.

For accuracy, the rows of plans with twelve seeds are compared with plain runs of the direct engine, which share nothing
with pooled ones but the policy and the random generator.
"""

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.parts.bars import Bars
from dbcare import Policy, evaluate, plan
from dbcare.engines.simulate.halt import Halt
from dbcare.errors import WorkCancelledError
from dbcare.planner.outlook import Outlook
from dbcare.planner.plan import Plan

MONEY = {"price": 0.05, "value": 200_000}
THREE = ["breakeven", "dbcare", "breakeven-racing"]
SETTINGS: dict[str, dict[str, Any]] = {
    "Gaussian, 4 arms, cheap": {"arms": 4, "price": 0.001, "value": 200_000, "sigma": 0.5},
    "rates of 4%, 4 arms": {"arms": 4, **MONEY, "baseline": 0.04, "policies": THREE},
    "Gaussian, 10 arms": {"arms": 10, "cost": 1e-5, "sigma": 0.5, "policies": ["breakeven", "breakeven-racing"]},
    "rates of 4%, 20 arms": {"arms": 20, **MONEY, "baseline": 0.04, "policies": ["breakeven", "breakeven-racing"]},
    "Gaussian, 50 arms": {"arms": 50, "cost": 1e-4, "sigma": 1.0, "policies": ["breakeven", "breakeven-racing"]},
    "misidentification, 5 arms": {
        "arms": 5,
        "cost": 1e-4,
        "sigma": 1.0,
        "risk": "misidentification",
        "policies": THREE,
    },
    "Gaussian, 2 arms": {"arms": 2, "cost": 1e-5, "sigma": 1.0, "policies": ["breakeven", "lucb"]},
    "Gaussian, 3 arms": {"arms": 3, "cost": 1e-4, "sigma": 1.0, "policies": ["breakeven", "lucb", "eb-tci"]},
    "bounds, 5 arms": {"arms": 5, "cost": 1e-4, "bounds": (0, 5), "policies": ["breakeven", "kg-star"]},
    "not before 500": {"arms": 4, "cost": 1e-5, "baseline": 0.1, "not_before": 500, "policies": "breakeven"},
    "prompts, 5 arms": {"arms": 5, "price": 0.4, "value": 20_000, "sigma": 0.5},
    "two pages": {"arms": 2, "price": 0.02, "value": 5_000, "baseline": 0.05},
    "shop with a control": {"arms": 3, **MONEY, "baseline": 0.02, "control": "A"},
    "rare sales": {"arms": 2, "price": 0.01, "value": 1e6, "baseline": 0.002},
    "unknown rate": {"arms": 3, "cost": 1e-4, "binary": True},
    "high rate": {"arms": 4, "cost": 1e-5, "baseline": 0.9},
    "8 arms, dear": {"arms": 8, "cost": 1e-2, "sigma": 1.0},
    "32 arms, cheap": {"arms": 32, "cost": 1e-6, "sigma": 1.0},
    "100 arms": {"arms": 100, "cost": 1e-4, "sigma": 1.0},
    "certain sigma": {"arms": 3, "cost": 1e-5, "sigma": 2.0, "sigma_pulls": math.inf, "control": "B"},
}
PAIR = ["breakeven", "dbcare"]
SHOP = {"arms": ["old", "A", "B", "C"], **MONEY, "baseline": 0.04, "control": "old", "policies": [
    "breakeven", "dbcare", "breakeven-racing", "fixed-size-test", "best-fixed-size", "decide-now",
]}  # fmt: skip
GAPS_PER_PLAN = 8
SEEDS, REFERENCE_NANOSECONDS = 12, 1e9
CPU_SECONDS = 2.0
ROUNDING = 1e-6
NEGLIGIBLE = 1e-4  # of a figure, below its last digit shown: a few hundred runs cannot tell 32 pulls from 31.9998


def choose_gaps(setting: dict[str, Any]) -> list[float]:
    """Return gaps from W/10 to 10 W, as far as the rewards allow."""
    probe = plan(**{**setting, "policies": "decide-now"}).setting
    unit = (probe.deviation**2 * probe.equal_shares.single_cost) ** (1.0 / 3.0)
    gaps = np.geomspace(0.1 * unit, 10.0 * unit, GAPS_PER_PLAN)
    return [float(f"{gap:.3g}") for gap in gaps if gap < 0.999 * probe.largest_gap]


def list_simulated(planned: Plan) -> Iterator[Outlook]:
    """Yield the rows that were simulated."""
    return (outlook for outlook in (*planned.outlooks, *planned.if_control_best) if outlook.runs)


def find_error(outlook: Outlook) -> float:
    """Return the larger relative error of observations and total loss, two standard errors."""
    return max(outlook.measured_pulls.error, outlook.measured_total.error)


def measure_known(bars: Bars, names: list[str]) -> None:
    """Report how many rows are known within two CPU-seconds."""
    within_fifth, within_tenth, rows, errors = 0, 0, 0, []
    for name in names:
        pair = PAIR[:1] if "not_before" in SETTINGS[name] else PAIR  # DBCARE cannot wait
        setting = {**SETTINGS[name], "gaps": choose_gaps(SETTINGS[name]), "policies": pair}
        plan(**setting)  # loads the kernels
        began = time.process_time()
        planned = plan(**setting)
        seconds = time.process_time() - began
        live = [outlook for outlook in planned.outlooks if outlook.name in PAIR]
        known = [o for o in live if seconds <= CPU_SECONDS and o.measured_pulls.is_known and o.measured_total.is_known]
        count = len(live) + sum(not omission.control_is_best for omission in planned.omissions)
        within_fifth, rows = within_fifth + len(known), rows + count
        within_tenth += sum(find_error(outlook) <= 0.1 for outlook in known)
        shown = [find_error(outlook) for outlook in known if outlook.runs]
        errors += shown
        median = 100.0 * statistics.median(shown) if shown else math.nan
        print(
            f"{name:<32}{seconds:6.2f} CPU-s   {len(known):>3} of {count} known, median error {median:.1f}%", flush=True
        )
    bars.report("rows known to 20% within 2 CPU seconds", within_fifth / rows, 0.95, at_least=True)
    bars.report("rows known to 10% within 2 CPU seconds", within_tenth / rows, 0.0, at_least=True)
    bars.report("median error of the rows shown", statistics.median(errors), 0.03)


def measure_seconds(bars: Bars) -> None:
    """Report how long a typical shop's plan takes."""
    plan(**SHOP)
    seconds = []
    for seed in range(5):
        began = time.perf_counter()
        plan(**SHOP, seed=seed)
        seconds.append(time.perf_counter() - began)
    bars.report("a shop's plan, both signs, warm, seconds", statistics.median(seconds), 1.0)


def run_plainly(policy: Policy, outlook: Outlook, planned: Plan, work: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pulls and the total loss of plain runs, with their standard errors."""
    setting = planned.setting
    bandit, risk = setting.bandit(outlook.gap), setting.risk
    runs = max(200, int(work / ((policy.pull_work + 20.0) * outlook.observations + 500.0)))
    made = evaluate(policy, bandit, risk, runs=min(runs, 500_000), seed=987_654_321, engine="direct")
    return np.array([made.pulls.mean, made.risk]), np.array([made.pulls.standard_error, made.standard_error])


def measure_accuracy(bars: Bars, names: list[str], seeds: int, work: float) -> None:
    """Report how far rows are from plain runs, in standard errors."""
    of_means, apart, matter, count = [], 0, 0, 0
    for name in names:
        setting = SETTINGS[name]
        plans = [plan(**setting, seed=seed) for seed in range(seeds)]
        for outlook in plans[0].outlooks:
            rows = [next((o for o in planned.outlooks if (o.name, o.gap) == (outlook.name, outlook.gap)), None)
                    for planned in plans]  # fmt: skip
            known = [row for row in rows if row is not None and row.measured_total.is_known and row.runs]
            if len(known) < seeds:
                continue
            truth, error = run_plainly(outlook.policy, outlook, plans[0], work)
            error = np.maximum(error, ROUNDING * truth)  # policies may always make the same number of pulls
            found = np.array([[row.observations, row.evaluation.risk] for row in known])
            stated = np.array([[row.evaluation.pulls.standard_error, row.evaluation.standard_error] for row in known])
            for place in (0, 1):
                mean_error = math.sqrt(float((stated[:, place] ** 2).mean()) / seeds)
                of_means.append((float(found[:, place].mean()) - truth[place]) / math.hypot(mean_error, error[place]))
                z = (found[:, place] - truth[place]) / np.hypot(stated[:, place], error[place])
                is_apart = np.abs(z) > 2.0
                matters = np.abs(found[:, place] - truth[place]) > NEGLIGIBLE * truth[place]
                apart, matter = apart + int(is_apart.sum()), matter + int((is_apart & matters).sum())
                count += seeds
            worst = max(abs(of_means[-1]), abs(of_means[-2]))
            if worst > 3.0:
                print(f"  {name}, {outlook.name}, gap {outlook.gap:g}: z {of_means[-2]:.1f} and {of_means[-1]:.1f}")
        rms = math.sqrt(statistics.fmean(z * z for z in of_means))
        print(
            f"{name:<32}{len(of_means) // 2:>4} rows so far, rms z {rms:.2f}, {100 * apart / count:.1f}% apart, "
            f"{100 * matter / count:.1f}% by more than {NEGLIGIBLE:.2%}",
            flush=True,
        )
    rms = math.sqrt(statistics.fmean(z * z for z in of_means))
    bars.report("root mean square z of the means over seeds", rms, 1.15, rows=len(of_means) / 2)
    bars.report("share of figures beyond two errors, differences below 0.01% included", apart / count, 0.06)
    bars.report("share of figures beyond two errors, and by more than 0.01%", matter / count, 0.06)


def measure_cancelling(bars: Bars) -> None:
    """Report how long a plan goes on after it was cancelled, at twelve moments."""
    slow = {"arms": 4, "price": 0.001, "value": 200_000, "sigma": 0.5}
    plan(**slow)
    longest = max(map(cancel_after(slow), np.linspace(0.05, 0.6, 12)))
    bars.report("seconds that a plan goes on once cancelled", longest, 0.1)


def cancel_after(setting: dict[str, Any]) -> Callable[[float], float]:
    """Return a function that cancels a plan after so many seconds, and measures how long it then goes on."""

    def measure(seconds: float) -> float:
        halt, at = Halt(), [math.inf]

        def cancel() -> None:
            at[0] = time.perf_counter()
            halt.set()

        timer = threading.Timer(seconds, cancel)
        timer.start()
        try:
            with halt.applied():
                plan(**setting)
        except WorkCancelledError:
            pass
        timer.cancel()
        return time.perf_counter() - at[0]

    return measure


def main() -> None:
    bars = Bars(__doc__)
    names = list(SETTINGS)[:: bars.size(1, 4)]
    measure_known(bars, names)
    measure_seconds(bars)
    measure_cancelling(bars)
    measure_accuracy(bars, names, bars.size(SEEDS, 4), REFERENCE_NANOSECONDS / bars.size(1.0, 10.0))
    bars.save()
