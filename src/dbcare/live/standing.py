"""How a study stands, in the few numbers that a list of studies shows."""

from __future__ import annotations

from dataclasses import dataclass

UNDECIDED = "undecided"  # the verdict while a study runs


@dataclass(frozen=True)
class Standing:
    """How a study stands; stored with the events it follows from, so that a list need not open every study.

    Parameters
    ----------
    state : str
        "running", "paused" or "stopped".
    asked, rewards : int
        Trials handed out, and rewards counted, as in `Status`.
    spent : float
        What trials have cost so far: in money where the study has a value, else in units of the loss.
    expected_loss : float or None
        What choosing that arm now is expected to lose, in the same unit, as of a little earlier while the study runs;
        None while too little is known.
    recommended : str
        The arm to choose as things stand; empty before any data.
    verdict : str
        The outcome in a few words, as in `Recommendation`.
    reason : str
        Why the study stopped; empty while it has not.
    curve : str
        Up to 40 points of the study's history, separated by commas: what was spent and, if known, the loss that the
        policy weighs.

    Examples
    --------
    >>> import dbcare
    >>> study = dbcare.create_study("standing example", arms=["A", "B"], cost=0.01, sigma=1.0)
    >>> [study.standing.state for study in dbcare.find_studies("standing example")]
    ['running']
    """

    state: str = "running"
    asked: int = 0
    rewards: int = 0
    spent: float = 0.0
    expected_loss: float | None = None
    recommended: str = ""
    verdict: str = UNDECIDED
    reason: str = ""
    curve: str = ""
