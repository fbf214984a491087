"""What a policy would have done with data that were collected before, such as in a test of fixed size.

The policy asks for an arm and gets the next reward of that arm in the log, until it stops or an arm has no more. If the
rewards of an arm are exchangeable (no trend over time, no selection of who gets which arm), that is one honest run of
the policy: each reward it sees is as good a draw as any other. So is a run over the same rewards in another order
(`dbcare.live.replay_orders`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from dbcare.base import checks
from dbcare.base.frames import FrameColumns, list_rows, open_frame
from dbcare.base.options import read_options
from dbcare.errors import InvalidValueError
from dbcare.live.arm_report import list_arms
from dbcare.live.diagnostics import list_contradictions
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.log_cells import parse_number
from dbcare.live.log_totals import is_count_name, refuse_totals
from dbcare.live.options import ReplayOptions
from dbcare.live.recommendation import ArmStatus, Recommendation
from dbcare.live.replay_orders import (
    OrderSummary,
    ReplayedOrder,
    add_up,
    compute_savings,
    make_loss_finder,
    replay_orders,
    showing_orders,
    summarize_orders,
)
from dbcare.live.replay_sentences import describe_replay
from dbcare.live.report import make_recommendation
from dbcare.live.settings import Settings
from dbcare.policies.build import refuse_unknown

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

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
