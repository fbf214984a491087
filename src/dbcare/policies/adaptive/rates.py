"""How wide confidence bounds must be, and how large a likelihood ratio, for an error of at most delta.

A bound at the rate beta is where n d(mean, bound) = beta, with the divergence d of the family: for sigma-sub-Gaussian
rewards, a radius of sqrt(2 sigma^2 beta / n). Every rate grows with time t, so that the bounds hold at all times.
"""

import math
from functools import cache
from typing import NamedTuple

from dbcare.policies.breakeven_state import PULLS
from dbcare.policies.rule import State

PROVEN, HEURISTIC = "proven", "heuristic"
RATES = (PROVEN, HEURISTIC)


class Rate(NamedTuple):
    """beta(t) = offset + power ln t + iterated ln(1 + ln t) + mixture ln(4 + ln(t/2)).

    With `adds_own_log`, beta + ln beta instead. Time t is the number of pulls, or with `counts_rounds` of rounds.
    """

    offset: float
    power: float = 0.0
    iterated: float = 0.0
    mixture: float = 0.0
    adds_own_log: bool = False
    counts_rounds: bool = False


def rate_at(rate: Rate, time: float) -> float:
    """Return beta(t) for t >= 1."""
    log = math.log(time)
    value = rate.offset + rate.power * log
    if rate.iterated > 0.0:
        value += rate.iterated * math.log(1.0 + log)
    if rate.mixture > 0.0:
        value += rate.mixture * math.log(4.0 + math.log(max(time, 2.0) / 2.0))
    return value + math.log(value) if rate.adds_own_log else value


def current_rate(state: State, rate: Rate, first_pulls: int, round_pulls: int) -> float:
    """Return beta at this time of a run, whose rounds begin after the first pulls; the first round has t = 1."""
    if rate.counts_rounds:
        return rate_at(rate, 1.0 + (state[PULLS] - first_pulls) // round_pulls)
    return rate_at(rate, state[PULLS])


def lucb_rate(arms: int, delta: float) -> Rate:
    """Return ln(5 K t^4/(4 delta)) by rounds: Kalyanakrishnan, Tewari, Auer and Stone (2012), Theorem 1.

    One arm's bound fails at a given round and number of pulls u with a probability of at most 4 delta/(5 K t^4); over
    K arms, u <= t and all t this is (4/5) delta sum t^-3 < delta.
    """
    return Rate(math.log(1.25 * arms / delta), power=4.0, counts_rounds=True)


def ugape_rate(arms: int, delta: float) -> Rate:
    """Return ln(4 K t^3/delta) by pulls: Gabillon, Ghavamzadeh and Lazaric (2012), Equation 6 with c = 1/2."""
    return Rate(math.log(4.0 * arms / delta), power=3.0)


def kl_lucb_rate(arms: int, delta: float) -> Rate:
    """Return ln x + ln ln x with x = 405.5 K t^1.1/delta by rounds: Kaufmann and Kalyanakrishnan (2013), Theorem 1."""
    return Rate(math.log(405.5 * arms / delta), power=1.1, adds_own_log=True, counts_rounds=True)


def heuristic_rate(delta: float) -> Rate:
    """Return ln((ln t + 1)/delta) by pulls, without proof: Garivier and Kaufmann (2016), Section 6."""
    return Rate(math.log(1.0 / delta), iterated=1.0)


def bernoulli_ratio_rate(arms: int, delta: float) -> Rate:
    """Return ln(2 (K-1) t/delta), for Bernoulli arms: Garivier and Kaufmann (2016), Theorem 10."""
    return Rate(math.log(2.0 * (arms - 1) / delta), power=1.0)


def gaussian_ratio_rate(arms: int, delta: float) -> Rate:
    """Return 2 C(ln((K-1)/delta)/2) + 4 ln(4 + ln(t/2)), for Gaussian arms: Kaufmann and Koolen (2021).

    C(x) is the smallest value of (g(l) + x)/l over 1/2 < l < 1, with
    g(l) = 2l - 2l ln(4l) + ln zeta(2l) - ln(1 - l)/2.
    """
    return Rate(2.0 * _mixture_constant(0.5 * math.log((arms - 1) / delta)), mixture=4.0)


@cache
def _mixture_constant(level: float) -> float:
    from scipy.optimize import minimize_scalar  # noqa: PLC0415  # only this needs scipy
    from scipy.special import zeta  # noqa: PLC0415  # only this needs scipy

    def height(share: float) -> float:
        curve = 2.0 * share * (1.0 - math.log(4.0 * share)) + math.log(zeta(2.0 * share)) - 0.5 * math.log1p(-share)
        return (curve + level) / share

    return float(minimize_scalar(height, bounds=(0.5 + 1e-9, 1.0 - 1e-9), method="bounded").fun)
