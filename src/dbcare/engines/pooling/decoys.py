"""Decoys: bandits on which errors are common, so that few runs show how likely they are and what they cost.

A *decoy* of a bandit has its best arm lowered to the average of the others; all else is the same. Runs that give up the
best arm after a few pulls are rare on the bandit and common on the decoy. The likelihoods of such a run differ only in
the few rewards of that arm, so its weight varies little (importance sampling).

Decoys help where not all labelings are averaged; where they are, every run tells how likely an error was. Policies in
epochs do without: once the best arm is gone, their runs often go on to the limit, and in the paper's experiments the
decoys took more time than they saved.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from dbcare.engines.pooling.model import Model
from dbcare.problem.bandits import Bandit
from dbcare.problem.rewards import Bernoulli, Gaussian

DECOY_RUNS = 32  # on each decoy at first
STRIDE = 2  # neighboring bandits that share a decoy, as their errors look alike


def make_decoys(bandits: Sequence[Bandit], model: Model) -> list[Bandit]:
    """Return decoys of every STRIDE-th bandit, in order; none where they gain nothing."""
    if len(bandits) == 1 or len(model.labelings.partners) == 0:
        return []
    return [_lower_best(bandit) for bandit in bandits[::STRIDE]]


def _lower_best(bandit: Bandit) -> Bandit:
    """Return the bandit with its best arm lowered to the average of the others."""
    means = np.array(bandit.means)
    best = int(np.argmax(means))
    arms = list(bandit.arms)
    lowered = float(np.delete(means, best).mean())
    arms[best] = replace(cast(Gaussian | Bernoulli, arms[best]), mean=lowered)
    return Bandit(tuple(arms))
