"""What the demonstration draws in the terminal: arms, the curve of losses, and what they mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dbcare.base.numbers import Money
from dbcare.cli.demo import shop
from dbcare.cli.demo.shop import Moment
from dbcare.cli.output import draw_interval
from dbcare.planner.setting import PlanSetting
from dbcare.problem.risk import Risk
from dbcare.problem.spread import Spread
from dbcare.studies.results.status import ArmStatus, Recommendation

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
MIN_ROWS_FOR_ALL_LABELS = 12  # a lower chart labels every other tick


@dataclass(frozen=True)
class ChartLine:
    """Points from left to right, with positive heights."""

    points: Sequence[tuple[float, float]]
    style: str


@dataclass(frozen=True)
class Axes:
    """Axes from 0 to `right`, and from 1 up to a power of ten; whatever is lower or higher is cut off."""

    right: float
    decades: int  # the power

    @classmethod
    def up_to(cls, right: float, height: float) -> "Axes":
        """Create axes that end at or above `height`."""
        return cls(right, max(1, math.ceil(math.log10(height))))


def draw_chart(lines: Sequence[ChartLine], axes: Axes, width: int, height: int) -> list[Text]:
    """Return rows of text, with labels on the left; where lines meet, the last one is on top."""
    labels = {
        height - 1 - round(power / axes.decades * (height - 1)): f"{10**power:,}"
        for power in range(0, axes.decades + 1, 1 if height >= MIN_ROWS_FOR_ALL_LABELS else 2)
    }
    margin = max(map(len, labels.values()))
    columns = max(1, width - margin - 1)
    cells = [[0] * columns for _ in range(height)]
    styles = [[""] * columns for _ in range(height)]
    for line in lines:
        for across, down in _find_dots(line, axes, 2 * columns, 4 * height):
            row, column = down // 4, across // 2
            cells[row][column] |= DOTS[down % 4][across % 2]
            styles[row][column] = line.style
    rows = []
    for row in range(height):
        text = Text(no_wrap=True)
        edge = "\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}" if row in labels else "\N{BOX DRAWINGS LIGHT VERTICAL}"
        text.append(f"{labels.get(row, ''):>{margin}}{edge}", style="dim")
        for cell, style in zip(cells[row], styles[row], strict=True):
            text.append(chr(BRAILLE + cell) if cell else " ", style=style)
        rows.append(text)
    return rows


def _find_dots(line: ChartLine, axes: Axes, columns: int, rows: int) -> set[tuple[int, int]]:
    """Return the dots of a line, as (across, down): its points and those in between."""
    places = [
        (round(right / axes.right * (columns - 1)), rows - 1 - round(math.log10(up) / axes.decades * (rows - 1)))
        for right, up in line.points
    ]
    dots = set(places)
    for before, after in pairwise(places):
        steps = max(abs(after[0] - before[0]), abs(after[1] - before[1]))
        dots |= {
            (_interpolate(before[0], after[0], step / steps), _interpolate(before[1], after[1], step / steps))
            for step in range(1, steps)
        }
    return {(across, down) for across, down in dots if 0 <= across < columns and 0 <= down < rows}


def _interpolate(before: int, after: int, share: float) -> int:
    return round(before + (after - before) * share)


TITLE = "Which home page sells best?"
IDEA = "Stop once the expected loss to the strongest rival is no more than what has been spent."
RATE_AXIS = (0.0, 0.30)
MIN_VISITORS = 30  # before an arm can be shown as clearly behind
SPENT, LOSS = "bright_magenta", "bright_cyan"
CURRENCY = "USD"


def make_axes(moments: Sequence[Moment]) -> Axes:
    """Return axes for the whole study, so that they never change."""
    highest = max(height for line in make_lines(moments) for _, height in line.points)
    return Axes.up_to(moments[-1].status.counted, highest)


def make_frame(moments: Sequence[Moment], axes: Axes, width: int, height: int) -> Group:
    """Return one frame: what is known about the pages, and how loss and spend approach each other."""
    now = moments[-1]
    above: list[RenderableType] = [
        Text.assemble((TITLE, "bold"), ("  a real study in a simulated shop", "dim")),
        Text(describe_stakes(), style="dim"),
        Text(),
        make_page_table(now, width),
        Text(),
        Text(IDEA),
        format_balance(now),
    ]
    footer = make_footer(now, axes, width)
    used = len(Console(width=width).render_lines(Group(*above))) + len(footer)  # narrow terminals wrap lines
    lines = draw_chart(make_lines(moments), axes, width - 1, max(4, height - used))
    return Group(*above, *lines, *footer)


def describe_stakes() -> str:
    """Return what is at stake, in one line."""
    price = f"Each visitor costs {shop.PRICE:.2f} {CURRENCY}"
    return f"{price}; {shop.FUTURE_VISITORS:,} more will come, and a sale earns {shop.PROFIT} {CURRENCY}."


def make_page_table(now: Moment, width: int) -> Table:
    """Return a line per page: visitors, rate, interval on a common axis, and share of the latest trials."""
    room = max(20, min(70, width - 42))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("home page", no_wrap=True)
    table.add_column("visitors", justify="right")
    table.add_column("bought", justify="right", width=6)
    low, high = (f"{end:.0%}" for end in RATE_AXIS)
    table.add_column(f"{low}{'95% interval':^{room - len(low) - len(high)}}{high}", width=room, no_wrap=True)
    table.add_column("last 50", justify="right")
    for arm, share in zip(now.status.arms, now.recent, strict=True):
        style = "bold green" if arm.name == now.choice.arm else "dim" if is_behind(arm, now.choice) else ""
        rate, line = "" if arm.mean is None else f"{arm.mean:.1%}", Text()
        if arm.mean is not None and arm.interval is not None:
            line = draw_interval(arm.mean, arm.interval, RATE_AXIS, room, style)
        table.add_row(Text(arm.name), f"{arm.trials:,}", rate, line, f"{share:.0%}", style=style)
    return table


def is_behind(arm: ArmStatus, choice: Recommendation) -> bool:
    """Return whether an arm is clearly behind: its whole interval is below the leader's mean."""
    if arm.interval is None or choice.mean is None:
        return False
    return arm.trials >= MIN_VISITORS and arm.interval[1] < choice.mean


def format_balance(now: Moment) -> Text:
    """Return spend and loss in numbers, which is also the legend of the chart."""
    loss = now.status.policy_loss
    return Text.assemble(
        ("\N{BOX DRAWINGS HEAVY HORIZONTAL} spent ", SPENT),
        (f"{Money(now.choice.spent, CURRENCY):>12}", f"bold {SPENT}"),
        ("      \N{BOX DRAWINGS HEAVY HORIZONTAL} expected loss to the strongest rival ", LOSS),
        (f"{'?' if loss is None else Money(loss, CURRENCY):>12}", f"bold {LOSS}"),
    )


def make_lines(moments: Sequence[Moment]) -> list[ChartLine]:
    """Return the lines of loss and spend, by counted visitors."""
    states = [moment.status for moment in moments if moment.status.counted]
    return [
        ChartLine([(status.counted, status.policy_loss) for status in states if status.policy_loss], LOSS),
        ChartLine([(status.counted, status.spent) for status in states if status.spent], SPENT),
    ]


def make_footer(now: Moment, axes: Axes, width: int) -> list[Text]:
    """Return the end of the axis, and the state of the study."""
    end = f"{axes.right:,.0f} visitors"
    if now.choice.final:
        state = Text.assemble(("Break-even. ", "bold"), ("Stopped: choose ", ""), (str(now.choice.arm), "bold green"))
    else:
        counts = f"{now.status.counted:,} counted, {now.status.waiting} pending, {now.status.held} held"
        state = Text(f"hour {now.minutes / 60:,.0f}: {counts} for earlier trials")
    return [Text(f"{end:>{width - 1}}", style="dim"), state]


def print_ending(last: Moment, seed: int, console: Console) -> None:
    """Print what stays on the screen after the animation."""
    console.print(make_page_table(last, console.width))
    console.print()
    for line in summarize(last, seed):
        console.print(line, markup=False, soft_wrap=not line or line.startswith(" "))


def summarize(last: Moment, seed: int) -> list[str]:
    """Return the result in sentences, the truth that only a simulation knows, and how to start a study."""
    choice = last.choice
    verdict, _, lead = choice.sentences[:3]
    return [
        f"Stopped at break-even after {last.status.counted:,} visitors and {Money(choice.spent, CURRENCY)}: by the "
        "rule's own estimate, the choice loses no more than that to its strongest rival.",
        f"{verdict} {lead}",
        describe_truth(last),
        describe_fixed_size_test(),
        *([describe_typical_run()] if seed == shop.TYPICAL_SEED else []),
        "",
        "Start your own:",
        "  export DBCARE_STORAGE=sqlite:///shop.db",
        f"  dbcare create shop --arms Old,New --price {shop.PRICE:.2f} --value {shop.VALUE} --baseline 0.1",
        "  dbcare ask shop        # which page to show the next visitor",
        "  dbcare tell shop 1 0   # visitor 1 bought nothing",
    ]


def describe_truth(last: Moment) -> str:
    """Return what only the simulation knows: whether the choice is the best page, and what it loses otherwise."""
    arm, best = str(last.choice.arm), max(shop.RATES, key=lambda name: shop.RATES[name])
    beginning = f"The truth, which only this simulation knows: {arm} sells to {shop.RATES[arm]:.0%} of visitors"
    if arm == best:
        return f"{beginning} and is the best of all."
    lost = Money((shop.RATES[best] - shop.RATES[arm]) * shop.VALUE, CURRENCY)
    return f"{beginning}, but {best} to {shop.RATES[best]:.0%}, so this choice loses {lost}."


def describe_fixed_size_test() -> str:
    """Return what a fixed-size test that knows the true lift in advance would cost."""
    rate, best = shop.RATES[shop.CURRENT], max(shop.RATES.values())
    risk = Risk.simple_regret(price=shop.PRICE, value=shop.VALUE)
    setting = PlanSetting(len(shop.RATES), risk, Spread(baseline=rate))
    visitors = setting.test_pulls(best - rate)
    cost = Money(visitors * len(shop.RATES) * shop.PRICE, CURRENCY)
    return (
        f"A fixed-size A/B test that is told in advance to expect a lift from {rate:.0%} to {best:.0%} (level 5%, "
        f"power 80%) takes {visitors:,} visitors per page and {cost}."
    )


def describe_typical_run() -> str:
    """Return how the run that is shown by default was chosen."""
    runs = shop.COMPARED_RUNS
    return (
        f"This run is typical: of those with random seeds 0 to {runs - 1}, it has the median total loss, which is the "
        f"spend plus what the choice loses. {shop.RUNS_THAT_CHOSE_BEST} of these {runs} runs chose the best page."
    )
