"""Track-and-Stop: pull in the optimal proportions for the means so far, stop by the likelihood ratio."""

import math

from dbcare.base.look import BLUE, Look, PolicyKind
from dbcare.policies.adaptive import likelihood
from dbcare.policies.adaptive.parts import OWN_SECTION, AdaptiveTables, SamplingPart, wins_tie
from dbcare.policies.adaptive.policy import FamilyRule
from dbcare.policies.adaptive.proportions import fill_proportions
from dbcare.policies.breakeven_state import LEADER, MADE, MEAN, least_pulled, section
from dbcare.policies.rule import State

SHARE = OWN_SECTION  # of pulls that each arm should get


def prepare(state: State, tables: AdaptiveTables) -> None:
    """Compute the optimal proportions for the means."""
    fill_proportions(
        state,
        section(tables.cost, MEAN),
        section(tables.cost, SHARE),
        len(tables.cost),
        int(state[LEADER]),
        tables.sampling.is_bernoulli,
    )


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with too few pulls in any case, or else the one that is farthest behind its share."""
    arms = len(tables.cost)
    made, share = section(tables.cost, MADE), section(tables.cost, SHARE)
    total = 0.0
    for arm in range(arms):
        total += state[made + arm]
    fewest = least_pulled(state, tables.cost)
    if state[made + fewest] < math.sqrt(total) - 0.5 * arms:
        return fewest
    chosen = 0
    farthest = total * state[share] - state[made]
    for arm in range(1, arms):
        behind = total * state[share + arm] - state[made + arm]
        if behind > farthest or (behind == farthest and wins_tie(state, tables, arm, chosen)):
            chosen = arm
            farthest = behind
    return chosen


SAMPLING = SamplingPart(choose, likelihood.family_of, prepare=prepare, sections=1)


class TrackAndStop(FamilyRule):
    """Track-and-Stop with D-tracking for K arms: Garivier and Kaufmann (2016), *Optimal Best Arm Identification*.

    Pull the arm farthest behind its share t w_k of t pulls, where w are the optimal proportions for the means so far
    (`policies.adaptive.proportions`), but first any arm with fewer than sqrt(t) - K/2 pulls. Stop when the smallest
    log-likelihood ratio of the leader to another arm (`policies.adaptive.likelihood`) exceeds a rate:
    "proven"     ln(2 (K-1) t/delta) for Bernoulli arms (their Theorem 10), for Gaussian ones a rate of Kaufmann and
                 Koolen (2021, `policies.adaptive.rates`); the error is at most `delta`
    "heuristic"  ln((ln t + 1)/delta), their choice in practice, without proof

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is allowed.
    sigma : float
        Standard deviation of Gaussian rewards.
    family : {"gaussian", "bernoulli"}
        Distribution of the rewards; "bernoulli" takes any rewards from 0 to 1.
    rate : {"proven", "heuristic"}
        The rate, as above.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare import TrackAndStop
    >>> run = TrackAndStop(arms=3, sigma=0.5, rate="heuristic").start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 42)
    """

    label = "Track-and-Stop"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((BLUE,), "P", hollow=True)
    sampling_part = SAMPLING
    stopping_part = likelihood.STOPPING
