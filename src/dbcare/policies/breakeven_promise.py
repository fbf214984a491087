"""What every version of Breakeven promises and says: limits on its spend, and sentences about a run."""

import math
from abc import abstractmethod

from dbcare.policies.breakeven_state import LEADER, LOSS, PULLS, RIVAL, SEEN, SPENT, STOPPED, section
from dbcare.policies.policy import Policy
from dbcare.policies.rule import State
from dbcare.policies.wording import DEFAULT_WORDING, Wording
from dbcare.problem.risk import Loss, Risk

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
