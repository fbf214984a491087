"""Keeping what is in use today: what deciding now means where there is a control."""

from dataclasses import dataclass

from dbcare.base import checks
from dbcare.policies.policy import Policy
from dbcare.policies.rule import STOP, Rule, State


def _init(state: State, tables: tuple[int], tie: int) -> None:
    state[0] = 0.0


def _ask(state: State, tables: tuple[int]) -> int:
    return STOP


def _tell(state: State, tables: tuple[int], arm: int, reward: float) -> None:
    state[0] += 1.0


def _recommend(state: State, tables: tuple[int]) -> int:
    return tables[0]


@dataclass(frozen=True)
class Keep(Policy):
    """Choose the same arm in every run, without any pulls, such as what is in use today.

    Parameters
    ----------
    arms : int
        Number of arms.
    arm : int
        The arm to choose.

    Examples
    --------
    >>> from dbcare.policies.keep import Keep
    >>> Keep(arms=4, arm=2).start().recommendation()
    2
    """

    arms: int
    arm: int
    risk = None
    rule = Rule(_init, _ask, _tell, _recommend)

    def __post_init__(self) -> None:
        checks.set_fields(self, arms=checks.arms(self.arms))
        checks.set_fields(self, arm=checks.whole("arm", self.arm, at_least=0, at_most=self.arms - 1))

    @property
    def tables(self) -> tuple[int]:
        return (self.arm,)

    @property
    def state_size(self) -> int:
        return 1

    @property
    def max_pulls(self) -> int:
        return 0

    @property
    def pools(self) -> bool:
        return False

    @property
    def odds(self) -> list[float]:
        return [float(arm == self.arm) for arm in range(self.arms)]
