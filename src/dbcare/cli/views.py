"""Studies in the terminal: with colors where somebody looks, as plain tables and records elsewhere."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbcare.base.numbers import Money
from dbcare.cli.output import draw_interval, find_axis
from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from dbcare.studies.results.words import (
    describe_rewards,
    format_best,
    format_capped,
    format_counts,
    format_estimate,
    format_lift,
    format_number,
    format_spending,
)
from dbcare.studies.settings import Settings
from dbcare.studies.study import Study


def make_record(study: Study) -> dict[str, Any]:
    """Return the main figures in one flat record."""
    status, choice = study.status(), study.recommendation()
    return {
        "study": status.name,
        "state": status.state,
        "asked": status.asked,
        "rewards": status.rewards,
        "waiting": status.waiting,
        "held": status.held,
        "spent": status.spent,
        "recommended": choice.arm,
        "verdict": choice.verdict,
    }


def to_plain(status: Status, choice: Recommendation) -> dict[str, Any]:
    """Return everything, for JSON."""
    return {**asdict(status), "recommendation": asdict(choice)}


def arm_rows(status: Status) -> list[dict[str, Any]]:
    """Return one row per arm, without numbers where nothing is known."""
    return [
        {
            "arm": arm.name,
            "trials": arm.trials,
            "share": share,
            "mean": arm.mean,
            "low": None if arm.interval is None else arm.interval[0],
            "high": None if arm.interval is None else arm.interval[1],
            "estimate": arm.estimate,
            "probability_best": arm.probability_best,
            "lead": arm.lead,
            "lead_low": None if arm.lead_interval is None else arm.lead_interval[0],
            "lead_high": None if arm.lead_interval is None else arm.lead_interval[1],
            "expected_loss": arm.expected_loss,
            "capped": arm.capped,
            "late": arm.late,
            "left": arm.left,
        }
        for arm, share in zip(status.arms, shares(status), strict=True)
    ]


def shares(status: Status) -> list[float]:
    """Return each arm's share of the trials that were counted."""
    return [arm.trials / (status.rewards or 1) for arm in status.arms]


def plain_lines(settings: Settings, status: Status, choice: Recommendation) -> list[str]:
    """Return plain lines, aligned."""
    width = max(len(arm.name) for arm in status.arms)
    return [
        f"{status.name}: {status.state}; {format_counts(settings, status)}",
        *([] if status.description is None else [f"about: {status.description}"]),
        *(_arm_line(arm, share, width) for arm, share in zip(status.arms, shares(status), strict=True)),
        f"spent: {format_spending(settings, choice)}",
        f"recommended: {choice}",
        *(f"  {sentence}" for sentence in choice.sentences),
        f"rewards: {describe_rewards(settings)}",
        *([] if status.cap is None else [f"above the cap: {format_capped(status)}"]),
        *(f"no longer active: {arm.name} {arm.left}" for arm in status.arms if arm.left),
        *(f"note: {note}" for note in status.notes),
    ]


def _arm_line(arm: ArmStatus, share: float, width: int) -> str:
    counts = f"{arm.trials:>7}  {share:>4.0%}  {format_number(arm.mean):>10}"
    estimate, interval = format_estimate(arm)
    return f"  {arm.name:<{width}}  {counts}  {estimate:>10}  ({interval})"


STYLES = {"running": "green", "paused": "yellow", "stopped": "cyan"}
MIN_DRAWING_WIDTH, MAX_DRAWING_WIDTH = 12, 40  # characters, of the intervals
CHANCE_WIDTH, LIFT_WIDTH = 9, 9  # of columns that not every study has


def show(console: Console, settings: Settings, status: Status, choice: Recommendation) -> None:
    """Print the study at a glance."""
    console.print(
        Text.assemble(
            (status.name, "bold"), "  ", (status.state, STYLES[status.state]), f"  {format_counts(settings, status)}"
        )
    )
    if status.description is not None:
        console.print(Text(status.description, style="italic"))
    console.print(_make_table(console, status, choice))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("spent", str(Money(choice.spent, settings.currency)))
    if choice.arm is not None:
        end = "final" if choice.final else "so far"
        facts.add_row("recommended", Text.assemble((choice.arm, "bold green"), f"  {end}, {choice.verdict}"))
    facts.add_row("", Text(" ".join(choice.sentences)))
    facts.add_row("why" if choice.final else "now", Text(choice.reason))
    facts.add_row("rewards", Text(describe_rewards(settings)))
    if status.cap is not None:
        facts.add_row("above cap", Text(format_capped(status)))
    _add_sentences(facts, "inactive", [f"{arm.name} {arm.left}" for arm in status.arms if arm.left], "dim")
    _add_sentences(facts, "notes", status.notes, "yellow")
    console.print(Padding(facts, (0, 0, 0, 1)))


def _add_sentences(facts: Table, name: str, sentences: Iterable[str], style: str) -> None:
    for place, sentence in enumerate(sentences):
        facts.add_row("" if place else name, Text(sentence, style=style))


def _make_table(console: Console, status: Status, choice: Recommendation) -> Table:
    axis = find_axis(arm.interval for arm in status.arms if arm.interval is not None)
    longest = max(len(arm.name) for arm in status.arms)
    has_chances = any(arm.probability_best is not None for arm in status.arms)
    has_lift = any(arm.lift is not None for arm in status.arms)
    taken = 54 + CHANCE_WIDTH * has_chances + LIFT_WIDTH * has_lift
    room = min(MAX_DRAWING_WIDTH, console.width - min(longest, 30) - taken)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("arm", max_width=30, overflow="ellipsis", no_wrap=True)
    for header in ("trials", "naive mean", "estimate"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("95% interval", no_wrap=True)
    if has_chances:
        table.add_column("best", justify="right", no_wrap=True)
    if has_lift:
        table.add_column("lift", justify="right", no_wrap=True)
    if axis is not None and room >= MIN_DRAWING_WIDTH:
        ends = f"{axis[0]:.3g}", f"{axis[1]:.3g}"
        table.add_column(f"{ends[0]}{ends[1]:>{room - len(ends[0])}}", width=room, header_style="dim")
    for arm in status.arms:
        style = "green" if arm.name == choice.arm else "dim" if arm.left else ""
        cells: list[str | Text] = [
            Text(arm.name),
            f"{arm.trials:,}",
            format_number(arm.mean),
            *format_estimate(arm),
        ]
        if has_chances:
            cells.append(format_best(arm))
        if has_lift:
            cells.append(format_lift(arm))
        if len(table.columns) > len(cells):
            known = None not in (axis, arm.estimate, arm.interval)
            cells.append(draw_interval(arm.estimate, arm.interval, axis, room, style) if known else "")  # type: ignore[arg-type]  # `known` says so
        table.add_row(*cells, style=style)
    return table
