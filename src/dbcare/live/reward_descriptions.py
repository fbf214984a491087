"""What a study takes for granted about its rewards, in words."""

from __future__ import annotations

import math

from dbcare.live.settings import Settings
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS


def describe_rewards(settings: Settings) -> str:
    """Return what rewards look like, such as "0 or 1, usually about 4%"."""
    parts = []
    if settings.spread.takes_binary:
        parts.append("0 or 1")
    elif settings.bounds is not None:
        parts.append(f"{settings.bounds[0]:.4g} to {settings.bounds[1]:.4g}")
    if settings.baseline is not None:
        parts.append(f"usually about {100.0 * settings.baseline:.3g}%{_format_weight(settings)}")
    elif settings.sigma is not None:
        about = "about " if _takes_guess(settings) else ""
        guess = _format_weight(settings) or (" (a guess)" if about else "")
        parts.append(f"standard deviation {about}{settings.sigma:.4g}{guess}")
    elif not settings.spread.is_stated:
        parts.append("spread learned from them")
    if settings.cap is not None:
        parts.append(f"capped at {settings.cap:.4g}")
    return ", ".join(parts)


def explain_learning(settings: Settings, limit_name: str) -> str | None:
    """Explain what follows where nothing is stated about the spread; None where it is.

    `limit_name` is what the option for a limit on spending is called where this is shown.
    """
    if settings.spread.is_stated:
        return None
    learned = "Nothing is stated about the spread of the rewards, so the study learns it from them"
    limit = min(getattr(settings.built_policy, "max_spend", math.inf), settings.max_spend or math.inf)
    if math.isinf(limit):
        return f"{learned}. No limit on spending is promised unless you set {limit_name}."
    prices = " at the stated prices" if settings.has_blocks else ""
    return f"{learned}. It stops before it spends more than {settings.money(limit)}{prices}, pending trials aside."


def _takes_guess(settings: Settings) -> bool:
    """Return whether the policy takes a stated spread for a guess."""
    return "sigma_pulls" in settings.policy_entry.options and not math.isinf(settings.sigma_pulls)


def _format_weight(settings: Settings) -> str:
    if "sigma_pulls" not in settings.policy_entry.options or settings.sigma_pulls == DEFAULT_SIGMA_PULLS:
        return ""
    if math.isinf(settings.sigma_pulls):
        return " (known for certain)"
    noun = "reward" if settings.sigma_pulls == 1.0 else "rewards"
    return f" (a guess worth {settings.sigma_pulls:g} {noun})"
