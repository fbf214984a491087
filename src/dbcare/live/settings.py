"""What a study is asked to decide: its arms, what things cost, what rewards look like, and by which policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from dbcare import validation
from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.policies.breakeven import Breakeven
from dbcare.policies.breakeven_racing import BreakevenRacing
from dbcare.policies.dbcare import DBCARE
from dbcare.policies.policy import Policy
from dbcare.risk import Loss, Risk

POLICIES = ("breakeven", "breakeven-racing", "dbcare")
BINARY = (0.0, 1.0)
DIRECTIONS = ("maximize", "minimize")


@dataclass(frozen=True)
class Settings:
    """All that makes a study; two studies with equal settings ask alike for the same answers.

    `cost` is in units of the loss, one for all arms or one for each; with a `value`, amounts are shown in money.
    Rewards are known by `sigma`, or by the `bounds` they stay within, or are `binary`: 0 or 1.
    """

    arms: tuple[str, ...]
    cost: float | tuple[float, ...]
    value: float | None = None
    unit: str = "USD"
    risk: str = str(Loss.SIMPLE_REGRET)
    direction: str = "maximize"
    sigma: float | None = None
    bounds: tuple[float, float] | None = None
    binary: bool = False
    policy: str = "breakeven"
    max_spend: float | None = None  # as `cost`
    max_ahead: int | None = None  # trials asked and not counted; None: twice the workers seen, at least one round
    timeout_reward: float | None = None  # what an expired trial counts as; None: it is replaced
    seed: int = 0

    def __post_init__(self) -> None:
        validation.one_of("policy", self.policy, POLICIES)
        validation.one_of("direction", self.direction, DIRECTIONS)
        validation.one_of("risk", self.risk, list(Loss))
        validation.text("unit", self.unit)
        if not isinstance(self.binary, bool):
            raise InvalidValueError(f"`binary` must be True or False but got {self.binary!r}.")
        if self.binary and (self.sigma is not None or self.bounds not in (None, BINARY)):
            raise InvalidValueError(
                f"`binary` must stand without sigma and bounds but got sigma={self.sigma} and bounds={self.bounds}."
            )
        validation.settle(
            self,
            arms=_names(self.arms),
            cost=self._risk.cost,
            bounds=BINARY if self.binary else _interval(self.bounds),
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            max_spend=None if self.max_spend is None else validation.positive("max_spend", self.max_spend),
            max_ahead=None if self.max_ahead is None else validation.whole("max_ahead", self.max_ahead, at_least=1),
            seed=validation.whole("seed", self.seed, at_least=0),
        )
        if self.timeout_reward is not None:
            validation.settle(self, timeout_reward=self.counted("timeout_reward", self.timeout_reward))
        _ = self.made  # refuses what the policy refuses

    @property
    def _risk(self) -> Risk:
        return Risk(Loss(self.risk), self.cost, self.value)

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: policies always maximize."""
        return 1.0 if self.direction == "maximize" else -1.0

    @cached_property
    def made(self) -> Policy:
        """The policy that decides."""
        return self.policy_among(range(len(self.arms)))

    def policy_among(self, arms: Sequence[int]) -> Policy:
        """The policy that decides between some of the arms."""
        cost = self.cost if isinstance(self.cost, float) else tuple(self.costs[arm] for arm in arms)
        risk = Risk(Loss(self.risk), cost, self.value)
        width = None if self.bounds is None else self.bounds[1] - self.bounds[0]
        sigma = self.spread
        if self.policy == "breakeven":
            return Breakeven(risk, len(arms), sigma, bound=width)
        if self.policy == "breakeven-racing":
            return BreakevenRacing(risk, len(arms), sigma)  # type: ignore[arg-type]  # None is refused with a word
        return DBCARE(risk, len(arms), sigma, bound=1.0 if width is None else width)  # type: ignore[arg-type]  # as above

    @property
    def spread(self) -> float | None:
        """The standard deviation that the policy goes by: `sigma`, or half of the range; None if it has to learn it."""
        if self.sigma is None and self.bounds is not None:
            return (self.bounds[1] - self.bounds[0]) / 2.0
        return self.sigma

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The cost of a trial of each arm."""
        return self._risk.costs(len(self.arms))

    def amount(self, number: float) -> str:
        """An amount of loss or cost in words: in money where there is a value."""
        return self._risk.amount(number) + (f" {self.unit}" if self.value is not None else "")

    def counted(self, name: str, reward: Any) -> float:
        """A reward as it was given, if it can be one."""
        number = float(reward) if isinstance(reward, bool) else validation.real(name, reward)
        if abs(number) > self.made.largest_reward:
            raise InvalidRewardError(
                f"`{name}` must be at most {self.made.largest_reward:g} in size but got {number:g}."
            )
        if self.binary and number not in BINARY:
            raise InvalidRewardError(f"`{name}` must be 0 or 1 but got {number:g}.")
        if self.bounds is not None and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise InvalidRewardError(f"`{name}` must lie within the bounds {low:g} to {high:g} but got {number:g}.")
        return number

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Settings:
        """The settings that `to_dict` described."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        return cls(**given)

    def differences(self, other: Settings) -> list[str]:
        """What differs, each as "price: 1 here, 2 stored"."""
        return [
            f"{field.name}: {getattr(self, field.name)!r} given, {getattr(other, field.name)!r} stored"
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


def _names(arms: Any) -> tuple[str, ...]:
    if isinstance(arms, str) or not isinstance(arms, Sequence):
        raise InvalidValueError(f"`arms` must be a sequence of names but got {arms!r}.")
    for arm in arms:
        validation.text("arms", arm)
    if len(arms) < 2 or len(set(arms)) != len(arms):
        raise InvalidValueError(f"`arms` must be 2 or more different names but got {list(arms)!r}.")
    return tuple(arms)


def _interval(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {bounds!r}.")
    low, high = (validation.real("bounds", each) for each in bounds)
    if not low < high:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {low:g} and {high:g}.")
    return low, high
