"""How many runs each cell of a plan takes: as many as its figures need, within a fixed amount of work.

Every cell first makes a few runs. Then those whose figures are not known well enough (`planner.precision`) make more,
the one first that needs the least work for it. Work is counted, so that the numbers are the same on every machine and
for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from dbcare.engines.evaluate_within import CountedRuns, compute_within, evaluate_within
from dbcare.engines.work_budget import TooMuchWorkError, WorkBudget
from dbcare.planner.cells import Cell, sort_by_work
from dbcare.planner.outlook import Omission, Outlook
from dbcare.planner.precision import MAX_ERROR, count_needed_runs
from dbcare.planner.setting import PlanSetting

PLAN_WORK = 8e7  # of a plan by default: less than three seconds on two CPUs
REFINING_WORK = 3e7  # up to which figures that are known well enough become better known
FINER_ERRORS = (0.1, 0.05)
RUN_WORK = 2e6  # of one run
EXACT_WORK = 5e6  # of an exact computation; a longer one is simulated instead
LEAST_RUNS, PILOT_RUNS = 16, 128
MAX_GROWTH = 8.0  # at a time, as few runs say little about how many are needed
MAX_RUNS = 5_000_000  # of a cell, for memory

Found = dict[Cell, Outlook | Omission]


def evaluate_with_runs(
    setting: PlanSetting, cells: Sequence[Cell], runs: int, seed: int, threads: int | None, budget: WorkBudget
) -> Found:
    """Evaluate all cells with the same number of runs, as far as the budget allows."""
    found: Found = {}
    for cell in sort_by_work(cells):
        try:
            evaluation = evaluate_within(budget, cell.policy, setting.bandit(cell.gap), cell.risk, runs, seed, threads)
            found[cell] = cell.make_outlook(setting, evaluation)
        except TooMuchWorkError as why:
            found[cell] = Omission(cell.name, cell.gap, str(why))
    return found


def evaluate_as_needed(
    setting: PlanSetting, cells: Sequence[Cell], seed: int, threads: int | None, budget: WorkBudget
) -> Found:
    """Evaluate all cells with as many runs as their figures need, as far as PLAN_WORK and the budget allow."""
    plan_work = WorkBudget(min(PLAN_WORK, budget.left), budget.is_cancelled)
    allowed = plan_work.left
    found: Found = {}
    samples: dict[Cell, CellRuns] = {}
    waiting = sort_by_work(cells)
    for place, cell in enumerate(waiting):
        try:
            known = compute_within(
                plan_work, cell.policy, setting.bandit(cell.gap), cell.risk, seed, most_work=EXACT_WORK
            )
            if known is not None:
                found[cell] = cell.make_outlook(setting, known)
            else:
                samples[cell] = _make_pilot(setting, cell, seed, threads, plan_work, len(waiting) - place)
        except TooMuchWorkError as why:
            found[cell] = Omission(cell.name, cell.gap, str(why))
    _extend_to(MAX_ERROR, samples.values(), plan_work, 0.0)
    _spread_rest(samples.values(), plan_work)
    for error in FINER_ERRORS:
        _extend_to(error, samples.values(), plan_work, max(0.0, allowed - REFINING_WORK))
    for cell, sample in samples.items():
        if sample.runs.was_cut:
            found[cell] = Omission(cell.name, cell.gap, sample.runs.describe(sample.runs.made))
        else:
            found[cell] = cell.make_outlook(setting, sample.evaluation)
    budget.take(allowed - plan_work.left)
    return found


class CellRuns:
    """The runs of a cell, and what they show."""

    def __init__(self, runs: CountedRuns) -> None:
        self.runs = runs
        self.evaluation = runs.evaluate()

    @property
    def run_work(self) -> float:
        """The work that a run takes."""
        return self.runs.work / self.runs.made

    def extend_to(self, total: float) -> None:
        """Make so many runs in all, as far as memory allows."""
        wanted = int(min(total, MAX_RUNS))
        if wanted > self.runs.made:
            self.runs.extend_to(wanted)
            self.evaluation = self.runs.evaluate()

    def count_missing(self, error: float) -> float:
        """Return how many runs are missing for such an error: a fifth of those made at least, so that this ends."""
        needed = 0 if self.runs.was_cut else count_needed_runs(self.evaluation, error)
        return max(0.0, min(max(needed, 1.2 * self.runs.made), MAX_RUNS) - self.runs.made) if needed else 0.0


def _make_pilot(
    setting: PlanSetting, cell: Cell, seed: int, threads: int | None, work: WorkBudget, waiting: int
) -> CellRuns:
    """Make PILOT_RUNS, or fewer if those take more than this cell's share, but at least LEAST_RUNS."""
    share = work.left / (2.0 * waiting)
    runs = CountedRuns(
        work, cell.policy, setting.bandit(cell.gap), cell.risk, PILOT_RUNS, seed, threads, run_work=RUN_WORK
    )
    while runs.made < LEAST_RUNS or (runs.made < PILOT_RUNS and 2.0 * runs.work <= share):
        runs.extend()
        runs.require_rest(LEAST_RUNS)
    return CellRuns(runs)


def _extend_to(error: float, samples: Collection[CellRuns], work: WorkBudget, least_left: float) -> None:
    """Make more runs until all figures are known to such an error, or the work left would be less than `least_left`."""
    while True:
        costs = [(sample.run_work * missing, sample) for sample in samples if (missing := sample.count_missing(error))]
        cost, sample = min(costs, key=lambda each: each[0], default=(math.inf, None))
        if sample is None or cost > work.left - least_left:
            return
        made = sample.runs.made
        sample.extend_to(min(made + sample.count_missing(error), MAX_GROWTH * made))


def _spread_rest(samples: Collection[CellRuns], work: WorkBudget) -> None:
    """Spend the work that is left on the cells that need more than that, for better limits; all get the same share."""
    short = [sample for sample in samples if sample.count_missing(MAX_ERROR)]
    for place, sample in enumerate(short):
        share = work.left / (len(short) - place)
        sample.extend_to(sample.runs.made + share / sample.run_work)
