"""Breakeven: stop once the expected loss to the strongest rival is no more than what has been spent."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare.base import checks
from dbcare.base.look import VIOLET, Look, PolicyKind
from dbcare.policies import breakeven_losses, breakeven_rule
from dbcare.policies.breakeven_promise import UNLIMITED, BreakevenPolicy
from dbcare.policies.breakeven_spread import BreakevenTables
from dbcare.policies.breakeven_state import DEVIATION, state_size
from dbcare.policies.rule import State
from dbcare.problem.risk import Loss, Risk, check_risk
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS, check_sigma_pulls
from dbcare.theory import normal

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
    rule = breakeven_rule.RULE
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
        return state_size(self.arms, breakeven_rule.SECTIONS)

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
            series=breakeven_losses.series_of(regret),
            ratios=breakeven_losses.ratios_of(regret),
        )
