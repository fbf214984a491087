"""A replay in words, the main result first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbcare.base.numbers import Money

if TYPE_CHECKING:
    from dbcare.replay.replay import Replay

MANY_SHARED = 0.5  # of the log, used on average: the orders then share most of their rewards


def describe_replay(replay: Replay) -> list[str]:
    """Return the headline, and what is behind it."""
    return [
        describe_result(replay),
        _describe_own_order(replay),
        *_describe_orders(replay),
        *_describe_used_up(replay),
        _describe_best(replay),
        *_describe_savings(replay),
        *_describe_assumptions(replay),
    ]


def describe_result(replay: Replay) -> str:
    """Return the headline: what the policy would have chosen, spent, and lost."""
    total = replay.over_orders
    spent = f"spent {_range(replay, 'of', total.spent, replay.logged_cost)}"
    loss = f", expected loss {_money(replay, total.loss)}" if total.loss else ""
    if not _ends(replay):
        where = _count_orders(replay, total.ran_out)
        return f"Would still be running{where}: the log is too short for a decision; {spent} so far."
    if 2 * total.wrong > total.orders:
        losing = {order.arm for order in replay.orders if order.loss > 0.0}
        where, wrong = _count_orders(replay, total.wrong), ", ".join(arm for arm in total.chosen if arm in losing)
        return f"Would have chosen wrongly{where} ({wrong}; the log's best arm is {replay.best}), {spent}{loss}."
    arm, times = next(iter(total.chosen.items()))
    return f"Would have chosen {arm}{_count_orders(replay, times)}, {spent}{loss}."


def _describe_own_order(replay: Replay) -> str:
    choice = replay.recommendation
    parts = ", ".join(f"{arm.used:,} of {arm.name}" for arm in replay.arms)
    trials = f"{replay.used:,} of the {replay.logged:,} logged trials ({parts})"
    expected = ""
    if choice.expected_loss is not None:
        expected = f", where it expected that choice to lose {_money(replay, choice.expected_loss)}"
    if replay.wanted is None:
        return f"In the log's own order, it would have stopped after {trials} and chosen {choice.arm}{expected}."
    logged = next(arm.logged for arm in replay.arms if arm.name == replay.wanted)
    return (
        f"In the log's own order, it wanted more of {replay.wanted} than the {logged:,} trials logged. It had used "
        f"{trials}, and would choose {choice.arm} so far{expected}."
    )


def _describe_orders(replay: Replay) -> list[str]:
    total = replay.over_orders
    if total.orders == 1:
        return []
    losses = {order.arm: order.loss for order in replay.orders}
    choices = ", ".join(
        f"{arm} in {times:,}" + (f" (loses {_money(replay, losses[arm])})" if losses[arm] else "")
        for arm, times in total.chosen.items()
    )
    sentences = [
        f"Over {total.orders:,} orders, the log's own and {total.orders - 1:,} drawn at random, it chose {choices}, "
        f"and spent {_range(replay, 'to', *total.spent_range)} (5% to 95%)."
    ]
    if total.ran_out:
        sentences.append(
            f"It ran out of data{_count_orders(replay, total.ran_out)}: these count with what they had spent, and with "
            "the choice so far."
        )
    share = sum(sum(order.used) for order in replay.orders) / total.orders / replay.logged
    if share > MANY_SHARED:
        sentences.append(
            f"It used {share:.0%} of the log on average, so the orders share many rewards, and differ less than new "
            "data would."
        )
    return sentences


def _describe_used_up(replay: Replay) -> list[str]:
    """Return in how many orders a pool of blocks did not suffice, or just did."""
    times = sum(max(order.used) == replay.settings.pool for order in replay.orders)
    if not times:
        return []
    where = _count_orders(replay, times).removeprefix(" ") or "in the log's own order"
    return [f"{where[0].upper()}{where[1:]}, it used every block: with a longer log, it might have gone on."]


def _describe_best(replay: Replay) -> str:
    means = {arm.name: arm.mean for arm in replay.arms}
    chosen = replay.orders[0].arm
    other = (
        "" if chosen == replay.best or means[chosen] == means[replay.best] else f"; {chosen} has {means[chosen]:.4g}"
    )
    return f"Over the whole log, {replay.best} has the best mean, {means[replay.best]:.4g}{other}."


def _describe_savings(replay: Replay) -> list[str]:
    """Return what is saved, as the sum that it is; nothing where most orders did not end."""
    total = replay.over_orders
    if not _ends(replay):
        return []
    average = "" if total.orders == 1 else " on average"
    parts = (
        f"{_money(replay, replay.logged_cost)} for the log - {_money(replay, total.spent)} spent - "
        f"{_money(replay, total.loss)} lost by the choice"
    )
    result = f"A net loss{average}" if total.saved < 0.0 else f"Saved{average}"
    return [f"{result}: {parts} = {_money(replay, total.saved)}."]


def _describe_assumptions(replay: Replay) -> list[str]:
    sentences = []
    if replay.capped:
        sentences.append(
            f"{replay.capped:,} of the logged rewards are above the cap of {replay.settings.cap:g}. They counted as "
            "that for the policy and in intervals; the means over the whole log are without the cap."
        )
    if replay.settings.has_blocks:
        return [
            *sentences,
            "This holds if the log's blocks, such as questions, are like those that the choice is for.",
        ]
    if not replay.settings.spread.is_stated:
        sentences.append("Nothing was stated about the spread of the rewards, so it was learned from them.")
    return [
        *sentences,
        "This holds if the rewards of each arm are exchangeable over time: no trend, no seasons, no change of "
        "audience.",
    ]


def _money(replay: Replay, amount: float) -> Money:
    return Money(amount, replay.settings.currency)


def _range(replay: Replay, between: str, first: float, last: float) -> str:
    """Return two amounts, with the currency after the second one."""
    return f"{Money(first, None if replay.settings.currency is None else '')} {between} {_money(replay, last)}"


def _count_orders(replay: Replay, times: int) -> str:
    """Return in how many orders something was so; nothing if there is only one."""
    orders = replay.over_orders.orders
    return "" if orders == 1 else f" in {'all' if times == orders else f'{times:,} of'} {orders:,} orders"


def _ends(replay: Replay) -> bool:
    """Return whether the policy stopped in most orders."""
    return 2 * replay.over_orders.ran_out < replay.over_orders.orders
