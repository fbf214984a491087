"""A study as its page shows it: pieces of the page by name, the same for the first view and for every update."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dbcare.base.axis import Axis
from dbcare.base.numbers import MOST_STATED, Money, format_chance
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.pages.block_picture import LEVELS, draw_blocks
from dbcare.server.pages.rendering import render_part
from dbcare.studies.options import MAX_DESCRIPTION_LENGTH
from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from dbcare.studies.results.words import describe_uncounted
from dbcare.studies.settings import Settings
from dbcare.studies.stored import StoredStudy
from dbcare.studies.study import Study

MAX_ARMS, MAX_PENDING = 100, 12  # rows shown
MAX_UNSORTED_ARMS = 12  # more are shown best first


@dataclass(frozen=True)
class ArmLine:
    """An arm in the table."""

    arm: ArmStatus
    loss: Money | None
    leads: bool

    @property
    def chance(self) -> str | None:
        """The probability of being best, in words."""
        return None if self.arm.probability_best is None else format_chance(self.arm.probability_best)

    @property
    def chance_width(self) -> str:
        """The length of its bar, which claims no more than the words."""
        return f"{100.0 * min(self.arm.probability_best or 0.0, MOST_STATED):.1f}%"

    @property
    def lift(self) -> str | None:
        """The lift over the control: relative to it, if that makes sense."""
        lift = self.arm.lift
        if lift is None:
            return None
        return f"{lift.absolute:+.3g}" if lift.relative is None else f"{100.0 * lift.relative:+.1f}%"


TOKEN_MARK = secrets.token_hex(16)  # stands for a session's token in what all sessions share


@dataclass(frozen=True)
class StudyView:
    """What the page of a study shows as of some moment, for everybody who looks.

    Parameters
    ----------
    study : StoredStudy
        The study.
    position : int
        How many events it had.
    rendered : float
        When it was rendered, by the monotonic clock.
    parts : dict of str to str
        The pieces that all see alike, as HTML.
    actions : dict of (bool, bool) to str
        The actions, as HTML: for those who may change the study or not, with `TOKEN_MARK` in the forms or without.
    chart : dict
        The chart's data.
    """

    study: StoredStudy
    position: int
    rendered: float
    parts: dict[str, str]
    actions: dict[tuple[bool, bool], str]
    chart: dict[str, Any]

    def parts_for(self, visitor: Visitor) -> dict[str, str]:
        """Return all pieces as a visitor sees them, with their session's token in the forms."""
        session = visitor.session
        actions = self.actions[visitor.role.allows(Role.ADMIN), session is not None]
        own = actions if session is None else actions.replace(TOKEN_MARK, session.csrf)
        return {**self.parts, "actions": Markup(own)}  # already escaped


def make_view(study: StoredStudy) -> StudyView:
    """Render the page of a study."""
    position, rendered = study.position(), time.monotonic()  # first: what happens from now on is yet to be shown
    snapshot = study.snapshot()
    return StudyView(
        study, position, rendered, render_parts(study, snapshot), _render_actions(study, snapshot[0]), make_chart(study)
    )


def _render_actions(study: StoredStudy, status: Status) -> dict[tuple[bool, bool], str]:
    return {
        (may_change, has_session): render_part(
            "actions",
            name=study.name,
            status=status,
            token=TOKEN_MARK if has_session else None,
            may_change=may_change,
            retirable=_list_retirable(status),
            max_description=MAX_DESCRIPTION_LENGTH,
        )
        for may_change in (False, True)
        for has_session in (False, True)
    }


def render_parts(study: StoredStudy, snapshot: tuple[Status, Recommendation]) -> dict[str, str]:
    """Render the pieces of the page that can change, and that all visitors see alike."""
    settings, (status, choice) = study.settings, snapshot
    pending = study.pending()
    lines = [_make_line(settings, choice, arm) for arm in _choose_arms(settings, status)]
    ends = [end for line in lines for end in line.arm.interval or ()]
    lifts = [line.arm.lift for line in lines if line.arm.lift is not None]
    money = {
        "spent": Money(status.spent, settings.currency),
        "limit": None if settings.max_spend is None else settings.money(settings.max_spend),
    }
    parts = {} if not settings.has_blocks else {"blocks": _render_blocks(study, [line.arm.name for line in lines])}
    return (
        parts
        | {
            "state": render_part("state", state=status.state),
            "description": render_part("description", description=status.description),
            "announcement": render_part("announcement", choice=choice),
            "sentence": render_part("sentence", choice=choice),
            "figures": render_part(
                "figures", status=status, money=money, uncounted=describe_uncounted(status, settings.currency)
            ),
            "notes": render_part("notes", notes=status.notes),
            "arms": render_part(
                "arms",
                lines=lines,
                more=len(status.arms) - len(lines),
                axis=Axis.over(ends + [line.arm.mean for line in lines if line.arm.mean is not None]),
                control=settings.control,
                is_over=choice.final,
                lift_axis=Axis.over([0.0, *(end for lift in lifts for end in lift.interval)]),
                has={  # which columns have anything in them
                    "estimates": any(arm.estimate is not None for arm in status.arms),
                    "chances": any(arm.probability_best is not None for arm in status.arms),
                    "lifts": bool(lifts),
                    "cap": settings.cap is not None,
                    "pending": any(arm.out for arm in status.arms),
                    "losses": any(arm.expected_loss is not None for arm in status.arms),
                    "range": settings.spread.range is not None,
                },
            ),
            "pending": render_part(
                "pending",
                pending=pending[:MAX_PENDING],
                more=max(0, len(pending) - MAX_PENDING),
                has_blocks=settings.has_blocks,
            ),
            "log": render_part("log", sentences=_list_decisions(study, status), status=status),
        }
    )


def _render_blocks(study: StoredStudy, arms: list[str]) -> str:
    picture = draw_blocks(study, arms)
    return render_part("blocks", picture=picture, levels=LEVELS, more=len(study.settings.arms) - len(picture.rows))


def make_chart(study: Study) -> dict[str, Any]:
    """Return the chart's data: spending, the loss that the policy weighs, and the expected loss of stopping."""
    history = study.history()
    return {
        "currency": study.settings.currency or "units of the loss",
        "rewards": [point.rewards for point in history],
        "spent": [point.spent for point in history],
        "loss": [point.policy_loss for point in history],
        "expected": [point.expected_loss for point in history],
        "at": [None if point.at is None else 1000.0 * point.at for point in history],
        "stopped": study.should_stop(),
    }


def _list_decisions(study: Study, status: Status) -> list[str]:
    """List what the policy decided, without what people did, which is shown with their names."""
    done = {f"{activity.arm} was retired: {activity.note}" for activity in status.activities}
    done |= {str(activity.note) for activity in status.activities if activity.what == "stopped"}
    return [sentence for sentence in study.explain() if sentence not in done]


def _choose_arms(settings: Settings, status: Status) -> list[ArmStatus]:
    """Return the arms to show, active ones first; of many, the best first, and of very many those only."""
    arms = sorted(status.arms, key=lambda arm: arm.left is not None)
    if len(arms) > MAX_UNSORTED_ARMS:
        arms.sort(key=lambda arm: (arm.left is not None, arm.mean is None, -settings.sign * (arm.mean or 0.0)))
    return arms[:MAX_ARMS]


def _make_line(settings: Settings, choice: Recommendation, arm: ArmStatus) -> ArmLine:
    leads = arm.name == choice.arm and choice.mean is not None
    loss = None if arm.expected_loss is None else Money(arm.expected_loss, settings.currency)
    return ArmLine(arm, loss, leads)


def _list_retirable(status: Status) -> list[str]:
    """List the arms that can be retired; the last active one cannot."""
    active = [arm.name for arm in status.arms if not arm.is_retired]
    return active if len(active) > 1 else []
