"""`Settings`, what a study was created with, and the names of its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import MAX_BLOCKS, check_arm_names, order_by_arm, show
from dbcare.base.numbers import DEFAULT_CURRENCY, Money
from dbcare.base.options import read_options
from dbcare.base.times import MAX_LEASE_SECONDS, parse_duration
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven.rounds import MAX_POOL_REWARDS
from dbcare.policies.build import PolicyFacts, refuse_unknown
from dbcare.policies.policy import Policy
from dbcare.policies.registry import BLOCK_POLICY, DEFAULT_POLICY, POLICIES, PolicyEntry
from dbcare.policies.rule import BlockRule
from dbcare.posterior.model import ComputedOnce
from dbcare.problem.risk import Loss, Risk
from dbcare.problem.spread import BINARY, DEFAULT_SIGMA_PULLS, MIN_WIDTH, Spread
from dbcare.studies.options import (
    DIRECTIONS,
    MAX_ARMS,
    MAX_DESCRIPTION_LENGTH,
    MAX_NOT_BEFORE,
    MAX_PENDING,
    MISSING,
    StudyOptions,
)

ORDER_STREAM = 17  # any number that no other use of a study's seed has


class BlockNames:
    """What blocks are called: by their number in the order asked, or in the order of a pool.

    Policies number blocks from 0 in the order in which arms take them. For a pool that is a random order by the seed,
    the same for all arms; its blocks have the names given, or the numbers "1", "2" and so on.
    """

    def __init__(self, blocks: int | tuple[str, ...] | None, seed: int) -> None:
        self.count = blocks if blocks is None or isinstance(blocks, int) else len(blocks)
        if self.count is None:
            return
        names = [str(number + 1) for number in range(self.count)] if isinstance(blocks, int) else list(blocks or ())
        self._names = [names[place] for place in order_blocks(self.count, seed)]
        self._numbers = {name: number for number, name in enumerate(self._names)}

    def name(self, number: int) -> str:
        """Return the name of a block, given by the policy's number for it."""
        return str(number + 1) if self.count is None else self._names[number]

    def find(self, name: Any) -> int:
        """Return the policy's number for a block of a pool, or of a round."""
        if self.count is None:
            return checks.whole("block", int(name), at_least=1) - 1
        is_number = isinstance(name, int) and not isinstance(name, bool) and abs(name) <= checks.MAX_WHOLE
        text = str(name) if is_number else name
        if not isinstance(text, str) or text not in self._numbers:
            raise InvalidValueError(f"`block` must be one of this study's {self.count:,} blocks but got {show(name)}.")
        return self._numbers[text]


def order_blocks(count: int, seed: int) -> list[int]:
    """Return the blocks of a pool in random order.

    From random bits, which every version of numpy draws alike: a stored study must find its order again.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, ORDER_STREAM])).random_raw(count)
    order: list[int] = np.argsort(bits, kind="stable").tolist()
    return order


def check_blocks(blocks: Any, arms: int) -> int | tuple[str, ...]:
    """Return a number of blocks or their names, if they are valid for so many arms."""
    if isinstance(blocks, Sequence) and not isinstance(blocks, str | bytes):
        names = _check_names(blocks)
        checks.whole("blocks", len(names), at_least=2, at_most=MAX_BLOCKS)
        checked: int | tuple[str, ...] = names
        count = len(names)
    elif isinstance(blocks, str | bytes):
        raise InvalidValueError(f"`blocks` must be a number of blocks or a sequence of names but got {show(blocks)}.")
    else:
        checked = count = checks.whole("blocks", blocks, at_least=2, at_most=MAX_BLOCKS)
    if count * arms > MAX_POOL_REWARDS:
        raise InvalidValueError(
            f"`blocks` times arms must be at most {MAX_POOL_REWARDS:,} but got {count:,} times {arms:,}."
        )
    return checked


def _check_names(blocks: Sequence[Any]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for block in blocks:
        if (name := checks.text("blocks", block)) in names:
            raise InvalidValueError(f"`blocks` must be different names but got {name!r} twice.")
        names[name] = None
    return tuple(names)


@dataclass(frozen=True)
class Settings:
    """Everything that defines a study; studies with equal settings ask for the same trials given the same rewards.

    `cost` is in units of the loss, one for all arms or one per arm; with a `value`, amounts are shown in money.
    The spread of the rewards is stated by `sigma`, `baseline`, `bounds` or `binary`, or learned.

    Parameters
    ----------
    arms, value, risk, direction, sigma, baseline, bounds, binary, sigma_pulls, cap, control, policy
        As in `create_study`.
    currency : str or None
        Currency of all amounts; None without a `value`: amounts are then in units of the loss.
    not_before, max_ahead, timeout_reward, missing, seed, description, rounds, blocks, only_these_blocks
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
    currency: str | None = DEFAULT_CURRENCY
    risk: str = str(Loss.SIMPLE_REGRET)
    direction: str = "maximize"
    sigma: float | None = None
    baseline: float | None = None
    bounds: tuple[float, float] | None = None
    binary: bool = False
    sigma_pulls: float = DEFAULT_SIGMA_PULLS
    cap: float | None = None  # rewards above it count as this
    control: str | None = None  # the arm in use today
    policy: str = DEFAULT_POLICY
    max_spend: float | None = None  # in units of the loss, as `cost`
    not_before: int | str | None = None  # trials, or a duration
    max_ahead: int | None = None  # pending trials; None: as in `create_study`
    timeout_reward: float | None = None  # reward of an expired trial; None: the trial is replaced
    missing: str = MISSING[0]  # what is known of answers that never come
    seed: int = 0
    description: str | None = field(default=None, compare=False)  # the first one: it may be edited since
    rounds: bool = False  # whether arms are compared within rounds of trials that are run at the same time
    blocks: int | tuple[str, ...] | None = None  # of a pool: their number or names
    only_these_blocks: bool = False  # whether the decision is about the blocks of the pool alone

    def __post_init__(self) -> None:
        POLICIES.entry(self.policy, live=True)
        checks.one_of("direction", self.direction, DIRECTIONS)
        checks.one_of("risk", self.risk, list(Loss))
        checks.one_of("missing", self.missing, MISSING)
        check_description(self.description)
        stated = Spread(self.sigma, self.baseline, self.bounds, self.binary, self.sigma_pulls)
        checks.set_fields(
            self,
            arms=check_arm_names(self.arms),
            cost=self._risk.cost,
            value=self._risk.value,
            currency=self._check_currency(),
            sigma=stated.sigma,
            baseline=stated.baseline,
            bounds=BINARY if stated.takes_binary else stated.bounds,
            sigma_pulls=stated.sigma_pulls,
            cap=None if self.cap is None else _check_cap(self.cap, stated),
            max_spend=None if self.max_spend is None else checks.positive("max_spend", self.max_spend),
            not_before=self._check_not_before(),
            max_ahead=check_max_ahead(self.max_ahead),
            seed=checks.whole("seed", self.seed, at_least=0),
            blocks=None if self.blocks is None else check_blocks(self.blocks, len(self.arms)),
        )
        if checks.flag("rounds", self.rounds) and self.blocks is not None:
            raise InvalidValueError(f"Pass `rounds` or `blocks`, not both, but got blocks={show(self.blocks)}.")
        if checks.flag("only_these_blocks", self.only_these_blocks) and self.blocks is None:
            raise InvalidValueError("`only_these_blocks` requires `blocks`.")
        if self.control is not None:
            checks.one_of("control", self.control, self.arms)
        _ = self.costs  # raises if there is not one per arm
        if self.timeout_reward is not None:
            checks.set_fields(self, timeout_reward=self.check_reward("timeout_reward", self.timeout_reward))
        self._check_policy()

    @classmethod
    def from_options(cls, arms: Any, **options: Unpack[StudyOptions]) -> Settings:
        """Return the settings that options describe: prices and limits in money become costs."""
        values: dict[str, Any] = dict(options)
        refuse_unknown("Options of a study", values, read_options(StudyOptions))
        loss = Loss(checks.one_of("risk", values.pop("risk", cls.risk), list(Loss)))
        make = Risk.simple_regret if loss is Loss.SIMPLE_REGRET else Risk.misidentification
        cost, price = (order_by_arm(name, values.pop(name, None), arms) for name in ("cost", "price"))
        risk = make(cost, price=price, value=values.pop("value", None))
        limit = values.pop("max_spend", None)
        policy = POLICIES.entry(values.get("policy", cls.policy), live=True).name
        if policy == DEFAULT_POLICY and (values.get("rounds") is True or values.get("blocks") is not None):
            values["policy"] = BLOCK_POLICY
        if isinstance(arms, Sequence) and not isinstance(arms, str) and len(arms) > MAX_ARMS:
            raise InvalidValueError(f"`arms` must be at most {MAX_ARMS:,} names but got {len(arms):,}.")
        return cls(
            arms=tuple(arms) if isinstance(arms, list) else arms,
            cost=risk.cost,
            value=risk.value,
            risk=str(loss),
            max_spend=None if limit is None else checks.positive("max_spend", limit) / (risk.value or 1.0),
            **values,
        )

    def _check_policy(self) -> None:
        """Build the policy, which raises what it raises; arms share blocks if its rule compares them within blocks."""
        rule = self.built_policy.rule
        if not isinstance(rule, BlockRule):
            if self.rounds or self.blocks is not None:
                option = "blocks" if self.blocks is not None else "rounds"
                raise InvalidValueError(
                    f"`{option}` requires a policy that compares arms within blocks, such as {BLOCK_POLICY}, "
                    f"but got {self.policy!r}."
                )
        elif self.blocks is None:
            checks.set_fields(self, rounds=True)
        self._check_reward_range()

    def _check_reward_range(self) -> None:
        """Refuse a policy whose rewards must be in a range that those of this study may leave."""
        if (wanted := self.built_policy.reward_range) is None:
            return
        ends = None if self.spread.range is None else sorted(self.sign * end for end in self.spread.range)
        if ends is None or ends[0] < wanted[0] or ends[1] > wanted[1]:
            got = "no range is stated" if ends is None else f"they range from {ends[0]:g} to {ends[1]:g}"
            raise InvalidValueError(
                f"`policy` {self.policy!r} takes rewards from {wanted[0]:g} to {wanted[1]:g}, of which more is better, "
                f"but {got}; state them with `binary` or `bounds`, or choose another policy."
            )

    @property
    def has_blocks(self) -> bool:
        """Whether arms are compared within blocks."""
        return self.rounds or self.blocks is not None

    @property
    def pool(self) -> int | None:
        """The number of blocks; None where they do not come from a pool."""
        return self.blocks if self.blocks is None or isinstance(self.blocks, int) else len(self.blocks)

    @ComputedOnce
    def block_names(self) -> BlockNames:
        """What blocks are called."""
        return BlockNames(self.blocks, self.seed)

    @cached_property
    def _spread(self) -> Spread:
        return Spread(self.sigma, self.baseline, self.bounds, self.binary)

    @property
    def _risk(self) -> Risk:
        return Risk(Loss(self.risk), self.cost, self.value)

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is: policies always maximize."""
        return 1.0 if self.direction == "maximize" else -1.0

    @property
    def control_index(self) -> int | None:
        """The index of the control; None if there is none."""
        return None if self.control is None else self.arms.index(self.control)

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
        # A study that waits for a date needs at least one reward, so it does not guess.
        least = 1 if isinstance(self.not_before, str) else self.not_before or None
        risk = Risk(Loss(self.risk), cost, self.value)
        facts = PolicyFacts(
            risk,
            len(arms),
            self.spread,
            not_before=least,
            pool=self.pool,
            only_these_blocks=self.only_these_blocks,
        )
        return self.policy_entry.build(facts)

    @cached_property
    def wait_seconds(self) -> float:
        """How long after the first trial the study may stop at the earliest; 0 if it does not wait for a date."""
        return parse_duration("not_before", self.not_before) if isinstance(self.not_before, str) else 0.0

    def _check_currency(self) -> str | None:
        if self.currency is None and self.value is None:
            return None
        currency = checks.text("currency", self.currency)
        return None if self.value is None else currency

    def _check_not_before(self) -> int | str | None:
        if self.not_before is None:
            return None
        if "not_before" not in self.policy_entry.options:
            raise InvalidValueError(
                f"`not_before` requires a policy that can wait, such as {DEFAULT_POLICY}, but got {self.policy!r}."
            )
        if isinstance(self.not_before, str):
            seconds = parse_duration("not_before", self.not_before, ", or a number of trials")
            if not 0.0 < seconds <= MAX_LEASE_SECONDS:
                raise InvalidValueError(
                    f"`not_before` must be more than 0 and at most ten years but got {self.not_before!r}."
                )
            return self.not_before
        return checks.whole("not_before", self.not_before, at_least=0, at_most=MAX_NOT_BEFORE)

    @cached_property
    def spread(self) -> Spread:
        """What is stated about the spread of the rewards as they count: none is above the `cap`."""
        bounds = self.bounds
        if bounds is not None and self.cap is not None:
            bounds = bounds[0], self.cap
        return Spread(self.sigma, self.baseline, bounds, self.binary, self.sigma_pulls)

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The cost of a trial of each arm, in units of the loss."""
        return self._risk.costs(len(self.arms))

    def money(self, amount: float) -> Money:
        """Return an amount in units of the loss as people read it."""
        return self._risk.money(amount, self.currency or "")

    def check_reward(self, name: str, reward: Any) -> float:
        """Return a reward as a number, if this study accepts it."""
        number = float(reward) if isinstance(reward, bool | np.bool_) else checks.real(name, reward)
        self._spread.check_reward(name, number)
        return number

    def check_price(self, price: Any) -> float:
        """Return what a trial cost in money, or in units of the loss without a `value`, if it is valid."""
        return checks.non_negative("price", price)

    def name_block(self, block: int | None) -> str | None:
        """Return the name of a block, given by the policy's number for it; None for none."""
        return None if block is None else self.block_names.name(block)

    def count_as(self, reward: float) -> float:
        """Return what a reward counts as: itself, or the `cap` if it is above that."""
        return reward if self.cap is None else min(reward, self.cap)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, ready for JSON."""
        plain = asdict(self)
        if math.isinf(self.sigma_pulls):
            plain["sigma_pulls"] = "inf"  # JSON has no infinity
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Settings:
        """Return the settings that `to_dict` described."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        if values.get("sigma_pulls") == "inf":
            values["sigma_pulls"] = math.inf
        return cls(**values)

    def differences(self, other: Settings) -> list[str]:
        """List what differs, each as "cost: 1 given, 2 stored"."""
        return [
            f"{entry.name}: {show(getattr(self, entry.name))} given, {show(getattr(other, entry.name))} stored"
            for entry in fields(self)
            if entry.compare and getattr(self, entry.name) != getattr(other, entry.name)
        ]


def check_description(description: str | None) -> str | None:
    """Return a description, if it is valid; None for none."""
    if description is None:
        return None
    return checks.text("description", description, longest=MAX_DESCRIPTION_LENGTH)


def _check_cap(cap: Any, stated: Spread) -> float:
    number = checks.real("cap", cap)
    if stated.takes_binary:
        raise InvalidValueError(
            f"`cap` is for rewards that vary widely, not for rewards of 0 or 1, but got {number:g}."
        )
    if stated.bounds is not None and not stated.bounds[0] < number < stated.bounds[1]:
        low, high = stated.bounds
        raise InvalidValueError(f"`cap` must lie between the bounds {low:g} and {high:g} but got {number:g}.")
    if stated.bounds is not None and number - stated.bounds[0] < MIN_WIDTH:
        raise InvalidValueError(
            f"`cap` must be at least {MIN_WIDTH:g} above the lower bound, {stated.bounds[0]:g}, but got {number:g}."
        )
    return number


def check_max_ahead(max_ahead: Any) -> int | None:
    """Return how many trials may be pending, if it is valid; None for the default."""
    return None if max_ahead is None else checks.whole("max_ahead", max_ahead, at_least=1, at_most=MAX_PENDING)
