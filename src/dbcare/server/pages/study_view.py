"""A study as its page shows it: pieces of the page by name, made alike for the first look and for every update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbcare.live.report import ArmStatus, Recommendation, Status
from dbcare.live.settings import Settings
from dbcare.live.stored_study import Study
from dbcare.risk import Loss
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.pages.drawing import Axis
from dbcare.server.pages.formatting import amount, number
from dbcare.server.pages.rendering import part

RETIRED = "retired: "  # how `ArmStatus.left` begins for those
MOST_ARMS, MOST_PENDING = 100, 12  # in the tables


@dataclass(frozen=True)
class ArmLine:
    """An arm in the table."""

    arm: ArmStatus
    loss: str | None
    interval: tuple[float, float] | None  # within the bounds
    leads: bool


def parts_of(study: Study, visitor: Visitor) -> dict[str, str]:
    """All that changes, as pieces of HTML."""
    settings, status, choice = study.settings, study.status(), study.recommendation()
    pending = study.pending()
    lines = [_line(settings, choice, arm) for arm in _foremost(settings, status)]
    ends = [end for line in lines for end in line.interval or ()]
    return {
        "state": part("state", state=status.state),
        "announcement": part("announcement", choice=choice, status=status),
        "sentence": part("sentence", choice=choice, status=status, money=_money(settings, choice)),
        "figures": part("figures", status=status, **_figures(settings, status)),
        "notes": part("notes", notes=status.notes),
        "arms": part(
            "arms",
            lines=lines,
            more=len(status.arms) - len(lines),
            axis=Axis.over(ends + [line.arm.mean for line in lines if line.arm.mean is not None]),
            has_losses=any(arm.expected_loss is not None for arm in status.arms),
        ),
        "actions": part(
            "actions",
            name=study.name,
            status=status,
            visitor=visitor,
            may_change=visitor.role.allows(Role.ADMIN),
            retirable=_retirable(status),
        ),
        "pending": part("pending", pending=pending[:MOST_PENDING], more=max(0, len(pending) - MOST_PENDING)),
        "log": part("log", sentences=study.explain()),
    }


def chart_of(study: Study) -> dict[str, Any]:
    """Spending and the expected loss of stopping, by rewards counted."""
    history = study.history()
    return {
        "unit": study.settings.unit if study.settings.value is not None else "units of the loss",
        "rewards": [point.rewards for point in history],
        "spent": [point.spent for point in history],
        "loss": [point.expected_loss for point in history],
        "stopped": study.should_stop(),
    }


def _foremost(settings: Settings, status: Status) -> list[ArmStatus]:
    """Those in the race first; as they were given or, of very many, the best."""
    arms = sorted(status.arms, key=lambda arm: arm.left is not None)
    if len(arms) > MOST_ARMS:
        arms.sort(key=lambda arm: (arm.left is not None, arm.mean is None, -settings.sign * (arm.mean or 0.0)))
    return arms[:MOST_ARMS]


def _line(settings: Settings, choice: Recommendation, arm: ArmStatus) -> ArmLine:
    interval = arm.interval
    if interval is not None and settings.bounds is not None:
        low, high = settings.bounds
        interval = max(low, interval[0]), min(high, interval[1])
    leads = arm.name == choice.arm and choice.mean is not None
    loss = None if arm.expected_loss is None or leads else amount(settings, arm.expected_loss)
    return ArmLine(arm, loss, interval, leads)


def _money(settings: Settings, choice: Recommendation) -> dict[str, str | None]:
    loss = choice.expected_loss
    return {
        "spent": amount(settings, choice.spent),
        "loss": None if loss is None else amount(settings, loss),
    }


def _figures(settings: Settings, status: Status) -> dict[str, str | None]:
    loss, limit = status.expected_loss, settings.max_spend
    return {
        "spent": amount(settings, status.spent),
        "limit": None if limit is None else settings.amount(limit),
        "loss": None if loss is None else amount(settings, loss),
    }


def _retirable(status: Status) -> list[str]:
    """Arms that can be withdrawn: one must stay."""
    racing = [arm.name for arm in status.arms if not (arm.left or "").startswith(RETIRED)]
    return racing if len(racing) > 1 else []


def described(settings: Settings) -> list[tuple[str, str]]:
    """The settings in words."""
    costs = dict.fromkeys(settings.amount(cost) for cost in settings.costs)
    regret = settings.risk == Loss.SIMPLE_REGRET
    found = [
        ("A trial costs", ", ".join(costs)),
        ("What a wrong choice loses", "its gap in means" if regret else "the same, whatever the gap"),
        ("Better is", "more" if settings.direction == "maximize" else "less"),
        ("Rewards", _rewards(settings)),
        ("Policy", settings.policy),
        ("At most to spend", "no limit" if settings.max_spend is None else settings.amount(settings.max_spend)),
        ("Trials out at most", "twice the workers" if settings.max_ahead is None else str(settings.max_ahead)),
        (
            "A trial that times out",
            "is replaced" if settings.timeout_reward is None else f"counts as {number(settings.timeout_reward)}",
        ),
        ("Seed", str(settings.seed)),
    ]
    if settings.value is not None:
        worth = "A unit of reward is worth" if regret else "A wrong choice costs"
        found.insert(1, (worth, amount(settings, settings.value)))
    return found


def _rewards(settings: Settings) -> str:
    if settings.bounds == (0.0, 1.0):
        return "from 0 to 1"
    if settings.bounds is not None:
        return f"from {number(settings.bounds[0])} to {number(settings.bounds[1])}"
    return "of unknown spread" if settings.sigma is None else f"with standard deviation {number(settings.sigma)}"
