"""The frames and sentences of the demo."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dbcare.cli.demo import chart, shop
from dbcare.cli.demo.shop import Moment
from dbcare.cli.intervals import draw_interval
from dbcare.live.recommendation import ArmStatus, Recommendation
from dbcare.money import Money
from dbcare.planner.setting import PlanSetting
from dbcare.risk import Risk
from dbcare.spread import Spread

TITLE = "Which home page sells best?"
IDEA = "Stop once the expected loss of stopping is no more than what has been spent."
RATE_AXIS = (0.0, 0.30)
MIN_VISITORS = 30  # before an arm can be shown as clearly behind
OTHER_LINES = 10  # besides those of the pages and the chart
CHART_HEADROOM = 3.0  # height of the chart, in multiples of the final spend
SPENT, LOSS = "bright_magenta", "bright_cyan"
UNIT = "USD"


def make_axes(moments: Sequence[Moment]) -> chart.Axes:
    """Return axes for the whole study, so that they never change; the losses of the first visitors are far above."""
    end = moments[-1]
    return chart.Axes.up_to(end.status.counted, CHART_HEADROOM * end.choice.spent)


def make_frame(moments: Sequence[Moment], axes: chart.Axes, width: int, height: int) -> Group:
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
    room = max(4, height - len(shop.RATES) - OTHER_LINES)
    lines = chart.draw_chart(make_lines(moments), axes, width - 1, room)
    return Group(*above, *lines, *make_footer(now, axes, width))


def describe_stakes() -> str:
    """Return what is at stake, in one line."""
    price = f"Each visitor costs {shop.PRICE:.2f} {UNIT}"
    return f"{price}; {shop.FUTURE_VISITORS:,} more will come, and a sale earns {shop.PROFIT} {UNIT}."


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
        (f"{Money(now.choice.spent, UNIT):>12}", f"bold {SPENT}"),
        ("      \N{BOX DRAWINGS HEAVY HORIZONTAL} expected loss to the strongest rival ", LOSS),
        (f"{'?' if loss is None else Money(loss, UNIT):>12}", f"bold {LOSS}"),
    )


def make_lines(moments: Sequence[Moment]) -> list[chart.ChartLine]:
    """Return the lines of loss and spend, by counted visitors."""
    states = [moment.status for moment in moments if moment.status.counted]
    return [
        chart.ChartLine([(status.counted, status.policy_loss) for status in states if status.policy_loss], LOSS),
        chart.ChartLine([(status.counted, status.spent) for status in states if status.spent], SPENT),
    ]


def make_footer(now: Moment, axes: chart.Axes, width: int) -> list[Text]:
    """Return the end of the axis, and the state of the study."""
    end = f"{axes.right:,.0f} visitors"
    if now.choice.final:
        state = Text.assemble(("Break-even. ", "bold"), ("Stopped: choose ", ""), (str(now.choice.arm), "bold green"))
    else:
        counts = f"{now.status.counted:,} counted, {now.status.waiting} pending, {now.status.held} held"
        state = Text(f"hour {now.minutes / 60:,.0f}: {counts} for earlier trials")
    return [Text(f"{end:>{width - 1}}", style="dim"), state]


def print_ending(last: Moment, console: Console) -> None:
    """Print what stays on the screen after the animation."""
    console.print(make_page_table(last, console.width))
    console.print()
    for line in summarize(last):
        console.print(line, markup=False, soft_wrap=not line or line.startswith(" "))


def summarize(last: Moment) -> list[str]:
    """Return the result in sentences, the truth that only a simulation knows, and how to start a study."""
    choice = last.choice
    assert choice.arm is not None  # every page has had visitors
    assert choice.mean is not None
    best = max(shop.RATES, key=lambda name: shop.RATES[name])
    lost = (shop.RATES[best] - shop.RATES[choice.arm]) * shop.VALUE
    truth = ", the best of all"
    if lost:
        truth = f"; the best is {best} with {shop.RATES[best]:.0%}, so this choice loses {Money(lost, UNIT)}"
    return [
        f"Stopped after {last.status.counted:,} visitors: {Money(choice.spent, UNIT)} has been spent, and more are not "
        "worth their price.",
        " ".join(choice.sentences[:3]),  # the choice, its loss, and its mean
        f"The truth, which only this simulation knows: {choice.arm} has a rate of {shop.RATES[choice.arm]:.0%}{truth}.",
        describe_fixed_size_test(),
        "",
        "Start your own:",
        "  export DBCARE_STORAGE=sqlite:///shop.db",
        "  dbcare create shop --arms Old,New --price 0.40 --value 60000 --baseline 0.1",
        "  dbcare ask shop        # which page to show the next visitor",
        "  dbcare tell shop 1 0   # visitor 1 bought nothing",
    ]


def describe_fixed_size_test() -> str:
    """Return what a fixed-size test that knows the true lift in advance would cost."""
    rate, best = shop.RATES[shop.CURRENT], max(shop.RATES.values())
    risk = Risk.simple_regret(price=shop.PRICE, value=shop.VALUE)
    setting = PlanSetting(len(shop.RATES), risk, Spread(baseline=rate))
    visitors = setting.test_pulls(best - rate)
    cost = visitors * len(shop.RATES) * shop.PRICE
    return (
        f"A fixed-size A/B test designed in advance for the lift from {rate:.0%} to {best:.0%} (level 5%, power 80%) "
        f"would take {visitors:,} visitors per page: {Money(cost, UNIT)}."
    )
