"""Breakeven: stop once the expected loss of stopping is no more than what has been spent."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.policies import breakeven_losses as losses
from dbcare.policies import breakeven_rule as rule_of
from dbcare.policies.policy import Policy
from dbcare.policies.rule import State
from dbcare.policies.wording import DEFAULT_WORDING, Wording
from dbcare.risk import Loss, Risk, required
from dbcare.theory import normal

MOST_PULLS = 2.0**62  # of which a counter can hold more
MOST_DOUBT = 10.0  # the guard takes sigma for understated by at most this factor


@dataclass(frozen=True)
class Breakeven(Policy):
    """The policy for practitioners, our own: adaptive, with a cost for each arm, and a guard against a wrong sigma.

    With n_k pulls and mean m_k of arm k, leader L, se_k = sigma sqrt(1/n_k + 1/n_L) and z_k = (m_L - m_k)/se_k, the
    expected loss of choosing L where k may be better is l_k = Q(z_k) for misidentification and se_k Psi(z_k) for
    simple regret, under a flat prior (`theory.normal`). Pull every arm once; then, until the largest l_k is no more
    than all that has been spent, pull the arm whose next pull removes the largest loss-weighted share of comparison
    variance per unit of cost:

        rival k    l_k n_L / (n_k (n_k + n_L) c_k)
        leader L   sum over k of l_k n_k / (n_L (n_k + n_L)) / c_L

    If one pull of each costs as much as a guess loses, (1 - 1/K) times 1 or `bound`, it guesses.

    `sigma_guard`: before it stops, l_k becomes the larger of this and of the Student-t loss at the standard deviation
    of the rewards, of which there must be four. `sigma=None`: the Student-t loss alone. `bound`, the largest possible
    difference of means, caps the losses of simple regret; without sigma it must be given.
    """

    risk: Risk
    arms: int
    sigma: float | None = 1.0
    sigma_guard: bool = True
    bound: float | None = None
    rule = rule_of.RULE
    learns_spread = True
    breaks_even = True

    def __post_init__(self) -> None:
        required(self.risk)
        if self.risk.loss is Loss.SIMPLE_REGRET and self.sigma is None and self.bound is None:
            raise InvalidValueError("`bound` must be given for simple regret where sigma is unknown but got None.")
        if not isinstance(self.sigma_guard, bool):
            raise InvalidValueError(f"`sigma_guard` must be True or False but got {self.sigma_guard!r}.")
        validation.set_fields(
            self,
            arms=validation.whole("arms", self.arms, at_least=2),
            sigma=None if self.sigma is None else _of_a_size("sigma", self.sigma),
            bound=None if self.bound is None else validation.positive("bound", self.bound),
        )
        self.risk.costs(self.arms)

    @property
    def state_size(self) -> int:
        return rule_of.state_size(self.arms)

    @property
    def largest_spread(self) -> float:
        return math.inf if self.bound is None or self.risk.loss is Loss.MISIDENTIFICATION else self.bound

    @property
    def largest_reward(self) -> float:
        """So that sums of squares are numbers."""
        return 1e100

    @property
    def _scale(self) -> float:
        """A with l_k <= A sqrt(1/n_k + 1/n_L): the loss of level means, where the largest deviation is believed."""
        if self.sigma is None:
            return math.inf
        # E[max(T, 0)] falls with the degrees of freedom, from sqrt(3)/pi at 3.
        return self.sigma * (MOST_DOUBT * math.sqrt(3.0) / math.pi if self.sigma_guard else normal.PSI_AT_0)

    @property
    def largest_loss(self) -> float:
        """What no l_k exceeds."""
        if self.risk.loss is Loss.MISIDENTIFICATION:
            return 0.5
        return min(math.sqrt(2.0) * self._scale, math.inf if self.bound is None else self.bound)

    @property
    def guesses(self) -> bool:
        """Whether one pull of each arm costs as much as the most that a guess can lose."""
        at_stake = 1.0 if self.risk.loss is Loss.MISIDENTIFICATION else self.bound
        return at_stake is not None and sum(self.risk.costs(self.arms)) >= (1.0 - 1.0 / self.arms) * at_stake

    @property
    def max_spend(self) -> float:
        """What a run never spends more than, in units of the loss.

        It stops once it has spent the largest loss. For simple regret the losses shrink as pulls are made: with A as in
        `_scale`, no more than max(3/2 sum c_k, (27 D/4)^(1/3) + 3 max c_k) + max c_k is spent, where
        D = A^2 (4 (K-1) max c_k)^(2/3) sum c_k^(1/3) (docs/explanation/breakeven.md).
        """
        if self.guesses:
            return 0.0
        costs = self.risk.costs(self.arms)
        fewest = 0 if self._doubt == losses.TRUST else max(0, rule_of.LEAST_FREEDOM + 1 - self.arms)
        paid = max(self.largest_loss, sum(costs)) + (1 + fewest) * max(costs)
        if self.risk.loss is Loss.MISIDENTIFICATION or self.sigma is None:
            return paid
        roots = sum(math.pow(cost, 1.0 / 3.0) for cost in costs)
        # (27 D/4)^(1/3), factor by factor, lest a product underflow.
        work = math.pow(self._scale, 2.0 / 3.0) * math.pow(4.0 * (self.arms - 1) * max(costs), 2.0 / 9.0)
        shrinking = math.pow(6.75 * roots, 1.0 / 3.0) * work + 3.0 * max(costs)
        return min(paid, max(1.5 * sum(costs), shrinking) + (1 + fewest) * max(costs))

    @property
    def max_pulls(self) -> int:
        """As many as `max_spend` pays for at the cheapest arm."""
        return math.floor(min(self.max_spend / min(self.risk.costs(self.arms)) * (1.0 + 1e-12), MOST_PULLS))

    @property
    def _doubt(self) -> int:
        if self.sigma is None:
            return losses.UNKNOWN
        return losses.GUARD if self.sigma_guard else losses.TRUST

    @cached_property
    def tables(self) -> losses.BreakevenTables:
        return losses.BreakevenTables(
            cost=np.array(self.risk.costs(self.arms)),
            sigma=0.0 if self.sigma is None else self.sigma,
            precision=0.0 if self.sigma is None else 1.0 / self.sigma,
            doubt=self._doubt,
            counts_errors=self.risk.loss is Loss.MISIDENTIFICATION,
            largest_loss=self.largest_loss,
            largest_deviation=math.inf if self.sigma is None else MOST_DOUBT * self.sigma,
            guess=self.guesses,
            series=losses.series_of(self.risk.loss is Loss.SIMPLE_REGRET),
        )

    def expected_losses(self, state: State) -> list[float] | None:
        if state[rule_of.SEEN] < self.arms:
            return None
        first = rule_of.section(self.tables, rule_of.LOSS)
        return [float(state[first + arm]) for arm in range(self.arms)]

    def reopen(self, state: State) -> None:
        state[rule_of.STOPPED] = 0.0

    def why_stopped(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if self.guesses:
            everything = self.risk.money(sum(self.risk.costs(self.arms)))
            return f"one {wording.noun} of each arm would cost {everything}, and a guess loses no more"
        return self._balance(state, wording)

    def progress(self, state: State, wording: Wording = DEFAULT_WORDING) -> str:
        if state[rule_of.SEEN] < self.arms:
            return f"{int(state[rule_of.SEEN])} of {self.arms} arms tried"
        return f"{wording.arm(int(state[rule_of.LEADER]))} leads; {self._balance(state, wording)}"

    def _balance(self, state: State, wording: Wording) -> str:
        rival = int(state[rule_of.RIVAL])
        loss = state[rule_of.section(self.tables, rule_of.LOSS) + rival]
        return (
            f"the strongest rival, {wording.arm(rival)}, has an expected loss of {self.risk.money(loss)}, "
            f"and {self.risk.money(state[rule_of.SPENT])} has been spent"
        )


def _of_a_size(name: str, value: float) -> float:
    """A positive number whose square is one too."""
    number = validation.positive(name, value)
    if not 1e-100 <= number <= 1e100:
        raise InvalidValueError(f"`{name}` must lie between 1e-100 and 1e100 but got {number:g}.")
    return number
