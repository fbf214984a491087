"""Breakeven: stop once the expected loss of stopping is no more than what has been spent."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare import validation
from dbcare.policies import breakeven_losses, breakeven_rule
from dbcare.policies.policy import Policy
from dbcare.policies.rule import State
from dbcare.policies.wording import DEFAULT_WORDING, Wording
from dbcare.risk import Loss, Risk, check_risk
from dbcare.theory import normal

MAX_PULLS = 2.0**62  # fits into a counter
MAX_SIGMA_FACTOR = 10.0  # the guard never corrects sigma by more than this


@dataclass(frozen=True)
class Breakeven(Policy):
    """Our own policy for practitioners: adaptive, with a cost per arm and a guard against a wrong sigma.

    With n_k pulls and mean m_k of arm k, leader L, se_k = sigma sqrt(1/n_k + 1/n_L) and z_k = (m_L - m_k)/se_k, the
    expected loss of choosing L where k may be better is l_k = Q(z_k) for misidentification and se_k Psi(z_k) for
    simple regret, under a flat prior (`theory.normal`). Pull every arm once; then, until the largest l_k is no more
    than all that has been spent, pull the arm whose next pull removes the largest loss-weighted share of comparison
    variance per unit of cost:

        rival k    l_k n_L / (n_k (n_k + n_L) c_k)
        leader L   sum over k of l_k n_k / (n_L (n_k + n_L)) / c_L

    If one pull of each arm costs as much as a guess can lose, (1 - 1/K) times 1 or `bound`, it guesses.

    `sigma_guard`: before it stops, l_k becomes the larger of the above and the Student-t loss at the standard
    deviation of the rewards, which takes at least four rewards. `sigma=None`: the Student-t loss alone. `bound`, the
    largest possible difference of two means, caps the losses of simple regret; it is required without sigma.

    Parameters
    ----------
    risk : Risk
        What a pull costs and what a wrong choice loses; costs may differ by arm.
    arms : int
        Number of arms.
    sigma : float or None
        Standard deviation of a reward; None to learn it from the rewards.
    sigma_guard : bool
        Whether to check sigma against the rewards before stopping.
    bound : float, optional
        The largest possible difference of two means.

    Examples
    --------
    >>> from dbcare import Breakeven, Risk
    >>> policy = Breakeven(Risk.simple_regret(price=0.40, value=4_000), arms=3, sigma=0.5)
    >>> round(policy.max_spend, 2), policy.max_pulls
    (0.4, 3953)
    """

    risk: Risk
    arms: int
    sigma: float | None = None
    sigma_pulls: float = 6.0
    bound: float | None = None
    largest_sigma: float | None = None
    sigma_guard = True
    rule = breakeven_rule.RULE
    learns_spread = True
    breaks_even = True

    def __post_init__(self) -> None:
        check_risk(self.risk)
        validation.flag("sigma_guard", self.sigma_guard)
        validation.set_fields(
            self,
            arms=validation.arms(self.arms),
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            bound=None if self.bound is None else validation.positive("bound", self.bound),
        )
        self.risk.costs(self.arms)

    @property
    def state_size(self) -> int:
        return breakeven_rule.state_size(self.arms)

    @property
    def largest_spread(self) -> float:
        return math.inf if self.bound is None or self.risk.loss is Loss.MISIDENTIFICATION else self.bound

    @property
    def _scale(self) -> float:
        """A in l_k <= A sqrt(1/n_k + 1/n_L): the loss at equal means and the largest deviation the guard accepts."""
        if self.sigma is None:
            return math.inf
        # E[max(T, 0)] falls with the degrees of freedom, from sqrt(3)/pi at 3.
        return self.sigma * (MAX_SIGMA_FACTOR * math.sqrt(3.0) / math.pi if self.sigma_guard else normal.PSI_AT_0)

    @property
    def largest_loss(self) -> float:
        """Upper bound on every l_k."""
        if self.risk.loss is Loss.MISIDENTIFICATION:
            return 0.5
        return min(math.sqrt(2.0) * self._scale, math.inf if self.bound is None else self.bound)

    @property
    def guesses(self) -> bool:
        """Whether one pull of each arm costs at least as much as a guess can lose."""
        at_stake = 1.0 if self.risk.loss is Loss.MISIDENTIFICATION else self.bound
        return at_stake is not None and sum(self.risk.costs(self.arms)) >= (1.0 - 1.0 / self.arms) * at_stake

    @property
    def max_spend(self) -> float:
        """Upper bound on a run's spend, in units of the loss.

        A run stops once it has spent the largest loss. For simple regret the losses shrink as pulls are made: with A
        from `_scale`, it spends at most max(3/2 sum c_k, (27 D/4)^(1/3) + 3 max c_k) + max c_k, where
        D = A^2 (4 (K-1) max c_k)^(2/3) sum c_k^(1/3) (docs/explanation/breakeven.md).
        """
        if self.guesses:
            return 0.0
        costs = self.risk.costs(self.arms)
        fewest = 0 if self._doubt == breakeven_losses.TRUST else max(0, breakeven_rule.LEAST_FREEDOM + 1 - self.arms)
        paid = max(self.largest_loss, sum(costs)) + (1 + fewest) * max(costs)
        if self.risk.loss is Loss.MISIDENTIFICATION or self.sigma is None:
            return paid
        roots = sum(math.pow(cost, 1.0 / 3.0) for cost in costs)
        # (27 D/4)^(1/3), factor by factor, so that no product underflows.
        work = math.pow(self._scale, 2.0 / 3.0) * math.pow(4.0 * (self.arms - 1) * max(costs), 2.0 / 9.0)
        shrinking = math.pow(6.75 * roots, 1.0 / 3.0) * work + 3.0 * max(costs)
        return min(paid, max(1.5 * sum(costs), shrinking) + (1 + fewest) * max(costs))

    @property
    def max_pulls(self) -> int:
        """What `max_spend` buys of the cheapest arm."""
        return math.floor(min(self.max_spend / min(self.risk.costs(self.arms)) * (1.0 + 1e-12), MAX_PULLS))

    @property
    def _doubt(self) -> int:
        if self.sigma is None:
            return breakeven_losses.UNKNOWN
        return breakeven_losses.GUARD if self.sigma_guard else breakeven_losses.TRUST

    @cached_property
    def tables(self) -> breakeven_losses.BreakevenTables:
        return breakeven_losses.BreakevenTables(
            cost=np.array(self.risk.costs(self.arms)),
            sigma=0.0 if self.sigma is None else self.sigma,
            precision=0.0 if self.sigma is None else 1.0 / self.sigma,
            doubt=self._doubt,
            counts_errors=self.risk.loss is Loss.MISIDENTIFICATION,
            largest_loss=self.largest_loss,
            largest_deviation=math.inf if self.sigma is None else MAX_SIGMA_FACTOR * self.sigma,
            guess=self.guesses,
            series=breakeven_losses.series_of(self.risk.loss is Loss.SIMPLE_REGRET),
        )

    def expected_losses(self, state: State) -> list[float] | None:
        if state[breakeven_rule.SEEN] < self.arms:
            return None
        first = breakeven_rule.section(self.tables, breakeven_rule.LOSS)
        return [float(state[first + arm]) for arm in range(self.arms)]

    def reopen(self, state: State) -> None:
        state[breakeven_rule.STOPPED] = 0.0

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if self.guesses:
            everything = self.risk.money(sum(self.risk.costs(self.arms)), wording.currency)
            return f"one {wording.noun} of each arm would cost {everything}, and a guess cannot lose more"
        return self._balance(state, wording)

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if state[breakeven_rule.SEEN] < self.arms:
            return f"{int(state[breakeven_rule.SEEN])} of {self.arms} arms tried"
        return f"{wording.arm(int(state[breakeven_rule.LEADER]))} leads; {self._balance(state, wording)}"

    def _balance(self, state: State, wording: Wording) -> str:
        rival = int(state[breakeven_rule.RIVAL])
        loss = state[breakeven_rule.section(self.tables, breakeven_rule.LOSS) + rival]
        spent = self.risk.money(state[breakeven_rule.SPENT], wording.currency)
        return (
            f"the strongest rival, {wording.arm(rival)}, has an expected loss of "
            f"{self.risk.money(loss, wording.currency)}, and {spent} has been spent"
        )
