"""Sums over runs, bandit by bandit, from which estimates are made."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbcare.engines.compile import kernel as compile_kernel
from dbcare.engines.halt import current_halt
from dbcare.engines.outcomes import Outcomes
from dbcare.engines.pooling.columns import COLUMNS, FOLDS, PLAIN_COLUMNS, PLAIN_WEIGHT_SQUARED, add_runs
from dbcare.engines.pooling.label_steps import LabelSteps, tabulate
from dbcare.engines.pooling.model import Model

Floats = npt.NDArray[np.float64]

NO_WEIGHTS = np.empty((0, 0))
CHUNK = 8192  # runs; sums are added chunk by chunk, so that they do not depend on the number of threads


class SourceSums(NamedTuple):
    """Sums over runs on one bandit, `source`."""

    source: int
    columns: Floats  # [fold, target, column]
    products: Floats  # [fold, target, column, column]
    plain: Floats  # [target, plain column]

    @classmethod
    def empty(cls, source: int, bandits: int) -> "SourceSums":
        """Return sums over no runs."""
        return cls(
            source,
            np.zeros((FOLDS, bandits, COLUMNS)),
            np.zeros((FOLDS, bandits, COLUMNS, COLUMNS)),
            np.zeros((bandits, PLAIN_COLUMNS)),
        )

    def add(self, part: "SourceSums") -> None:
        """Add the sums over more runs on the same bandit."""
        for total, more in zip(self[1:], part[1:], strict=True):
            np.add(total, more, out=total)


class Sums(NamedTuple):
    """Sums over all runs, by fold and target bandit; `columns` also by the bandit that the runs were made on."""

    columns: Floats  # [fold, target, source, column]
    products: Floats  # [fold, target, column, column]
    plain: Floats  # [target, plain column]

    @classmethod
    def combine(cls, parts: Sequence[SourceSums], scales: Floats) -> "Sums":
        """Return the sums over all runs, with the weights of those on each bandit multiplied by its scale."""
        columns = np.stack([scale * part.columns for part, scale in zip(parts, scales, strict=True)], axis=2)
        products, plain = np.zeros_like(parts[0].products), np.zeros_like(parts[0].plain)
        for part, scale in zip(parts, scales, strict=True):
            products += scale**2 * part.products
            plain += scale * part.plain
            plain[:, PLAIN_WEIGHT_SQUARED] += (scale**2 - scale) * part.plain[:, PLAIN_WEIGHT_SQUARED]
        return cls(columns, products, plain)


@cache
def _kernel() -> Any:
    return compile_kernel(add_runs, "the pooled estimator")


class Chunk(NamedTuple):
    """Some runs on one bandit, from number `first` on; `label_seed` is that of their relabeling."""

    source: int
    label_seed: int
    first: int
    outcomes: Outcomes


def sum_chunk(model: Model, steps: LabelSteps, shares: Floats, chunk: Chunk, weights: Floats) -> SourceSums:
    """Return the sums over a chunk of runs; `weights`, unless empty, receives the weight of each run by bandit.

    `steps` are those of `tabulate(model)`. The weights of runs are p_j / sum over m of `shares`_m p_m.
    """
    sums = SourceSums.empty(chunk.source, model.targets)
    out = chunk.outcomes
    by_arm = np.empty((2, out.tallies.arms))
    moves, labels = steps.arm.shape
    scratch = (
        np.empty((2, model.theta.shape[1])),
        np.empty((2, moves, labels)),
        *np.empty((3, model.bandits)),
        np.empty((model.bandits, labels)),
        np.empty(COLUMNS),
    )
    runs = (out.recommended, out.pulls, out.undecided, out.tallies)
    results = (sums.columns, sums.products, sums.plain, weights)
    _kernel()(steps, model, shares, chunk.label_seed, chunk.first, *runs, *by_arm, *scratch, *results)
    return sums


def sum_chunks(
    model: Model, shares: Floats, chunks: Sequence[Chunk], totals: Sequence[SourceSums], threads: int
) -> None:
    """Add the sums over all chunks, in their order, to those of their bandits in `totals`."""
    steps, halt = tabulate(model), current_halt()

    def add(chunk: Chunk) -> SourceSums:
        halt.check()
        return sum_chunk(model, steps, shares, chunk, NO_WEIGHTS)

    with ExitStack() as stack:
        # One thread is the caller's own, so that its CPU time is counted there.
        apply = map if threads == 1 else stack.enter_context(ThreadPoolExecutor(threads)).map
        for part in apply(add, chunks):
            totals[part.source].add(part)


def cut_chunks(source: int, label_seed: int, first: int, outcomes: Outcomes) -> list[Chunk]:
    """Cut runs on a bandit, of which the first has number `first`, into chunks."""
    runs = len(outcomes.pulls)
    return [
        Chunk(source, label_seed, first + start, outcomes.part(start, min(start + CHUNK, runs)))
        for start in range(0, runs, CHUNK)
    ]
