"""`Priced`: a value, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Priced:
    """A value with what it cost; functions that `compare` or `Study.run` call return it to report their price.

    Parameters
    ----------
    value : object
        What the call is about: an arm's answer, a score, or a reward.
    price : float
        What the call cost, in the currency of the study or comparison.

    Examples
    --------
    >>> from dbcare import Priced
    >>> def ask_model(question):
    ...     tokens = 1_200
    ...     return Priced("The answer is 42.", price=tokens * 3e-6)
    >>> round(ask_model("What is the answer?").price, 6)
    0.0036
    """

    value: Any
    price: float
