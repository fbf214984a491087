"""A study as commands print it: for a person at a terminal, for a pipe, and for programs."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbcare.cli.intervals import draw_interval, find_axis
from dbcare.durations import format_duration
from dbcare.live.count_descriptions import describe_uncounted
from dbcare.live.recommendation import ArmStatus, Recommendation
from dbcare.live.reward_descriptions import describe_rewards
from dbcare.live.settings import Settings
from dbcare.live.status import Status
from dbcare.live.study import Study
from dbcare.money import Money
from dbcare.numbers_in_words import format_chance, round_together

STYLES = {"running": "green", "paused": "yellow", "stopped": "cyan"}
MIN_DRAWING_WIDTH, MAX_DRAWING_WIDTH = 12, 40  # characters, of the intervals
CHANCE_WIDTH, LIFT_WIDTH = 9, 9  # of columns that not every study has
UNKNOWN = "-"


def make_record(study: Study) -> dict[str, Any]:
    """Return the main figures in one flat record."""
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


def format_capped(status: Status) -> str:
    """Return how many rewards of each arm were above the cap."""
    return ", ".join(f"{arm.name} {arm.capped:,}" for arm in status.arms)


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


def format_best(arm: ArmStatus) -> str:
    """Return the probability of being best."""
    return UNKNOWN if arm.probability_best is None else format_chance(arm.probability_best)


def format_lift(arm: ArmStatus) -> str:
    """Return the lift over the control, relative to it where that makes sense; a star marks what beats it."""
    lift = arm.lift
    if lift is None:
        return UNKNOWN
    value = f"{lift.absolute:+.3g}" if lift.relative is None else f"{100.0 * lift.relative:+.3g}%"
    return f"{value}{'*' if lift.beats else ''}"


def format_counts(settings: Settings, status: Status) -> str:
    """Return how many rewards are counted, what else was charged, and how many trials are pending and held."""
    oldest = "" if status.oldest is None or status.oldest < 1.0 else f" (oldest: {format_duration(status.oldest)})"
    uncounted = "".join(f", {phrase}" for phrase in describe_uncounted(status, settings.currency))
    counts = f"{status.rewards:,} counted{uncounted}, {status.waiting:,} pending{oldest}, {status.held:,} held"
    return counts if status.blocks_used is None else f"{counts}; {format_blocks(status)}"


def format_blocks(status: Status) -> str:
    """Return how many blocks have been used: of a pool, or rounds."""
    if status.blocks is not None:
        return f"{status.blocks_used:,} of {status.blocks:,} blocks used"
    return "1 round" if status.blocks_used == 1 else f"{status.blocks_used:,} rounds"


def format_spending(settings: Settings, choice: Recommendation) -> str:
    """Return what has been spent, and what stopping is expected to lose."""
    spent = str(Money(choice.spent, settings.currency))
    if choice.expected_loss is None:
        return spent
    loss = Money(choice.expected_loss, settings.currency)
    return f"{spent}; expected loss of {'the choice' if choice.final else 'stopping now'}: {loss}"


def format_number(number: float | None) -> str:
    """Return a number with four digits."""
    return UNKNOWN if number is None else f"{number:.4g}"


def format_estimate(arm: ArmStatus) -> tuple[str, str]:
    """Return an arm's estimate and its interval, with digits that the interval supports."""
    if arm.estimate is None or arm.interval is None:
        return UNKNOWN, UNKNOWN
    estimate, low, high = round_together(arm.estimate, *arm.interval, digits=3)
    return estimate, f"{low} to {high}"
