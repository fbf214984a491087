"""The settings of a study as people read them."""

from __future__ import annotations

from dbcare.base.numbers import Money
from dbcare.base.times import spell_duration
from dbcare.live.options import AT_RANDOM
from dbcare.live.reward_descriptions import describe_rewards
from dbcare.live.settings import Settings
from dbcare.problem.risk import Loss


def describe_settings(settings: Settings, max_ahead: int | None) -> list[tuple[str, str]]:
    """Return labels and texts of the settings; `max_ahead` is as in `Status`, since it may have been changed."""
    prices = dict.fromkeys(str(settings.money(cost)) for cost in settings.costs)
    regret = settings.risk == Loss.SIMPLE_REGRET
    limit = settings.max_spend
    rows = [
        ("Price of a trial", ", ".join(prices)),
        ("A wrong choice loses", "its gap in means" if regret else "the same whatever the gap"),
        ("Goal", settings.direction),
        ("Control", settings.control or "none"),
        ("Rewards", describe_rewards(settings)),
        ("Policy", settings.policy_entry.label),
        ("Does not stop before", _describe_wait(settings)),
        ("Budget", "no limit" if limit is None else str(settings.money(limit))),
        ("Max pending trials", _describe_limit(settings, max_ahead)),
        (
            "Expired trials",
            _describe_expiry(settings),
        ),
        ("Seed", str(settings.seed)),
    ]
    if settings.has_blocks:
        rows.insert(-1, ("Blocks", _describe_blocks(settings)))
    if settings.value is not None:
        worth = "One unit of reward is worth" if regret else "A wrong choice costs"
        rows.insert(1, (worth, str(Money(settings.value, settings.currency))))
    return rows


def _describe_wait(settings: Settings) -> str:
    if not settings.not_before:
        return "any time"
    if settings.wait_seconds:
        return f"{spell_duration(settings.wait_seconds)} after the first trial"
    return f"{settings.not_before:,} rewards"


def _describe_limit(settings: Settings, max_ahead: int | None) -> str:
    if max_ahead is not None:
        return f"{max_ahead:,}"
    return "twice the workers; no limit for units" if settings.timeout_reward is None else "no limit"


def _describe_expiry(settings: Settings) -> str:
    if settings.timeout_reward is not None:
        return f"count as {settings.timeout_reward:.4g}"
    fate = "leave their block without that arm" if settings.has_blocks else "are replaced"
    return f"{fate}; answers go missing at random" if settings.missing == AT_RANDOM else fate


def _describe_blocks(settings: Settings) -> str:
    if settings.pool is None:
        return "rounds of trials that run at the same time"
    scope = "only these matter" if settings.only_these_blocks else "more like them matter too"
    return f"a pool of {settings.pool:,}; {scope}"
