"""A run of a policy, stepped by hand: what it does, compares and says.

run = policy.start(seed=1)
while (arm := run.ask()) is not None:
    run.tell(pull(arm))
print(run.recommendation(), run.why())
"""

from __future__ import annotations

import base64
import math
import numbers
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import show
from dbcare.errors import InvalidRewardError, InvalidValueError, NotAskedError, StoppedError
from dbcare.policies.rule import STOP, BlockRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbcare.policies.policy import Policy


@dataclass(frozen=True)
class Comparisons:
    """The leader against each arm on the blocks that both answered.

    If arms' rewards share only what is common to a block, differences with the leader, over n_j and n_k blocks, have
    the covariance (v/2)/max(n_j, n_k), where v is the variance of a difference. So they are as if the mean of each arm
    had an independent error: the leader's with the variance a_L = (v/2)/max n_k, arm k's with s_k^2/n_k - a_L.

    Parameters
    ----------
    leader : int
        The leading arm.
    blocks : tuple of int
        Blocks that each arm shares with the leader; for the leader, the most of them.
    leads : tuple of float
        By how much the leader is better there, on average; 0 for itself.
    variances : tuple of float
        Variance s_k^2 of a difference, as far as the rule believes it; for the leader, the pooled one, v.
    share_seen : float
        1/N where nothing but N blocks matters, else 0.
    """

    leader: int
    blocks: tuple[int, ...]
    leads: tuple[float, ...]
    variances: tuple[float, ...]
    share_seen: float

    def error_variances(self) -> list[float]:
        """Return the variance of the error of each arm's mean, apart from what all arms share; at least 0."""
        own = self._left(self.leader) * self.variances[self.leader] / 2.0
        return [
            own if arm == self.leader else max(0.0, variance * self._left(arm) - own)
            for arm, variance in enumerate(self.variances)
        ]

    def _left(self, arm: int) -> float:
        """Return 1/n, or 1/n - 1/N: the error of a mean, per variance of a block."""
        return math.inf if self.blocks[arm] == 0 else max(0.0, 1.0 / self.blocks[arm] - self.share_seen)


@dataclass(frozen=True)
class Wording:
    """Names for a policy's sentences: of the arms, of one observation, and of the currency.

    A run stepped by hand says "arm 2" and "pull"; a live study has names for its arms, and says "trial".

    Parameters
    ----------
    arms : tuple of str, optional
        Names of the arms. Default: their indices.
    noun : str
        What one observation is called.
    currency : str
        What follows an amount of money.

    Examples
    --------
    >>> from dbcare.policies import Wording
    >>> Wording(("red", "blue"), "trial").arm(1), Wording().count(21)
    ('blue', '21 pulls')
    """

    arms: tuple[str, ...] | None = None
    noun: str = "pull"
    currency: str = ""

    def arm(self, index: int) -> str:
        """Return the name of an arm."""
        return f"arm {index}" if self.arms is None else self.arms[index]

    def count(self, number: int) -> str:
        """Return a number of observations, such as "1 pull" or "21 trials"."""
        return f"{number} {self.noun}" if number == 1 else f"{number} {self.noun}s"


DEFAULT_WORDING = Wording()


MAX_LISTED_NUMBERS = 1000  # of a state in a snapshot; longer ones are packed


@dataclass(frozen=True)
class RunEvent:
    """Something that happened to an arm; `text` continues its name: "dropped at epoch 41: ...".

    Parameters
    ----------
    arm : int
        The arm.
    text : str
        What happened, without the arm's name.

    Examples
    --------
    >>> from dbcare.policies import RunEvent
    >>> str(RunEvent(2, "dropped at epoch 41"))
    'arm 2 dropped at epoch 41'
    """

    arm: int
    text: str

    def sentence(self, wording: Wording = DEFAULT_WORDING) -> str:
        """Return the event with the arm's name."""
        return f"{wording.arm(self.arm)} {self.text}"

    def __str__(self) -> str:
        return self.sentence()


class Run:
    """A run in progress; start one with `Policy.start`.

    Attributes
    ----------
    policy : Policy
        The policy.
    pulls : int
        Pulls made so far.
    events : list of RunEvent
        What happened to arms, such as being dropped.

    Examples
    --------
    >>> from dbcare import Risk
    >>> from dbcare.policies import Uniform
    >>> run = Uniform(arms=2, pulls=1).start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.2, 0.7][arm])
    >>> run.recommendation(), run.why()
    (1, 'stopped after 2 pulls: all pulls planned in advance have been made; arm 0 dropped at the end of round 1: ...')
    """

    def __init__(self, policy: Policy, state: list[Any], pulls: int, events: list[RunEvent]) -> None:
        self.policy = policy
        self.state = state
        self.pulls = pulls
        self.events = events

    @classmethod
    def fresh(cls, policy: Policy, tie: int) -> Run:
        """Create a run without pulls; `tie` as in `Rule.init`."""
        state: list[Any] = [0.0] * policy.state_size
        policy.rule.init(state, policy.tables, tie)
        return cls(policy, state, 0, [])

    @classmethod
    def restored(cls, policy: Policy, snapshot: dict[str, Any]) -> Run:
        """Restore a run of the same policy from its `snapshot`."""
        try:
            policy_text = snapshot["policy"]
            state = unpack_state(snapshot["state"])
            pulls, events = int(snapshot["pulls"]), [RunEvent(**event) for event in snapshot["events"]]
            usable = isinstance(policy_text, str) and all(map(math.isfinite, state))
        except (LookupError, TypeError, ValueError, OverflowError) as problem:
            raise InvalidValueError(
                f"`snapshot` must come from Run.snapshot but cannot be read: {show(problem)}."
            ) from None
        if not usable or policy_text != policy.identity or len(state) != policy.state_size:
            raise InvalidValueError(
                f"`snapshot` must be of a run of {show(policy)} but got one of {show(policy_text)}."
            )
        return cls(policy, state, pulls, events)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole run, ready for JSON; `Policy.resume` restores it."""
        return {
            "policy": self.policy.identity,
            "state": pack_state(self.state),
            "pulls": self.pulls,
            "events": [{"arm": event.arm, "text": event.text} for event in self.events],
        }

    def ask(self) -> int | None:
        """Return the arm to pull next, or None once the policy has stopped; asking again changes nothing."""
        arm = self.policy.rule.ask(self.state, self.policy.tables)
        return None if arm == STOP else int(arm)

    def tell(self, reward: float, arm: int | None = None) -> None:
        """Count the reward of the arm asked for; pass `arm` to have it checked."""
        asked = self.ask()
        if asked is None:
            raise StoppedError(f"Cannot accept {show(reward)}: the run stopped after {self.pulls} pulls.")
        if arm is not None and not _is_same(arm, asked):
            raise NotAskedError(f"`arm` must be {asked}, the arm asked for, but got {show(arm)}.")
        self.count(asked, self._check_reward(reward, asked))

    def count(self, arm: int, reward: float) -> None:
        """Count a finite reward of any arm; for live studies, whose rewards may arrive out of order."""
        self._change(lambda: self.policy.rule.tell(self.state, self.policy.tables, arm, reward))
        self.pulls += 1

    def count_block(self, arm: int, block: int, reward: float, cost: float) -> None:
        """Count a reward of any arm in a block, and what it cost; for rules with blocks."""
        rule, tables = self._block_rule, self.policy.tables
        self._change(lambda: rule.tell_block(self.state, tables, arm, block, reward, cost))
        self.pulls += 1

    def miss_block(self, arm: int, block: int, cost: float) -> None:
        """Let a block do without an arm, whose pull cost something anyway; for rules with blocks."""
        rule, tables = self._block_rule, self.policy.tables
        self._change(lambda: rule.miss(self.state, tables, arm, block, cost))

    def end_round(self) -> None:
        """Let a rule that works round by round decide."""
        end, tables = self._block_rule.end_round, self.policy.tables
        if end is not None:
            self._change(lambda: end(self.state, tables))

    @property
    def _block_rule(self) -> BlockRule:
        assert isinstance(self.policy.rule, BlockRule)
        return self.policy.rule

    def _change(self, change: Callable[[], None]) -> None:
        before = list(self.state)
        change()
        self.events += self.policy.events(before, self.state)

    def recommendation(self) -> int:
        """Return the arm to choose if there are no more pulls."""
        return int(self.policy.rule.recommend(self.state, self.policy.tables))

    def why(self, wording: Wording = DEFAULT_WORDING) -> str:
        """Explain in one sentence why the run stopped or what it is waiting for."""
        asked = self.ask()
        if asked is not None:
            progress = self.policy.progress(self.state, wording)
            # The trials of a live study have numbers of their own.
            next_pull = f"{wording.noun} {self.pulls + 1}," if wording.arms is None else f"a {wording.noun}"
            return f"waiting for {next_pull} of {wording.arm(asked)} ({progress})"
        reason = f"stopped after {wording.count(self.pulls)}: {self.policy.why_stopped(self.state, wording)}"
        return f"{reason}; {self.events[-1].sentence(wording)}" if self.events else reason

    def _check_reward(self, reward: Any, arm: int) -> float:
        if isinstance(reward, bool | np.bool_):
            return float(reward)
        try:
            number = checks.real("reward", reward)
        except InvalidValueError as refused:
            raise InvalidRewardError(f"Pull {self.pulls + 1}, of arm {arm}: {refused}") from None
        if (limits := self.policy.reward_range) is not None and not limits[0] <= number <= limits[1]:
            raise InvalidRewardError(
                f"Pull {self.pulls + 1}, of arm {arm}: `reward` must lie between {limits[0]:g} and {limits[1]:g} for "
                f"{type(self.policy).__name__} but got {number:g}."
            )
        return number


def pack_state(state: list[Any]) -> list[Any] | str:
    """Return a state ready for JSON: a list of its numbers, or their bytes in base64 if they are many."""
    if len(state) <= MAX_LISTED_NUMBERS:
        return list(state)
    return base64.b64encode(np.asarray(state, dtype="<f8").tobytes()).decode("ascii")


def unpack_state(packed: list[Any] | str) -> list[Any]:
    """Return the state that `pack_state` packed, or that was listed."""
    if isinstance(packed, str):
        numbers_packed: list[Any] = np.frombuffer(base64.b64decode(packed, validate=True), dtype="<f8").tolist()
        return numbers_packed
    return [number if isinstance(number, int) else float(number) for number in packed]


def _is_same(arm: Any, asked: int) -> bool:
    return isinstance(arm, numbers.Real) and bool(arm == asked)
