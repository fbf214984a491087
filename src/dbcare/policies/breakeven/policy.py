"""Breakeven: stop once the expected loss to the strongest rival is no more than what has been spent."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.base.look import VIOLET, Look, PolicyKind
from dbcare.policies.breakeven import losses, rule
from dbcare.policies.breakeven.losses import BreakevenTables
from dbcare.policies.breakeven.state import (
    DEVIATION,
    LEADER,
    LOSS,
    PULLS,
    RIVAL,
    SEEN,
    SPENT,
    STOPPED,
    section,
    state_size,
)
from dbcare.policies.policy import Policy
from dbcare.policies.rule import State
from dbcare.policies.run import DEFAULT_WORDING, Wording
from dbcare.problem.risk import Loss, Risk, check_risk
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS, check_sigma_pulls
from dbcare.theory import normal

MAX_PULLS = 2.0**62  # fits into a counter
UNLIMITED = 1e300  # stands for an infinite loss in tables and states, which must be written as JSON


class BreakevenPolicy(Policy):
    """A policy that stops at the break-even point of loss and spend; states are those of `breakeven_state`."""

    risk: Risk
    bound: float | None
    not_before: int = 0  # pulls before which a run does not stop
    breaks_even = True

    @property
    @abstractmethod
    def loss_scale(self) -> float:
        """A in l_k <= A sqrt(1/n_k + 1/n_L), for simple regret; infinite if there is no such limit."""

    @property
    def least_pulls(self) -> int:
        """Pulls before which a run does not stop, besides one of each arm."""
        return 0

    @property
    def largest_spread(self) -> float:
        return math.inf if self.bound is None or self.risk.loss is Loss.MISIDENTIFICATION else self.bound

    @property
    def largest_loss(self) -> float:
        """Upper bound on every l_k."""
        if self.risk.loss is Loss.MISIDENTIFICATION:
            return 0.5
        return min(math.sqrt(2.0) * self.loss_scale, math.inf if self.bound is None else self.bound)

    @property
    def guesses(self) -> bool:
        """Whether one pull of each arm costs at least as much as a guess can lose, and a run may stop at once."""
        at_stake = 1.0 if self.risk.loss is Loss.MISIDENTIFICATION else self.bound
        if at_stake is None or self.not_before > 0:
            return False
        return sum(self.risk.costs(self.arms)) >= (1.0 - 1.0 / self.arms) * at_stake

    @property
    def max_spend(self) -> float:
        """Upper bound on a run's spend, in units of the loss, whatever the rewards are; infinite if there is none.

        A run stops once it has spent the largest loss. For simple regret the losses shrink as pulls are made: with A
        from `loss_scale`, it spends at most max(3/2 sum c_k, (27 D/4)^(1/3) + 3 max c_k) + max c_k, where
        D = A^2 (4 (K-1) max c_k)^(2/3) sum c_k^(1/3) (docs/explanation/proofs.md). With B = max(sum c_k, n max c_k)
        for a run that does not stop before n pulls, it is min(3/2 B, B + D/B^2 + max c_k) in place of 3/2 sum c_k; and
        a run that has spent B stops once it has spent the largest loss. A rests on the largest standard
        deviation that the rule believes: the known sigma; half the range of bounded rewards; or 10 times the stated
        sigma. There is no limit for simple regret if sigma is learned from rewards without a range: until the spread
        is seen, nothing says how much can be lost.
        """
        if self.guesses:
            return 0.0
        costs = self.risk.costs(self.arms)
        extra = (1 + max(0, self.least_pulls - self.arms)) * max(costs)
        waiting = max(0, self.not_before - 1) * max(costs)  # the last pull comes on top
        paid = max(self.largest_loss, sum(costs), waiting) + extra
        if self.risk.loss is Loss.MISIDENTIFICATION or math.isinf(self.loss_scale):
            return paid
        roots = sum(math.pow(cost, 1.0 / 3.0) for cost in costs)
        # (27 D/4)^(1/3), factor by factor, so that no product underflows.
        work = math.pow(self.loss_scale, 2.0 / 3.0) * math.pow(4.0 * (self.arms - 1) * max(costs), 2.0 / 9.0)
        shrinking = math.pow(6.75 * roots, 1.0 / 3.0) * work
        first = 1.5 * sum(costs)
        if self.not_before > 0:
            begun = max(sum(costs), self.not_before * max(costs))
            # D/B^2, again without a product that underflows.
            first = min(1.5 * begun, begun + shrinking / 6.75 * (shrinking / begun) ** 2 + max(costs))
        return min(paid, max(first, shrinking + 3.0 * max(costs)) + extra)

    @property
    def max_pulls(self) -> int:
        """What `max_spend` buys of the cheapest arm."""
        return math.floor(min(self.max_spend / min(self.risk.costs(self.arms)) * (1.0 + 1e-12), MAX_PULLS))

    def knows_losses(self, state: State) -> bool:
        """Return whether a run has rewards enough to weigh the arms."""
        return bool(state[SEEN] == self.arms)

    def expected_losses(self, state: State) -> list[float] | None:
        if not self.knows_losses(state):
            return None
        first = section(self.tables.cost, LOSS)
        losses = [float(state[first + arm]) for arm in range(self.arms)]
        return None if max(losses) >= UNLIMITED else losses

    def reopen(self, state: State) -> None:
        state[STOPPED] = 0.0

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if self.guesses:
            everything = self.risk.money(sum(self.risk.costs(self.arms)), wording.currency)
            return f"one {wording.noun} of each arm would cost {everything}, and a guess cannot lose more"
        return f"{wording.arm(int(state[LEADER]))} leads. {self._balance(state, wording)}"

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if state[SEEN] < self.arms:
            return f"{int(state[SEEN])} of {self.arms} arms tried"
        waits = f"; no stop before {self.not_before:,} {wording.noun}s" if state[PULLS] < self.not_before else ""
        return f"{wording.arm(int(state[LEADER]))} leads. {self._balance(state, wording)}{waits}"

    def _balance(self, state: State, wording: Wording) -> str:
        if not self.knows_losses(state):
            return "The rewards do not vary yet, so their spread is unknown"
        rival = int(state[RIVAL])
        loss = state[section(self.tables.cost, LOSS) + rival]
        spent = self.risk.money(state[SPENT], wording.currency)
        return (
            f"Choosing it now is expected to lose {self.risk.money(loss, wording.currency)} to {wording.arm(rival)}; "
            f"{spent} has been spent"
        )


MAX_SIGMA_FACTOR = 10.0  # a stated sigma is never corrected upward by more than this
MAX_NOT_BEFORE = 2**53  # pulls, which are counted in floating point
MOST_STUDENT_EXCESS = math.sqrt(3.0) / math.pi  # E[max(T, 0)] with 3 degrees of freedom; it falls with their number


@dataclass(frozen=True)
class Breakeven(BreakevenPolicy):
    """Our own policy for practitioners: adaptive, with a cost per arm, and a sigma that is only a guess.

    With n_k pulls, mean m_k and estimated variance v_k of arm k, leader L, se_k^2 = v_k/n_k + v_L/n_L and
    t_k = (m_L - m_k)/se_k, the expected loss of choosing L where k may be better is l_k = P(T > t_k) for
    misidentification and se_k E[max(T - t_k, 0)] for simple regret, with a Student-t variable T. Pull every arm once;
    then, until the largest l_k is no more than all that has been spent, pull the arm whose next pull removes the
    largest loss-weighted share of comparison variance per unit of cost. With a_k = v_k/n_k:

        rival k    l_k a_k / ((a_k + a_L) n_k c_k)
        leader L   sum over k of l_k a_L / (a_k + a_L) / (n_L c_L)

    If one pull of each arm costs as much as a guess can lose, (1 - 1/K) times 1 or `bound`, it guesses. With
    `not_before`, it neither guesses nor stops before so many pulls; which arms it pulls does not change.

    The stated sigma counts as nu0 = `sigma_pulls` rewards. With SS_k the sum of squares within arm k, W their sum, and
    N pulls of K arms in all, the arms' common variance is p = (nu0 sigma^2 + W)/(nu0 + N - K), and v_k is p, unless
    arm k shows a larger one: v_k = SS_k/(n_k - 1) if SS_k > p (n_k - 1 + sqrt(2 (n_k - 1))). After a single reward, v_k
    is the larger of p and sigma^2. Two arms that both use p have its nu0 + N - K degrees of freedom, others Welch's, at
    least 3. With `largest_sigma`, no loss is above the Gaussian one for that standard deviation. With
    `sigma_pulls=math.inf`, sigma is known: v_k = sigma^2, and T is Gaussian. With `sigma=None` it is learned: nu0 is 0,
    and p is the variance of the rewards alone; until that is known, arms are pulled equally often.

    Parameters
    ----------
    risk : Risk
        What a pull costs and what a wrong choice loses; costs may differ by arm.
    arms : int
        Number of arms.
    sigma : float, optional
        Standard deviation of a reward. Default: learned from the rewards.
    sigma_pulls : float
        How many rewards the stated sigma counts as; `math.inf` if it is certain.
    bound : float, optional
        The largest possible difference of two means, if there is one.
    largest_sigma : float, optional
        The largest possible standard deviation: half the range of the rewards, if they have one.
    not_before : int
        Pulls before which a run does not stop.

    Examples
    --------
    >>> from dbcare import Breakeven, Risk
    >>> policy = Breakeven(Risk.simple_regret(price=0.40, value=4_000), arms=3, sigma=0.5, largest_sigma=1.0)
    >>> round(policy.max_spend, 2), policy.max_pulls
    (0.14, 1354)
    """

    label = "Breakeven"
    kind = PolicyKind.OURS
    look = Look((VIOLET,), "o")
    planned = True

    risk: Risk
    arms: int
    sigma: float | None = None
    sigma_pulls: float = DEFAULT_SIGMA_PULLS
    bound: float | None = None
    largest_sigma: float | None = None
    not_before: int = 0
    rule = rule.RULE
    stop_rule = (
        "It stops once choosing the leader is expected to lose no more to its strongest rival than has been spent. "
        "Until then, it tries the arm that tells most about such losses for its price."
    )

    def __post_init__(self) -> None:
        check_risk(self.risk)
        checks.set_fields(
            self,
            arms=checks.arms(self.arms),
            sigma=None if self.sigma is None else checks.positive("sigma", self.sigma),
            sigma_pulls=check_sigma_pulls(self.sigma_pulls, is_stated=self.sigma is not None),
            bound=None if self.bound is None else checks.positive("bound", self.bound),
            largest_sigma=None if self.largest_sigma is None else checks.positive("largest_sigma", self.largest_sigma),
            not_before=checks.whole("not_before", self.not_before, at_least=0, at_most=MAX_NOT_BEFORE),
        )
        self.risk.costs(self.arms)

    @property
    def state_size(self) -> int:
        return state_size(self.arms, rule.SECTIONS)

    @property
    def is_known(self) -> bool:
        """Whether the stated sigma is taken as certain."""
        return math.isinf(self.sigma_pulls)

    @property
    def treats_arms_alike(self) -> bool:
        # Without a stated sigma, the first arms get a second pull before the others.
        return self.sigma is not None and not self.risk.costs_differ

    @property
    def learns_spread(self) -> bool:
        return not self.is_known

    @property
    def believed_sigma(self) -> float:
        """The largest standard deviation that the rule believes: `largest_sigma`, or 10 times the stated sigma.

        For misidentification, whose losses are at most 1/2 anyway, only a `largest_sigma` limits it.
        """
        if self.largest_sigma is not None:
            return max(self.largest_sigma, self.sigma or 0.0)
        if self.sigma is None or self.risk.loss is Loss.MISIDENTIFICATION:
            return math.inf
        return MAX_SIGMA_FACTOR * self.sigma

    @property
    def loss_scale(self) -> float:
        if self.is_known:
            assert self.sigma is not None
            return self.sigma * normal.PSI_AT_0
        return self.believed_sigma * MOST_STUDENT_EXCESS

    def knows_losses(self, state: State) -> bool:
        return super().knows_losses(state) and state[DEVIATION] > 0.0

    @cached_property
    def tables(self) -> BreakevenTables:
        regret = self.risk.loss is Loss.SIMPLE_REGRET
        sigma = 1.0 if self.sigma is None else self.sigma
        return BreakevenTables(
            cost=np.array(self.risk.costs(self.arms)),
            sigma=sigma,
            precision=1.0 / sigma,
            stated=np.full(self.arms, 0.0 if self.sigma is None else 1.0),
            sigma_pulls=0.0 if self.sigma is None else self.sigma_pulls,
            largest_variance=(self.believed_sigma / sigma) ** 2,
            is_bounded=self.largest_sigma is not None,
            counts_errors=not regret,
            largest_loss=min(self.largest_loss, UNLIMITED),
            guess=self.guesses,
            not_before=self.not_before,
            series=losses.series_of(regret),
            ratios=losses.ratios_of(regret),
        )
