"""Track-and-Stop: pulls in the proportions that tell the best arm apart soonest.

With best arm 1 and x_a pulls of arm a per pull of arm 1, telling the two apart gains g_a = d(mu_1, m_a) + x_a
d(mu_a, m_a) per pull of arm 1, where m_a = (mu_1 + x_a mu_a)/(1 + x_a). The best shares have the same gain y for all
arms, and sum over a of d(mu_1, m_a)/d(mu_a, m_a) = 1. With v = x/(1+x), m = mu_1 + v (mu_a - mu_1) and
dg/dv = d(mu_a, m)/(1-v)^2. For Gaussian arms g = v (mu_1 - mu_a)^2/(2 sigma^2) is linear, so sigma cancels.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dbcare.base.look import BLUE, Look, PolicyKind
from dbcare.policies.breakeven.state import LEADER, MADE, MEAN, least_pulled, section
from dbcare.policies.literature import likelihood
from dbcare.policies.literature.bounds import divergence
from dbcare.policies.literature.parts import OWN_SECTION, AdaptiveTables, FamilyRule, SamplingPart, wins_tie
from dbcare.policies.rule import State

MAX_STEPS = 60
PRECISION = 1e-11
MAX_RATIO = 1e100  # of squared gaps; a larger one gives an arm no pulls anyway
EDGE = 1e-12  # shares v stay this far from 0 and 1


def optimal_proportions(means: Sequence[float], *, bernoulli: bool) -> npt.NDArray[np.float64]:
    """Return the best shares of pulls for arms with these means, one of which is the largest."""
    state: list[float] = [*means, *([0.0] * len(means))]
    fill_proportions(state, 0, len(means), len(means), int(np.argmax(means)), bernoulli)
    return np.array(state[len(means) :])


def fill_proportions(state: State, mean: int, share: int, arms: int, best: int, bernoulli: bool) -> None:
    """Fill the shares at `share` for the means at `mean`; if several arms are best, these share all pulls equally.

    Arms are as good if the square of their gap is 0 in floating point.
    """
    top = state[mean + best]
    second = -math.inf
    tied = 1
    for arm in range(arms):
        if arm != best:
            second = max(second, state[mean + arm])
            if (top - state[mean + arm]) ** 2 == 0.0:
                tied += 1
    if tied > 1:
        for arm in range(arms):
            state[share + arm] = 1.0 / tied if (top - state[mean + arm]) ** 2 == 0.0 else 0.0
        return
    if bernoulli:
        gain = bernoulli_gain(state, mean, arms, best, second)
    else:
        gain = gaussian_gain(state, mean, arms, best, second)
    total = 1.0
    for arm in range(arms):
        if arm != best:
            part = bernoulli_share(top, state[mean + arm], gain) if bernoulli else gain / (top - state[mean + arm]) ** 2
            state[share + arm] = part / (1.0 - part)
            total += state[share + arm]
    state[share + best] = 1.0
    for arm in range(arms):
        state[share + arm] /= total


def gaussian_gain(state: State, mean: int, arms: int, best: int, second: float) -> float:
    """Return y in units of 1/(2 sigma^2), where x_a = y/((mu_1 - mu_a)^2 - y) and sum x_a^2 = 1.

    Newton's method from above for an increasing convex function of y/(mu_1 - mu_2)^2, which is at most 1/2.
    """
    top = state[mean + best]
    scale = (top - second) ** 2
    place = 0.5
    for _ in range(MAX_STEPS):
        total = -1.0
        slope = 0.0
        for arm in range(arms):
            if arm != best:
                ratio = min((top - state[mean + arm]) ** 2 / scale, MAX_RATIO)
                x = place / (ratio - place)
                total += x * x
                slope += 2.0 * x * ratio / ((ratio - place) * (ratio - place))
        step = total / slope
        place -= step
        if step <= PRECISION * place:
            break
    return float(place * scale)


def bernoulli_gain(state: State, mean: int, arms: int, best: int, second: float) -> float:
    """Return y for Bernoulli arms: the root of ln sum d(mu_1, m_a)/d(mu_a, m_a), by secants in logit(v) of the second.

    For Gaussian arms its slope would be about 2, which the first step takes; later steps stay within brackets.
    """
    top = state[mean + best]
    low, high = -27.0, 27.0  # logits of EDGE and 1 - EDGE
    place, slope, step = 0.0, 2.0, 0.0
    gain = 0.0
    height = 0.0
    for _ in range(MAX_STEPS):
        gain = gain_of(top, second, 1.0 / (1.0 + math.exp(-place)))
        total = 0.0
        for arm in range(arms):
            if arm != best:
                other = state[mean + arm]
                middle = top + bernoulli_share(top, other, gain) * (other - top)
                total += divergence(top, middle) / max(divergence(other, middle), 1e-300)
        before, height = height, math.log(max(total, 1e-300))
        if height > 0.0:
            high = place
        else:
            low = place
        if abs(height) <= PRECISION or high - low <= PRECISION:
            break
        if step != 0.0:
            slope = max((height - before) / step, 0.1)
        target = place - height / slope
        if not low < target < high:
            target = 0.5 * (low + high)
        step = target - place
        place = target
    return gain


def bernoulli_share(top: float, other: float, gain: float) -> float:
    """Return the v with gain `gain` for two Bernoulli arms, by Newton's method from the Gaussian solution."""
    low, high = EDGE, 1.0 - EDGE
    v = min(max(gain / max(divergence(top, other), 1e-300), low), high)
    for _ in range(MAX_STEPS):
        middle = top + v * (other - top)
        apart = divergence(other, middle)
        excess = divergence(top, middle) + v / (1.0 - v) * apart - gain
        if excess > 0.0:
            high = v
        else:
            low = v
        target = v - excess * (1.0 - v) * (1.0 - v) / max(apart, 1e-300)
        if not low < target < high:
            target = 0.5 * (low + high)
        step = abs(target - v)
        v = target
        if step <= PRECISION * min(v, 1.0 - v):
            break
    return v


def gain_of(top: float, other: float, v: float) -> float:
    """Return g for two Bernoulli arms."""
    middle = top + v * (other - top)
    return divergence(top, middle) + v / (1.0 - v) * divergence(other, middle)


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
    (`policies.literature.track_and_stop`), but first any arm with fewer than sqrt(t) - K/2 pulls. Stop when the
    smallest log-likelihood ratio of the leader to another arm (`policies.literature.likelihood`) exceeds a rate:
    "proven"     ln(2 (K-1) t/delta) for Bernoulli arms (their Theorem 10), for Gaussian ones a rate of Kaufmann and
                 Koolen (2021, `policies.literature.parts`); the error is at most `delta`
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
    >>> from dbcare.policies import TrackAndStop
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
