"""How a policy's sentences name arms, observations and money."""

from __future__ import annotations

from dataclasses import dataclass


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
    >>> from dbcare import Wording
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
