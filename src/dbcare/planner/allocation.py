"""How many runs each cell of a plan takes: as many as its figures need, within a fixed amount of work.

Every cell first makes a few runs. Then those whose figures are not known well enough (`planner.precision`) make more,
the one first that needs the least work for it. Work is counted, so that the numbers are the same on every machine and
for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    samples: dict[Cell, CountedRuns] = {}
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
    _extend_to(MAX_ERROR, samples, plan_work, 0.0)
    _spread_rest(samples, plan_work)
    for error in FINER_ERRORS:
        _extend_to(error, samples, plan_work, allowed - REFINING_WORK)
    for cell, sample in samples.items():
        if sample.was_cut:
            found[cell] = Omission(cell.name, cell.gap, sample.describe(sample.made))
        else:
            found[cell] = cell.make_outlook(setting, sample.evaluate())
    budget.take(allowed - plan_work.left)
    return found


def _make_pilot(
    setting: PlanSetting, cell: Cell, seed: int, threads: int | None, work: WorkBudget, waiting: int
) -> CountedRuns:
    """Make PILOT_RUNS, or fewer if those take more than this cell's share, but at least LEAST_RUNS."""
    share = work.left / (2.0 * waiting)
    sample = CountedRuns(
        work, cell.policy, setting.bandit(cell.gap), cell.risk, PILOT_RUNS, seed, threads, run_work=RUN_WORK
    )
    while sample.made < LEAST_RUNS or (sample.made < PILOT_RUNS and 2.0 * sample.work <= share):
        sample.extend()
        sample.require_rest(LEAST_RUNS)
    return sample


def _extend_to(error: float, samples: dict[Cell, CountedRuns], work: WorkBudget, least_left: float) -> None:
    """Make more runs until all figures are known to such an error, or the work left would be less than `least_left`."""
    needs = {cell: _need(sample, error) for cell, sample in samples.items()}
    while True:
        costs = {
            cell: (min(runs, MAX_RUNS) - samples[cell].made) * samples[cell].work / samples[cell].made
            for cell, runs in needs.items()
            if samples[cell].made < min(runs, MAX_RUNS) and not samples[cell].was_cut
        }
        affordable = {cell: cost for cell, cost in costs.items() if cost <= work.left - least_left}
        if not affordable:
            return
        cell = min(affordable, key=lambda each: affordable[each])
        sample = samples[cell]
        sample.extend_to(int(min(needs[cell], MAX_RUNS, MAX_GROWTH * sample.made)))
        needs[cell] = _need(sample, error)


def _spread_rest(samples: dict[Cell, CountedRuns], work: WorkBudget) -> None:
    """Spend the work that is left on the cells that need more than that, for better limits; all get the same share."""
    short = [sample for sample in samples.values() if _need(sample, MAX_ERROR) and not sample.was_cut]
    for place, sample in enumerate(short):
        share = work.left / (len(short) - place)
        sample.extend_to(min(MAX_RUNS, max(sample.made, int(sample.made * (1.0 + share / sample.work)))))


def _need(sample: CountedRuns, error: float) -> float:
    """Return the number of runs that a cell needs, and at least a fifth more than it has, so that this ends."""
    needed = count_needed_runs(sample.evaluate(), error)
    return max(needed, 1.2 * sample.made) if needed else 0.0
