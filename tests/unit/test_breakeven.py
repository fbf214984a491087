"""Breakeven: losses against scipy, decisions against a second implementation of the formulas, and its guarantees."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, stdtr  # far quicker than scipy.stats for single numbers
from scipy.stats import norm, t

from dbcare import DBCARE, Bandit, Breakeven, Loss, Racing, Risk, evaluate
from dbcare.engines.draws import make_arms
from dbcare.engines.simulators import trace
from dbcare.errors import EngineError, InvalidRewardError, InvalidValueError
from dbcare.policies import breakeven_losses, breakeven_rule
from dbcare.policies.breakeven import MAX_SIGMA_FACTOR
from dbcare.policies.rule import STOP
from dbcare.policies.run import Run
from dbcare.theory import student

MI, SR = Risk.misidentification(1e-3), Risk.simple_regret(1e-3)


@pytest.mark.parametrize("freedom", [2, 3, 4, 7, 12, 29, 30, 31, 32, 60, 1000])
def test_student_losses_match_scipy(freedom: int) -> None:
    peak = student.density_at_0(freedom)
    assert peak == pytest.approx(t.pdf(0.0, freedom), rel=1e-12)
    for x in (0.0, 0.3, 1.0, 2.5, 5.0):
        assert student.student_tail(x, freedom) == pytest.approx(t.sf(x, freedom), rel=1e-6)
        excess, _ = quad(lambda u: float(t.sf(u, freedom)), x, math.inf, epsabs=0.0, epsrel=1e-9)
        tail = student.student_tail(x, freedom)
        assert student.student_excess(x, freedom, peak, tail) == pytest.approx(excess, rel=2e-6)


@pytest.mark.parametrize("risk", [MI, SR])
def test_the_table_of_the_gaussian_loss_matches_the_loss(risk: Risk) -> None:
    tables = Breakeven(risk, 2, sigma_guard=False).tables
    for z in (0.0, 0.004, 0.5, 1.2345, 3.0, 8.0, 20.0):
        expected = norm.sf(z) if risk is MI else norm.pdf(z) - z * norm.sf(z)
        assert breakeven_losses.from_series(tables, z) == pytest.approx(expected, rel=1e-6 if z <= 8.0 else 3e-5)
    assert breakeven_losses.from_series(tables, 100.0) == 0.0


@dataclass
class Reference:
    """A second implementation of the rule in docs/explanation/breakeven.md, with lists and scipy.

    `samples`: degrees of freedom and pooled deviation at the last update of each arm's loss.
    """

    policy: Breakeven
    rewards: list[list[float]] = field(default_factory=list)
    samples: list[tuple[int, float]] = field(default_factory=list)
    leader: int = -1
    doubted: bool = False

    def __post_init__(self) -> None:
        self.rewards = [[] for _ in range(self.policy.arms)]
        self.samples = [(0, 0.0)] * self.policy.arms
        self.costs = self.policy.risk.costs(self.policy.arms)
        self.doubted = self.policy.sigma is None

    @property
    def spent(self) -> float:
        return math.fsum(cost * len(own) for cost, own in zip(self.costs, self.rewards, strict=True))

    def tell(self, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        if min(map(len, self.rewards)) > 0:
            leader = int(np.argmax([np.mean(own) for own in self.rewards]))
            scale_unknown = not any(deviation for _, deviation in self.samples)
            everything = self.leader == arm or leader != self.leader or scale_unknown
            self.weigh(range(self.policy.arms) if everything else [arm])
            self.leader = leader

    def weigh(self, arms: Iterable[int]) -> None:
        rewards = [reward for own in self.rewards for reward in own]
        within = sum(float(np.var(own)) * len(own) for own in self.rewards)
        choices = [(len(rewards) - 1, float(np.var(rewards)) * len(rewards)), (len(rewards) - self.policy.arms, within)]
        usable = [(freedom, squares) for freedom, squares in choices if freedom > 2 and squares > 0.0]
        freedom, squares = min(usable, key=lambda choice: choice[1] / (choice[0] - 2), default=(0, 0.0))
        for arm in arms:
            self.samples[arm] = (freedom, math.sqrt(squares / freedom)) if self.doubted and freedom else (0, 0.0)

    @property
    def losses(self) -> dict[int, float]:
        counts, means = [len(own) for own in self.rewards], [float(np.mean(own)) for own in self.rewards]
        losses = {}
        for arm, (freedom, deviation) in enumerate(self.samples):
            if arm == self.leader:
                continue
            gap, spread = means[self.leader] - means[arm], math.sqrt(1.0 / counts[arm] + 1.0 / counts[self.leader])
            loss = 0.0
            if self.policy.sigma is not None:
                z = gap / (self.policy.sigma * spread)
                tail, density = float(ndtr(-z)), math.exp(-z * z / 2.0) / math.sqrt(2.0 * math.pi)
                loss = tail if self.is_error else self.policy.sigma * spread * (density - z * tail)
            elif deviation == 0.0:
                loss = math.inf
            if deviation > 0.0:
                x = gap / (deviation * spread)
                tail = float(stdtr(freedom, -x))
                if self.is_error:
                    loss = max(loss, tail)
                else:
                    excess = (freedom + x * x) / (freedom - 1.0) * t.pdf(x, freedom) - x * tail
                    loss = max(loss, deviation * spread * excess)
            losses[arm] = min(loss, 0.5 if self.is_error else self.policy.largest_loss)
        return losses

    @property
    def is_error(self) -> bool:
        return self.policy.risk.loss is Loss.MISIDENTIFICATION

    def ask(self) -> int | None:
        """Return the arm to pull, or None; means must not tie."""
        counts = [len(own) for own in self.rewards]
        if 0 in counts:
            return counts.index(0)
        if max(self.losses.values()) <= self.spent:
            if not self.policy.sigma_guard and self.policy.sigma is not None:
                return None
            self.doubted = True
            self.weigh(range(self.policy.arms))
            if max(self.losses.values()) <= self.spent and sum(counts) >= 4:
                return None
        losses, lead = self.losses, counts[self.leader]
        scores = {
            arm: loss * lead / (counts[arm] * (counts[arm] + lead) * self.costs[arm]) for arm, loss in losses.items()
        }
        removed = sum(loss * counts[arm] / (lead * (counts[arm] + lead)) for arm, loss in losses.items())
        scores[self.leader] = removed / self.costs[self.leader]
        return max(scores, key=scores.__getitem__)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("costs", [1e-3, (1e-3, 4e-3, 5e-4, 1e-3, 2e-3)])
@pytest.mark.parametrize(("sigma", "guard"), [(1.0, False), (1.0, True), (0.4, True), (None, True)])
def test_decisions_follow_the_formulas(
    loss: Loss, costs: float | tuple[float, ...], sigma: float | None, guard: bool
) -> None:
    """Pull by pull, on Gaussian rewards, which do not tie; K = 5."""
    policy = Breakeven(Risk(loss, costs), 5, sigma, sigma_guard=guard, bound=3.0)
    for seed in range(6):
        generator = np.random.default_rng(seed)
        means = generator.uniform(0.0, 1.0, 5)
        run, second = policy.start(seed=seed), Reference(policy)
        while (arm := second.ask()) is not None:
            if sigma is None and not second.samples[0][1]:
                arm = run.ask()  # while the scale is unknown, all losses tie
                assert arm is not None
            assert run.ask() == arm
            reward = generator.normal(means[arm], 1.0)
            run.tell(reward)
            second.tell(arm, reward)
        assert run.ask() is None
        assert run.pulls == sum(map(len, second.rewards))


def test_by_hand() -> None:
    """Two arms, sigma = 1, c = 0.01, misidentification, no guard.

    After 3.0 and 0.0: z = 3/sqrt(2) = 2.1213, Q = 0.01695 <= 0.02 spent: stop. With 2.8: Q(1.9799) = 0.02386 > 0.02.
    Then the arms alternate: after one more pull of either, z uses 1/2 + 1.
    """
    policy = Breakeven(Risk.misidentification(0.01), 2, sigma_guard=False)
    run = policy.start(seed=1)
    run.tell(3.0, arm=0)
    run.tell(0.0, arm=1)
    assert run.ask() is None
    assert run.recommendation() == 0
    assert run.why() == (
        "stopped after 2 pulls: the strongest rival, arm 1, has an expected loss of 0.0169, and 0.02 has been spent"
    )
    run = policy.start(seed=1)
    run.tell(2.8)
    run.tell(0.0)
    first = run.ask()
    assert first is not None
    assert (
        "arm 0 leads; the strongest rival, arm 1, has an expected loss of 0.0239, and 0.02 has been spent" in run.why()
    )
    run.tell(2.8 if first == 0 else 0.0)
    # z = 2.8/sqrt(1.5) = 2.2862: Q = 0.01112 <= 0.03.
    assert run.ask() is None


def test_the_guard_waits_for_four_rewards_and_uses_their_spread() -> None:
    """K = 2, sigma understated by 5: Gaussian losses vanish at once, but the rewards' deviation keeps the run going.

    Rewards 1, 3 and 0, 1 have a mean of 1.25, a sum of squared deviations of 4.75 and 3 degrees of freedom (within arms
    it is 2.5 with only 2): deviation 1.2583, t = 1.5/1.2583 = 1.192, tail 0.1595 > 0.004 spent.
    """
    rewards = [iter((1.0, 3.0)), iter((0.0, 1.0))]
    run = Breakeven(Risk.misidentification(0.001), 2, sigma=0.2).start(seed=1)
    for _ in range(4):
        arm = run.ask()
        assert arm is not None
        run.tell(next(rewards[arm]))
    assert t.sf(1.5 / math.sqrt(4.75 / 3.0), 3) == pytest.approx(0.1595, abs=1e-4)
    assert run.ask() is not None
    assert "expected loss of 0.159" in run.why()
    trusting = Breakeven(Risk.misidentification(0.001), 2, sigma=0.2, sigma_guard=False).start(seed=1)
    trusting.tell(1.0)
    trusting.tell(0.0)
    assert trusting.ask() is None


def test_amounts_are_in_money_if_there_is_a_price() -> None:
    run = Breakeven(Risk.simple_regret(price=0.4, value=20_000), 2, sigma=0.5, sigma_guard=False).start()
    while (arm := run.ask()) is not None:
        run.tell(0.2 if arm else 0.0)
    assert f"and {0.4 * run.pulls:,.2f} has been spent" in run.why()


def test_pending_pulls_count_as_made() -> None:
    """Three workers at once get three arms; then scores include the pending pulls, losses do not."""
    policy = Breakeven(Risk.misidentification(1e-3), 3, sigma_guard=False)
    run = policy.start(seed=1)
    asked = []
    for _ in range(6):
        arm = run.ask()
        assert arm is not None
        asked.append(arm)
        breakeven_rule.send(run.state, policy.tables, arm)
    assert asked == [0, 1, 2, 0, 1, 2]
    for arm in range(3):
        policy.rule.tell(run.state, policy.tables, arm, 0.1 * arm)
    assert run.ask() == 2  # two pulls of each arm are made; another of the leader helps against both rivals
    breakeven_rule.send(run.state, policy.tables, 2)
    assert run.ask() == 1  # now the strongest rival
    loss = breakeven_rule.section(policy.tables, breakeven_rule.LOSS)
    assert run.state[loss + 1] == pytest.approx(norm.sf(0.1 / math.sqrt(2.0)), rel=1e-6)


def test_rewards_may_arrive_in_any_order() -> None:
    """In a live study an arm may have two rewards before another has any."""
    policy = Breakeven(SR, 3, sigma_guard=False)
    run = policy.start(seed=1)
    for arm, reward in ((2, 0.5), (2, 0.7), (0, 0.1)):
        policy.rule.tell(run.state, policy.tables, arm, reward)
        assert policy.rule.ask(run.state, policy.tables) != STOP
        assert run.recommendation() == 2
    assert run.ask() == 1
    policy.rule.tell(run.state, policy.tables, 1, 0.65)
    assert int(run.state[breakeven_rule.LEADER]) == 1
    assert run.state[breakeven_rule.WITHIN] == pytest.approx(0.02)


@pytest.mark.parametrize("factor", [1e-3, 4.0, 1e6])
def test_the_scale_of_rewards_does_not_matter(factor: float) -> None:
    """Rewards, sigma and bound times a factor, and value divided by it, give the same decisions (simple regret)."""
    for guard, sigma in ((True, 0.7), (False, 0.7), (True, None)):
        plain = Breakeven(Risk.simple_regret(price=0.5, value=500.0), 4, sigma, sigma_guard=guard, bound=2.0)
        scaled = Breakeven(
            Risk.simple_regret(price=0.5, value=500.0 / factor),
            4,
            None if sigma is None else sigma * factor,
            sigma_guard=guard,
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
    Breakeven(Risk(loss, costs), 4, sigma, sigma_guard=guard, bound=bound)
    for loss in Loss
    for costs in (1e-4, (1e-4, 1e-3, 2e-4, 1e-4))
    for sigma, guard, bound in ((1.0, False, None), (1.0, True, None), (0.1, True, 5.0), (None, True, 0.3))
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


def test_the_bound_for_simple_regret_shrinks_with_the_cost() -> None:
    """It is of the order of (sigma^2 c)^(1/3), not of sigma: if pulls cost 1/1000, it is a tenth."""
    expensive, cheap = (Breakeven(Risk.simple_regret(cost), 2, sigma_guard=False).max_spend for cost in (1e-5, 1e-8))
    assert cheap == pytest.approx(expensive / 10.0, rel=0.02)
    assert Breakeven(Risk.misidentification(1e-8), 2, sigma_guard=False).max_spend == pytest.approx(0.5, rel=1e-6)


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
    (lambda: Breakeven(SR, 2, sigma=None), "`bound` is required for simple regret if sigma is unknown."),
    (lambda: Breakeven(SR, 2, bound=-1.0), "`bound` must be positive but got -1.0."),
    (lambda: Breakeven(SR, 2, sigma_guard=1), "`sigma_guard` must be True or False but got 1."),  # type: ignore[arg-type]
    (lambda: Breakeven(Risk.simple_regret((1e-3, 1e-2)), 3), "`cost` must have one entry per arm (3) but got 2."),
    (lambda: DBCARE(SR, 2, sigma=None), "`sigma` is required here; Breakeven accepts None."),  # type: ignore[arg-type]
    (lambda: Racing(2, 0.1, sigma=None), "`sigma` is required here; Breakeven accepts None."),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidValueError) as caught:
        make()
    assert str(caught.value) == message


def test_the_largest_loss_is_that_of_equal_means() -> None:
    """sigma sqrt(2) Psi(0) = sigma / sqrt(pi); with the guard, MAX_SIGMA_FACTOR sigma sqrt(2) E[max(T_3, 0)]."""
    assert Breakeven(SR, 2, 3.0, sigma_guard=False).largest_loss == pytest.approx(3.0 / math.sqrt(math.pi), rel=1e-12)
    excess, _ = quad(lambda u: float(t.sf(u, 3)), 0.0, math.inf)
    assert Breakeven(SR, 2, 3.0).largest_loss == pytest.approx(
        MAX_SIGMA_FACTOR * 3.0 * math.sqrt(2.0) * excess, rel=1e-9
    )
