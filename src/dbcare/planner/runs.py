"""The runs of a plan: which gaps and ways to decide, and how many runs each figure needs.

The runs of a policy at all gaps are pooled where its arms are alike and cost the same (`engines.pooling`); else each
gap has plain runs of its own. First a few runs are made at each gap, from the largest on, while that takes no more
than half of the policy's share. Then rows get more runs, those that need the least work first, until all are known to
a fifth, or the budget is spent; what is left serves gaps not reached yet, and then smaller errors.

Work is counted in nanoseconds of one CPU, so that the rows are the same on every machine, for any number of threads.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.base import checks
from dbcare.engines import exact
from dbcare.engines.evaluate import choose_risk, evaluate
from dbcare.engines.exact.law import fixed_law
from dbcare.engines.pooling.estimates import combine, estimate
from dbcare.engines.pooling.model import build_model, choose_labels, find_family
from dbcare.engines.pooling.runs import PooledRuns
from dbcare.engines.result import Evaluation, build_from_averages, build_from_law, build_from_runs
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.halt import current_halt
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.runs import extend_runs, warn_if_interpreted
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import charging_simulator, direct_simulator, make_control
from dbcare.engines.statistics import QUANTILES, Moments, estimate_mean
from dbcare.engines.workers import available_threads
from dbcare.errors import InvalidValueError
from dbcare.planner.outlook import LEAST_RUNS, MAX_ERROR, Known, Omission, Outlook, RowTarget
from dbcare.planner.setting import (
    PlanSetting,
    default_names,
    find_largest_gap,
    find_obstacle,
    find_strategy,
    strategy_names,
)
from dbcare.policies.elimination.elimination import count_max_epochs
from dbcare.policies.policy import CustomPolicy, Pace, Policy
from dbcare.problem.bandits import Bandit
from dbcare.problem.risk import Loss, Risk

MAX_PLANNED_EPOCHS = 8_000  # about a tenth of a second, which cannot be interrupted
MAX_TABLE_EPOCHS = 10_000_000  # of an elimination policy: 80 MB, and several times that to build


@dataclass(frozen=True, eq=False)
class Cell:
    """A way to decide at one gap of a setting, and the risk to evaluate it by."""

    name: str
    setting: PlanSetting
    gap: float
    policy: Policy
    risk: Risk

    @cached_property
    def bandit(self) -> Bandit:
        """The arms."""
        return self.setting.bandit(self.gap)

    @property
    def can_pool(self) -> bool:
        """Whether runs at other gaps say something about this one."""
        return self.policy.treats_arms_alike and not self.risk.costs_differ and find_family([self.bandit]) is not None

    def at(self, gap: float) -> Cell:
        """Return the same policy at another gap."""
        return Cell(self.name, self.setting, gap, self.policy, self.risk)

    def find_obstacle(self) -> str | None:
        """Return why the cell takes too much work, whatever the number of runs, if it does."""
        if self.policy.pace is Pace.ELIMINATION:
            epochs = count_max_epochs(self.policy.arms, self.policy.max_pulls)
            if epochs > MAX_TABLE_EPOCHS:
                return f"its tables have up to {epochs:,} epochs"
        return None

    def compute(self, seed: int) -> Evaluation | None:
        """Evaluate the cell exactly, if that is possible and fast; refuse rewards that the policy is not made for."""
        choose_risk(self.policy, self.bandit, self.risk)
        began, policy, bandit = time.perf_counter(), self.policy, self.bandit
        if self.risk.costs_differ:
            return None
        if policy.pulls_each:
            wrong = np.array([self.setting.one_best(self.gap).chance_wrong(policy.pulls_each)])
            law = fixed_law(np.array([self.gap]), policy.arms * policy.pulls_each / 2.0, wrong, np.array(QUANTILES))
        elif not exact.applies(policy, bandit) or _takes_long(policy, bandit):
            return None
        else:
            law = exact.compute_law(policy, bandit)
        return build_from_law(law, policy, self.risk, seed, began)

    def make_outlook(self, evaluation: Evaluation, effective_runs: float = math.inf) -> Outlook:
        """Return what an evaluation of this cell says, and on how many runs, by their weights, it rests."""
        setting = self.setting
        return Outlook(
            self.name, self.gap, self.policy, evaluation, setting.loss_value, setting.per_day, effective_runs,
            setting.control_is_best,
        )  # fmt: skip

    def omit(self, why: str) -> Omission:
        """Return that this cell is left out, and why."""
        return Omission(self.name, self.gap, why, self.setting.control_is_best)


def _takes_long(policy: Policy, bandit: Bandit) -> bool:
    """Return whether the exact engine takes long, though it applies."""
    return policy.pace is Pace.ELIMINATION and exact.count_epochs(policy, bandit) > MAX_PLANNED_EPOCHS


def build_cells(setting: PlanSetting, names: Sequence[str], gaps: Sequence[float]) -> list[Cell]:
    """Build the policies by gap and name; equal ones are one object, so that their tables are built once.

    A policy has no cells at gaps that it is not made for.
    """
    built: list[Policy] = []
    cells = []
    largest = {name: find_largest_gap(find_strategy(name), setting) for name in names}
    for gap in gaps:
        for name in (name for name in names if gap <= largest[name]):
            policy, risk = find_strategy(name).build(setting, gap)
            policy = next((other for other in built if other == policy), policy)
            built.append(policy)
            cells.append(Cell(name, setting, gap, policy, risk))
    return cells


def choose_strategies(
    setting: PlanSetting, policies: Any, gaps: Sequence[float]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names of those that take part, in the table's order, and why others are left out, or at some gaps."""
    wanted = default_names() if policies is None else _check_names(policies)
    left_out: dict[str, str] = {}
    names = []
    for name in wanted:
        obstacle = find_obstacle(find_strategy(name), setting)
        largest = 0.0 if obstacle is not None else find_largest_gap(find_strategy(name), setting)
        if largest < gaps[-1]:
            left_out[name] = obstacle or _describe_limit(setting, largest)
        if largest >= gaps[0]:
            names.append(name)
        elif policies is not None:
            raise InvalidValueError(f"`policies` cannot include {name}: {left_out[name]}.")
    return tuple(names), left_out


def _describe_limit(setting: PlanSetting, largest: float) -> str:
    remedy = " unless the range of rewards is stated" if setting.spread.range is None else ""
    return f"it assumes gaps of at most {largest:g}{remedy}"


def _check_names(policies: Any) -> list[str]:
    listed = [policies] if isinstance(policies, str) else checks.items("policies", policies, "names of policies")
    wanted = [find_strategy(name).name for name in listed]
    if not wanted:
        raise InvalidValueError("`policies` must be at least one name but got none.")
    return [name for name in strategy_names() if name in wanted]


WORK = 1.8e9  # of a plan: about a second on two CPUs
REFINING_WORK = 8e8  # up to which figures that are known to a fifth become better known
FIRST_RUNS, FEWEST_RUNS = 16, 4  # at each gap; fewer if they are expensive
FIRST_TARGET = RowTarget(MAX_ERROR, None, LEAST_RUNS)
FINER_TARGETS = (RowTarget(0.1, MAX_ERROR, 200.0), RowTarget(0.05, MAX_ERROR, 400.0))
HIDDEN_TARGET = RowTarget(math.inf, None, LEAST_RUNS)
RARE = 0.05  # chance of a wrong choice from which on runs at smaller gaps need not show it
MAX_RISE = 1.5  # by which the work of a run grows more from gap to gap than it did before
MAX_GROWTH = 4.0  # at a time, as few runs say little about how many are needed
SURPLUS = 1.1  # of runs over what seems to be needed
LONGEST_RUN = 1e8  # a tenth of a second; longer ones are cut
MAX_CUT = 0.02  # share of a mean number of pulls that cut runs may have
MAX_RUNS = 2_000_000  # at a gap, for memory
RUN_WORK, RUN_ARMS = 500.0, 12.0  # of a pooled run per gap, for so many arms; more in proportion
PLAIN_RUN_WORK = 200.0
RATES_IN_EPOCHS = 4.0  # times the work of a Gaussian pull
INTERPRETED = 300.0  # times the work of a compiled run
MAX_RATIO = 3.0  # of neighboring gaps without hidden ones between them
ADVISERS = 1  # gaps are so far apart that only a neighbor says which controls to use

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Found = dict[Cell, Outlook | Omission]


class Work:
    """The work that is left for a plan."""

    def __init__(self, left: float) -> None:
        self.left = left


class Source(ABC):
    """Runs of one policy at some gaps, from the largest on; those of `hidden` cells only lend what they tell."""

    def __init__(self, cells: Sequence[Cell], hidden: Iterable[Cell], seed: int) -> None:
        self.seed, self.began = seed, time.perf_counter()
        self.cells = sorted([*cells, *hidden], key=lambda cell: -cell.gap)
        self.shown = frozenset(cells)
        self.policy, self.risk = cells[0].policy, cells[0].risk
        in_epochs = self.policy.pace.in_epochs
        self.pull_work = self.policy.pull_work
        if in_epochs and cells[0].setting.spread.takes_binary:
            self.pull_work *= RATES_IN_EPOCHS
        self.longest_run = math.inf if in_epochs else LONGEST_RUN / self.pull_work
        self.counts = np.zeros(0, np.int64)  # runs made at the gaps reached
        self.known: list[Known] = []  # what they show
        self.run_work = np.zeros(0)  # of one of them

    @abstractmethod
    def extend(self, counts: Counts) -> float:
        """Go on to `counts` runs, one number per gap reached; set `known` and `run_work`, and return the work."""

    @abstractmethod
    def evaluate(self, place: int) -> Evaluation:
        """Return what the runs show at a gap that was reached."""

    def cut_long_runs(self) -> Policy:
        """Return the policy, whose runs end after `longest_run` pulls; it has the same kernel."""
        policy = self.policy
        if policy.max_pulls <= self.longest_run:
            return policy
        most, tables, size = math.ceil(self.longest_run), policy.tables, policy.state_size
        return CustomPolicy(policy.arms, policy.rule, tables=tables, state_size=size, max_pulls=most, risk=policy.risk)

    def heed(self, simulator: Simulator) -> None:
        """Count more work if the policy cannot be compiled."""
        if simulator.interpreted:
            self.pull_work *= INTERPRETED
            self.longest_run /= INTERPRETED
            warn_if_interpreted(simulator)

    def was_cut(self, place: int) -> bool:
        """Return whether runs that were cut matter at a gap."""
        if self.policy.max_pulls <= self.longest_run:
            return False
        return self.known[place].capped * self.longest_run > MAX_CUT * self.known[place].pulls.value

    def reach(self, allowed: float, work: Work) -> bool:
        """Make a few runs at the next gap, if they are likely to fit; return whether they were made."""
        reached = len(self.counts)
        if not self._is_any_left() or (reached and self.was_cut(reached - 1)):
            return False
        one = self.expect_work()
        if FEWEST_RUNS * one > allowed:
            return False
        runs = FIRST_RUNS if FIRST_RUNS * one <= allowed else FEWEST_RUNS
        work.left -= self.extend(np.append(self.counts, runs))
        return True

    def expect_work(self) -> float:
        """Return about how much work a run at the next gap takes: it grows as it did, at most like 1 / gap squared."""
        reached = len(self.counts)
        if not reached:
            return self.pull_work * self.policy.arms
        growth = (self.cells[reached - 1].gap / self.cells[reached].gap) ** 2
        if reached > 1:
            growth = min(growth, max(1.0, MAX_RISE * float(self.run_work[-1] / self.run_work[-2])))
        return growth * float(self.run_work[-1])

    def _is_any_left(self) -> bool:
        """Return whether a gap that has no runs yet is shown, or tells about one that is."""
        left = self.cells[len(self.counts) :]
        return any(cell in self.shown for cell in left) or (bool(left) and self.known[-1].wrong.value < RARE)

    def list_needs(self, target: RowTarget) -> list[Need]:
        """Return what the rows need that do not meet a target."""
        needs = []
        for place, (cell, known) in enumerate(zip(self.cells, self.known, strict=False)):
            is_shown = cell in self.shown
            growth = known.count_growth(target if is_shown else HIDDEN_TARGET)
            if not is_shown and self.known[place - 1].wrong.value >= RARE:
                continue
            if growth > 1.0 and self.counts[place] < MAX_RUNS and not self.was_cut(place):
                more = (SURPLUS * growth - 1.0) * int(self.counts[place])
                needs.append(Need(more * float(self.run_work[place]), more, self, place))
        return needs

    def add(self, more: dict[int, float]) -> float:
        """Make more runs at some places; return the work it took."""
        counts = self.counts.copy()
        for place, runs in more.items():
            counts[place] = min(MAX_RUNS, counts[place] + math.ceil(runs))
        return self.extend(counts)

    def find(self, cell: Cell) -> Outlook | Omission:
        """Return what the runs show of a cell."""
        place, reached = self.cells.index(cell), len(self.counts)
        if place < reached and not self.was_cut(place):
            return cell.make_outlook(self.evaluate(place), self.known[place].effective_runs)
        if place < reached:
            why = f"runs make more than {self.longest_run:,.0f} observations"
        elif reached == 0:
            why = "there is no work left for its first runs"
        else:
            pulls = self.known[-1].pulls.value * (self.cells[reached - 1].gap / cell.gap) ** 2
            why = f"a run makes about {float(f'{min(pulls, self.policy.max_pulls):.2g}'):,.0f} observations"
        return cell.omit(why)


class Need(NamedTuple):
    """How much work, and how many more runs, a row needs."""

    work: float
    runs: float
    source: Source
    place: int


class PooledSource(Source):
    """Runs that say something about all gaps, by their likelihoods, and whose losses are averaged over labels."""

    def __init__(self, cells: Sequence[Cell], hidden: Iterable[Cell], seed: int, threads: int) -> None:
        super().__init__(cells, hidden, seed)
        bandits = [cell.bandit for cell in self.cells]
        self.runs = PooledRuns(self.cut_long_runs(), bandits, seed, threads, direct=True)
        self.combination = combine(self.risk.loss, self.risk.single_cost)
        self.heed(direct_simulator(self.policy, make_arms(bandits[0]), seed, tallied=True))

    def extend(self, counts: Counts) -> float:
        pulls, summed = self.runs.pulls, self.runs.runs_summed
        self.runs.extend(counts)
        self.counts = self.runs.counts
        self.model = build_model(self.runs.bandits[: len(counts)], choose_labels(self.policy))
        sums = self.runs.sum(self.model)
        self.estimates = estimate(sums, self.counts, self.model, [self.combination], ADVISERS)
        self.quantiles: Floats | None = None
        self.known = [self._know(place) for place in range(len(counts))]
        add_run = RUN_WORK * len(counts) * max(1.0, self.policy.arms / RUN_ARMS)
        means = np.array([float(done.pulls.mean()) for done in self.runs.outcomes])
        self.run_work = self.pull_work * means + add_run
        return self.pull_work * (self.runs.pulls - pulls) + add_run * (self.runs.runs_summed - summed)

    def _know(self, place: int) -> Known:
        estimates = self.estimates
        return Known(
            estimates.at(place, (0.0, 0.0, 1.0)),
            estimates.at(place, self.combination),
            estimates.at(place, (1.0, 0.0, 0.0)),
            float(estimates.effective_runs[place]),
            float(estimates.capped[place]),
        )

    def evaluate(self, place: int) -> Evaluation:
        if self.quantiles is None:
            self.quantiles = self.runs.quantiles(self.model, np.array(QUANTILES))
        outcomes, simulator = self.runs.outcomes[place], self.runs.simulators[place]
        found = build_from_averages(
            outcomes, self.estimates, simulator, self.policy, self.risk, self.seed, self.began, place
        )
        quantiles = dict(zip(QUANTILES, self.quantiles[place].tolist(), strict=True))
        return replace(
            found,
            pulls=replace(found.pulls, quantiles=quantiles),
            capped=self.known[place].capped,
            engine="pooled",
            guarantee="runs at all gaps, losses averaged over labels",
        )


class PlainSource(Source):
    """Plain runs at each gap, which say nothing about another."""

    def __init__(self, cells: Sequence[Cell], seed: int, threads: int) -> None:
        super().__init__(cells, (), seed)
        self.threads = threads
        self.outcomes: list[Outcomes] = []
        self.moments: list[Moments] = []
        policy, costs = self.cut_long_runs(), self.risk.costs(self.policy.arms)
        self.simulators = [
            charging_simulator(policy, make_arms(cell.bandit), seed, costs)
            if self.risk.costs_differ
            else direct_simulator(policy, make_arms(cell.bandit), seed)
            for cell in self.cells
        ]
        self.heed(self.simulators[0])

    def extend(self, counts: Counts) -> float:
        work = 0.0
        for place, runs in enumerate(counts.tolist()):
            simulator = self.simulators[place]
            if place == len(self.outcomes):
                self.outcomes.append(simulator.allocate(0))
            done = self.outcomes[place]
            if runs > len(done.pulls):
                self.outcomes[place] = extend_runs(done, simulator, runs, self.threads)
                made = self.outcomes[place].pulls[len(done.pulls) :]
                work += self.pull_work * int(made.sum()) + PLAIN_RUN_WORK * len(made)
        self.counts = counts
        self.moments = [
            Moments(done, np.array(cell.bandit.gaps), make_control(make_arms(cell.bandit), simulator.checkpoint))
            for done, cell, simulator in zip(self.outcomes, self.cells, self.simulators, strict=False)
        ]
        self.known = [self._know(place) for place in range(len(counts))]
        means = np.array([float(done.pulls.mean()) for done in self.outcomes])
        self.run_work = self.pull_work * means + PLAIN_RUN_WORK
        return work

    def _know(self, place: int) -> Known:
        outcomes, moments = self.outcomes[place], self.moments[place]
        return Known(
            estimate_mean(outcomes.pulls),
            moments.total(self.risk.loss, moments.unit(self.risk)),
            moments.total(Loss.MISIDENTIFICATION, 0.0),
            float(len(outcomes.pulls)),
            float(outcomes.undecided.mean()),
        )

    def evaluate(self, place: int) -> Evaluation:
        outcomes, moments, simulator = self.outcomes[place], self.moments[place], self.simulators[place]
        return build_from_runs(outcomes, moments, simulator, self.policy, self.risk, self.seed, self.began)


def evaluate_cells(cells: Sequence[Cell], runs: int | None, seed: int, threads: int | None) -> Found:
    """Evaluate all cells: exactly where that is possible, else by so many runs each, or as many as WORK allows."""
    work = Work(WORK)
    found: Found = {}
    for cell in cells:
        current_halt().check()
        if runs is None and (why := cell.find_obstacle()) is not None:
            found[cell] = cell.omit(why)
        elif (known := cell.compute(seed)) is not None:
            found[cell] = cell.make_outlook(known)
        elif runs is not None:
            made = evaluate(cell.policy, cell.bandit, cell.risk, runs=runs, seed=seed, threads=threads)
            found[cell] = cell.make_outlook(made, float(runs))
    width = available_threads() if threads is None else threads
    sources = make_sources([cell for cell in cells if cell not in found], seed, width)
    spend(sources, work)
    for source in sources:
        found.update({cell: source.find(cell) for cell in source.cells if cell in source.shown})
    return found


def make_sources(cells: Sequence[Cell], seed: int, threads: int) -> list[Source]:
    """Return the sources of the runs for all cells."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.name, cell.setting, cell.can_pool), []).append(cell)
    return [
        PooledSource(group, hide_between(group), seed, threads)
        if group[0].can_pool
        else PlainSource(group, seed, threads)
        for group in groups.values()
    ]


def hide_between(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells at a half and a quarter of each gap that has no neighbor near below it.

    Runs that go wrong are rare at a gap and common at a smaller one, so that a few of these show how likely they are.
    """
    gaps = sorted(cell.gap for cell in cells)
    hidden = []
    for below, gap in pairwise([0.0, *gaps]):
        if gap > MAX_RATIO * below:
            hidden += [cells[0].at(gap / divisor) for divisor in (2.0, 4.0) if gap / divisor > below]
    return hidden


def spend(sources: Sequence[Source], work: Work) -> None:
    """Spend the work on the rows of all sources, those that are known soonest first."""
    for place, source in enumerate(sources):
        share = work.left / (len(sources) - place)
        least = work.left - share / 2.0
        while source.reach(work.left - least, work):
            pass
    meet(sources, FIRST_TARGET, work)
    while reach_deeper(sources, work):
        meet(sources, FIRST_TARGET, work)
    refining = Work(work.left - (WORK - REFINING_WORK))
    for target in FINER_TARGETS:
        meet(sources, target, refining)


def reach_deeper(sources: Sequence[Source], work: Work) -> bool:
    """Begin with the next gap of each source where half of what is left allows it; return whether it did anywhere."""
    reached = [source.reach(work.left / 2.0, work) for source in sources]
    return any(reached)


def meet(sources: Sequence[Source], target: RowTarget, work: Work) -> None:
    """Make runs until all rows meet a target, those first that need the least work; stop where not even one fits.

    If no row can meet the first target any more, all that miss it get equal shares of what is left.
    """
    while needs := [need for source in sources for need in source.list_needs(target)]:
        needs.sort(key=lambda need: need.work)
        more: dict[Source, dict[int, float]] = {}
        left = work.left
        for need in needs:
            left -= need.work
            if left < 0.0:
                break
            most = (MAX_GROWTH - 1.0) * int(need.source.counts[need.place])
            more.setdefault(need.source, {})[need.place] = min(need.runs, most)
        if not more:
            if target == FIRST_TARGET:
                share_equally(needs, work)
            return
        for source, runs in more.items():
            work.left -= source.add(runs)


def share_equally(needs: Sequence[Need], work: Work) -> None:
    """Spend what is left on all rows that miss the target, in equal shares."""
    share, more = work.left / len(needs), dict[Source, dict[int, float]]()
    for need in needs if share > 0.0 else ():
        more.setdefault(need.source, {})[need.place] = share / float(need.source.run_work[need.place])
    for source, runs in more.items():
        work.left -= source.add(runs)
