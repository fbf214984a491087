"""The pictures and words of the demo."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dbcare.cli.demo import chart, shop
from dbcare.cli.demo.shop import Moment
from dbcare.cli.intervals import draw_interval
from dbcare.live.report import ArmStatus, Recommendation
from dbcare.money import Money
from dbcare.planner.setting import PlanSetting
from dbcare.risk import Risk

TITLE = "Which front page sells best?"
IDEA = "Stop once the expected loss of stopping is no more than what has been spent."
SCALE = (0.0, 0.30)  # of the rates
ENOUGH = 30  # visitors from which on an interval means something
OTHER_LINES = 10  # than those of the pages and the chart
ABOVE = 3.0  # times the spending at the end, which the chart has room for
SPENT, LOSS = "bright_magenta", "bright_cyan"
UNIT = "USD"


def axes_of(moments: Sequence[Moment]) -> chart.Axes:
    """Room for the whole study, so that nothing jumps; losses of the first visitors are far above it."""
    end = moments[-1]
    return chart.Axes.up_to(end.status.counted, ABOVE * end.choice.spent)


def frame(moments: Sequence[Moment], axes: chart.Axes, width: int, height: int) -> Group:
    """One picture: the pages with what is known of them, and how loss and spending approach each other."""
    now = moments[-1]
    above: list[RenderableType] = [
        Text.assemble((TITLE, "bold"), ("  a simulated shop, a real study", "dim")),
        Text(story(), style="dim"),
        Text(),
        pages(now, width),
        Text(),
        Text(IDEA),
        balance(now),
    ]
    room = max(4, height - len(shop.RATES) - OTHER_LINES)
    return Group(*above, *chart.chart(lines_of(moments), axes, width - 1, room), *below(now, axes, width))


def story() -> str:
    """What is at stake, in a line."""
    costs = f"A visitor costs {shop.PRICE:.2f} {UNIT}"
    return f"{costs}; {shop.SEASON:,} more will come, and a sale earns {shop.PROFIT} {UNIT}."


def pages(now: Moment, width: int) -> Table:
    """A line for each page: visitors, rate, its interval on a common scale, and its share of the latest asks."""
    room = max(20, min(70, width - 42))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("front page", no_wrap=True)
    table.add_column("visitors", justify="right")
    table.add_column("sold", justify="right", width=6)
    low, high = (f"{end:.0%}" for end in SCALE)
    table.add_column(f"{low}{'95% interval':^{room - len(low) - len(high)}}{high}", width=room, no_wrap=True)
    table.add_column("last 50", justify="right")
    for arm, share in zip(now.status.arms, now.recent, strict=True):
        style = "bold green" if arm.name == now.choice.arm else "dim" if is_behind(arm, now.choice) else ""
        rate, line = "" if arm.mean is None else f"{arm.mean:.1%}", Text()
        if arm.mean is not None and arm.interval is not None:
            line = draw_interval(arm.mean, arm.interval, SCALE, room, style)
        table.add_row(Text(arm.name), f"{arm.trials:,}", rate, line, f"{share:.0%}", style=style)
    return table


def is_behind(arm: ArmStatus, choice: Recommendation) -> bool:
    """Whether an arm is practically out of the race: all of its interval lies below the leader's mean."""
    if arm.interval is None or choice.mean is None:
        return False
    return arm.trials >= ENOUGH and arm.interval[1] < choice.mean


def balance(now: Moment) -> Text:
    """Spending and loss in numbers; also the legend."""
    loss = now.choice.expected_loss
    return Text.assemble(
        ("\N{BOX DRAWINGS HEAVY HORIZONTAL} spent ", SPENT),
        (f"{Money(now.choice.spent, UNIT):>12}", f"bold {SPENT}"),
        ("      \N{BOX DRAWINGS HEAVY HORIZONTAL} expected loss of stopping now ", LOSS),
        (f"{'?' if loss is None else Money(loss, UNIT):>12}", f"bold {LOSS}"),
    )


def lines_of(moments: Sequence[Moment]) -> list[chart.ChartLine]:
    """Loss and spending by visitors counted."""
    seen = [(moment.status.counted, moment.choice) for moment in moments if moment.status.counted]
    return [
        chart.ChartLine([(at, choice.expected_loss) for at, choice in seen if choice.expected_loss], LOSS),
        chart.ChartLine([(at, choice.spent) for at, choice in seen if choice.spent], SPENT),
    ]


def below(now: Moment, axes: chart.Axes, width: int) -> list[Text]:
    """The end of the scale, and where the study is."""
    end = f"{axes.right:,.0f} visitors"
    if now.choice.final:
        state = Text.assemble(("Break-even. ", "bold"), ("Stopped: choose ", ""), (now.choice.arm, "bold green"))
    else:
        counts = f"{now.status.counted:,} counted, {now.status.waiting} out, {now.status.held} held back"
        state = Text(f"hour {now.minutes / 60:,.0f}: {counts} until those before are known")
    return [Text(f"{end:>{width - 1}}", style="dim"), state]


def ending(last: Moment, console: Console) -> None:
    """What is left on the screen when it is over."""
    console.print(pages(last, console.width))
    console.print()
    for line in summary(last):
        console.print(line, markup=False, soft_wrap=not line or line.startswith(" "))


def summary(last: Moment) -> list[str]:
    """The end in words, with the truth that only a simulation knows, and how to begin."""
    choice = last.choice
    assert choice.mean is not None  # every page has been seen
    assert choice.interval is not None
    low, high = choice.interval
    best = max(shop.RATES, key=lambda name: shop.RATES[name])
    lost = (shop.RATES[best] - shop.RATES[choice.arm]) * shop.VALUE
    truth = "the best there is" if not lost else f"{best} has {shop.RATES[best]:.0%}: {Money(lost, UNIT)} are lost"
    return [
        f"Choose {choice.arm}: {choice.mean:.1%} bought (95% interval {low:.1%} to {high:.1%}).",
        f"Stopped after {last.status.counted:,} visitors: {Money(choice.spent, UNIT)} spent, and the expected loss of "
        f"stopping is {Money(choice.expected_loss or 0.0, UNIT)}. More visitors are not worth their price.",
        f"The truth, which only this simulation knows: {choice.arm} has {shop.RATES[choice.arm]:.0%}; {truth}.",
        classical(),
        "",
        "Begin your own:",
        "  export DBCARE_STORAGE=sqlite:///shop.db",
        "  dbcare create shop --arms Old,New --price 0.40 --value 60000 --binary",
        "  dbcare ask shop        # which page to show to the next visitor",
        "  dbcare tell shop 1 0   # visitor 1 bought nothing",
    ]


def classical() -> str:
    """What a test of fixed size costs that is told the true rise beforehand."""
    rate, best = shop.RATES[shop.TODAY], max(shop.RATES.values())
    setting = PlanSetting(len(shop.RATES), Risk.simple_regret(price=shop.PRICE, value=shop.VALUE), baseline=rate)
    each = setting.test_pulls(best - rate)
    cost = each * len(shop.RATES) * shop.PRICE
    return (
        f"A fixed-size A/B test that knew beforehand to look for a rise from {rate:.0%} to {best:.0%} (level 5%, power "
        f"80%) would take {each:,} visitors of each page: {Money(cost, UNIT)}."
    )
