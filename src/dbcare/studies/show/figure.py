"""A study as a figure: what is known of the arms, and how spending and expected loss met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbcare.base.figures import ACCENT, LOSS, MUTED, DisplayedFigure, drawing_figure
from dbcare.studies.study import StudyReports

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbcare.studies.results.status import ArmStatus, HistoryPoint, Recommendation

MAX_ARMS_DRAWN = 40  # the best ones
ROW = 0.32  # inches for an arm
MAX_TITLE = 100  # characters


def draw_study(study: StudyReports) -> DisplayedFigure:
    """Draw the arms' means with their intervals, and spending against expected loss."""
    (status, choice), history, settings = study.snapshot(), study.history(), study.settings
    arms = [(arm, arm.mean) for arm in status.arms if arm.mean is not None]
    arms.sort(key=lambda known: -settings.sign * (known[1] if known[0].estimate is None else known[0].estimate))
    with drawing_figure(10.0, max(3.6, 1.6 + ROW * min(len(arms), MAX_ARMS_DRAWN))) as figure:
        left, right = figure.subplots(1, 2)
        _draw_arms(left, arms, choice, settings.control)
        _draw_history(right, history, settings.currency, choice.final)
        verdict = choice.verdict if choice.arm is None else f"{choice.arm}, {choice.verdict}"
        title = f"{study.name}: {verdict}"
        figure.suptitle(title if len(title) <= MAX_TITLE else f"{title[:MAX_TITLE]}...", fontsize=11, parse_math=False)
    return figure


def _draw_arms(axes: Axes, arms: list[tuple[ArmStatus, float]], choice: Recommendation, control: str | None) -> None:
    shown = arms[:MAX_ARMS_DRAWN]
    if not shown:
        _say(axes, "no rewards yet")
        return
    for place, (arm, mean) in enumerate(shown):
        color = ACCENT if arm.name == choice.arm else MUTED
        if arm.interval is not None:
            axes.plot(arm.interval, (place, place), color=color, linewidth=2.2, solid_capstyle="round")
        if arm.estimate is not None:
            axes.plot(arm.estimate, place, "o", color=color, markersize=6)
        axes.plot(mean, place, "o", markerfacecolor="none", markeredgecolor=color, markersize=4)
    labels = [f"{arm.name} (control)" if arm.name == control else arm.name for arm, _ in shown]
    axes.set_yticks(range(len(shown)), labels, parse_math=False)
    for label, (arm, _) in zip(axes.get_yticklabels(), shown, strict=True):
        label.set_fontweight("bold" if arm.name == choice.arm else "normal")
        label.set_alpha(0.55 if arm.left else 1.0)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(True, axis="x", alpha=0.25)
    more = f"; {len(arms) - len(shown):,} more arms" if len(arms) > len(shown) else ""
    axes.set_xlabel(f"mean reward; dot: corrected for selection, with a 95% interval\ncircle: naive mean{more}")


def _draw_history(axes: Axes, history: list[HistoryPoint], currency: str | None, has_stopped: bool) -> None:
    drawn = [point for point in history if point.spent > 0.0]
    if len(drawn) < 2:
        _say(axes, "the curves begin with two rewards")
        return
    rewards = [point.rewards for point in drawn]
    axes.plot(rewards, [point.spent for point in drawn], color=ACCENT, linewidth=1.8, label="spent")
    for name, losses, style in (
        ("what the policy weighs", [point.policy_loss for point in drawn], "-"),
        ("expected loss of stopping", [point.expected_loss for point in drawn], ":"),
    ):
        known = [(count, loss) for count, loss in zip(rewards, losses, strict=True) if loss is not None and loss > 0.0]
        if known:
            axes.plot(*zip(*known, strict=True), color=LOSS, linewidth=1.6, linestyle=style, label=name)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")
    axes.grid(True, which="major", alpha=0.25)
    axes.set_xlabel("rewards counted, until the stop" if has_stopped else "rewards counted")
    axes.set_ylabel(currency or "units of the loss", parse_math=False)
    axes.legend(frameon=False)


def _say(axes: Axes, sentence: str) -> None:
    axes.set_axis_off()
    axes.text(0.5, 0.5, sentence, ha="center", va="center", color=MUTED, transform=axes.transAxes)
