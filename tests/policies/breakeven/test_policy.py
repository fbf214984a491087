"""Breakeven: losses against scipy, decisions against a second implementation of the formulas, and its guarantees."""

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import beta, ndtr, stdtr  # far quicker than scipy.stats for single numbers
from scipy.stats import norm, t

from dbcare import DBCARE, Bandit, Breakeven, Loss, Risk, evaluate
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.simulators import trace
from dbcare.errors import EngineError, InvalidRewardError, InvalidValueError
from dbcare.policies import Racing
from dbcare.policies.breakeven import losses, state
from dbcare.policies.breakeven.policy import MAX_SIGMA_FACTOR
from dbcare.policies.build import PolicyFacts
from dbcare.policies.registry import POLICIES
from dbcare.policies.rule import STOP
from dbcare.policies.run import Run
from dbcare.problem.spread import Spread
from dbcare.theory import normal

MI, SR = Risk.misidentification(1e-3), Risk.simple_regret(1e-3)
GOLDEN = Path(__file__).parents[2] / "golden"
KNOWN_SIGMA: dict[str, tuple[Risk, list[float], float, float | None]] = {
    "two arms, misidentification": (Risk.misidentification(1e-3), [0.4, 0.0], 1.0, None),
    "five arms, simple regret": (Risk.simple_regret(1e-4), [0.5, 0.4, 0.2, 0.0, -0.3], 0.7, None),
    "eight arms, costs by arm": (
        Risk.simple_regret([1e-4, 2e-4, 5e-4, 1e-3, 1e-4, 3e-4, 2e-4, 1e-4]),
        [0.0, 0.1, 0.9, 0.8, 0.3, 0.2, 0.1, 0.5],
        2.0,
        1.5,
    ),
    "twenty arms, misidentification": (Risk.misidentification(2e-4), [0.02 * k for k in range(20)], 0.3, None),
    "three binary arms": (Risk.simple_regret(1e-4), [0.3, 0.25, 0.1], 0.5, 1.0),
}


@pytest.mark.parametrize("freedom", [2, 3, 4, 7, 12, 29, 30, 31, 32, 60, 1000])
def test_student_losses_match_scipy(freedom: int) -> None:
    peak = normal.density_at_0(freedom)
    assert peak == pytest.approx(t.pdf(0.0, freedom), rel=1e-12)
    for x in (0.0, 0.3, 1.0, 2.5, 5.0):
        assert normal.student_tail(x, freedom) == pytest.approx(t.sf(x, freedom), rel=1e-6)
        excess, _ = quad(lambda u: float(t.sf(u, freedom)), x, math.inf, epsabs=0.0, epsrel=1e-9)
        tail = normal.student_tail(x, freedom)
        assert normal.student_excess(x, freedom, peak, tail) == pytest.approx(excess, rel=2e-6)


@pytest.mark.parametrize("risk", [MI, SR])
def test_the_table_of_the_gaussian_loss_matches_the_loss(risk: Risk) -> None:
    series = Breakeven(risk, 2).tables.series
    for z in (0.0, 0.004, 0.5, 1.2345, 3.0, 8.0, 20.0):
        expected = norm.sf(z) if risk is MI else norm.pdf(z) - z * norm.sf(z)
        assert losses.gaussian_loss(series, z) == pytest.approx(expected, rel=1e-6 if z <= 8.0 else 3e-5)
    assert losses.gaussian_loss(series, 100.0) == 0.0


@pytest.mark.parametrize("risk", [MI, SR])
@pytest.mark.parametrize("freedom", [3, 4, 5, 9, 30, 63, 64, 65, 70, 127, 129, 400, 10**4, 10**8])
def test_the_table_of_the_student_losses_matches_the_losses(risk: Risk, freedom: int) -> None:
    """Over all that matters: at z = 6 a loss is 1e-10. The tail as such is scipy's."""
    tables = Breakeven(risk, 2).tables
    for z in (0.0, 0.01, 0.3, 1.0, 1.7, 2.5, 3.99, 4.5, 6.0):
        x = math.sqrt(freedom * math.expm1(z * z / (freedom - 0.5)))
        tail = t.sf(x, freedom)
        expected = tail if risk is MI else (freedom + x * x) / (freedom - 1) * t.pdf(x, freedom) - x * tail
        found = losses.student_loss(tables.series, tables.ratios, x, freedom)
        # The subtraction above loses digits as x grows, more so with many degrees of freedom.
        assert found == pytest.approx(expected, rel=2e-6 if z <= 4.0 else 2e-5)


@dataclass
class Reference:
    """A second implementation of the rule in docs/explanation/breakeven.md, with lists and scipy.

    `losses` and `variances` are those of each arm's last update, the leader's among them.
    """

    policy: Breakeven
    rewards: list[list[float]] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    variances: dict[int, float] = field(default_factory=dict)
    leader: int = -1
    pool: tuple[float, float] = (0.0, 0.0)  # variance and degrees of freedom

    def __post_init__(self) -> None:
        self.rewards = [[] for _ in range(self.policy.arms)]
        self.costs = self.policy.risk.costs(self.policy.arms)
        self.is_error = self.policy.risk.loss is Loss.MISIDENTIFICATION

    @property
    def spent(self) -> float:
        return math.fsum(cost * len(own) for cost, own in zip(self.costs, self.rewards, strict=True))

    @property
    def scale_is_unknown(self) -> bool:
        return self.policy.sigma is None and self.pool[0] == 0.0

    def tell(self, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        if min(map(len, self.rewards)) == 0:
            return
        means = [float(np.mean(own)) for own in self.rewards]
        leader = int(np.argmax(means))
        if arm == self.leader or leader != self.leader or self.scale_is_unknown:
            arms = list(range(self.policy.arms))
        else:
            arms = [arm]
        self.leader = leader
        self.weigh(arms)
        if max(self.losses.values()) <= self.spent:
            self.weigh(range(self.policy.arms))

    def squares(self, arm: int) -> float:
        return float(np.var(self.rewards[arm])) * len(self.rewards[arm])

    def pooled(self) -> tuple[float, float]:
        counts = [len(own) for own in self.rewards]
        within = sum(self.squares(arm) for arm in range(self.policy.arms))
        inside = sum(counts) - self.policy.arms
        if self.policy.sigma is not None:
            freedom = self.policy.sigma_pulls + inside
            return (self.policy.sigma_pulls * self.policy.sigma**2 + within) / freedom, freedom
        everything = [reward for own in self.rewards for reward in own]
        choices = [(sum(counts) - 1, float(np.var(everything)) * sum(counts)), (inside, within)]
        usable = [(freedom, squares) for freedom, squares in choices if freedom > 2 and squares > 0.0]
        freedom, squares = min(usable, key=lambda choice: choice[1] / (choice[0] - 2), default=(1, 0.0))
        return squares / freedom, freedom

    def variance(self, arm: int) -> tuple[float, float, bool]:
        """Return the variance of an arm, its degrees of freedom, and whether it is the pool's."""
        limit = self.policy.believed_sigma**2
        pool, freedom = min(self.pool[0], limit), self.pool[1]
        stated = 0.0 if self.policy.sigma is None else self.policy.sigma**2
        pulls = len(self.rewards[arm])
        if pulls == 1:
            return (stated, self.policy.sigma_pulls, False) if stated > pool else (pool, freedom, True)
        expected, deviation = pool * (pulls - 1), pool * math.sqrt(2 * (pulls - 1))
        own = min(self.squares(arm) / (pulls - 1), limit)
        if self.squares(arm) > expected + deviation and own > pool:
            return own, pulls - 1, False
        return pool, freedom, True

    def gaussian_loss(self, gap: float, error: float) -> float:
        tail = float(ndtr(-gap / error))
        if self.is_error:
            return tail
        return error * math.exp(-0.5 * (gap / error) ** 2) / math.sqrt(2.0 * math.pi) - gap * tail

    def weigh(self, arms: Sequence[int]) -> None:
        known, largest = math.isinf(self.policy.sigma_pulls), self.policy.largest_loss
        if known:
            assert self.policy.sigma is not None
            estimates = dict.fromkeys(range(self.policy.arms), (self.policy.sigma**2, math.inf, True))
        else:
            self.pool = self.pooled()
            estimates = {arm: self.variance(arm) for arm in {*arms, self.leader}}
            if self.leader not in arms:
                estimates[self.leader] = (self.variances[self.leader], *estimates[self.leader][1:])
        self.variances |= {arm: variance for arm, (variance, _, _) in estimates.items()}
        best, best_freedom, best_is_shared = estimates[self.leader]
        for arm in arms:
            variance, freedom, is_shared = estimates[arm]
            a, b = variance / len(self.rewards[arm]), best / len(self.rewards[self.leader])
            error = math.sqrt(a + b)
            gap = float(np.mean(self.rewards[self.leader]) - np.mean(self.rewards[arm]))
            if self.scale_is_unknown:
                loss = math.inf
            elif known:
                loss = self.gaussian_loss(gap, error)
            else:
                welch = (a + b) ** 2 / (a**2 / freedom + b**2 / best_freedom)
                nu = max(3, math.floor(self.pool[1] if is_shared and best_is_shared else welch))
                x = gap / error
                tail = float(stdtr(nu, -x))
                density = (1.0 + x * x / nu) ** (-(nu + 1) / 2) / (math.sqrt(nu) * beta(0.5, nu / 2))
                loss = tail if self.is_error else error * ((nu + x * x) / (nu - 1) * density - x * tail)
                if self.policy.largest_sigma is not None:
                    inverses = 1.0 / len(self.rewards[arm]) + 1.0 / len(self.rewards[self.leader])
                    loss = min(loss, self.gaussian_loss(gap, self.policy.believed_sigma * math.sqrt(inverses)))
            self.losses[arm] = 0.0 if arm == self.leader else min(loss, largest)
        self.losses[self.leader] = 0.0

    def ask(self) -> int | None:
        """Return the arm to pull, or None; means must not tie."""
        counts = [len(own) for own in self.rewards]
        if 0 in counts:
            return counts.index(0)
        if max(self.losses.values()) <= self.spent:
            return None
        if self.scale_is_unknown:
            return counts.index(min(counts))
        a = {arm: self.variances[arm] / counts[arm] for arm in range(self.policy.arms)}
        best = a[self.leader]
        scores = {
            arm: self.losses[arm] * a[arm] / ((a[arm] + best) * counts[arm] * self.costs[arm])
            for arm in a
            if arm != self.leader
        }
        removed = sum(self.losses[arm] * best / (a[arm] + best) for arm in scores)
        scores[self.leader] = removed / (counts[self.leader] * self.costs[self.leader])
        return max(scores, key=scores.__getitem__)


STATEMENTS: dict[str, tuple[Spread, float]] = {
    "right": (Spread(sigma=1.0), 1.0),
    "too small": (Spread(sigma=0.4), 1.0),
    "too large, few pulls": (Spread(sigma=2.0, sigma_pulls=2.5), 1.0),
    "known": (Spread(sigma=1.0, sigma_pulls=math.inf), 1.0),
    "learned": (Spread(), 1.0),
    "range": (Spread(bounds=(-0.2, 0.6)), 1.0),  # rewards are outside: the limit on the variance takes effect
    "range and sigma": (Spread(sigma=0.5, bounds=(-10.0, 10.0)), 1.0),
    "rate": (Spread(baseline=0.04), 0.2),
    "rate unknown": (Spread(binary=True), 0.3),
}


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("costs", [1e-3, (1e-3, 4e-3, 5e-4, 1e-3, 2e-3)])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_decisions_follow_the_formulas(loss: Loss, costs: float | tuple[float, ...], statement: str) -> None:
    """Pull by pull, for all ways to state the spread; K = 5. Rewards are Gaussian, so that means do not tie.

    Their deviations differ by arm, so that some arms use the pooled variance and others their own.
    """
    spread, deviation = STATEMENTS[statement]
    policy = POLICIES["breakeven"].build(PolicyFacts(Risk(loss, costs), 5, spread))
    assert isinstance(policy, Breakeven)
    for seed in range(2):
        generator = np.random.default_rng(seed)
        means = deviation * generator.uniform(0.0, 1.0, 5)
        deviations = deviation * np.array([1.0, 1.0, 0.5, 1.0, 2.0])
        run, second = policy.start(seed=seed), Reference(policy)
        while (arm := second.ask()) is not None:
            assert run.ask() == arm
            reward = generator.normal(means[arm], deviations[arm])
            run.tell(reward)
            second.tell(arm, reward)
        assert run.ask() is None
        assert run.pulls == sum(map(len, second.rewards))


def test_with_a_known_sigma_it_decides_as_before_it_learned() -> None:
    """The arms pulled by the rule without a guard, as it was before `sigma_pulls`, written down at that time."""
    for name, runs in json.loads((GOLDEN / "known_sigma_decisions.json").read_text()).items():
        risk, means, sigma, bound = KNOWN_SIGMA[name]
        for seed, (pulls, recommended, digest) in enumerate(runs):
            generator = np.random.default_rng(seed)
            run = Breakeven(risk, len(means), sigma, math.inf, bound).start(seed=seed)
            pulled = []
            while (arm := run.ask()) is not None:
                pulled.append(arm)
                is_binary = "binary" in name
                noise = generator.random() if is_binary else generator.standard_normal()
                run.tell(float(noise < means[arm]) if is_binary else means[arm] + sigma * noise)
            assert (len(pulled), run.recommendation()) == (pulls, recommended), (name, seed)
            assert hashlib.sha256(bytes(pulled)).hexdigest()[:16] == digest, (name, seed)


def test_by_hand() -> None:
    """Two arms, sigma = 1, c = 0.01, misidentification, no guard.

    After 3.0 and 0.0: z = 3/sqrt(2) = 2.1213, Q = 0.01695 <= 0.02 spent: stop. With 2.8: Q(1.9799) = 0.02386 > 0.02.
    Then the arms alternate: after one more pull of either, z uses 1/2 + 1.
    """
    policy = Breakeven(Risk.misidentification(0.01), 2, sigma=1.0, sigma_pulls=math.inf)
    run = policy.start(seed=1)
    run.tell(3.0, arm=0)
    run.tell(0.0, arm=1)
    assert run.ask() is None
    assert run.recommendation() == 0
    assert run.why() == (
        "stopped after 2 pulls: arm 0 leads. Choosing it now is expected to lose 0.0169 to arm 1; 0.02 has been spent"
    )
    run = policy.start(seed=1)
    run.tell(2.8)
    run.tell(0.0)
    first = run.ask()
    assert first is not None
    assert "arm 0 leads. Choosing it now is expected to lose 0.0239 to arm 1; 0.02 has been spent" in run.why()
    run.tell(2.8 if first == 0 else 0.0)
    # z = 2.8/sqrt(1.5) = 2.2862: Q = 0.01112 <= 0.03.
    assert run.ask() is None


def test_one_noisy_arm_is_not_believed_to_vary_as_little_as_the_others() -> None:
    """Arm 0 has rewards 4, 0, arm 1 has 0 and 0.2, sigma = 1 counts as 6, c = 0.001, misidentification.

    W = 8 + 0.02 with N - K = 2: p = 14.02/8 = 1.7525. Arm 0: 8 > p (1 + sqrt(2)) = 4.23, so 8/1; arm 1 has p.
    t = 1.9/sqrt(8/2 + 1.7525/2) = 0.86043. Welch: 4.87625^2/(4^2/1 + 0.87625^2/8) = 1.48, so at least 3 degrees.
    With rewards of 3 and 1 instead, 2 < p (1 + sqrt(2)) with p = 8.02/8: both have p, with 8 degrees of freedom.
    """
    run = Breakeven(Risk.misidentification(0.001), 2, sigma=1.0).start(seed=1)
    policy = run.policy
    for arm, reward in ((0, 4.0), (1, 0.0), (1, 0.2), (0, 0.0)):
        policy.rule.tell(run.state, policy.tables, arm, reward)
    losses = policy.expected_losses(run.state)
    assert losses is not None
    assert losses[1] == pytest.approx(t.sf(0.86043, 3), rel=1e-4)
    run = policy.start(seed=1)
    for arm, reward in ((0, 3.0), (1, 0.0), (1, 0.2), (0, 1.0)):
        policy.rule.tell(run.state, policy.tables, arm, reward)
    losses = policy.expected_losses(run.state)
    assert losses is not None
    assert losses[1] == pytest.approx(t.sf(1.9 / math.sqrt(8.02 / 8.0), 8), rel=1e-4)


def test_amounts_are_in_money_if_there_is_a_price() -> None:
    run = Breakeven(Risk.simple_regret(price=0.4, value=20_000), 2, sigma=0.5, sigma_pulls=math.inf).start()
    while (arm := run.ask()) is not None:
        run.tell(0.2 if arm else 0.0)
    assert f"; {0.4 * run.pulls:,.2f} has been spent" in run.why()


def test_pending_pulls_count_as_made() -> None:
    """Three workers at once get three arms; then scores include the pending pulls, losses do not."""
    policy = Breakeven(Risk.misidentification(1e-3), 3, sigma=1.0, sigma_pulls=math.inf)
    run = policy.start(seed=1)
    asked = []
    for _ in range(6):
        arm = run.ask()
        assert arm is not None
        asked.append(arm)
        state.send(run.state, policy.tables, arm, 1)
    assert asked == [0, 1, 2, 0, 1, 2]
    for arm in range(3):
        policy.rule.tell(run.state, policy.tables, arm, 0.1 * arm)
    assert run.ask() == 2  # two pulls of each arm are made; another of the leader helps against both rivals
    state.send(run.state, policy.tables, 2, 1)
    assert run.ask() == 1  # now the strongest rival
    loss = state.section(policy.tables.cost, state.LOSS)
    assert run.state[loss + 1] == pytest.approx(norm.sf(0.1 / math.sqrt(2.0)), rel=1e-6)


def test_rewards_may_arrive_in_any_order() -> None:
    """In a live study an arm may have two rewards before another has any."""
    policy = Breakeven(SR, 3, sigma=1.0, sigma_pulls=math.inf)
    run = policy.start(seed=1)
    for arm, reward in ((2, 0.5), (2, 0.7), (0, 0.1)):
        policy.rule.tell(run.state, policy.tables, arm, reward)
        assert policy.rule.ask(run.state, policy.tables) != STOP
        assert run.recommendation() == 2
    assert run.ask() == 1
    policy.rule.tell(run.state, policy.tables, 1, 0.65)
    assert int(run.state[state.LEADER]) == 1
    assert run.state[state.WITHIN] == pytest.approx(0.02)


@pytest.mark.parametrize("factor", [1e-3, 4.0, 1e6])
def test_the_scale_of_rewards_does_not_matter(factor: float) -> None:
    """Rewards, sigma and bound times a factor, and value divided by it, give the same decisions (simple regret)."""
    for pulls, sigma in ((6.0, 0.7), (math.inf, 0.7), (6.0, None)):
        plain = Breakeven(Risk.simple_regret(price=0.5, value=500.0), 4, sigma, pulls, bound=2.0)
        scaled = Breakeven(
            Risk.simple_regret(price=0.5, value=500.0 / factor),
            4,
            None if sigma is None else sigma * factor,
            pulls,
            bound=2.0 * factor,
        )
        assert plain.max_spend * factor == pytest.approx(scaled.max_spend, rel=1e-9)
        generator = np.random.default_rng(3)
        one, other = plain.start(seed=2), scaled.start(seed=2)
        while (arm := one.ask()) is not None:
            assert other.ask() == arm
            reward = generator.normal(0.1 * arm, 0.7)
            one.tell(reward)
            other.tell(factor * reward)
        assert other.ask() is None


def test_a_cheap_arm_is_pulled_more_often() -> None:
    """Of two equal rivals, the one that costs ten times as much is pulled less often."""
    means = (0.3, 0.0, 0.0)
    pulls = {}
    for costs in ((1e-4, 1e-4, 1e-3), (1e-4, 1e-3, 1e-4)):
        policy = Breakeven(Risk.misidentification(costs), 3)
        traces = [trace(policy, make_arms(Bandit.gaussian(means)), 1, number) for number in range(40)]
        pulls[costs] = np.sum([np.bincount([arm for arm, _ in one.pulls], minlength=3) for one in traces], axis=0)
    assert pulls[1e-4, 1e-4, 1e-3][2] < 0.75 * pulls[1e-4, 1e-4, 1e-3][1]
    assert pulls[1e-4, 1e-3, 1e-4][1] < 0.75 * pulls[1e-4, 1e-3, 1e-4][2]


def test_every_pull_is_charged_at_its_arms_cost() -> None:
    """`evaluate` with one cost per arm gives the mean of loss + costs over the same runs, traced one by one."""
    costs, bandit = (1e-3, 3e-3, 5e-4), Bandit.bernoulli((0.6, 0.5, 0.3))
    for policy in (Breakeven(Risk.simple_regret(costs), 3, 0.5), DBCARE(Risk.simple_regret(1e-3), 3, 0.5)):
        risk = Risk.simple_regret(costs)
        evaluation = evaluate(policy, bandit, risk, runs=60, seed=4)
        totals = []
        for number in range(60):
            run = trace(policy, make_arms(bandit), 4, number)
            spent = math.fsum(costs[arm] for arm, _ in run.pulls)
            totals.append(bandit.gaps[run.recommended] + spent)
        assert evaluation.risk == pytest.approx(np.mean(totals), rel=1e-12)
        assert evaluation.standard_error == pytest.approx(np.std(totals, ddof=1) / math.sqrt(60), rel=1e-9)
        assert evaluation.cost == costs
        assert evaluation.engine == "direct"
        assert evaluate(policy, bandit, risk, runs=60, seed=4, threads=1).risk == evaluation.risk
        for engine in ("skip", "exact"):
            with pytest.raises(EngineError, match=f"The {engine} engine needs the same cost for all arms"):
                evaluate(policy, bandit, risk, engine=engine)


def test_equal_costs_per_arm_are_like_one_cost() -> None:
    one, several = (Breakeven(Risk.misidentification(cost), 3) for cost in (1e-3, (1e-3,) * 3))
    bandit = Bandit.one_sparse(3, 0.5)
    assert evaluate(one, bandit, runs=200).risk == evaluate(several, bandit, runs=200).risk


CHEAP = [
    Breakeven(Risk(loss, costs), 4, sigma, pulls, bound, largest)
    for loss in Loss
    for costs in (4e-4, (4e-4, 4e-3, 8e-4, 4e-4))
    for sigma, pulls, bound, largest in (
        (1.0, math.inf, None, None),
        (1.0, 6.0, None, None),
        (0.1, 6.0, 5.0, None),
        (0.1, 0.5, None, 0.4),
        (None, 6.0, 0.3, None),
        (None, 6.0, None, 0.1),
    )
]


@pytest.mark.parametrize("policy", CHEAP, ids=str)
def test_the_spend_never_exceeds_its_bound(policy: Breakeven) -> None:
    """With rewards that keep means equal, swap leaders, or spread far beyond sigma."""
    costs = policy.risk.costs(4)
    for kind in ("equal", "swapping", "wild", "noisy"):
        generator = np.random.default_rng(5)
        run: Run = policy.start(seed=5)
        spent = 0.0
        for pull in itertools.count():
            arm = run.ask()
            if arm is None:
                break
            spent += costs[arm]
            assert spent <= policy.max_spend * (1.0 + 1e-9)
            noise = {"equal": 0.0, "swapping": 1.0 / (1 + pull), "wild": 100.0 * generator.normal(), "noisy": 1.0}[kind]
            run.tell(noise * (generator.normal() if kind == "noisy" else (-1.0) ** pull))
        assert run.pulls <= policy.max_pulls


@pytest.mark.parametrize("not_before", [1, 3, 40, 700])
@pytest.mark.parametrize("policy", CHEAP[::2], ids=str)
def test_a_run_that_must_wait_keeps_to_its_bound(policy: Breakeven, not_before: int) -> None:
    """It pulls the same arms as a run that need not wait, until that one stops, and ends at the first stop after it."""
    waiting = replace(policy, not_before=not_before)
    costs = policy.risk.costs(4)
    assert waiting.max_spend >= max(policy.max_spend if not policy.guesses else 0.0, not_before * min(costs))
    for scale in (0.0, 0.1, 3.0):
        generator = np.random.default_rng(8)
        runs = [waiting.start(seed=8), replace(policy, not_before=1).start(seed=8)]
        spent = 0.0
        while (arm := runs[0].ask()) is not None:
            reward = scale * generator.normal() + 0.3 * (arm == 2)
            if (other := runs[1].ask()) is not None:
                assert other == arm
                runs[1].tell(reward)
            runs[0].tell(reward)
            spent += costs[arm]
            assert spent <= waiting.max_spend * (1.0 + 1e-9)
        assert runs[0].pulls >= max(not_before, runs[1].pulls)
        assert runs[0].pulls <= waiting.max_pulls
        if not_before == 700 and spent > policy.max_spend:
            assert runs[0].pulls == 700  # the old bound does not hold: the new one is needed


def test_waiting_is_simulated_and_changes_nothing_if_it_is_short() -> None:
    """Every run makes at least so many pulls, and its length is the larger of both in runs that stop for good."""
    risk, bandit = Risk.simple_regret(1e-3), Bandit.one_sparse(3, 0.5)
    plain, short, long = (Breakeven(risk, 3, 1.0, not_before=pulls) for pulls in (0, 1, 200))
    free, same, waited = (evaluate(policy, bandit, runs=500, seed=3) for policy in (plain, short, long))
    assert (free.risk, free.pulls) == (same.risk, same.pulls)
    assert waited.pulls.quantiles[0.05] == 200.0 > free.pulls.quantiles[0.5]
    assert waited.spend.value >= 0.2
    assert waited.error < free.error  # more pulls err less


def test_a_run_that_must_wait_does_not_guess() -> None:
    costly = Breakeven(Risk.misidentification(0.5), 2)
    waiting = replace(costly, not_before=1)
    assert (costly.guesses, costly.max_spend) == (True, 0.0)
    assert (waiting.guesses, waiting.max_spend) == (False, 1.5)
    run = waiting.start()
    assert run.ask() is not None
    for _ in range(2):
        run.tell(1.0)
    assert run.ask() is None
    patient = replace(costly, not_before=6).start()
    for _ in range(5):
        patient.tell(1.0)
    assert "no stop before 6 pulls" in patient.policy.progress(patient.state)
    patient.tell(1.0)
    assert patient.ask() is None
    with pytest.raises(InvalidValueError, match="`not_before` must be at least 0 but got -1"):
        Breakeven(Risk.misidentification(0.5), 2, not_before=-1)


def test_the_bound_for_simple_regret_shrinks_with_the_cost() -> None:
    """It is of the order of (sigma^2 c)^(1/3), not of sigma: if pulls cost 1/1000, it is a tenth."""
    expensive, cheap = (
        Breakeven(Risk.simple_regret(cost), 2, sigma=1.0, sigma_pulls=math.inf).max_spend for cost in (1e-5, 1e-8)
    )
    assert cheap == pytest.approx(expensive / 10.0, rel=0.02)
    assert Breakeven(Risk.misidentification(1e-8), 2, sigma=1.0, sigma_pulls=math.inf).max_spend == pytest.approx(
        0.5, rel=1e-6
    )


def test_it_guesses_if_one_pull_of_each_arm_costs_as_much_as_a_guess_loses() -> None:
    """Sum of costs >= (1 - 1/K): for misidentification it guesses among 3 arms at a cost of 0.3, but not at 0.2."""
    guess, play = (Breakeven(Risk.misidentification(cost), 3) for cost in (0.3, 0.2))
    assert guess.start().ask() is None
    assert "one pull of each arm would cost 0.9" in guess.start().why()
    assert guess.max_pulls == 0
    assert play.start().ask() == 0
    assert {guess.start(seed=seed).recommendation() for seed in range(30)} == {0, 1, 2}
    assert Breakeven(Risk.simple_regret(0.3), 3).start().ask() == 0  # without a bound, what is at stake is unknown
    assert Breakeven(Risk.simple_regret(0.3), 3, bound=1.0).start().ask() is None


@pytest.mark.parametrize("constant", [0.0, 0.1, 0.7, -1.1e49])
def test_without_sigma_it_does_not_stop_before_rewards_vary(constant: float) -> None:
    """If all rewards are equal, their scale is unknown; rounding errors of 0.1 n / n do not count as a spread."""
    run = Breakeven(Risk.misidentification(1e-3), 3, sigma=None).start(seed=3)
    while run.ask() is not None:
        run.tell(constant)
    assert run.pulls == 500  # it spends what it can lose, 1/2


def test_arms_with_constant_rewards_are_separated_by_their_means() -> None:
    """Nothing varies within arms, but the two means give all rewards a spread, which suffices soon."""
    run = Breakeven(Risk.misidentification(1e-3), 2, sigma=None).start(seed=3)
    while (arm := run.ask()) is not None:
        run.tell(318.8 + (100.0 if arm else -100.0))
    assert 4 <= run.pulls <= 40
    assert run.recommendation() == 1


def test_a_reward_beyond_the_limit_of_magnitude_is_refused() -> None:
    run = Breakeven(MI, 2).start()
    with pytest.raises(
        InvalidRewardError, match=r"Pull 1, of arm 0: `reward` must be at most 1e\+50 in absolute value"
    ):
        run.tell(1e51)
    run.tell(-1e50)


@pytest.mark.parametrize("sigma", [1e-47, 1e49])
def test_bounds_hold_at_extreme_scales(sigma: float) -> None:
    policy = Breakeven(Risk.simple_regret(1e-3 * sigma), 3, sigma)
    generator = np.random.default_rng(1)
    run = policy.start(seed=1)
    while run.ask() is not None:
        run.tell(float(generator.normal(0.0, 1.0)) * sigma)
    assert run.pulls <= policy.max_pulls
    assert Breakeven(Risk.misidentification(1e-50), 2).max_pulls == 2**62


BAD = [
    (lambda: Breakeven(SR, 1), "`arms` must be at least 2 but got 1."),
    (lambda: Breakeven(SR, 2, sigma=0.0), "`sigma` must be positive but got 0.0."),
    (lambda: Breakeven(SR, 2, sigma=1e-101), "`sigma` must be at least 1e-50 but got 1e-101."),
    (lambda: Breakeven(SR, 2, 1.0, 0.0), "`sigma_pulls` must be positive but got 0.0."),
    (lambda: Breakeven(SR, 2, 1.0, math.nan), "`sigma_pulls` must be finite but got nan."),
    (
        lambda: Breakeven(SR, 2, None, math.inf),
        "`sigma_pulls` is the weight of a stated spread, and none is stated: state one, or leave it out; got inf.",
    ),
    (lambda: Breakeven(SR, 2, largest_sigma=0.0), "`largest_sigma` must be positive but got 0.0."),
    (lambda: Breakeven(SR, 2, bound=-1.0), "`bound` must be positive but got -1.0."),
    (lambda: Breakeven(Risk.simple_regret((1e-3, 1e-2)), 3), "`cost` must have one entry per arm (3) but got 2."),
    (lambda: DBCARE(SR, 2, sigma=None), "`sigma` is required here; Breakeven can learn it."),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Racing(2, 0.1, sigma=None), "`sigma` is required here; Breakeven can learn it."),  # type: ignore[arg-type]  # wrong on purpose
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidValueError) as caught:
        make()
    assert str(caught.value) == message


def test_the_largest_loss_is_that_of_equal_means() -> None:
    """sigma sqrt(2) Psi(0) = sigma / sqrt(pi); of a guess, that of 10 sigma and the widest Student-t law.

    Learned without a range, it has no limit: until rewards vary, nothing says how much can be lost.
    """
    assert Breakeven(SR, 2, 3.0, math.inf).largest_loss == pytest.approx(3.0 / math.sqrt(math.pi), rel=1e-12)
    excess, _ = quad(lambda u: float(t.sf(u, 3)), 0.0, math.inf)
    assert Breakeven(SR, 2, 3.0).largest_loss == pytest.approx(
        MAX_SIGMA_FACTOR * 3.0 * math.sqrt(2.0) * excess, rel=1e-9
    )
    learned = Breakeven(SR, 2)
    assert math.isinf(learned.largest_loss)
    assert math.isinf(learned.max_spend)
    assert learned.max_pulls == 2**62
