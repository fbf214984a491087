"""A policy on the rewards of a log, in several orders.

One log in one order is one draw. If the rewards of each arm are exchangeable, any order of them is as honest a run of
the policy as the log's own, so what it spends and chooses on average over orders is unbiased, unless orders run out of
data, and varies less. Orders are drawn without replacement: drawn with replacement, rewards that were never logged
would be made up of those that were, and a study that needs more data than there are would seem to end. The orders share
their rewards with each other and with the means of the whole log, so they differ less from these than new data would,
especially if the policy uses much of the log.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from dbcare.live.settings import Settings
from dbcare.policies.rule import STOP
from dbcare.problem.risk import Loss

LOW, HIGH = 0.05, 0.95  # quantiles over the orders
ROUNDING = 1e-12  # of the cost of a log: what sums of prices are off by, at most


@dataclass(frozen=True)
class ReplayedOrder:
    """A policy on the log's rewards in one order; amounts as in `Replay`.

    Parameters
    ----------
    arm : str
        The arm it chose, or would choose so far.
    used : tuple of int
        Trials used of each arm.
    spent : float
        What those cost.
    loss : float
        What the choice loses against the best arm, if the means of the whole log were the truth.
    wanted : str or None
        The arm it wanted more of than was logged; None if it stopped.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> order = replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).orders[0]
    >>> order.arm, order.loss, order.wanted
    ('A', 0.0, None)
    """

    arm: str
    used: tuple[int, ...]
    spent: float
    loss: float
    wanted: str | None


@dataclass(frozen=True)
class OrderSummary:
    """A policy over several orders of a log; amounts as in `Replay`.

    Parameters
    ----------
    orders : int
        How many.
    chosen : dict
        How often each arm was chosen, the most frequent first.
    wrong : int
        How often the choice was worse than the best arm, by the means of the whole log.
    ran_out : int
        How often the policy wanted more of an arm than was logged. Such an order counts with what it had spent, and
        with its choice so far.
    spent, loss : float
        Averages over the orders.
    spent_range, loss_range : tuple of float
        Their 5% and 95% quantiles.
    saved : float
        What is saved on average: the cost of the log, less what is spent, less the loss.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).over_orders.chosen
    {'A': 20}
    """

    orders: int
    chosen: dict[str, int]
    wrong: int
    ran_out: int
    spent: float
    spent_range: tuple[float, float]
    loss: float
    loss_range: tuple[float, float]
    saved: float


def compute_savings(logged_cost: float, spent: float, loss: float) -> float:
    """Return what the log cost, less what is spent, less the loss; exactly 0 where only rounding is left."""
    saved = logged_cost - spent - loss
    return saved if abs(saved) > ROUNDING * logged_cost else 0.0


def summarize_orders(orders: Sequence[ReplayedOrder], logged_cost: float) -> OrderSummary:
    """Return averages and quantiles over orders."""
    spent, loss = np.array([order.spent for order in orders]), np.array([order.loss for order in orders])

    def find_range(amounts: np.ndarray) -> tuple[float, float]:
        low, high = np.quantile(amounts, [LOW, HIGH])
        return float(low), float(high)

    return OrderSummary(
        orders=len(orders),
        chosen=dict(Counter(order.arm for order in orders).most_common()),
        wrong=sum(order.loss > 0.0 for order in orders),
        ran_out=sum(order.wanted is not None for order in orders),
        spent=float(spent.mean()),
        spent_range=find_range(spent),
        loss=float(loss.mean()),
        loss_range=find_range(loss),
        saved=compute_savings(logged_cost, float(spent.mean()), float(loss.mean())),
    )


@contextmanager
def showing_orders(orders: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """Show on a terminal how many orders are done, if that is wanted; yield the function to call after each."""
    if not wanted:
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415  # only if somebody looks
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("orders replayed", total=orders)
        yield lambda: progress.advance(bar)


def make_loss_finder(settings: Settings, means: Sequence[float]) -> Callable[[int], float]:
    """Return the function of an arm that says what choosing it loses, if these means were the truth."""
    best = max(settings.sign * mean for mean in means)

    def find_loss(arm: int) -> float:
        gap = best - settings.sign * means[arm]
        loss = gap if settings.risk == Loss.SIMPLE_REGRET else float(gap > 0.0)
        return loss * (settings.value or 1.0)

    return find_loss


def replay_orders(
    settings: Settings, log: Sequence[Sequence[float]], orders: int, find_loss: Callable[[int], float]
) -> Iterator[ReplayedOrder]:
    """Yield what the policy does with random orders of each arm's rewards; the log's own order is not among them.

    The policy's rule is called without a ledger, which would take several times as long.
    """
    policy = settings.built_policy
    rule, tables = policy.rule, policy.tables
    counted = [np.array([settings.sign * settings.count_as(reward) for reward in rewards]) for rewards in log]
    for number in range(1, orders):
        generator = np.random.default_rng([settings.seed, number])
        queues = [generator.permutation(rewards).tolist() for rewards in counted]
        state = policy.start(seed=int(generator.integers(2**32))).state
        used = [0] * len(queues)
        while (arm := int(rule.ask(state, tables))) != STOP and used[arm] < len(queues[arm]):
            rule.tell(state, tables, arm, queues[arm][used[arm]])
            used[arm] += 1
        chosen = int(rule.recommend(state, tables))
        if not any(used) and settings.control_index is not None:  # without data, the control stays
            chosen = settings.control_index
        yield ReplayedOrder(
            arm=settings.arms[chosen],
            used=tuple(used),
            spent=add_up(settings, used),
            loss=find_loss(chosen),
            wanted=None if arm == STOP else settings.arms[arm],
        )


def add_up(settings: Settings, trials: Sequence[int]) -> float:
    """Return what trials of each arm cost, in money where there is a value."""
    cost = math.fsum(number * cost for number, cost in zip(trials, settings.costs, strict=True))
    return cost * (settings.value or 1.0)
