"""Elimination by safe jumps, and several caps in one pass, against laws computed by independent code.

Small caps: `compute_law` carries the probability of every state forward by the elimination rule as written here, one
cap at a time; it is itself checked against all reward sequences, each told to a run stepped by hand. Large caps: runs
of the direct engine, with each cap simulated separately.

Error rate: seeds are fixed; each cell of a known law is an exact binomial test at 1e-11, and there are fewer than
10,000; each comparison of two samples (`list_discrepancies`) is at 1e-8, and there are fewer than 80. Each total is
below 1e-6.
Negative controls: a kernel that underestimates the range of the rewards, one that ignores later epochs of the boundary,
and the law at another cap.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from dbcare import Bandit, Categorical
from dbcare.engines.simulate import simulators
from dbcare.engines.simulate.draws import FiniteArms, make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.simulators import direct_simulator, safe_jump_simulator
from dbcare.engines.skip.finite import Reach, make_reach
from dbcare.policies import Racing
from dbcare.policies.elimination.elimination import EliminationPolicy, EliminationTables
from dbcare.policies.elimination.racing import ConfidencePolicy
from dbcare.policies.epochs import ALIVE, SUMS, arms_offset
from tests.helpers.run_laws import Runs, list_discrepancies

pytestmark = pytest.mark.statistical

ALPHA = 1e-11

End = tuple[int, int, bool]  # recommended, pulls, undecided
Law = dict[End, float]
Arm = tuple[tuple[float, ...], tuple[float, ...]]  # values that add without rounding, and probabilities


@dataclass(frozen=True)
class Shaped(ConfidencePolicy):
    """A policy with a boundary of any shape: `line` over epochs 1, 2, ..., then its last value."""

    line: tuple[float, ...]
    max_pulls: int = 100
    arms: int = 3

    def _boundary(self, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.array((0.0, *self.line))[np.minimum(epochs, len(self.line))]


def add_end(law: Law, mass: float, sums: dict[int, float], pulls: int) -> None:
    """Add a run that ends with the given survivors' sums; ties are broken uniformly."""
    best = [arm for arm, total in sums.items() if total == max(sums.values())]
    for arm in best:
        law[arm, pulls, len(sums) > 1] += mass / len(best)


def compute_law(policy: Shaped, arms: list[Arm]) -> Law:
    """Compute how runs end, with the elimination rule as written here."""
    law: Law = defaultdict(float)
    states: dict[tuple[tuple[tuple[int, float], ...], int], float] = {
        (tuple((arm, 0.0) for arm in range(len(arms))), 0): 1.0
    }
    epoch = 0
    while states:
        epoch += 1
        boundary = policy.line[min(epoch, len(policy.line)) - 1]
        following: dict[tuple[tuple[tuple[int, float], ...], int], float] = defaultdict(float)
        for (sums, pulls), mass in states.items():
            for drawn in product(*(tuple(zip(*arms[arm], strict=True)) for arm, _ in sums)):
                chance = mass
                totals: dict[int, float] = {}
                for (arm, total), (value, probability) in zip(sums, drawn, strict=True):
                    chance *= probability
                    totals[arm] = total + value
                best = max(totals.values())
                kept = {arm: total for arm, total in totals.items() if best - total <= boundary}
                made = pulls + len(sums)
                if len(kept) == 1 or made + len(kept) > policy.max_pulls:
                    add_end(law, chance, kept, made)
                else:
                    following[tuple(kept.items()), made] += chance
        states = following
    return law


def enumerate_law(policy: Shaped, arms: list[Arm]) -> Law:
    """Compute how runs end by telling every sequence of rewards to a run stepped by hand."""
    law: Law = defaultdict(float)
    prefixes: list[tuple[list[float], float]] = [([], 1.0)]
    while prefixes:
        rewards, mass = prefixes.pop()
        run = policy.start()
        for reward in rewards:
            run.tell(reward)
        arm = run.ask()
        if arm is not None:
            for value, probability in zip(*arms[arm], strict=True):
                prefixes.append(([*rewards, value], mass * probability))
            continue
        first, alive = arms_offset(run.state), int(run.state[ALIVE])
        sums = {int(run.state[first + slot]): run.state[SUMS + slot] for slot in range(alive)}
        assert run.recommendation() in sums
        add_end(law, mass, sums, run.pulls)
    return law


def simulate(policy: EliminationPolicy, bandit: Bandit, caps: list[int], runs: int, seed: int = 3) -> list[Runs]:
    """Simulate runs of the kernel at each of the caps, which ascend to the policy's own."""
    simulator = safe_jump_simulator(policy, make_arms(bandit), seed, np.array(caps[:-1], np.int64))
    outcomes = Outcomes.empty(runs, control=False, caps=len(caps))
    simulator.block()(outcomes, 0)
    return [as_runs(outcomes.at_cap(place)) for place in range(len(caps))]


def as_runs(outcomes: Outcomes) -> Runs:
    return Runs(outcomes.recommended, outcomes.pulls, outcomes.undecided, outcomes.leader)


def misfits(runs: Runs, law: Law) -> list[str]:
    """List the ends that occur too often or too rarely."""
    count = len(runs.pulls)
    seen: dict[End, int] = defaultdict(int)
    for end in zip(runs.recommended.tolist(), runs.pulls.tolist(), runs.undecided.tolist(), strict=True):
        seen[end] += 1
    ends = sorted(seen.keys() | law.keys())
    hits, chances = np.array([seen[end] for end in ends]), np.array([law.get(end, 0.0) for end in ends])
    tails = np.minimum(binom.cdf(hits, count, chances), binom.sf(hits - 1, count, chances))
    return [
        f"{end}: {seen[end]} of {count}, expected {law.get(end, 0.0) * count:.1f}"
        for end, tail in zip(ends, tails, strict=True)
        if tail < ALPHA / 2.0
    ]


BINARY: list[Arm] = [((0.0, 1.0), (0.2, 0.8)), ((0.0, 1.0), (0.5, 0.5)), ((0.0, 1.0), (0.7, 0.3))]
LEVELS: list[Arm] = [
    ((0.0, 0.5, 1.25), (0.2, 0.3, 0.5)),
    ((-1.0, 0.5), (0.25, 0.75)),
    ((0.0, 0.25, 1.0), (0.5, 0.25, 0.25)),
]
NOISELESS: list[Arm] = [((0.0, 1.0), (0.3, 0.7)), ((0.5,), (1.0,)), ((0.0, 1.0), (0.6, 0.4))]

# Lines that rise, fall, and go up and down; they leave room for jumps of 2 to 8 epochs and drop arms after those.
SETTINGS: dict[str, tuple[tuple[float, ...], list[Arm], list[int]]] = {
    "flat": ((4.5,), BINARY, [9, 13, 30, 46]),
    "rising": ((2.5, 2.5, 2.5, 3.0, 3.5, 4.5, 5.5), BINARY, [10, 25, 40]),
    "falling suddenly": ((9.0,) * 8 + (2.5,), BINARY, [12, 29, 45]),
    "up and down": ((5.5, 6.5, 1.5, 6.5, 6.5, 6.5, 4.0, 8.5, 8.5, 4.5), BINARY, [30, 48]),
    "three values": ((5.0, 5.5, 6.0, 6.5), LEVELS, [9, 16, 24]),
    "an arm without noise": ((2.5, 2.5, 3.0), NOISELESS, [9, 31, 42]),
    "never": ((np.inf,), BINARY, [9, 30]),
}


def make_bandit(arms: list[Arm]) -> Bandit:
    return Bandit(tuple(Categorical(*arm) for arm in arms))


@cache
def compute_laws(name: str) -> list[Law]:
    line, arms, caps = SETTINGS[name]
    return [compute_law(Shaped(line, cap), arms) for cap in caps]


def runs_and_laws(name: str) -> tuple[list[Runs], list[Law]]:
    line, arms, caps = SETTINGS[name]
    return simulate(Shaped(line, caps[-1]), make_bandit(arms), caps, 100_000), compute_laws(name)


# With three arms, caps of 9 to 11 leave 0 to 2 pulls over.
@pytest.mark.parametrize("cap", [9, 10, 11])
def test_the_law_is_that_of_all_reward_sequences(cap: int) -> None:
    for line in ((1.5,), (2.0, 2.0, 1.0)):
        by_states, by_sequences = (compute(Shaped(line, cap), BINARY) for compute in (compute_law, enumerate_law))
        assert sum(by_states.values()) == pytest.approx(1.0, abs=1e-12)
        assert by_states == pytest.approx(by_sequences, abs=1e-12)
        assert len(by_states) > 4


@pytest.mark.parametrize("name", SETTINGS)
def test_every_cap_has_the_law_of_its_policy(name: str) -> None:
    for runs, law in zip(*runs_and_laws(name), strict=True):
        assert misfits(runs, law) == []


def too_narrow(tables: EliminationTables, arms: FiniteArms) -> Reach:
    reach = make_reach(tables, arms)
    return reach._replace(low=0.25 * reach.low, high=0.25 * reach.high)


def without_later_epochs(tables: EliminationTables, arms: FiniteArms) -> Reach:
    return make_reach(tables, arms)._replace(floor=tables.boundary)


@pytest.mark.parametrize(
    ("name", "wrong"), [("flat", too_narrow), ("rising", too_narrow), ("up and down", without_later_epochs)]
)
def test_wrong_bounds_are_detected(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulators, "make_reach", wrong)
    runs, laws = runs_and_laws(name)
    assert misfits(runs[-1], laws[-1])


def test_the_law_at_another_cap_is_detected() -> None:
    line, arms, caps = SETTINGS["flat"]
    runs, _ = runs_and_laws("flat")
    assert misfits(runs[-1], compute_law(Shaped(line, caps[-1] + 1), arms))


LARGE: dict[str, tuple[EliminationPolicy, Bandit, list[int], int]] = {
    "drug, leveled": (
        Racing(5, 0.1, sigma=0.12, max_pulls=20_000),
        Bandit.drug_leveled(),
        [1_000, 5_003, 20_000],
        3_000,
    ),
    "drug, binary": (Racing(5, 0.01, sigma=0.5, max_pulls=20_000), Bandit.drug_binary(), [5_000, 20_000], 10_000),
    "twenty arms": (
        Racing(20, 0.1, sigma=0.4, max_pulls=10_000),
        Bandit.bernoulli([0.8, *np.linspace(0.1, 0.6, 19)]),
        [999, 10_000],
        10_000,
    ),
    "values not on a lattice": (
        Racing(4, 0.1, sigma=0.6, max_pulls=5_000),
        Bandit.categorical(
            (0.0, 1.0, 0.7071067811865476), [(0.2, 0.7, 0.1), (0.3, 0.3, 0.4), (0.6, 0.4, 0.0), (0.9, 0.0, 0.1)]
        ),
        [500, 5_000],
        10_000,
    ),
    "two arms": (
        Racing(2, 0.1, sigma=0.5, max_pulls=3_000),
        Bandit.empirical([(0.0, 0.0, 0.5, 1.0), (0.0, 0.5, 0.5, 1.0, 1.0)]),
        [300, 3_000],
        20_000,
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_long_runs_agree_with_drawing_every_pull(name: str) -> None:
    policy, bandit, caps, runs = LARGE[name]
    for cap, jumped in zip(caps, simulate(policy, bandit, caps, runs), strict=True):
        assert isinstance(policy, Racing)
        capped = Racing(policy.arms, policy.delta, policy.sigma, cap)
        drawn = Outcomes.empty(runs, control=False)
        direct_simulator(capped, make_arms(bandit), 77).block()(drawn, 0)
        assert list_discrepancies(jumped, as_runs(drawn), cap) == []
