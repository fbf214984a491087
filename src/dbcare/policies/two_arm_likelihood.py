"""Two Bernoulli arms in turn, until a generalized likelihood ratio says which is better."""

from dataclasses import dataclass, replace

from dbcare.base.look import GREEN, SKY, Look, PolicyKind
from dbcare.policies.breakeven.state import least_pulled
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.literature import likelihood
from dbcare.policies.literature.likelihood import decide
from dbcare.policies.literature.parts import (
    DEFAULT_DELTA,
    PROVEN,
    AdaptivePolicy,
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    ends_round,
)
from dbcare.policies.rule import State


def no_numbers(problem: AdaptiveProblem) -> tuple[()]:
    """Return nothing: arms take turns."""
    return ()


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with fewer pulls."""
    return least_pulled(state, tables.cost)


def decide_after_pair(state: State, tables: AdaptiveTables) -> None:
    """Compare the ratio with the rate after each pair."""
    if ends_round(state, tables):
        decide(state, tables)


SAMPLING = SamplingPart(choose, no_numbers, round_pulls=2, is_bernoulli=True)
STOPPING = replace(likelihood.STOPPING, decide=decide_after_pair)


@dataclass(frozen=True)
class TwoArmLikelihood(AdaptivePolicy):
    """Fixed confidence for two Bernoulli arms: a generalized likelihood ratio test after each pair of pulls.

    After n pulls of each arm, stop if n d(mean_1, m) + n d(mean_2, m) exceeds the rate, where d is the divergence of
    Bernoulli distributions and m the mean of all rewards. Near m = 1/2 this is close to `TwoArmConfidence` with sigma
    1/2; elsewhere it stops sooner, as rewards vary less.

    Kaufmann, Cappe and Garivier (2016) propose such a test for Bernoulli arms besides their rule for Gaussian ones. We
    know its form from later papers of the same authors, not from their text; the rates are those of Garivier and
    Kaufmann (2016) for t = 2n pulls:
    "proven"     ln(2 t/delta); the error is at most `delta` (their Theorem 10, under any sampling)
    "heuristic"  ln((ln t + 1)/delta), their choice in practice, without proof

    Parameters
    ----------
    delta : float
        The error that is allowed.
    rate : {"proven", "heuristic"}
        The rate, as above.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import TwoArmLikelihood
    >>> run = TwoArmLikelihood(delta=0.1).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([1, 0][arm])
    >>> run.recommendation(), run.pulls
    (0, 8)
    """

    label = "two-arm likelihood ratio"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((SKY, GREEN), "x")
    live = False

    delta: float = DEFAULT_DELTA
    rate: str = PROVEN
    max_pulls: int = DEFAULT_MAX_PULLS
    arms = 2
    risk = None
    sampling_part = SAMPLING
    stopping_part = STOPPING
