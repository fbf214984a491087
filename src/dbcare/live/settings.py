"""What a study is asked to decide: its arms, what things cost, what rewards look like, and by which policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from dbcare import validation
from dbcare.errors import InvalidRewardError, InvalidValueError
from dbcare.live.options import DIRECTIONS, MAX_ARMS, MAX_DESCRIPTION_LENGTH, MAX_PENDING, StudyOptions
from dbcare.money import Money
from dbcare.options import read_options
from dbcare.policies.factory import refuse_unknown
from dbcare.policies.facts import PolicyFacts
from dbcare.policies.policy import Policy
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES, PolicyEntry
from dbcare.risk import Loss, Risk
from dbcare.validation import show

BINARY = (0.0, 1.0)
MIN_WIDTH = 2.0 * validation.MIN_MAGNITUDE  # half the width of the bounds is a standard deviation


@dataclass(frozen=True)
class Settings:
    """Everything that defines a study; studies with equal settings ask for the same trials given the same rewards.

    `cost` is in units of the loss, one for all arms or one per arm; with a `value`, amounts are shown in money.
    Rewards are described by `sigma`, by the `bounds` of their range, or as `binary`: 0 or 1.

    Parameters
    ----------
    arms, value, unit, risk, direction, sigma, bounds, binary, policy, max_ahead, timeout_reward, seed
        As in `create_study`.
    cost : float or tuple of float
        Cost of a trial in units of the loss, or one per arm.
    max_spend : float, optional
        Budget in units of the loss.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("settings example", arms=["A", "B"], price=0.4, value=100.0, sigma=0.5)
    >>> study.settings.cost, study.settings.policy_entry.label
    (0.004, 'Breakeven')
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
    policy: str = DEFAULT_POLICY
    max_spend: float | None = None  # in units of the loss, as `cost`
    max_ahead: int | None = None  # pending trials; None: twice the number of workers, but at least one per arm
    timeout_reward: float | None = None  # reward of an expired trial; None: the trial is replaced
    seed: int = 0
    description: str | None = field(default=None, compare=False)  # the first one: it may be edited since

    def __post_init__(self) -> None:
        POLICIES.entry(self.policy, live=True)
        validation.one_of("direction", self.direction, DIRECTIONS)
        validation.one_of("risk", self.risk, list(Loss))
        validation.text("unit", self.unit)
        check_description(self.description)
        bounds = _check_interval(self.bounds)
        if validation.flag("binary", self.binary) and (self.sigma is not None or bounds not in (None, BINARY)):
            raise InvalidValueError(
                "`binary` cannot be combined with sigma or bounds "
                f"but got sigma={show(self.sigma)} and bounds={bounds}."
            )
        validation.set_fields(
            self,
            arms=_check_names(self.arms),
            cost=self._risk.cost,
            value=self._risk.value,
            bounds=BINARY if self.binary else bounds,
            sigma=None if self.sigma is None else validation.positive("sigma", self.sigma),
            max_spend=None if self.max_spend is None else validation.positive("max_spend", self.max_spend),
            max_ahead=None if self.max_ahead is None else _check_ahead(self.max_ahead),
            seed=validation.whole("seed", self.seed, at_least=0),
        )
        _ = self.costs  # raises if there is not one per arm
        if self.timeout_reward is not None:
            validation.set_fields(self, timeout_reward=self.check_reward("timeout_reward", self.timeout_reward))
        _ = self.built_policy  # raises what the policy raises

    @classmethod
    def from_options(cls, arms: Any, **options: Unpack[StudyOptions]) -> Settings:
        """Return the settings that options describe: prices and limits in money become costs."""
        values: dict[str, Any] = dict(options)
        refuse_unknown("Options of a study", values, read_options(StudyOptions))
        loss = Loss(validation.one_of("risk", values.pop("risk", cls.risk), list(Loss)))
        make = Risk.simple_regret if loss is Loss.SIMPLE_REGRET else Risk.misidentification
        risk = make(values.pop("cost", None), price=values.pop("price", None), value=values.pop("value", None))
        limit = values.pop("max_spend", None)
        if isinstance(arms, Sequence) and not isinstance(arms, str) and len(arms) > MAX_ARMS:
            raise InvalidValueError(f"`arms` must be at most {MAX_ARMS:,} names but got {len(arms):,}.")
        return cls(
            arms=tuple(arms) if isinstance(arms, list) else arms,
            cost=risk.cost,
            value=risk.value,
            risk=str(loss),
            max_spend=None if limit is None else validation.positive("max_spend", limit) / (risk.value or 1.0),
            **values,
        )

    @property
    def _risk(self) -> Risk:
        return Risk(Loss(self.risk), self.cost, self.value)

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: policies always maximize."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def policy_entry(self) -> PolicyEntry:
        """The policy's entry in the registry."""
        return POLICIES.entry(self.policy, live=True)

    @cached_property
    def built_policy(self) -> Policy:
        """The policy that decides among all arms."""
        return self.build_policy(range(len(self.arms)))

    def build_policy(self, arms: Sequence[int]) -> Policy:
        """Build the policy that decides among some of the arms."""
        cost = self.cost if isinstance(self.cost, float) else tuple(self.costs[arm] for arm in arms)
        width = None if self.bounds is None else self.bounds[1] - self.bounds[0]
        facts = PolicyFacts(Risk(Loss(self.risk), cost, self.value), len(arms), self.spread, width)
        return self.policy_entry.build(facts)

    @property
    def spread(self) -> float | None:
        """The standard deviation that the policy assumes: `sigma`, or half the range; None if it must learn it."""
        if self.sigma is None and self.bounds is not None:
            return (self.bounds[1] - self.bounds[0]) / 2.0
        return self.sigma

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The cost of a trial of each arm, in units of the loss."""
        return self._risk.costs(len(self.arms))

    @property
    def currency(self) -> str | None:
        """The currency of amounts; None where they are in units of the loss."""
        return None if self.value is None else self.unit

    def money(self, amount: float) -> Money:
        """Return an amount in units of the loss as people read it."""
        return self._risk.money(amount, self.unit)

    def check_reward(self, name: str, reward: Any) -> float:
        """Return a reward as a number, if this study accepts it."""
        number = float(reward) if isinstance(reward, bool | np.bool_) else validation.real(name, reward)
        if self.binary and number not in BINARY:
            raise InvalidRewardError(f"`{name}` must be 0 or 1 but got {number:g}.")
        if self.bounds is not None and not self.bounds[0] <= number <= self.bounds[1]:
            low, high = self.bounds
            raise InvalidRewardError(f"`{name}` must lie within the bounds {low:g} to {high:g} but got {number:g}.")
        return number

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Settings:
        """Return the settings that `to_dict` described."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        return cls(**values)

    def differences(self, other: Settings) -> list[str]:
        """List what differs, each as "cost: 1 given, 2 stored"."""
        return [
            f"{entry.name}: {getattr(self, entry.name)!r} given, {getattr(other, entry.name)!r} stored"
            for entry in fields(self)
            if entry.compare and getattr(self, entry.name) != getattr(other, entry.name)
        ]


def check_description(description: str | None) -> str | None:
    """Return a description, if it is valid; None for none."""
    if description is None:
        return None
    return validation.text("description", description, longest=MAX_DESCRIPTION_LENGTH)


def _check_names(arms: Any) -> tuple[str, ...]:
    if isinstance(arms, str | bytes) or not isinstance(arms, Sequence):
        raise InvalidValueError(f"`arms` must be a sequence of names but got {show(arms)}.")
    for arm in arms:
        validation.text("arms", arm)
    if len(arms) < 2 or len(set(arms)) != len(arms):
        raise InvalidValueError(f"`arms` must be 2 or more different names but got {show(list(arms))}.")
    return tuple(arms)


def _check_interval(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or len(bounds) != 2:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {show(bounds)}.")
    low, high = (validation.real("bounds", end) for end in bounds)
    if not low < high:
        raise InvalidValueError(f"`bounds` must be two numbers, the lower one first, but got {low:g} and {high:g}.")
    if not MIN_WIDTH <= high - low <= validation.MAX_MAGNITUDE:
        raise InvalidValueError(
            f"`bounds` must be {MIN_WIDTH:g} to {validation.MAX_MAGNITUDE:g} apart but got {low:g} and {high:g}."
        )
    return low, high


def _check_ahead(max_ahead: Any) -> int:
    return validation.whole("max_ahead", max_ahead, at_least=1, at_most=MAX_PENDING)
