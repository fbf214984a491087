"""What a policy would have done with data that were collected before, such as in a test of fixed size.

The policy asks for an arm and gets the next reward of that arm in the log, until it stops or an arm has no more. If the
rewards of an arm are exchangeable (no trend over time, no selection of who gets which arm), that is one honest run of
the policy: each reward it sees is as good a draw as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from dbcare import validation
from dbcare.errors import InvalidValueError
from dbcare.live.events import Event, EventKind
from dbcare.live.ledger import Ledger
from dbcare.live.options import ReplayOptions
from dbcare.live.recommendation import Recommendation
from dbcare.live.report import make_recommendation
from dbcare.live.settings import Settings
from dbcare.money import Money
from dbcare.options import read_options
from dbcare.policies.factory import refuse_unknown
from dbcare.risk import Loss


@dataclass(frozen=True)
class LoggedArm:
    """An arm of the log: how many rewards there are, their mean, and how many of them the policy used.

    Parameters
    ----------
    name : str
        The arm's name.
    logged : int
        Its rewards in the log.
    mean : float
        Their mean.
    used : int
        How many of them the policy used.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).arms[0].logged
    50
    """

    name: str
    logged: int
    mean: float
    used: int


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
        The policy's, where it ended.
    best : str
        The arm with the best mean of the whole log.
    logged_cost : float
        Cost of all trials in the log.
    wanted : str or None
        The arm it wanted more of than was logged; None if it stopped.
    capped : int
        How many logged rewards are above the cap.

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
    wanted: str | None
    capped: int

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
    def saved(self) -> float:
        """What the rest of the log cost."""
        return self.logged_cost - self.spent

    @property
    def forgone(self) -> float:
        """What the policy's choice loses against the best arm, if the means of the whole log were the truth."""
        means = {arm.name: arm.mean for arm in self.arms}
        gap = abs(means[self.best] - means[self.recommendation.arm or self.best])
        loss = gap if self.settings.risk == Loss.SIMPLE_REGRET else float(gap > 0.0)
        return loss * (self.settings.value or 1.0)

    def sentences(self) -> list[str]:
        """Return the replay in words."""
        choice, by_arm = self.recommendation, {arm.name: arm for arm in self.arms}
        parts = ", ".join(f"{arm.used:,} of {arm.name}" for arm in self.arms)
        trials = f"{self.used:,} of the {self.logged:,} logged trials ({parts})"
        if self.wanted is None:
            sentences = [f"It would have stopped after {trials} and chosen {choice.arm}."]
        else:
            logged = by_arm[self.wanted].logged
            sentences = [
                f"It would still be running: it wanted more of {self.wanted} than the {logged:,} trials logged. "
                f"It had used {trials}, and would choose {choice.arm} so far."
            ]
        best = f"Over the whole log {self.best} is best{' too' if self.best == choice.arm else ''}"
        sentences.append(f"{best}, with a mean of {by_arm[self.best].mean:.4g}.")
        if self.forgone:
            sentences.append(
                f"{choice.arm} has {by_arm[choice.arm or self.best].mean:.4g}: if these means were the truth, "
                f"choosing it would lose {self._money(self.forgone)}."
            )
        if self.capped:
            sentences.append(
                f"{self.capped:,} of the logged rewards are above the cap of {self.settings.cap:g}. They counted as "
                "that for the policy; the means over the whole log are without the cap."
            )
        spending = f"It would have spent {self._money(self.spent)} where the log cost {self._money(self.logged_cost)}"
        sentences.append(f"{spending}: {self._money(self.saved)} saved." if self.stopped else f"{spending}.")
        if choice.expected_loss is not None:
            sentences.append(f"Expected loss of that choice: {self._money(choice.expected_loss)}.")
        if not self.settings.spread.is_stated:
            sentences.append("Nothing was stated about the spread of the rewards, so it was learned from them.")
        sentences.append(
            "This holds if the rewards of each arm are exchangeable over time: no trend, no seasons, no change of "
            "audience."
        )
        return sentences

    def _money(self, amount: float) -> Money:
        return Money(amount, self.settings.currency)

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def replay_log(observations: Iterable[tuple[str, float]], **options: Unpack[ReplayOptions]) -> Replay:
    """Replay logged data: where a policy would have stopped, and what that would have saved.

    Parameters
    ----------
    observations : iterable of tuple
        Arm and reward of each observation, as `read_log` returns them.
    **options
        Those of `create_study` that describe costs, rewards and the policy: price, value, cost, direction, risk,
        sigma, baseline, bounds, binary, sigma_pulls, cap, policy, unit and seed. Prices per arm are by name, or in the
        order in which the arms first appear.

    Returns
    -------
    Replay
        What would have happened; print it for sentences.

    Raises
    ------
    InvalidValueError
        If an option is invalid, or the log has rewards of fewer than two arms.

    Examples
    --------
    >>> from dbcare import replay_log
    >>> print(replay_log([("A", 1.0), ("B", 0.0)] * 50, cost=0.01, sigma=0.5).sentences()[1])
    Over the whole log A is best too, with a mean of 1.
    """
    refuse_unknown("Options of a replay", options, read_options(ReplayOptions))
    rewards: dict[str, list[float]] = {}
    for arm, reward in validation.pairs("observations", observations, "pairs of an arm's name and a reward"):
        validation.text("arm", arm)
        rewards.setdefault(arm, []).append(reward)
    if len(rewards) < 2:
        names = ", ".join(map(repr, rewards)) or "none"
        raise InvalidValueError(f"A log must have rewards of 2 or more arms but got those of {names}.")
    return _replay(Settings.from_options(list(rewards), **options), rewards)


def _replay(settings: Settings, rewards: Mapping[str, Sequence[float]]) -> Replay:
    """Step the policy of a study through the rewards of each arm, as its only worker."""
    log = [
        [
            settings.check_reward(f"reward {number} of {name}", reward)
            for number, reward in enumerate(rewards[name], start=1)
        ]
        for name in settings.arms
    ]
    ledger = Ledger(settings)
    used = [0] * len(log)
    while (arm := ledger.next_arm()) is not None and used[arm] < len(log[arm]):
        number = ledger.asked + 1
        ledger.apply(Event(EventKind.ASKED, 0.0, number, arm))
        ledger.apply(Event(EventKind.TOLD, 0.0, number, arm, log[arm][used[arm]]))
        used[arm] += 1
    means = [math.fsum(arm_rewards) / len(arm_rewards) for arm_rewards in log]
    best = max(range(len(log)), key=lambda index: settings.sign * means[index])
    cost = math.fsum(len(arm_rewards) * price for arm_rewards, price in zip(log, settings.costs, strict=True))
    return Replay(
        settings=settings,
        arms=tuple(
            LoggedArm(name, len(arm_rewards), mean, count)
            for name, arm_rewards, mean, count in zip(settings.arms, log, means, used, strict=True)
        ),
        recommendation=make_recommendation(ledger),
        best=settings.arms[best],
        logged_cost=cost * (settings.value or 1.0),
        wanted=None if arm is None else settings.arms[arm],
        capped=sum(settings.count_as(reward) < reward for arm_rewards in log for reward in arm_rewards),
    )
