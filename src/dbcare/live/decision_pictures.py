"""The pictures of a study's report, as SVG: the arms' means, and how spending met the expected loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from dbcare.base.axis import Axis
from dbcare.base.html import Html
from dbcare.live.recommendation import ArmStatus
from dbcare.live.status import HistoryPoint

WIDTH = 720.0
ROW, FOOT = 26.0, 26.0  # heights, of an arm and of the axis
LETTER, MAX_LABEL = 10.0, 20  # width of a character on a phone; characters of an arm's name
HEIGHT, LEFT, RIGHT, EDGE = 240.0, 100.0, 12.0, 8.0  # of the curves, with their margins
MAX_ARMS_DRAWN = 60

Placing = Callable[[float], str]  # where a reward is on the axis


def draw_arms(arms: Sequence[ArmStatus], chosen: str | None) -> Html:
    """Return the arms that have an estimate, each with its interval and its naive mean; nothing if there are none."""
    shown = [arm for arm in arms if arm.estimate is not None and arm.interval is not None][:MAX_ARMS_DRAWN]
    axis = Axis.over([end for arm in shown for end in (*(arm.interval or ()), arm.mean or 0.0)])
    if axis is None:
        return Html("")
    left = LETTER * min(MAX_LABEL, max(len(arm.name) for arm in shown)) + 16.0

    def place(value: float) -> str:
        return f"{left + (WIDTH - left - RIGHT) * (value - axis.low) / (axis.high - axis.low):.1f}"

    bottom = ROW * len(shown)
    parts = [
        f'<line class="grid" x1="{place(tick)}" x2="{place(tick)}" y1="0" y2="{bottom:g}"/>'
        f'<text class="quiet" x="{place(tick)}" y="{bottom + 16.0:g}" text-anchor="middle">{tick:g}</text>'
        for tick in axis.ticks
    ]
    for number, arm in enumerate(shown):
        parts.append(_draw_arm(arm, ROW * (number + 0.5), arm.name == chosen, place))
    title = "Means of the arms with 95% intervals"
    return _make_picture(WIDTH, bottom + FOOT, title, parts)


def _draw_arm(arm: ArmStatus, height: float, is_chosen: bool, place: Placing) -> str:
    low, high = arm.interval or (0.0, 0.0)
    look, weight = ("accent", ' font-weight="700"') if is_chosen else ("other", "")
    name = arm.name if len(arm.name) <= MAX_LABEL else f"{arm.name[: MAX_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    y = f"{height:g}"
    return (
        f'<text x="0" y="{height + 4.0:g}"{weight}>{escape(name)}</text>'
        f'<line class="line {look}" x1="{place(low)}" x2="{place(high)}" y1="{y}" y2="{y}"/>'
        f'<circle class="naive {look}" cx="{place(arm.mean or 0.0)}" cy="{y}" r="3"/>'
        f'<circle class="dot{" chosen" if is_chosen else ""}" cx="{place(arm.estimate or 0.0)}" cy="{y}" r="5"/>'
    )


def draw_history(history: Sequence[HistoryPoint]) -> Html:
    """Return the curves on a logarithmic scale; nothing before there are two points."""
    points = [point for point in history if point.spent > 0.0]
    if len(points) < 2:
        return Html("")
    curves: dict[str, list[tuple[int, float | None]]] = {
        "accent": [(point.rewards, point.spent) for point in points],
        "loss": [(point.rewards, point.policy_loss) for point in points],
        "loss dotted": [(point.rewards, point.expected_loss) for point in points],
    }
    known = {look: [(x, y) for x, y in curve if y is not None and y > 0.0] for look, curve in curves.items()}
    heights = [math.log10(y) for curve in known.values() for _, y in curve]
    low, high = math.floor(min(heights)), math.ceil(max(heights))
    high = max(high, low + 1)
    first, last = points[0].rewards, points[-1].rewards

    def place_x(rewards: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (rewards - first) / (last - first)

    def place_y(power: float) -> float:
        return EDGE + (HEIGHT - FOOT - EDGE) * (high - power) / (high - low)

    parts = []
    for power in range(low, high + 1, max(1, (high - low) // 5)):
        y = f"{place_y(power):.1f}"
        parts.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y}" y2="{y}"/>'
            f'<text class="quiet" x="{LEFT - 8.0:g}" y="{place_y(power) + 4.0:.1f}" text-anchor="end">'
            f"{10.0**power:,.10g}</text>"
        )
    for look, curve in known.items():
        if len(curve) > 1:
            coordinates = " ".join(f"{place_x(x):.1f},{place_y(math.log10(y)):.1f}" for x, y in curve)
            dashes = ' stroke-dasharray="1.5 4" stroke-linecap="round"' if "dotted" in look else ""
            parts.append(f'<polyline class="line {look.split()[0]}" points="{coordinates}"{dashes}/>')
    for rewards, anchor in ((first, "start"), (last, "end")):
        noun = "reward" if rewards == 1 else "rewards"
        parts.append(
            f'<text class="quiet" x="{place_x(rewards):.1f}" y="{HEIGHT - 8.0:g}" text-anchor="{anchor}">'
            f"{rewards:,} {noun}</text>"
        )
    return _make_picture(WIDTH, HEIGHT, "Spending and expected loss by number of rewards", parts)


def _make_picture(width: float, height: float, title: str, parts: Sequence[str]) -> Html:
    size = f"{width:g} {height:g}"
    return Html(f'<svg viewBox="0 0 {size}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>')
