"""What a policy would have done with a log of arms that share blocks, such as models that answered the same questions.

The blocks of the log are the pool of a study: the policy asks for an arm, which takes its next block in an order that
all arms share. If blocks are exchangeable, any order of them is as honest a run as the log's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidValueError
from dbcare.live.arm_report import list_arms
from dbcare.live.block_log import BlockLog
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.options import ReplayOptions
from dbcare.live.recommendation import Recommendation
from dbcare.live.replay import DEFAULT_ORDERS, MAX_ORDERS, LoggedArm, Replay
from dbcare.live.replay_orders import ReplayedOrder, make_loss_finder, showing_orders
from dbcare.live.report import make_recommendation
from dbcare.live.settings import Settings
from dbcare.policies.rule import STOP, BlockRule
from dbcare.problem.spread import BINARY


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
    >>> from dbcare import BlockLog, replay_blocks
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
