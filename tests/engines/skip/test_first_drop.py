"""Where a jump of several arms is cut, against complete Gaussian walks drawn by independent code.

Where both ends are given, they lie inside the boundary, so only bounds, steps and pending intervals can find a drop in
between.

Error rate: each of the 7 comparisons of a case fails for correct code with probability at most ALPHA = 1e-8 over the
choice of the seeds, which are fixed, and so do the 2 for jumps whose end is drawn: below 2e-7 in all. The share of
jumps cut is compared by Fisher's exact test, and the laws of the epoch and of each arm's sum there by
Dvoretzky-Kiefer-Wolfowitz between two samples, 2 exp(-N t^2) (Wei and Dudley 2012). Negative controls: the same code
with a part blinded or wrong.
"""

import math
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numba import njit
from scipy.stats import fisher_exact

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.engines.simulate.rng import begun, normal
from dbcare.engines.skip.first_drop import (
    UNKNOWN,
    close_arms,
    ends_at,
    first_drop,
    halved_sums,
    step_bridges,
    touching_sum,
    work_size,
)
from dbcare.engines.skip.many_arms import jump
from dbcare.policies.epochs import ALIVE, EPOCH, PULLS, SUMS, state_size

pytestmark = pytest.mark.statistical

ALPHA = 1e-8
RUNS = 12_000
START, END = 400, 465  # an odd length, so that the halves differ

Floats = npt.NDArray[np.float64]

# Sums at the two ends, and sigmas: one leader and three arms that it may drop, or two and two.
CASES = {
    "one leader": ([100.0, 8.0, 8.0, 11.0, 60.0], [110.0, 15.0, 16.0, 13.0, 65.0], [1.0, 1.0, 1.0, 1.0, 1.0]),
    "unequal sigmas": ([100.0, 99.0, 10.0, 14.0, 50.0], [108.0, 110.0, 17.0, 15.0, 70.0], [0.6, 1.2, 1.0, 0.9, 1.3]),
}
BOUNDARY = 5.0 * np.sqrt(np.arange(END + 1.0))


BLIND = PULLS  # the entry of `state`, which jumps do not use, that says which part is blind or wrong
FORGETFUL, CREDULOUS = 6, 7  # jumps that draw U again, and jumps that accept whatever they drew


def blind_close_arms(state, order, right, count, before, after, need):
    if state[BLIND] == 1:
        return 0, 0, 0, 0.0
    return close_arms(state, order, right, count, before, after, need)


def blind_touching_sum(state, order, right, close, leading, lagging, before, after, length, far, work, enough):
    if state[BLIND] == 2:
        return 0.0, order[close - 1], order[0]
    return touching_sum(state, order, right, close, leading, lagging, before, after, length, far, work, enough)


def blind_halved_sums(state, order, middle, right, close, leading, lagging, line, half, rest, far, work):
    if state[BLIND] == 3:
        return 2.0, 0.5, 0.5
    return halved_sums(state, order, middle, right, close, leading, lagging, line, half, rest, far, work)


@njit(**OPTIONS)
def loose_step_bridges(order, close, right, boundary, epoch, end, state, work, s0, s1, s2, s3):
    """Take steps of the right variance that do not lead to the sums at the end."""
    while epoch < end - 1:
        high = -np.inf
        low = np.inf
        for index in range(close):
            slot = order[index]
            z, s0, s1, s2, s3 = normal(s0, s1, s2, s3)
            state[SUMS + slot] += work[2 * slot + 1] * z
            high = max(high, state[SUMS + slot])
            low = min(low, state[SUMS + slot])
        epoch += 1
        if high - low > boundary[epoch]:
            return epoch, True, s0, s1, s2, s3
    return epoch, False, s0, s1, s2, s3


def blind_step_bridges(order, close, right, boundary, epoch, end, state, work, s0, s1, s2, s3):
    if state[BLIND] == 4:
        return end - 1, False, s0, s1, s2, s3
    if state[BLIND] == 5:
        return loose_step_bridges(order, close, right, boundary, epoch, end, state, work, s0, s1, s2, s3)
    return step_bridges(order, close, right, boundary, epoch, end, state, work, s0, s1, s2, s3)


def replace_called(function: Any, **replacements: Any) -> Any:
    """Compile the same code with replacements for functions that it calls by these names."""
    original = function.py_func
    names = {**original.__globals__, **{name: njit(**OPTIONS)(each) for name, each in replacements.items()}}
    name = "_".join([original.__name__, "replaced", *replacements])
    return njit(**OPTIONS)(FunctionType(original.__code__, names, name))


@cache
def compile_runs() -> Any:
    """Compile what cuts or makes many jumps, once for all parts that may be blind: compiling takes far longer."""
    locate = replace_called(
        first_drop,
        close_arms=blind_close_arms,
        touching_sum=blind_touching_sum,
        halved_sums=blind_halved_sums,
        step_bridges=blind_step_bridges,
    )

    def wrong_first_drop(count, boundary, variance, far, end, drawn, state, work, s0, s1, s2, s3):
        if state[BLIND] == CREDULOUS and drawn != UNKNOWN:
            for slot in range(count):
                state[SUMS + slot] = work[ends_at(count) + slot]
            return end, s0, s1, s2, s3
        if state[BLIND] == FORGETFUL:
            drawn = UNKNOWN
        return locate(count, boundary, variance, far, end, drawn, state, work, s0, s1, s2, s3)

    make_jump = replace_called(jump, first_drop=wrong_first_drop)

    def run_all(seed, boundary, begin, end, last, means, sigma, variance, gap, length, state, work, epochs, sums):
        """Make jumps of that length, or if it is 0, cut jumps that lead to `end` at the epoch `last`."""
        count = len(begin)
        for run in range(len(epochs)):
            _, s0, s1, s2, s3 = begun(seed, run)
            state[EPOCH] = START
            state[ALIVE] = count
            for slot in range(count):
                state[SUMS + slot] = begin[slot]
                work[2 * slot] = means[slot]
                work[2 * slot + 1] = sigma[slot]
                work[ends_at(count) + slot] = end[slot]
            if length == 0:
                epoch, _, _, _, _ = locate(count, boundary, variance, 24.0, last, UNKNOWN, state, work, s0, s1, s2, s3)
            else:
                epoch, _, _, _, _ = make_jump(count, boundary, variance, 24.0, gap, length, state, work, s0, s1, s2, s3)
            epochs[run] = epoch
            for slot in range(count):
                sums[run, slot] = state[SUMS + slot]

    return njit(run_all)


def run_jumps(
    runs: int, seed: int, begin: Floats, end: Floats, means: Floats, sigma: Floats, length: int, blind: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return where each of many jumps ends or is cut, and the sums there."""
    count = len(begin)
    epochs, sums = np.zeros(runs, np.int64), np.zeros((runs, count))
    state, work = np.zeros(state_size(count)), np.zeros(work_size(count))
    state[BLIND] = blind
    # Computed here, it is not compiled; and END as an argument has the type that jumps pass: one version serves both.
    variance, gap = float(np.max(sigma)) ** 2, float(BOUNDARY[START] - np.ptp(begin))
    compile_runs()(seed, BOUNDARY, begin, end, END, means, sigma, variance, gap, length, state, work, epochs, sums)
    return epochs, sums


def cut_jumps(case: str, blind: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Find where each of many jumps is cut, and the sums there."""
    begin, end, sigma = (np.array(values) for values in CASES[case])
    return run_jumps(RUNS, 5, begin, end, np.zeros(len(begin)), sigma, 0, blind)


@cache
def cut_drawn_walks(case: str) -> tuple[npt.NDArray[np.int64], Floats]:
    """Do the same with complete bridges: sums of steps, corrected to end where they should."""
    begin, end, sigma = (np.array(values) for values in CASES[case])
    length = END - START
    steps = np.random.default_rng(6).standard_normal((RUNS, length, len(begin))) * sigma
    walk = np.cumsum(steps, axis=1)
    passed = (np.arange(1, length + 1) / length)[:, None]
    paths = begin + walk + passed * (end - begin - walk[:, -1:, :])
    over = np.ptp(paths, axis=2) > BOUNDARY[START + 1 :]
    index = np.where(over.any(axis=1), over.argmax(axis=1), length - 1)
    return START + 1 + index, paths[np.arange(RUNS), index]


def distance(one: Floats, two: Floats) -> float:
    """Return the distance between the distribution functions of two samples."""
    values = np.concatenate([one, two])
    functions = [np.searchsorted(np.sort(sample), values, side="right") / len(sample) for sample in (one, two)]
    return float(np.max(np.abs(functions[0] - functions[1])))


def misfits(case: str, blind: int = 0) -> list[str]:
    """List the comparisons that fail."""
    (epochs, sums), (true_epochs, true_sums) = cut_jumps(case, blind), cut_drawn_walks(case)
    cut = [int(np.sum(sample < END)) for sample in (epochs, true_epochs)]
    allowed = math.sqrt(math.log(2.0 / ALPHA) / RUNS)
    checks = {
        "share": fisher_exact(np.array([[count, RUNS - count] for count in cut])).pvalue > ALPHA,
        "epoch": distance(epochs.astype(np.float64), true_epochs.astype(np.float64)) < allowed,
    }
    # Rounded, because without a cut the sums of the two codes differ in the last bit.
    for arm in range(sums.shape[1]):
        checks[f"sum {arm}"] = distance(sums[:, arm].round(6), true_sums[:, arm].round(6)) < allowed
    assert 0.05 * RUNS < cut[1] < 0.6 * RUNS  # otherwise the case would test little
    return [name for name, passed in checks.items() if not passed]


@pytest.mark.parametrize("case", CASES)
def test_a_jump_is_cut_where_bridges_cross(case: str) -> None:
    assert misfits(case) == []


@pytest.mark.parametrize("blind", [1, 2, 3, 4], ids=["close arms", "touching sum", "halved sums", "step bridges"])
def test_blinded_parts_are_detected(blind: int) -> None:
    assert "epoch" in misfits("one leader", blind)


def test_steps_that_do_not_lead_to_the_end_are_detected() -> None:
    assert misfits("one leader", 5) != []


# A jump whose end is not given. Sums at its start and means are such that a drop inside is likely enough, mostly in
# jumps whose U was drawn before they were examined.
JUMPS = 100_000
LENGTH = 40
BEGIN, MEANS = np.array([93.0, 1.0, 40.0]), np.array([0.16, 0.12, 0.1])


@cache
def end_drawn_walks() -> npt.NDArray[np.int64]:
    """Do the same with every pull drawn."""
    generator = np.random.default_rng(8)
    lengths = []
    for _ in range(10):
        steps = generator.standard_normal((JUMPS // 10, LENGTH, 3)) + MEANS
        over = np.ptp(BEGIN + np.cumsum(steps, axis=1), axis=2) > BOUNDARY[START + 1 : START + 1 + LENGTH]
        lengths.append(np.where(over.any(axis=1), over.argmax(axis=1) + 1, LENGTH))
    return START + np.concatenate(lengths)


def jump_misfits(blind: int = 0) -> list[str]:
    """List the comparisons that fail."""
    epochs, _ = run_jumps(JUMPS, 7, BEGIN, BEGIN, MEANS, np.ones(3), LENGTH, blind)
    true_epochs = end_drawn_walks()
    cut = [int(np.sum(sample < START + LENGTH)) for sample in (epochs, true_epochs)]
    largest_distance = distance(epochs.astype(np.float64), true_epochs.astype(np.float64))
    checks = {
        "share": fisher_exact(np.array([[count, JUMPS - count] for count in cut])).pvalue > ALPHA,
        "epoch": largest_distance < math.sqrt(math.log(2.0 / ALPHA) / JUMPS),
    }
    return [name for name, passed in checks.items() if not passed]


def test_a_jump_ends_where_walks_cross() -> None:
    assert jump_misfits() == []


def test_a_jump_that_forgets_its_uniform_number_is_detected() -> None:
    assert "share" in jump_misfits(FORGETFUL)


def test_a_jump_that_is_always_accepted_is_detected() -> None:
    assert "share" in jump_misfits(CREDULOUS)
