"""Adaptive rules refuse what they cannot use, with the rule, the value and the limit; and they run live and by name."""

import math
from collections.abc import Callable

import pytest

import dbcare
from dbcare import Bandit, Policy, Risk, build_policy, evaluate
from dbcare.errors import InvalidRewardError, InvalidValueError
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
from dbcare.policies.literature.adaptive import SAMPLING_PARTS, STOPPING_PARTS, find_parts
from dbcare.policies.registry import POLICIES

REGRET, ERROR = Risk.simple_regret(0.01), Risk.misidentification(0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LUCB(3, delta=1.0), "`delta` of `LUCB` must lie strictly between 0 and 1 but got 1.0"),
        (lambda: KLLUCB(3, delta=0.0), "`delta` of `KLLUCB` must lie strictly between 0 and 1 but got 0.0"),
        (lambda: LilUCB(3, delta=-1), "`delta` of `LilUCB` must lie strictly between 0 and 1 but got -1.0"),
        (lambda: UGapE(3, delta=2), "`delta` of `UGapE` must lie strictly between 0 and 1 but got 2.0"),
        (lambda: TrackAndStop(3, delta=1.5), "`delta` of `TrackAndStop` must lie strictly between 0 and 1 but got 1.5"),
        (lambda: EBTCI(3, delta=math.nan), "`delta` of `EBTCI` must be finite but got nan"),
        (lambda: Adaptive(3, "ocba", "lucb", sigma=1.0, delta=1.5), "`delta` of `Adaptive` must lie strictly between"),
        (lambda: LUCB(5, max_pulls=4), "`max_pulls` of `LUCB` must be at least 5 but got 4"),
        (lambda: UGapEBudget(5, budget=4), "`budget` of `UGapEBudget` must be at least 5 but got 4"),
        (lambda: OCBA(5, budget=24), "`budget` of `OCBA` must be at least 25 but got 24"),
        (lambda: OCBA(5, budget=24, first_pulls=1), "`first_pulls` of `OCBA` must be at least 2 but got 1"),
        (lambda: KN(3, 0.1, first_pulls=1), "`first_pulls` of `KN` must be at least 2 but got 1"),
        (lambda: KN(2, 0.1, delta=0.5), "`delta` of `KN` must be below 0.5, .* but got 0.5"),
        (lambda: KN(3, 0.0), "`indifference` of `KN` must be positive but got 0.0"),
        (lambda: LUCB(3, sigma=None), "`sigma` is required here"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: TrackAndStop(3, family="poisson"), "`family` must be one of gaussian, bernoulli but got 'poisson'"),
        (lambda: LilUCB(3, rate="fast"), "`rate` must be one of proven, heuristic but got 'fast'"),
        (lambda: ChickFrazier(ERROR, 3), "ChickFrazier weighs .* must be a simple regret but got misidentification"),
        (lambda: TwoArmChickFrazier(ERROR), "TwoArmChickFrazier weighs .* must be a simple regret but got"),
        (lambda: KGStar(ERROR, 3), "KGStar weighs .* must be a simple regret but got misidentification"),
        (lambda: Adaptive(3, "kg-star", "lucb", risk=ERROR, sigma=1.0), "Adaptive weighs .* must be a simple regret"),
        (lambda: Adaptive(3, "kn", "lucb"), "kn has no parts: dropping an arm is its way both of sampling and of"),
        (lambda: Adaptive(3, "eb-tci", "track"), "`stopping` must be one of breakeven, lucb, .* but got 'track'"),
        (
            lambda: Adaptive(3, "eb-tci", "lil-ucb", sigma=1.0),
            "'lil-ucb' does not go with `sampling` 'eb-tci': it counts",
        ),
        (
            lambda: Adaptive(3, "ugape-budget", "lucb", sigma=1.0, budget=9),
            "'ugape-budget' does not go with `stopping` 'lucb': its bounds are as wide as the budget allows",
        ),
        (lambda: Adaptive(3, "eb-tci", "breakeven", sigma=1.0), "`risk` is required by breakeven but was not given"),
        (lambda: Adaptive(3, "eb-tci", "breakeven", risk=ERROR), "`sigma` is required by eb-tci but was not given"),
        (lambda: Adaptive(3, "ocba", "budget"), "`budget` is required by budget but was not given"),
        (lambda: Adaptive(3, "ocba", "kl-lucb", sigma=1.0), "kl-lucb takes rewards from 0 to 1, so `family` must be"),
    ],
)
def test_bad_arguments_are_refused(make: Callable[[], Policy], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()


def test_rewards_outside_the_range_are_refused() -> None:
    """By a run stepped by hand, by a simulation, and by a live study."""
    run = KLLUCB(3).start()
    with pytest.raises(InvalidRewardError, match=r"`reward` must lie between 0 and 1 for KLLUCB but got 1.5"):
        run.tell(1.5)
    with pytest.raises(InvalidRewardError, match=r"`reward` must lie between 0 and 1 for TrackAndStop but got -0.1"):
        TrackAndStop(3, family="bernoulli").start().tell(-0.1)
    TrackAndStop(3).start().tell(-0.1)
    with pytest.raises(InvalidValueError, match=r"KLLUCB takes rewards from 0 to 1 but got arm 0, .* from -inf to inf"):
        evaluate(KLLUCB(2), Bandit.two_arm(0.5), ERROR)
    with pytest.raises(InvalidValueError, match=r"from 0 to 1 but got arm 1, whose rewards range from 0 to 3"):
        evaluate(KLLUCB(2), Bandit.categorical((0.0, 1.0, 3.0), [(0.5, 0.5, 0.0), (0.5, 0.2, 0.3)]), ERROR)
    for spread in ({"sigma": 1.0}, {"bounds": (0, 2)}, {"binary": True, "direction": "minimize"}):
        with pytest.raises(
            InvalidValueError, match="'kl-lucb' takes rewards from 0 to 1, of which more is better, but"
        ):
            dbcare.create_study("refused", arms=["A", "B"], cost=0.01, policy="kl-lucb", **spread)


PAIRS = [(sampling, stopping) for sampling in SAMPLING_PARTS for stopping in STOPPING_PARTS]
REFUSED = {(sampling, "lil-ucb") for sampling in SAMPLING_PARTS if sampling != "lil-ucb"} | {
    ("ugape-budget", stopping) for stopping in STOPPING_PARTS if stopping != "budget"
}


@pytest.mark.parametrize(("sampling", "stopping"), PAIRS)
def test_every_pair_either_runs_or_says_why_not(sampling: str, stopping: str) -> None:
    """All pairs of parts, each with everything that a part may need."""
    if (sampling, stopping) in REFUSED:
        with pytest.raises(InvalidValueError, match=" does not go with "):
            find_parts(sampling, stopping)
        return
    facts = {"risk": REGRET, "sigma": 0.5, "budget": 40, "family": "bernoulli", "rate": "heuristic", "max_pulls": 60}
    run = Adaptive(3, sampling, stopping, **facts).start(seed=2)  # type: ignore[arg-type]  # each of its own type
    while (arm := run.ask()) is not None:
        run.tell([0.9, 0.5, 0.1][arm] + 0.1 * (run.pulls % 2))
    assert run.recommendation() == 0
    assert run.why().startswith("stopped after")


RIVALS = ("lucb", "lil-ucb", "ugape", "track-and-stop", "eb-tci", "chick-frazier", "kg-star", "kl-lucb")


@pytest.mark.parametrize("name", RIVALS)
def test_rules_run_live_with_pending_trials(name: str) -> None:
    """Three workers at a time, whose rewards arrive in reverse order; the best arm is found."""
    assert name in POLICIES.live
    study = dbcare.create_study(f"live {name}", arms=["A", "B", "C"], cost=0.01, binary=True, policy=name, seed=1)
    rewards = {"A": 0.0, "B": 1.0, "C": 0.0}
    for _ in range(400):
        trials = study.ask(n=3)
        if not trials:
            break
        assert len(trials) == 3
        for trial in reversed(trials):
            study.tell(trial, rewards[trial.arm])
        if study.should_stop():
            break
    assert study.should_stop()
    assert study.recommendation().arm == "B"
    dbcare.delete_study(f"live {name}")


def test_rules_build_by_name() -> None:
    """From the facts of a bandit, with their options."""
    bandit = Bandit.bernoulli([0.6, 0.5, 0.4])
    assert build_policy("track-and-stop", bandit, ERROR, delta=0.1) == TrackAndStop(
        3, 0.1, 0.5, "bernoulli", max_pulls=1000
    )
    assert build_policy("ocba", bandit, ERROR, budget_per_arm=7) == OCBA(3, 21)
    assert build_policy("kn", bandit, ERROR, indifference=0.1) == KN(3, 0.1, max_pulls=1000)
    pair = build_policy("adaptive", bandit, ERROR, sampling="eb-tci", stopping="breakeven")
    assert isinstance(pair, Adaptive)
    assert (pair.family, pair.sigma, pair.largest_sigma) == ("bernoulli", 0.5, 0.5)
