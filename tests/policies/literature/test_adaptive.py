"""Each adaptive rule makes the decisions of a slow second implementation, stepped by hand and compiled."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dbcare import Bandit, Breakeven, Policy, Risk
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.simulators import trace
from dbcare.policies import (
    EBTCI,
    KLLUCB,
    KN,
    LUCB,
    OCBA,
    Adaptive,
    ChickFrazier,
    KGStar,
    LilUCB,
    TrackAndStop,
    TwoArmChickFrazier,
    UGapE,
    UGapEBudget,
)
from dbcare.policies.run import Run
from tests.helpers import plain_rivals as plain
from tests.helpers.plain_rivals import History, Plain

ARMS, SIGMA, CAP = 4, 0.5, 90
FEW = 36  # the most pulls where the second implementation is very slow
REGRET = Risk.simple_regret(1e-3)
RUNS = 20
# Rewards are means plus noise from -0.2 to 0.2, within [0, 1] for the rules that need it: no two are equal.
RULES: dict[str, tuple[Policy, Plain]] = {
    "LUCB": (LUCB(ARMS, 0.1, SIGMA / 3, CAP), plain.lucb(ARMS, 0.1, SIGMA / 3, CAP)),
    "KL-LUCB": (KLLUCB(ARMS, 0.9, max_pulls=CAP), plain.kl_lucb(ARMS, 0.9, False, CAP)),
    "KL-LUCB, heuristic": (KLLUCB(ARMS, 0.9, "heuristic", CAP), plain.kl_lucb(ARMS, 0.9, True, CAP)),
    "lil'UCB": (LilUCB(ARMS, 0.1, SIGMA / 3, "heuristic", CAP), plain.lil_ucb(ARMS, 0.1, SIGMA / 3, CAP)),
    "UGapE": (UGapE(ARMS, 0.1, SIGMA / 3, CAP), plain.ugape(ARMS, 0.1, SIGMA / 3, CAP)),
    "UGapE, budget": (UGapEBudget(ARMS, CAP, SIGMA), plain.ugape_budget(ARMS, CAP, SIGMA)),
    "Track-and-Stop": (
        TrackAndStop(ARMS, 0.2, SIGMA / 3, "gaussian", "heuristic", FEW),
        plain.track_and_stop(ARMS, 0.2, SIGMA / 3, False, FEW),
    ),
    "Track-and-Stop, Bernoulli": (
        TrackAndStop(ARMS, 0.9, SIGMA, "bernoulli", "heuristic", FEW),
        plain.track_and_stop(ARMS, 0.9, SIGMA, True, FEW),
    ),
    "EB-TCI": (
        EBTCI(ARMS, 0.2, SIGMA / 3, "gaussian", "heuristic", FEW),
        plain.eb_tci(ARMS, 0.2, SIGMA / 3, False, FEW),
    ),
    "EB-TCI, Bernoulli": (
        EBTCI(ARMS, 0.9, SIGMA, "bernoulli", "heuristic", FEW),
        plain.eb_tci(ARMS, 0.9, SIGMA, True, FEW),
    ),
    "OCBA": (OCBA(ARMS, CAP, first_pulls=3), plain.ocba(ARMS, CAP, 3)),
    "KN": (KN(ARMS, 0.05, 0.1, 6, FEW + 14), plain.kn(ARMS, 0.05, 0.1, 6, FEW + 14)),
    "Chick-Frazier": (ChickFrazier(REGRET, ARMS, SIGMA, CAP), plain.chick_frazier(ARMS, 1e-3, SIGMA, CAP)),
    "KG*": (KGStar(REGRET, ARMS, SIGMA, CAP), plain.kg_star(ARMS, 1e-3, SIGMA, CAP)),
}
SLOW = "KL-LUCB", "KL-LUCB, heuristic", "Track-and-Stop", "Track-and-Stop, Bernoulli"  # these solve equations


@pytest.mark.parametrize("name", RULES)
def test_a_second_implementation_decides_the_same(name: str) -> None:
    """Pull by pull, over random runs; they differ in length, but for budgets and the proven rate of KL-LUCB."""
    policy, second = RULES[name]
    lengths = set()
    for number in range(RUNS // 2 if name in SLOW else RUNS):
        generator = np.random.default_rng(number)
        means = generator.uniform(0.2, 0.8, ARMS)
        if number % 2:  # one arm is clearly the best, so that rules stop before the cap
            means = np.where(means == means.max(), 0.8, np.minimum(means, 0.3))
        run, history = policy.start(seed=number), History()
        while (arm := run.ask()) is not None:
            expected = second(history)
            is_same = arm in expected if isinstance(expected, set) else arm == expected
            assert is_same, f"pull {len(history) + 1} of run {number}: {arm}, not {expected}"
            history.append((arm, means[arm] + generator.uniform(-0.2, 0.2)))
            run.tell(history[-1][1])
        assert second(history) is None, f"run {number} stopped after {len(history)} pulls"
        lengths.add(len(history))
    assert len(lengths) > 1 or hasattr(policy, "budget") or name == "KL-LUCB"


@pytest.mark.parametrize("name", [name for name in RULES if not name.startswith("KL") and "Bernoulli" not in name])
def test_compiled_equals_stepped_by_hand(name: str) -> None:
    """On Gaussian arms; the rules for rewards in [0, 1] are compiled for Bernoulli arms in the statistical tests."""
    check_compiled(RULES[name][0], Bandit.gaussian([0.6, 0.5, 0.3, 0.1], sigma=SIGMA))


def check_compiled(policy: Policy, bandit: Bandit, runs: int = 8) -> None:
    truth = make_arms(bandit)
    for number in range(runs):
        compiled = trace(policy, truth, 11, number)
        run = Run.fresh(policy, compiled.tie)
        for arm, reward in compiled.pulls:
            assert run.ask() == arm
            run.tell(reward)
        assert run.ask() is None
        assert run.recommendation() == compiled.recommended


BREAKEVENS = [
    (Breakeven(Risk.simple_regret(1e-3), ARMS, SIGMA), {"sigma": SIGMA}),
    (Breakeven(Risk.misidentification(1e-3), ARMS, SIGMA, math.inf), {"sigma": SIGMA, "sigma_pulls": math.inf}),
    (Breakeven(Risk.misidentification((1e-3, 2e-3, 3e-3, 4e-3)), ARMS, bound=2.0), {"bound": 2.0}),
    (Breakeven(Risk.simple_regret(0.3), ARMS, 1.0, bound=1.0), {"sigma": 1.0, "bound": 1.0}),  # guesses
]


@pytest.mark.parametrize(("policy", "options"), BREAKEVENS)
def test_breakeven_is_a_pair_of_parts(policy: Breakeven, options: dict[str, Any]) -> None:
    pair = Adaptive(ARMS, "breakeven", "breakeven", risk=policy.risk, **options)
    for number in range(RUNS):
        generator = np.random.default_rng(number)
        means = generator.uniform(0.0, 1.0, ARMS)
        runs = policy.start(seed=number), pair.start(seed=number)
        while (arm := runs[0].ask()) is not None:
            assert runs[1].ask() == arm
            reward = generator.normal(means[arm], SIGMA)
            for run in runs:
                run.tell(reward)
        assert runs[1].ask() is None
        assert runs[0].recommendation() == runs[1].recommendation()


def test_other_pairs_do_what_their_parts_do() -> None:
    """EB-TCI's sampling with Breakeven's stop, and the reverse, against the plain sampling and Breakeven's losses."""
    sampled = Adaptive(ARMS, "eb-tci", "breakeven", risk=REGRET, sigma=SIGMA, sigma_pulls=math.inf)
    for number in range(10):
        generator = np.random.default_rng(number)
        means = generator.uniform(0.0, 1.0, ARMS)
        run, history = sampled.start(seed=number), History()
        while (arm := run.ask()) is not None:
            if len(history) >= ARMS:
                assert arm == plain.choose_top_two(history, ARMS, SIGMA, False)
                assert plain_loss(history) > 1e-3 * len(history)
            history.append((arm, generator.normal(means[arm], SIGMA)))
            run.tell(history[-1][1])
        assert plain_loss(history) <= 1e-3 * len(history)


def plain_loss(history: History) -> float:
    """Return Breakeven's largest expected loss of simple regret, for a known sigma."""
    counts, means = plain.summarize(history, ARMS)
    leader = int(np.argmax(means))
    errors = SIGMA * np.sqrt(1.0 / counts + 1.0 / counts[leader])
    z = (means[leader] - means) / errors
    losses = errors * (norm.pdf(z) - z * norm.sf(z))
    return float(max(np.delete(losses, leader)))


def test_two_arms_in_turn_follow_the_boundary() -> None:
    """TwoArmChickFrazier after n pairs, against the formula."""
    policy = TwoArmChickFrazier(REGRET, sigma=SIGMA)
    scale, s = (4.0 * SIGMA**2 * 1e-3) ** (1 / 3), (2.0 * SIGMA**2) ** (1 / 3) / 2e-3 ** (2 / 3)
    for pairs in (1, 2, 10, 40, 200):
        assert policy.radius(pairs, 2) == pytest.approx(scale * plain.scaled_boundary(s / pairs), rel=1e-12)
