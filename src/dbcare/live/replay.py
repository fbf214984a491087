"""What a policy would have done with data that were collected before, such as by a test of fixed size.

The policy asks for an arm and gets the next reward of that arm in the log, until it stops or an arm has no more. If the
rewards of an arm are exchangeable (no trend over time, no choice of who gets which arm), that is one honest run of the
policy: each reward it sees is as good a draw as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dbcare.errors import InvalidValueError
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.report import Recommendation, recommendation_of
from dbcare.live.settings import Settings
from dbcare.live.stores.memory import MemoryStore
from dbcare.live.studies import create_in
from dbcare.risk import Loss


@dataclass(frozen=True)
class LoggedArm:
    """An arm of the log: how many rewards there are, their mean, and how many of them the policy took."""

    name: str
    logged: int
    mean: float
    used: int


@dataclass(frozen=True)
class Replay:
    """What became of it; amounts in money, or in units of the loss where there is no value."""

    settings: Settings
    arms: tuple[LoggedArm, ...]
    recommendation: Recommendation  # of the policy, where it ended
    best: str  # the arm with the best mean of the whole log
    logged_cost: float  # of all trials in the log
    wanted: str | None  # the arm it wanted more of than was logged; None if it stopped

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
        """Trials that the policy took."""
        return sum(arm.used for arm in self.arms)

    @property
    def spent(self) -> float:
        """What they cost."""
        return self.recommendation.spent

    @property
    def saved(self) -> float:
        """What the rest of the log cost."""
        return self.logged_cost - self.spent

    @property
    def forgone(self) -> float:
        """What the policy's choice loses against the best arm, if the means of the whole log were the truth."""
        means = {arm.name: arm.mean for arm in self.arms}
        apart = abs(means[self.best] - means[self.recommendation.arm])
        loss = apart if self.settings.risk == Loss.SIMPLE_REGRET else float(apart > 0.0)
        return loss * (self.settings.value or 1.0)

    def amount(self, number: float) -> str:
        """An amount in words."""
        return self.settings.amount(number / (self.settings.value or 1.0))

    def __str__(self) -> str:
        return "\n".join(sentences(self))


def replay_log(
    observations: Iterable[tuple[str, float]],
    *,
    price: float | Sequence[float] | None = None,
    value: float | None = None,
    cost: float | Sequence[float] | None = None,
    direction: str = "maximize",
    risk: str = "simple_regret",
    sigma: float | None = None,
    bounds: tuple[float, float] | None = None,
    binary: bool = False,
    policy: str = "breakeven",
    unit: str = "USD",
    seed: int = 0,
) -> Replay:
    """Where a policy would have stopped on `observations`, pairs of arm and reward, and what that would have saved.

    The other arguments are those of `create_study`. Prices by arm are in the order in which the arms first appear.
    """
    rewards: dict[str, list[float]] = {}
    for arm, reward in observations:
        rewards.setdefault(arm, []).append(reward)
    if len(rewards) < 2:
        named = ", ".join(map(repr, rewards)) or "none"
        raise InvalidValueError(f"A log must have rewards of 2 or more arms but got those of {named}.")
    study = create_in(
        MemoryStore(),
        "log",
        list(rewards),
        load_if_exists=False,
        price=price,
        value=value,
        cost=cost,
        direction=direction,
        risk=risk,
        sigma=sigma,
        bounds=bounds,
        binary=binary,
        policy=policy,
        unit=unit,
        seed=seed,
        max_spend=None,
        max_ahead=None,
        timeout_reward=None,
    )
    return replay(study.settings, rewards)


def replay(settings: Settings, rewards: Mapping[str, Sequence[float]]) -> Replay:
    """Step the policy of a study through the rewards of each arm, as its only worker."""
    log = [
        [settings.counted(f"reward {number} of {name}", reward) for number, reward in enumerate(rewards[name], start=1)]
        for name in settings.arms
    ]
    ledger = Ledger(settings)
    used = [0] * len(log)
    while (arm := ledger.next_arm()) is not None and used[arm] < len(log[arm]):
        number = ledger.asked + 1
        ledger.apply(Event(EventKind.ASKED, 0.0, number, arm))
        ledger.apply(Event(EventKind.TOLD, 0.0, number, arm, log[arm][used[arm]]))
        used[arm] += 1
    means = [math.fsum(each) / len(each) for each in log]
    best = max(range(len(log)), key=lambda arm: settings.sign * means[arm])
    cost = math.fsum(len(each) * price for each, price in zip(log, settings.costs, strict=True))
    return Replay(
        settings=settings,
        arms=tuple(
            LoggedArm(name, len(each), mean, taken)
            for name, each, mean, taken in zip(settings.arms, log, means, used, strict=True)
        ),
        recommendation=recommendation_of(ledger),
        best=settings.arms[best],
        logged_cost=cost * (settings.value or 1.0),
        wanted=None if arm is None else settings.arms[arm],
    )


def sentences(found: Replay) -> list[str]:
    """A replay in words."""
    choice, by_arm = found.recommendation, {arm.name: arm for arm in found.arms}
    taken = ", ".join(f"{arm.used:,} of {arm.name}" for arm in found.arms)
    trials = f"{found.used:,} of the {found.logged:,} logged trials ({taken})"
    if found.wanted is None:
        said = [f"It would have stopped after {trials} and chosen {choice.arm}."]
    else:
        more = by_arm[found.wanted].logged
        said = [
            f"It would still be going on: it wanted more of {found.wanted} than the {more:,} that were logged. "
            f"It had taken {trials}, and would choose {choice.arm} so far."
        ]
    best = f"Over the whole log {found.best} is best{' too' if found.best == choice.arm else ''}"
    said.append(f"{best}, with a mean of {by_arm[found.best].mean:.4g}.")
    if found.forgone:
        chosen = f"{choice.arm} has {by_arm[choice.arm].mean:.4g}"
        said.append(f"{chosen}: if these means were the truth, choosing it would lose {found.amount(found.forgone)}.")
    spent, cost = found.amount(found.spent), found.amount(found.logged_cost)
    money = f"It would have spent {spent} where the log cost {cost}"
    said.append(f"{money}: {found.amount(found.saved)} saved." if found.stopped else f"{money}.")
    if choice.expected_loss is not None:
        said.append(f"Expected loss of that choice: {found.amount(choice.expected_loss)}.")
    said.append("This holds if the rewards of each arm are exchangeable over time: no trend, no season, no new public.")
    return said
