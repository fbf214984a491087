"""EB-TCI: a top-two rule whose leader has the largest mean, and whose challenger is the cheapest to confuse it with."""

import math

from dbcare.base.look import PURPLE, Look, PolicyKind
from dbcare.policies.breakeven.state import LEADER, MADE, MEAN, section
from dbcare.policies.literature import likelihood
from dbcare.policies.literature.likelihood import likelihood_ratio
from dbcare.policies.literature.parts import OWN_SECTION, AdaptiveTables, FamilyRule, SamplingPart, wins_tie
from dbcare.policies.rule import State

LED, LED_PULLS = OWN_SECTION, OWN_SECTION + 1  # how often an arm led before a pull, and how often it was pulled then
LEADER_SHARE = 0.5


def note(state: State, tables: AdaptiveTables, arm: int, pulls: int) -> None:
    """Count for how many pulls the leader led, and how many of them were its own."""
    leader = int(state[LEADER])
    state[section(tables.cost, LED) + leader] += pulls
    if arm == leader:
        state[section(tables.cost, LED_PULLS) + leader] += pulls


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the leader if it has at most half of the pulls since it led, or else its challenger."""
    leader = int(state[LEADER])
    if state[section(tables.cost, LED_PULLS) + leader] <= LEADER_SHARE * (
        state[section(tables.cost, LED) + leader] + 1
    ):
        return leader
    made, mean = section(tables.cost, MADE), section(tables.cost, MEAN)
    top, pulls = state[mean + leader], state[made + leader]
    chosen = -1
    cheapest = 0.0
    for arm in range(len(tables.cost)):
        if arm != leader:
            own = state[made + arm]
            cost = likelihood_ratio(tables.sampling, top, pulls, state[mean + arm], own) + math.log(own)
            if chosen < 0 or cost < cheapest or (cost == cheapest and wins_tie(state, tables, arm, chosen)):
                chosen = arm
                cheapest = cost
    return chosen


SAMPLING = SamplingPart(choose, likelihood.family_of, needs=("sigma",), note=note, sections=2)


class EBTCI(FamilyRule):
    """EB-TCI for K arms: Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), *Top Two Algorithms Revisited*.

    The leader L is the arm with the largest mean, its challenger the arm k with the smallest W_k + ln n_k, where W_k is
    the log-likelihood ratio of the two (`policies.literature.likelihood`). Pull L if its pulls while it led are at most
    half of the times it has led, this one included, or else the challenger. The stop and its rates are those of
    `TrackAndStop`. No generator but that for ties is needed. A cap matters: a run that is misled by its first rewards
    can take millions of pulls.

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
        The rate of the stop.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare.policies import EBTCI
    >>> run = EBTCI(arms=3, sigma=0.5, rate="heuristic").start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 44)
    """

    label = "EB-TCI"
    kind = PolicyKind.FIXED_CONFIDENCE
    look = Look((PURPLE,), "X", hollow=True)
    sampling_part = SAMPLING
    stopping_part = likelihood.STOPPING
