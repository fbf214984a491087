"""Public results about arms: what each of them is like, and which one to choose."""

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
        from dbcare.live.notebook import display_recommendation  # noqa: PLC0415  # only for notebooks

        return display_recommendation(self)

    def __str__(self) -> str:
        return (
            f"{self.arm or 'no recommendation'} ({'final' if self.final else 'so far'}, {self.verdict}): {self.reason}"
        )
