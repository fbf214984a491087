"""`Status` and `Recommendation`: what a study says of itself and of its arms."""

from __future__ import annotations

from dataclasses import dataclass

RETIRED = "retired: "  # how `ArmStatus.left` begins for a retired arm

Interval = tuple[float, float]


@dataclass(frozen=True)
class Lift:
    """By how much an arm is better than the control, corrected for selection; negative where it is worse.

    Parameters
    ----------
    control : str
        Name of the control.
    absolute : float
        In units of the rewards.
    interval : tuple of float
        95% interval of that, which allows for selection.
    anytime_interval : tuple of float
        A wider one. For rewards with a known range it holds however often one looks, for all arms together; for others
        it is approximate, as if rewards were normal with the variance seen.
    relative : float or None
        As a share of the control's estimate; None if that is not positive.
    relative_interval : tuple of float or None
        The same for the interval.
    money : float or None
        In money; None without a value, or if a wrong choice always costs the same.
    money_interval : tuple of float or None
        The same for the interval.
    probability : float or None
        Probability of being better than the control; None with fewer than 25 rewards of the arm. Above 0.9 it is
        too high on average: read it as "ahead", and see the lead.
    beats : bool
        Whether the interval is above 0.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("lift example", ["old", "new"], cost=1e-12, sigma=1.0, control="old")
    >>> study.add([("old", 0.0), ("new", 1.0), ("old", 1.0), ("new", 2.0)] * 20)
    >>> lift = study.recommendation().lift
    >>> round(lift.absolute, 2), lift.beats
    (0.97, True)
    """

    control: str
    absolute: float
    interval: Interval
    anytime_interval: Interval
    relative: float | None
    relative_interval: Interval | None
    money: float | None
    money_interval: Interval | None
    probability: float | None
    beats: bool


@dataclass(frozen=True)
class ArmStatus:
    """An arm's counted rewards, and what they say.

    Parameters
    ----------
    name : str
        The arm's name.
    trials : int
        Rewards counted.
    mean : float or None
        Naive mean of those rewards as they count; None before the first. That of the leader is too high on average,
        because it was picked for it.
    interval : tuple of float or None
        95% interval of the true mean that allows for selection; None with fewer than 5 rewards, or fewer than 5 that
        differ from the most common one.
    expected_loss : float or None
        What choosing this arm now is expected to lose against the unknown best, as in `Recommendation`.
    out : int
        Pending trials: asked and not counted yet.
    left : str or None
        Why the arm is no longer active: dropped by the policy, or retired.
    capped : int
        Rewards that were above the study's cap, and counted as the cap.
    late : int
        Rewards that came, or had their turn, after the stop: recorded and charged, without effect.
    estimate : float or None
        The mean corrected for selection; None where there is no interval.
    probability_best : float or None
        Probability of being the best arm; None with fewer than 25 rewards of the recommended arm. Above 0.9 it is
        too high on average: read it as "ahead of every rival", and see the lead.
    lead : float or None
        By how much the arm is better than the control or, without one, than the best of the others; corrected for
        selection, and negative where it is worse.
    lead_interval : tuple of float or None
        95% interval of the lead that allows for selection.
    policy_loss : float or None
        What the policy weighs: what choosing the leader is expected to lose if this arm is better, all others aside.
    lift : Lift or None
        The comparison with the control; None for the control itself.
    anytime_interval : tuple of float or None
        A wider interval of the mean, around the naive one. For rewards with a known range it holds however often one
        looks, for all arms together; for others it is approximate, as if rewards were normal with the variance seen.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("arm status example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> study.add([("A", 0.5), ("B", 0.25)])
    >>> study.status().arms[0].mean
    0.5
    """

    name: str
    trials: int
    mean: float | None
    interval: Interval | None
    expected_loss: float | None
    out: int
    left: str | None
    capped: int = 0
    late: int = 0
    estimate: float | None = None
    probability_best: float | None = None
    lead: float | None = None
    lead_interval: Interval | None = None
    policy_loss: float | None = None
    lift: Lift | None = None
    anytime_interval: Interval | None = None

    @property
    def is_retired(self) -> bool:
        """Whether a person withdrew the arm."""
        return self.left is not None and self.left.startswith(RETIRED)


@dataclass(frozen=True)
class Recommendation:
    """The arm to choose as things stand, and how far to trust that.

    Parameters
    ----------
    arm : str or None
        The arm's name; None before any data.
    mean, interval, estimate, probability_best, lead, lead_interval, lift, anytime_interval
        Those of the arm, as in `ArmStatus`.
    expected_loss : float or None
        What choosing it is expected to lose against the unknown best, all rivals together: in money, or in units of
        the loss without a value. None while too little is known.
    spent : float
        What the study has cost, in money, or in units of the loss without a value.
    reason : str
        Why the study stopped, or what it is waiting for.
    final : bool
        Whether the study has stopped.
    verdict : str
        The outcome in a few words, such as "85% likely best" or "keep the control"; "undecided" while it runs.
    sentences : tuple of str
        The whole outcome in words.
    rival : str or None
        The arm that `lead` is over: the control, or else the best of the others.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("recommendation example", arms=["A", "B"], cost=0.1, sigma=0.1)
    >>> study.add([("A", 5.0), ("B", 1.0), ("A", 5.0), ("B", 1.0)])
    >>> choice = study.recommendation()
    >>> choice.arm, choice.final
    ('A', True)
    """

    arm: str | None
    mean: float | None
    interval: Interval | None
    expected_loss: float | None
    spent: float
    reason: str
    final: bool
    verdict: str
    sentences: tuple[str, ...] = ()
    estimate: float | None = None
    probability_best: float | None = None
    rival: str | None = None
    lead: float | None = None
    lead_interval: Interval | None = None
    lift: Lift | None = None
    anytime_interval: Interval | None = None

    def _repr_html_(self) -> str:
        from dbcare.studies.show.notebook import display_recommendation  # noqa: PLC0415  # only for notebooks

        return display_recommendation(self)

    def __str__(self) -> str:
        return (
            f"{self.arm or 'no recommendation'} ({'final' if self.final else 'so far'}, {self.verdict}): {self.reason}"
        )


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
        from dbcare.studies.show.notebook import display_status  # noqa: PLC0415  # only for notebooks

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
