"""A control variate for the error of DBCARE with K > 2 Gaussian arms of equal sigma.

Let C be the arm that leads once every arm has N0 = floor(N*(K)) + 1 pulls. Its law is a one-dimensional integral,

    P(C = k) = integral of phi(u) * product over j != k of Phi(u + (mean_k - mean_j) sqrt(N0) / sigma) du,

and DBCARE nearly always recommends that arm. So E[loss] = E[loss(C)] + E[loss - loss(C)], and only the second, small
term needs simulation (`estimates.Moments` scales loss(C) by a fitted coefficient). An arm dropped before N0 gets one
extra draw for its sum at N0, made after the run has ended, so that the run does not depend on it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.engines.draws import GaussianArms
from dbcare.engines.rng import normal
from dbcare.policies.epochs import ALIVE, EPOCH, SUMS, arms_offset


class Watch(NamedTuple):
    """Hooks that a loop calls after every epoch and after the run."""

    after_epoch: Callable[..., Any]
    after_run: Callable[..., Any]


def note(arm_at, state, work, start, stop):
    """Record the pulls and sums of the arms in slots `start` to `stop`."""
    count = arm_at - SUMS
    for slot in range(start, stop):
        arm = int(state[arm_at + slot])
        work[2 * count + arm] = state[EPOCH]
        work[3 * count + arm] = state[SUMS + slot]


def note_epoch(checkpoint, state, work, survivors):
    """Record the arms just dropped from `survivors`, and at the checkpoint all remaining arms."""
    if state[EPOCH] <= checkpoint:
        note(arms_offset(state), state, work, int(state[ALIVE]), survivors)
        if state[EPOCH] == checkpoint:
            note(arms_offset(state), state, work, 0, int(state[ALIVE]))


def note_leader(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3):
    """Extend every sum to `checkpoint` pulls and record the arm that leads."""
    if state[EPOCH] < checkpoint:
        note(arms_offset(state), state, work, 0, int(state[ALIVE]))
    count = len(arms.mean)
    best = -np.inf
    for arm in range(count):
        missing = checkpoint - work[2 * count + arm]
        total = work[3 * count + arm]
        if missing > 0:
            z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
            total += missing * arms.mean[arm] + math.sqrt(missing) * arms.sigma[arm] * z
        if total > best:
            best = total
            leaders[place] = arm


def pass_epoch(checkpoint, state, work, survivors):
    """Do nothing."""


def pass_run(checkpoint, state, work, arms, leaders, place, s0, s1, s2, s3):
    """Do nothing."""


WATCH = Watch(note_epoch, note_leader)
NO_WATCH = Watch(pass_epoch, pass_run)


def leader_law(arms: GaussianArms, checkpoint: int) -> npt.NDArray[np.float64]:
    """Compute P(C = k) for each arm k to about 1e-12 (for such integrands, sums over a grid converge spectrally).

    With m_k = mean_k sqrt(N0) / sigma and x = u + m_k one grid serves all arms; equal arms are computed once.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  # only this needs scipy

    scaled = (arms.mean - arms.mean.max()) * math.sqrt(checkpoint) / arms.sigma[0]
    # An arm this far behind never leads; without the limit, it would only stretch the grid.
    kinds, kind_of_arm, counts = np.unique(np.maximum(scaled, -60.0), return_inverse=True, return_counts=True)
    step = 0.0125
    grid = np.arange(kinds[0] - 12.0, kinds[-1] + 12.0, step)
    log_below = log_ndtr(grid[:, None] - kinds[None, :])
    log_all_below = log_below @ counts
    weight = np.exp(log_all_below[:, None] - log_below - 0.5 * (grid[:, None] - kinds[None, :]) ** 2)
    law: npt.NDArray[np.float64] = (step / math.sqrt(2.0 * math.pi) * weight.sum(axis=0))[kind_of_arm]
    return law
