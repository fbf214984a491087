"""Where a study stands, for a person at a terminal, for a pipe, and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbcare.cli.intervals import axis_of, drawn
from dbcare.live.report import ArmStatus, Recommendation, Status
from dbcare.live.settings import Settings
from dbcare.live.stored_study import Study

STYLES = {"running": "green", "paused": "yellow", "stopped": "cyan"}
NARROWEST, WIDEST = 12, 40  # of the drawing of intervals
NONE = "-"


def record(study: Study) -> dict[str, Any]:
    """The main figures in one flat record."""
    status, choice = study.status(), study.recommendation()
    return {
        "study": status.name,
        "state": status.state,
        "asked": status.asked,
        "counted": status.counted,
        "waiting": status.waiting,
        "held": status.held,
        "spent": status.spent,
        "recommended": choice.arm,
        "verdict": choice.verdict,
    }


def plain(status: Status, choice: Recommendation) -> dict[str, Any]:
    """Everything, for JSON."""
    return {**asdict(status), "recommendation": asdict(choice)}


def arm_rows(status: Status) -> list[dict[str, Any]]:
    """A row for each arm; no numbers where nothing is known."""
    return [
        {
            "arm": arm.name,
            "trials": arm.trials,
            "share": share,
            "mean": arm.mean,
            "low": None if arm.interval is None else arm.interval[0],
            "high": None if arm.interval is None else arm.interval[1],
            "expected_loss": arm.expected_loss,
            "left": arm.left,
        }
        for arm, share in zip(status.arms, shares(status), strict=True)
    ]


def shares(status: Status) -> list[float]:
    """Each arm's share of the trials that were counted."""
    total = sum(arm.trials for arm in status.arms)
    return [arm.trials / total if total else 0.0 for arm in status.arms]


def lines(settings: Settings, status: Status, choice: Recommendation) -> list[str]:
    """Plain lines, aligned."""
    width = max(len(arm.name) for arm in status.arms)
    return [
        f"{status.name}: {status.state}; {counts(status)}",
        *(
            f"  {arm.name:<{width}}  {arm.trials:>7}  {share:>4.0%}  {_mean(arm):>10}  ({_interval(arm)})"
            for arm, share in zip(status.arms, shares(status), strict=True)
        ),
        f"spent: {money(settings, choice)}",
        f"recommended: {choice}",
        *(f"out of the race: {arm.name} {arm.left}" for arm in status.arms if arm.left),
        *(f"note: {note}" for note in status.notes),
    ]


def show(console: Console, settings: Settings, status: Status, choice: Recommendation) -> None:
    """The study at a glance."""
    console.print(
        Text.assemble((status.name, "bold"), "  ", (status.state, STYLES[status.state]), f"  {counts(status)}")
    )
    console.print(_table(console, status, choice))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("spent", money(settings, choice))
    end = "final" if choice.final else "so far"
    facts.add_row("recommended", Text.assemble((choice.arm, "bold green"), f"  {end}, {choice.verdict}"))
    facts.add_row("why" if choice.final else "now", Text(choice.reason))
    _listed(facts, "out of it", [f"{arm.name} {arm.left}" for arm in status.arms if arm.left], "dim")
    _listed(facts, "notes", status.notes, "yellow")
    console.print(Padding(facts, (0, 0, 0, 1)))


def _listed(facts: Table, name: str, sentences: Iterable[str], style: str) -> None:
    for place, sentence in enumerate(sentences):
        facts.add_row("" if place else name, Text(sentence, style=style))


def _table(console: Console, status: Status, choice: Recommendation) -> Table:
    axis = axis_of(arm.interval for arm in status.arms if arm.interval is not None)
    longest = max(len(arm.name) for arm in status.arms)
    room = min(WIDEST, console.width - min(longest, 30) - 50)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("arm", max_width=30, overflow="ellipsis", no_wrap=True)
    for header in ("trials", "share", "mean"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("95% interval", no_wrap=True)
    if axis is not None and room >= NARROWEST:
        ends = f"{axis[0]:.3g}", f"{axis[1]:.3g}"
        table.add_column(f"{ends[0]}{ends[1]:>{room - len(ends[0])}}", width=room, header_style="dim")
    for arm, share in zip(status.arms, shares(status), strict=True):
        style = "green" if arm.name == choice.arm else "dim" if arm.left else ""
        cells: list[str | Text] = [Text(arm.name), f"{arm.trials:,}", f"{share:.0%}", _mean(arm), _interval(arm)]
        if len(table.columns) > len(cells):
            known = None not in (axis, arm.mean, arm.interval)
            cells.append(drawn(arm.mean, arm.interval, axis, room, style) if known else "")  # type: ignore[arg-type]
        table.add_row(*cells, style=style)
    return table


def counts(status: Status) -> str:
    """How many trials are where."""
    oldest = "" if status.oldest is None or status.oldest < 1.0 else f" (the oldest for {duration(status.oldest)})"
    return f"{status.counted:,} counted, {status.waiting:,} out{oldest}, {status.held:,} held back"


def money(settings: Settings, choice: Recommendation) -> str:
    """What has been spent, and what a stop may lose."""
    said = amount(settings, choice.spent)
    if choice.expected_loss is None:
        return said
    loss = amount(settings, choice.expected_loss)
    return f"{said}; expected loss of {'the choice' if choice.final else 'stopping now'}: {loss}"


def amount(settings: Settings, number: float) -> str:
    """A number in money, or in units of the loss where there is no value, in words."""
    return settings.amount(number / (settings.value or 1.0))


def duration(seconds: float) -> str:
    """In the largest unit that fits."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _mean(arm: ArmStatus) -> str:
    return NONE if arm.mean is None else f"{arm.mean:.4g}"


def _interval(arm: ArmStatus) -> str:
    return NONE if arm.interval is None else f"{arm.interval[0]:.4g} to {arm.interval[1]:.4g}"
