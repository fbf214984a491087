"""A study as commands print it for a person at a terminal."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbcare.base.numbers import Money
from dbcare.cli.intervals import draw_interval, find_axis
from dbcare.studies.results.status import Recommendation, Status
from dbcare.studies.results.words import (
    describe_rewards,
    format_best,
    format_capped,
    format_counts,
    format_estimate,
    format_lift,
    format_number,
)
from dbcare.studies.settings import Settings

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
