"""Replay logs, with or without blocks: where a policy would have stopped, in many orders, and what that saves.

One log in one order is one draw. If the rewards of each arm are exchangeable, any order of them is as honest a run of
the policy as the log's own, so what it spends and chooses on average over orders is unbiased, unless orders run out of
data, and varies less. Orders are drawn without replacement: drawn with replacement, rewards that were never logged
would be made up of those that were, and a study that needs more data than there are would seem to end. The orders share
their rewards with each other and with the means of the whole log, so they differ less from these than new data would,
especially if the policy uses much of the log.

The policy asks for an arm and gets the next reward of that arm in the log, until it stops or an arm has no more. If the
rewards of an arm are exchangeable (no trend over time, no selection of who gets which arm), that is one honest run of
the policy: each reward it sees is as good a draw as any other.

The blocks of the log are the pool of a study: the policy asks for an arm, which takes its next block in an order that
all arms share. If blocks are exchangeable, any order of them is as honest a run as the log's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.base.frames import FrameColumns, list_rows, open_frame
from dbcare.base.options import read_options
from dbcare.errors import InvalidValueError
from dbcare.policies.build import refuse_unknown
from dbcare.policies.rule import STOP, BlockRule
from dbcare.problem.risk import Loss
from dbcare.problem.spread import BINARY
from dbcare.replay.block_logs import BlockLog
from dbcare.replay.logs import is_count_name, parse_number, refuse_totals
from dbcare.replay.words import describe_replay
from dbcare.studies.options import ReplayOptions
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.results.doubts import list_contradictions
from dbcare.studies.results.report import list_arms, make_recommendation
from dbcare.studies.results.status import ArmStatus, Recommendation
from dbcare.studies.settings import Settings

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame


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


DEFAULT_ORDERS = 20
MAX_ORDERS = 10_000


@dataclass(frozen=True)
class LoggedArm:
    """An arm of the log.

    Parameters
    ----------
    name : str
        The arm's name.
    logged : int
        Its rewards in the log.
    mean : float
        Their mean.
    used : int
        How many of them the policy used, in the log's own order.
    chosen : int
        In how many orders the policy chose it.
    status : ArmStatus
        What the whole log says about the arm, as a study says it: with rewards as they count under a cap.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> arm = replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).arms[0]
    >>> arm.logged, arm.mean, arm.chosen
    (50, 1.0, 20)
    """

    name: str
    logged: int
    mean: float
    used: int
    chosen: int
    status: ArmStatus


@dataclass(frozen=True)
class Replay:
    """What a policy would have done with logged data; amounts in money, or in units of the loss without a value.

    Parameters
    ----------
    settings : Settings
        What the policy was asked to decide.
    arms : tuple of LoggedArm
        The arms of the log.
    recommendation : Recommendation
        The policy's, where it ended in the log's own order.
    best : str
        The arm with the best mean of the whole log.
    logged_cost : float
        Cost of all trials in the log.
    orders : tuple of ReplayedOrder
        What it did in each order, the log's own first.
    capped : int
        How many logged rewards are above the cap.
    notes : tuple of str
        One sentence per assumption that the whole log contradicts, as in `Status`.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> replay = replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5)
    >>> replay.stopped, replay.recommendation.arm, replay.used < replay.logged
    (True, 'A', True)
    """

    settings: Settings
    arms: tuple[LoggedArm, ...]
    recommendation: Recommendation
    best: str
    logged_cost: float
    orders: tuple[ReplayedOrder, ...]
    capped: int
    notes: tuple[str, ...]

    @property
    def wanted(self) -> str | None:
        """The arm it wanted more of than was logged, in the log's own order; None if it stopped."""
        return self.orders[0].wanted

    @property
    def stopped(self) -> bool:
        """Whether the policy stopped by itself."""
        return self.wanted is None

    @property
    def logged(self) -> int:
        """Trials in the log."""
        return sum(arm.logged for arm in self.arms)

    @property
    def used(self) -> int:
        """Trials that the policy used."""
        return sum(arm.used for arm in self.arms)

    @property
    def spent(self) -> float:
        """What those cost."""
        return self.recommendation.spent

    @property
    def forgone(self) -> float:
        """What the policy's choice loses against the best arm, if the means of the whole log were the truth."""
        return self.orders[0].loss

    @property
    def saved(self) -> float:
        """What the log cost, less what the policy spent, less what its choice loses."""
        return compute_savings(self.logged_cost, self.spent, self.forgone)

    @cached_property
    def over_orders(self) -> OrderSummary:
        """Averages and quantiles over all orders."""
        return summarize_orders(self.orders, self.logged_cost)

    def sentences(self) -> list[str]:
        """Return the replay in words, the main result first."""
        return describe_replay(self)

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), *(f"Note: {note}." for note in self.notes)])


def replay_log(
    observations: Iterable[tuple[str, float]] | IntoFrame,
    *,
    orders: int = DEFAULT_ORDERS,
    progress: bool = False,
    **options: Unpack[ReplayOptions],
) -> Replay:
    """Replay logged data: where a policy would have stopped, and what that would have saved.

    Parameters
    ----------
    observations : iterable of tuple or data frame
        Arm and reward of each observation, as `read_log` returns them; or a data frame of pandas, polars or Arrow with
        the columns `arm` and `reward`.
    orders : int
        How many orders of the rewards to replay: the log's own, and random ones. Any order is an honest run if the
        rewards of each arm are exchangeable, so averages over orders say more than a single run. The orders share
        their rewards, so they differ less than new data would, especially if they use much of the log.
    progress : bool
        Whether to show on standard error how many orders are done, if it is a terminal.
    **options
        Those of `create_study` that describe costs, rewards and the policy: price, value, cost, direction, risk,
        sigma, baseline, bounds, binary, sigma_pulls, cap, control, policy, currency and seed. Prices per arm are by
        name, or in the order in which the arms first appear. The seed is also that of the random orders.

    Returns
    -------
    Replay
        What would have happened; print it for sentences.

    Raises
    ------
    InvalidValueError
        If an option is invalid, the log has rewards of fewer than two arms, or it is a table of totals: it has one row
        per arm or, in a data frame, a column with counts, as `read_log` tells them.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> print(replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).sentences()[0])
    Would have chosen A in all 20 orders, spent 0.03 of 1.
    """
    refuse_unknown("Options of a replay", options, read_options(ReplayOptions))
    orders = checks.whole("orders", orders, at_least=1, at_most=MAX_ORDERS)
    if isinstance(observations, Mapping):
        raise InvalidValueError(
            "`observations` must be pairs of an arm's name and a reward, which `read_log` makes of a mapping, but got "
            f"a {type(observations).__name__}."
        )
    source = open_frame(observations) or observations
    counts = source.read(list(filter(is_count_name, source.names))) if isinstance(source, FrameColumns) else {}
    listed = list_rows("observations", source, ("arm", "reward"))
    rows = checks.pairs("observations", listed, "pairs of an arm's name and a reward")
    rewards: dict[str, list[float]] = {}
    for arm, reward in rows:
        checks.text("arm", arm)
        rewards.setdefault(arm, []).append(reward)
    if len(rewards) < 2:
        names = ", ".join(map(repr, rewards)) or "none"
        raise InvalidValueError(f"A log must have rewards of 2 or more arms but got those of {names}.")
    refuse_totals("`observations`", [arm for arm, _ in rows], [parse_number(reward) for _, reward in rows], counts, ())
    settings = Settings.from_options(list(rewards), **options)
    log = [
        [
            settings.check_reward(f"reward {number} of {name}", reward)
            for number, reward in enumerate(rewards[name], start=1)
        ]
        for name in settings.arms
    ]
    return _replay(settings, log, orders, checks.flag("progress", progress))


def _replay(settings: Settings, log: Sequence[Sequence[float]], orders: int, progress: bool) -> Replay:
    means = [math.fsum(rewards) / len(rewards) for rewards in log]
    best = max(range(len(log)), key=lambda arm: settings.sign * means[arm])
    find_loss = make_loss_finder(settings, means)
    with showing_orders(orders, progress) as advance:
        recommendation, own = _replay_own_order(settings, log, find_loss)
        replayed = [own]
        advance()
        for order in replay_orders(settings, log, orders, find_loss):
            replayed.append(order)
            advance()
    chosen = Counter(order.arm for order in replayed)
    whole = _count_all(settings, log)
    return Replay(
        settings=settings,
        arms=tuple(
            LoggedArm(status.name, len(rewards), mean, used, chosen[status.name], status)
            for status, rewards, mean, used in zip(list_arms(whole, best), log, means, own.used, strict=True)
        ),
        recommendation=recommendation,
        best=settings.arms[best],
        logged_cost=add_up(settings, [len(rewards) for rewards in log]),
        orders=tuple(replayed),
        capped=sum(statistics.capped for statistics in whole.statistics),
        notes=list_contradictions(whole),
    )


def _replay_own_order(
    settings: Settings, log: Sequence[Sequence[float]], find_loss: Callable[[int], float]
) -> tuple[Recommendation, ReplayedOrder]:
    """Step the policy of a study through the rewards of each arm, as its only worker."""
    ledger = Ledger(settings)
    used = [0] * len(log)
    while (arm := ledger.next_arm()) is not None and used[arm] < len(log[arm]):
        number = ledger.asked + 1
        ledger.apply(Event(EventKind.ASKED, 0.0, number, arm, block=ledger.decision.next_block(arm)))
        ledger.apply(Event(EventKind.TOLD, 0.0, number, arm, log[arm][used[arm]]))
        used[arm] += 1
    recommendation = make_recommendation(ledger)
    wanted = None if arm is None else settings.arms[arm]
    chosen = ledger.decision.recommended if ledger.recommended is None else ledger.recommended
    order = ReplayedOrder(settings.arms[chosen], tuple(used), recommendation.spent, find_loss(chosen), wanted)
    return recommendation, order


def _count_all(settings: Settings, log: Sequence[Sequence[float]]) -> Ledger:
    """Return a ledger with the statistics of the whole log, which no policy has seen."""
    ledger = Ledger(settings)
    for statistics, rewards in zip(ledger.statistics, log, strict=True):
        for reward in rewards:
            counted = settings.count_as(reward)
            statistics.add(counted)
            statistics.answered += 1
            statistics.tail.capped += counted < reward
    return ledger


def replay_blocks(
    log: BlockLog,
    *,
    orders: int = DEFAULT_ORDERS,
    progress: bool = False,
    only_these_blocks: bool = False,
    **options: Unpack[ReplayOptions],
) -> Replay:
    """Replay a log of arms that share blocks: where a policy would have stopped, and what that would have saved.

    Parameters
    ----------
    log : BlockLog
        The rewards of every arm in every block, as `read_block_log` returns them.
    orders : int
        How many orders of the blocks to replay: the log's own, and random ones.
    progress : bool
        As in `replay_log`.
    only_these_blocks : bool
        Whether the decision is about these blocks alone, rather than about more like them.
    **options
        As in `replay_log`. Without a `price` or `cost`, the prices in the log are charged, which requires a `value`.

    Returns
    -------
    Replay
        What would have happened; print it for sentences.

    Raises
    ------
    InvalidValueError
        If an option is invalid, or the log has fewer than two arms or blocks.

    Examples
    --------
    >>> from dbcare import replay_blocks
    >>> from dbcare.replay import BlockLog
    >>> rewards = tuple(tuple(0.4 * arm + 0.1 * (block % (7 + arm)) for block in range(50)) for arm in range(2))
    >>> log = BlockLog(("A", "B"), tuple(map(str, range(50))), rewards)
    >>> print(replay_blocks(log, price=0.01, value=100).sentences()[0])
    Would have chosen B in all 20 orders, spent 0.154 of 1.00 USD.
    """
    orders = checks.whole("orders", orders, at_least=1, at_most=MAX_ORDERS)
    if not isinstance(log, BlockLog):
        raise InvalidValueError(f"`log` must be a BlockLog, which `read_block_log` returns, but got {show(log)}.")
    if len(log.arms) < 2 or len(log.blocks) < 2:
        raise InvalidValueError(
            f"A log must have 2 or more arms and blocks but got {len(log.arms)} arms and {len(log.blocks)} blocks that "
            "all of them share."
        )
    given: dict[str, Any] = dict(options)
    states_price = given.get("price") is not None or given.get("cost") is not None
    if not states_price and log.prices is not None:
        means = [math.fsum(prices) / len(prices) for prices in log.prices]
        # A free arm has a price too small to matter, as costs must be positive.
        given["price"] = [max(mean, checks.MIN_MAGNITUDE) for mean in means]
    if log.averaged and given.pop("binary", False):
        given.setdefault("bounds", BINARY)  # of means
    settings = Settings.from_options(
        list(log.arms), blocks=len(log.blocks), only_these_blocks=only_these_blocks, **given
    )
    return _BlockReplay(settings, log, log.prices if not states_price else None).replay(
        orders, checks.flag("progress", progress)
    )


class _BlockReplay:
    """A log as a policy sees it: rewards as they count, and costs in units of the loss."""

    def __init__(self, settings: Settings, log: BlockLog, prices: Sequence[Sequence[float]] | None) -> None:
        self.settings = settings
        self.rewards = [
            [
                settings.check_reward(f"reward of {arm} in block {block}", reward)
                for block, reward in zip(log.blocks, rewards, strict=True)
            ]
            for arm, rewards in zip(log.arms, log.rewards, strict=True)
        ]
        if prices is None:
            self.costs = [[cost] * len(log.blocks) for cost in settings.costs]
        else:
            self.costs = [[price / (settings.value or 1.0) for price in row] for row in prices]

    def replay(self, orders: int, progress: bool) -> Replay:
        """Return the replay in the log's own order and in random ones."""
        settings = self.settings
        means = [math.fsum(rewards) / len(rewards) for rewards in self.rewards]
        best = max(range(len(means)), key=lambda arm: settings.sign * means[arm])
        find_loss = make_loss_finder(settings, means)
        with showing_orders(orders, progress) as advance:
            recommendation, own = self._replay_own_order(find_loss)
            replayed = [own]
            advance()
            for order in self._replay_orders(orders, find_loss):
                replayed.append(order)
                advance()
        chosen = Counter(order.arm for order in replayed)
        whole = self._count_all()
        statuses = zip(list_arms(whole, best), self.rewards, means, own.used, strict=True)
        return Replay(
            settings=settings,
            arms=tuple(
                LoggedArm(status.name, len(rewards), mean, used, chosen[status.name], status)
                for status, rewards, mean, used in statuses
            ),
            recommendation=recommendation,
            best=settings.arms[best],
            logged_cost=math.fsum(map(math.fsum, self.costs)) * (settings.value or 1.0),
            orders=tuple(replayed),
            capped=sum(statistics.capped for statistics in whole.statistics),
            notes=(),
        )

    def _replay_own_order(self, find_loss: Callable[[int], float]) -> tuple[Recommendation, ReplayedOrder]:
        """Step the policy of a study through the blocks, as its only worker."""
        ledger = Ledger(self.settings)
        used = [0] * len(self.rewards)
        while (arm := ledger.next_arm()) is not None:
            number, block = ledger.asked + 1, ledger.decision.next_block(arm)
            assert block is not None  # the study has blocks
            ledger.apply(Event(EventKind.ASKED, 0.0, number, arm, block=block))
            reward, cost = self.rewards[arm][block], self.costs[arm][block]
            ledger.apply(Event(EventKind.TOLD, 0.0, number, arm, reward, price=cost))
            used[arm] += 1
        recommendation = make_recommendation(ledger)
        chosen = ledger.decision.recommended if ledger.recommended is None else ledger.recommended
        arm_name = self.settings.arms[chosen]
        return recommendation, ReplayedOrder(arm_name, tuple(used), recommendation.spent, find_loss(chosen), None)

    def _replay_orders(self, orders: int, find_loss: Callable[[int], float]) -> Iterator[ReplayedOrder]:
        """Yield what the policy does with random orders of the blocks, by its rule alone."""
        settings, policy = self.settings, self.settings.built_policy
        rule, tables = policy.rule, policy.tables
        assert isinstance(rule, BlockRule)  # the settings have blocks
        counted = [[settings.sign * settings.count_as(reward) for reward in rewards] for rewards in self.rewards]
        for number in range(1, orders):
            generator = np.random.default_rng([settings.seed, number])
            order = generator.permutation(len(counted[0])).tolist()
            state = policy.start(seed=int(generator.integers(2**32))).state
            used, spent = [0] * len(counted), 0.0
            while (arm := int(rule.ask(state, tables))) != STOP:
                block = int(rule.block(state, tables, arm))
                reward, cost = counted[arm][order[block]], self.costs[arm][order[block]]
                rule.tell_block(state, tables, arm, block, reward, cost)
                used[arm] += 1
                spent += cost
            chosen = int(rule.recommend(state, tables))
            if not any(used) and settings.control_index is not None:  # without data, the control stays
                chosen = settings.control_index
            money = spent * (settings.value or 1.0)
            yield ReplayedOrder(settings.arms[chosen], tuple(used), money, find_loss(chosen), None)

    def _count_all(self) -> Ledger:
        """Return a ledger with the statistics of the whole log, and the policy's comparisons on all its blocks."""
        settings = self.settings
        ledger = Ledger(settings)
        run, policy = ledger.decision.run, settings.built_policy
        assert run is not None  # there are two arms or more
        assert isinstance(policy.rule, BlockRule)  # the settings have blocks
        for block in range(len(self.rewards[0])):
            for arm, statistics in enumerate(ledger.statistics):
                reward = self.rewards[arm][block]
                counted = settings.count_as(reward)
                statistics.add(counted)
                statistics.answered += 1
                statistics.tail.capped += counted < reward
                policy.reopen(run.state)
                cost = self.costs[arm][block]
                policy.rule.tell_block(run.state, policy.tables, arm, block, settings.sign * counted, cost)
        return ledger
