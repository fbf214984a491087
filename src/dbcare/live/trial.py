"""One observation to make."""

from __future__ import annotations

from dataclasses import dataclass

from dbcare import validation


@dataclass(frozen=True)
class Trial:
    """One observation to make, as `Study.ask` hands it out.

    Parameters
    ----------
    id : int
        The trial's number in its study: 1, 2, 3 and so on.
    arm : str
        The arm to observe.
    expires : float or None
        When the lease ends, in seconds since 1970; None if it never does.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("trial example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> trial = study.ask(lease=None)
    >>> trial
    Trial(id=1, arm='A', expires=None)
    >>> study.tell(trial, 0.7)
    """

    id: int
    arm: str
    expires: float | None


def get_trial_number(trial: Trial | int) -> int:
    """Return the number of a trial, which users pass as a `Trial` or as its number."""
    return validation.whole("trial", trial.id if isinstance(trial, Trial) else trial, at_least=1)
