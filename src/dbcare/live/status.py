"""Public results of a study as a whole: its status, its history, and its pending trials."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare.live.recommendation import ArmStatus


@dataclass(frozen=True)
class Status:
    """The state of a study: what is counted, and what is pending.

    Parameters
    ----------
    name : str
        The study's name.
    state : str
        "running", "paused" or "stopped".
    arms : tuple of ArmStatus
        One entry per arm.
    asked, counted : int
        Trials handed out, and trials whose outcome has been processed, whatever it was; rewards that had an effect are
        in `ArmStatus.trials`.
    waiting : int
        Trials asked and not told yet.
    held : int
        Trials told, but held until an earlier one is told.
    oldest : float or None
        Seconds since the oldest of those waiting was asked.
    spent : float
        What the study has cost, in money, or in units of the loss without a value.
    expected_loss : float or None
        What stopping now is expected to lose, as in `Recommendation`.
    policy_loss : float or None
        What the policy weighs: the largest of the arms' `policy_loss`; None where it weighs none.
    reason : str
        Why the study stopped, or what it is waiting for.
    notes : tuple of str
        One sentence per reason to doubt the means, such as an assumption that the data contradict, and one if the study
        hands out no trials.
    description : str or None
        What the study is about.
    created : float or None
        When the study was created, in seconds since 1970.
    created_by : str or None
        Name of the key it was created with.
    activities : tuple of Activity
        What people did to the study last, up to 50 of them.
    cap : float or None
        What larger rewards count as; None without a cap.
    late, late_cost : int, float
        Rewards that came, or had their turn, after the stop: recorded and charged, without effect.
    late_expired : int
        How many of those are leases that ran out, with the reward that `timeout_reward` states.
    failed, failed_cost : int, float
        Trials that failed and were charged anyway.
    surplus, surplus_cost : int, float
        Rewards that came after their trial had expired and been replaced: recorded and charged, without effect.
    blocks_used : int or None
        Blocks in which some arm has had a trial: rounds begun, or blocks of the pool; None in a study without blocks.
    blocks : int or None
        Number of blocks in the pool; None without one.
    max_ahead : int or None
        How many trials may be pending, as set last; None for the default.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("status example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> trial = study.ask()
    >>> status = study.status()
    >>> status.state, status.asked, status.waiting
    ('running', 1, 1)
    """

    name: str
    state: str
    arms: tuple[ArmStatus, ...]
    asked: int
    counted: int
    waiting: int
    held: int
    oldest: float | None
    spent: float
    expected_loss: float | None
    reason: str
    notes: tuple[str, ...]
    policy_loss: float | None = None
    description: str | None = None
    created: float | None = None
    created_by: str | None = None
    activities: tuple[Activity, ...] = ()
    cap: float | None = None
    late: int = 0
    late_cost: float = 0.0
    late_expired: int = 0
    failed: int = 0
    failed_cost: float = 0.0
    surplus: int = 0
    surplus_cost: float = 0.0
    blocks_used: int | None = None
    blocks: int | None = None
    max_ahead: int | None = None

    @property
    def rewards(self) -> int:
        """Rewards that were counted: the others had no effect, or are held."""
        return sum(arm.trials for arm in self.arms)

    def _repr_html_(self) -> str:
        from dbcare.live.notebook import display_status  # noqa: PLC0415  # only for notebooks

        return display_status(self)


@dataclass(frozen=True)
class VitalSigns:
    """What shows whether a study goes on: trials that wait for an answer, and how many notes its page has.

    `oldest` is when the oldest of those trials was asked, in seconds since 1970. In a study that has stopped, nothing
    waits for its trials.
    """

    waiting: int
    oldest: float | None
    notes: int


@dataclass(frozen=True)
class Activity:
    """Something that a person did to a study.

    Parameters
    ----------
    at : float
        When, in seconds since 1970.
    what : str
        "paused", "resumed", "described", "retired" or "stopped".
    arm : str or None
        The arm it concerns.
    note : str or None
        The reason, or the new description.
    by : str or None
        Name of the key it was done with; None for the library and the command line.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("activity example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> study.pause()
    >>> study.status().activities[0].what
    'paused'
    """

    at: float
    what: str
    arm: str | None
    note: str | None
    by: str | None


@dataclass(frozen=True)
class Pending:
    """A trial that has not been counted: not told yet, or told before an earlier one.

    Parameters
    ----------
    trial : int
        Its number.
    arm : str
        Its arm.
    worker : str or None
        Who asked for it.
    age : float
        Seconds since it was asked.
    left : float or None
        Seconds until its lease expires, negative once it has; None if it never does.
    told : bool
        Whether its reward is known.
    block : str or None
        The block that it belongs to, if the study has blocks.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("pending example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> trial = study.ask(worker="shop-3")
    >>> study.pending()[0].worker
    'shop-3'
    """

    trial: int
    arm: str
    worker: str | None
    age: float
    left: float | None
    told: bool
    block: str | None = None


@dataclass(frozen=True)
class HistoryPoint:
    """How a study stood once a number of rewards had been counted.

    Parameters
    ----------
    rewards : int
        Rewards counted by then.
    spent : float
        What those had cost, as in `Status`.
    expected_loss : float or None
        What stopping then was expected to lose, as in `Status`; interpolated between moments at
        which there were at least 15% more rewards each time.
    policy_loss : float or None
        What the policy weighed then, as in `Status`: Breakeven stops where it meets what was spent.
    at : float or None
        When that was, in seconds since 1970.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("history example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> study.add([("A", 0.5), ("B", 0.25)])
    >>> [point.rewards for point in study.history()]
    [1, 2]
    """

    rewards: int
    spent: float
    expected_loss: float | None
    policy_loss: float | None = None
    at: float | None = None
