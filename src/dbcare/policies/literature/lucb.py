"""LUCB: pull the leader and its strongest challenger until their confidence bounds separate."""

import math

from dbcare.base.look import GREEN, Look, PolicyKind
from dbcare.policies.breakeven.state import LEADER, MADE, MEAN, section
from dbcare.policies.literature.bounds import make_numbers, make_stop, square_radius
from dbcare.policies.literature.parts import AdaptiveTables, ConfidenceRule, lucb_rate, sample_pairs, wins_tie
from dbcare.policies.rule import State


def challenger(state: State, tables: AdaptiveTables) -> int:
    """Return the arm with the highest upper bound, other than the leader."""
    made, mean, leader = section(tables.cost, MADE), section(tables.cost, MEAN), int(state[LEADER])
    square = square_radius(state, tables, tables.sampling)
    chosen = -1
    highest = 0.0
    for arm in range(len(tables.cost)):
        if arm != leader:
            upper = state[mean + arm] + math.sqrt(square / state[made + arm])
            if chosen < 0 or upper > highest or (upper == highest and wins_tie(state, tables, arm, chosen)):
                chosen = arm
                highest = upper
    return chosen


SAMPLING = sample_pairs(challenger, make_numbers(lucb_rate), needs=("sigma", "delta"))
STOPPING = make_stop(lucb_rate)


class LUCB(ConfidenceRule):
    """LUCB for K arms: Kalyanakrishnan, Tewari, Auer and Stone (2012), *PAC Subset Selection*, Algorithm LUCB1.

    In round t, pull the leader, and the other arm with the highest upper bound. The radius after n pulls is
    sqrt(2 sigma^2 ln(5 K t^4/(4 delta))/n). Stop when the leader's lower bound is above that arm's upper bound. The
    error is at most `delta` for sigma-sub-Gaussian rewards (their Theorem 1), unless `max_pulls` ends a run first; a
    round that would exceed it is not started.

    Parameters
    ----------
    arms : int
        Number of arms.
    delta : float
        The error that is allowed.
    sigma : float
        Sub-Gaussian parameter of the rewards.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import LUCB
    >>> run = LUCB(arms=3, sigma=0.5).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.why()
    (0, 'stopped after 463 pulls: arm 0 has a lower bound of 0.6624, arm 1 an upper bound of 0.662')
    """

    label = "LUCB"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((GREEN,), "v", hollow=True)
    sampling_part = SAMPLING
    stopping_part = STOPPING
