"""The paper's algorithms written a second time, from its text, against ours: 1,000 random problems, ties included."""

import math
import random
from fractions import Fraction

import pytest

from dbcare import DBCARE, Risk
from dbcare.policies import Racing, SequentialHalving
from dbcare.problem.risk import Loss
from tests.helpers.play_run import Turns, play

PROBLEMS = 1_000
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # rewards of few values tie often, and their sums are exact in binary


def budget_of(loss: Loss, survivors: int, cost: float, sigma: float) -> float:
    """N* of Theorems 2 and 4."""
    if loss is Loss.MISIDENTIFICATION:
        return 1.0 / (survivors * math.e * cost)
    return float(3.0 / (2.0 * math.e) * sigma ** (2.0 / 3.0) * ((survivors - 1) * cost) ** (-2.0 / 3.0))


def delta_of(loss: Loss, arms: int, cost: float, sigma: float, bound: float) -> float:
    """Delta of the corollaries for two arms, of the theorems for more."""
    budget = budget_of(loss, 2, cost, sigma)
    if loss is Loss.MISIDENTIFICATION:
        return cost / (1.0 + 2.0 * cost * (1.0 if arms == 2 else math.log(arms)) * budget)
    if arms == 2:
        return cost / (bound + 2.0 * cost * budget)
    return float(cost / (bound + math.e * arms ** (1.0 / 3.0) * math.log(arms) * budget))


def eliminate(
    tape: list[list[float]], loss: Loss | None, delta: float, cost: float, sigma: float, cap: int
) -> tuple[Turns, set[int]]:
    """Algorithm 1, line by line; racing is the same without N* (no loss), and starts no epoch beyond its cap."""
    arms = len(tape)
    alive, epoch, pulls = set(range(arms)), 0, 0
    turns: Turns = []
    totals = [Fraction(0)] * arms
    while len(alive) > 1:
        if loss is not None and epoch > budget_of(loss, len(alive), cost, sigma):
            break
        if loss is None and pulls + len(alive) > cap:
            break
        epoch += 1
        turns.append(sorted(alive))
        pulls += len(alive)
        for arm in alive:
            totals[arm] += Fraction(tape[arm][epoch - 1])
        radius = math.sqrt(4.0 * sigma**2 / epoch * math.log(arms * epoch / delta))
        best = max(totals[arm] for arm in alive)
        alive = {arm for arm in alive if not float((best - totals[arm]) / epoch) > radius}
    best = max(totals[arm] for arm in alive)
    return turns, {arm for arm in alive if totals[arm] == best}


def check(policy: DBCARE | Racing, tape: list[list[float]], turns: Turns, leaders: set[int]) -> bool:
    """Compare a run of ours; return whether the choice was a tie."""
    run, asked = play(policy, tape, seed=len(turns))
    assert asked == turns
    assert run.recommendation() in leaders
    return len(leaders) > 1


def draw_tape(source: random.Random, arms: int, length: int) -> list[list[float]]:
    favors = [source.choice((1, 1, 1, 4)) for _ in range(arms)]
    return [source.choices(LEVELS, (1, 1, 2, favor, favor), k=length) for favor in favors]


@pytest.mark.filterwarnings("ignore::dbcare.errors.GuessingIsBestWarning")
def test_dbcare_and_racing_agree_with_a_second_version() -> None:
    source, ties, drops = random.Random(38), 0, 0
    for _ in range(PROBLEMS):
        arms, sigma = source.choice((2, 2, 3, 4, 7)), source.choice((0.04, 0.08, 0.15, 0.3))
        cost, bound = source.choice((0.004, 0.01, 0.03)), source.choice((0.5, 1.0, 3.0))
        loss = source.choice(list(Loss))
        length = math.floor(max(budget_of(loss, 2, cost, sigma), 1.0)) + 2
        tape = draw_tape(source, arms, max(length, 30))
        turns, leaders = eliminate(tape, loss, delta_of(loss, arms, cost, sigma, bound), cost, sigma, 0)
        ties += check(DBCARE(Risk(loss, cost), arms, sigma, bound), tape, turns, leaders)
        drops += len(turns[-1]) < arms
        delta, cap = source.choice((0.1, 0.01)), source.randrange(arms, 30 * arms)
        tape = draw_tape(source, arms, cap)
        turns, leaders = eliminate(tape, None, delta, cost, sigma, cap)
        ties += check(Racing(arms, delta, sigma, cap), tape, turns, leaders)
        drops += len(turns[-1]) < arms
    assert ties > 50
    assert drops > 200


def halve(tape: list[list[float]], budget: int, ranking: str) -> tuple[list[int], set[int]]:
    """Sequential Halving with ties broken by the lowest number: pulls of each arm, and the arms that could be chosen.

    A problem in which a tie decides who stays is reported by an empty set.
    """
    arms = len(tape)
    rounds = math.ceil(math.log2(arms))
    alive, pulls = list(range(arms)), [0] * arms
    for _ in range(rounds):
        each = budget // (len(alive) * rounds)
        score = {}
        for arm in alive:
            start = pulls[arm]
            pulls[arm] += each
            score[arm] = sum(map(Fraction, tape[arm][(start if ranking == "round" else 0) : pulls[arm]]))
        keep = math.ceil(len(alive) / 2)
        order = sorted(alive, key=lambda arm: -score[arm])
        if keep > 1 and score[order[keep - 1]] == score[order[keep]]:
            return pulls, set()
        if keep == 1:
            return pulls, {arm for arm in alive if score[arm] == score[order[0]]}
        alive = order[:keep]
    raise AssertionError("the last round leaves one arm")


@pytest.mark.parametrize("ranking", ["round", "all"])
def test_halving_agrees_with_a_second_version(ranking: str) -> None:
    source, compared, ties = random.Random(39), 0, 0
    while compared < PROBLEMS:
        arms = source.choice((2, 3, 4, 5, 8, 9))
        rounds = math.ceil(math.log2(arms))
        budget = source.randrange(arms * rounds, 8 * arms * rounds)
        tape = draw_tape(source, arms, budget)
        pulls, winners = halve(tape, budget, ranking)
        if winners:
            run, asked = play(SequentialHalving(arms, budget, ranking), tape, seed=compared)
            assert [sum(arm in turn for turn in asked) for arm in range(arms)] == pulls
            assert run.recommendation() in winners
            compared += 1
            ties += len(winners) > 1
    assert ties > 50
