"""A plan as people see it: printed, in notebooks, and as a figure."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.measure import Measurement

from dbcare.base.figures import DisplayedFigure, drawing_figure
from dbcare.base.html import make_code, make_display, make_list, make_table
from dbcare.planner.setting import BEST_SIZE, DECIDE_NOW, FIXED_SIZE_TEST, find_label, find_strategy
from dbcare.planner.words import LEFT, list_headers, list_lines, tabulate_plan
from dbcare.policies.registry import DEFAULT_POLICY
from dbcare.problem.risk import Loss
from dbcare.problem.spread import Spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dbcare.planner.outlook import Outlook
    from dbcare.planner.plan import Plan


DEFAULT_WIDTH = 80


def format_plan(plan: Plan) -> str:
    """Return title, table and sentences as plain text."""
    console = Console(file=io.StringIO(), width=DEFAULT_WIDTH, color_system=None)
    with console.capture() as captured:
        show(plan, console)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())


def show(plan: Plan, console: Console) -> None:
    """Print title, table and sentences to a console; a table wider than that is not cut."""
    table = tabulate_plan(plan)
    table.width = Measurement.get(console, console.options.update(max_width=10 * DEFAULT_WIDTH), table).maximum
    console.print(title(plan), markup=False, highlight=False)
    console.print(table, soft_wrap=table.width > console.width)
    for sentence in (*plan.advice, "", *notes(plan)):
        lines = textwrap.fill(sentence, max(20, console.width - 1), initial_indent="- ", subsequent_indent="  ")
        console.print(lines if sentence else "", markup=False, highlight=False, soft_wrap=True)
    for line in how_to_run(plan):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def title(plan: Plan) -> str:
    """Return the setting in one line."""
    setting = plan.setting
    costs = sorted(set(setting.risk.costs(setting.arms)))
    prices = [setting.money(setting.loss_value * cost).stated() for cost in (costs[0], costs[-1])[: len(costs)]]
    price = " to ".join(prices)
    regret = setting.risk.loss is Loss.SIMPLE_REGRET
    if not setting.is_in_money:
        worth = f"{price} {'units of reward' if regret else 'of a wrong choice'}"
    else:
        value = setting.money(setting.loss_value).stated()
        worth = f"{price}, {'a unit of reward is worth' if regret else 'a wrong choice'} {value}"
    return f"{setting.arms} arms, {describe_spread(setting.spread)}; an observation costs {worth}"


def describe_spread(spread: Spread) -> str:
    """Return what is stated about the spread of the rewards, in a few words."""
    if spread.baseline is not None:
        words = f"rates around {spread.baseline:g}"
    elif spread.binary:
        words = "rewards of 0 or 1"
    else:
        stated = [] if spread.sigma is None else [f"sigma {spread.sigma:g}"]
        if spread.bounds is not None:
            stated.append("rewards from {:g} to {:g}".format(*spread.bounds))
        words = ", ".join(stated)
    return f"{words} (certain)" if math.isinf(spread.sigma_pulls) else words


def notes(plan: Plan) -> list[str]:
    """Return what the figures rest on."""
    setting = plan.setting
    others = "the other" if setting.arms == 2 else f"each of the {setting.arms - 1} others"
    sentences = [f"In each section one arm is better than {others} by the gap."]
    if setting.spread.baseline is not None:
        rate = f"{setting.spread.baseline:g}"
        sentences[0] = f"In each section one arm has the rate {rate} + gap, {others} {rate}."
    elif setting.spread.binary:
        sentences[0] = f"In each section one arm has the rate (1 + gap)/2, {others} (1 - gap)/2."
    elif setting.spread.sigma is None:
        sentences.append(
            f"Rewards have a standard deviation of {setting.deviation:g}, half their range, which is the largest "
            "possible. If you know a smaller one, state it as sigma: the experiment then costs less."
        )
    sentences += [*_describe_tests(plan), *_describe_control(plan)]
    for name, why in plan.left_out.items():
        where = " at some gaps" if name in plan.policies else ""
        sentences.append(f"{find_label(name, setting)} is left out{where}: {why}.")
    measure = "" if setting.is_in_money else " Amounts are in units of the loss."
    sentences.append(f"Total loss is spend plus the expected loss of the choice; * marks the lowest.{measure}")
    if any(outlook.runs for outlook in plan.outlooks):
        sentences.append(
            f"\N{PLUS-MINUS SIGN} is the error of a figure, two standard errors, in percent of it. Runs are those that "
            f"a row rests on; those at other gaps count by what they say about it. Seed {plan.seed}."
        )
    if not all(outlook.measured_total.is_known for outlook in plan.outlooks):
        sentences.append("< marks a limit, where the error of a figure would be more than a fifth of it.")
    return sentences


def _describe_tests(plan: Plan) -> Iterator[str]:
    """Yield what the tests of a fixed size are."""
    if FIXED_SIZE_TEST.name in plan.policies:
        yield (
            "The fixed-size test is the textbook's: two-sided 5%, 80% power at the gap of its section for two arms; "
            "then the best mean is chosen. It is not sized to lose least."
        )
    if BEST_SIZE.name in plan.policies:
        yield (
            "The best fixed size makes as many observations of each arm as lose least at the gap of its section, which "
            "nobody knows beforehand."
        )
    if plan.setting.not_before > 0 and {FIXED_SIZE_TEST.name, BEST_SIZE.name} & set(plan.policies):
        yield f"Both make at least {plan.setting.not_before:,} observations, too."


def _describe_control(plan: Plan) -> Iterator[str]:
    """Yield what it means that one of the arms is in use today."""
    control, rate = plan.setting.control, plan.setting.spread.baseline
    if control is None:
        return
    name = control.name
    if DECIDE_NOW.name in plan.policies:
        yield (
            f"Deciding now means to keep {name}. Where another arm is the best, that loses the whole gap; where {name} "
            "is, nothing."
        )
    if plan.if_control_best:
        rates = "" if rate is None else f": it has the rate {rate:g}, all others that less the gap"
        yield f"At a negative gap {name} is the best{rates}."
    else:
        yield (
            f"If {name} is the best itself by the gap, an experiment spends as much, and chooses wrongly as often, as "
            "its section says; keeping it then loses nothing."
        )


def how_to_run(plan: Plan) -> list[str]:
    """Return lines with the command and the Python call that create the study; none if it would stop at once."""
    if plan.study is None or plan.max_spend == 0.0:
        return []
    ways = [way for way in (plan.study.command, plan.study.call) if way is not None]
    return ["", f"Run it with {find_strategy(plan.study.policy).label}:", *(f"  {way}" for way in ways)]


TITLE_LETTERS = 75  # of a line
TWO_DECADES_AND_A_HALF = 10**2.5  # over more of them, powers of ten are enough numbers on an axis


def draw_plan(plan: Plan) -> DisplayedFigure:
    """Draw the figure, with bands of +- 2 standard errors."""
    # After the check that it is installed:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415

    with drawing_figure(7.2, 4.8) as figure:
        axes = figure.add_subplot()
        for name in plan.policies:
            strategy, outlooks = find_strategy(name), plan.of(name)
            gaps = [outlook.gap for outlook in outlooks]
            known = np.array([outlook.measured_total.is_known for outlook in outlooks])
            loss = np.where(known, [outlook.total_loss for outlook in outlooks], np.nan)
            margin = 2.0 * np.array([outlook.standard_error for outlook in outlooks])
            color, marker = next(iter(strategy.look.colors), None), strategy.look.marker or "s"
            (line,) = axes.loglog(
                gaps, loss, color=color, linestyle=strategy.dashes, marker=marker, markersize=5,
                markerfacecolor="white" if strategy.look.hollow else color, linewidth=1.8,
                label=find_label(name, plan.setting),
                zorder=3 if name == DEFAULT_POLICY else 2,
            )  # fmt: skip
            # The spend is known far better than the chance of a rare error, and no total is below it.
            low = np.maximum(loss - margin, np.minimum(loss, [outlook.spend for outlook in outlooks]))
            axes.fill_between(gaps, low, loss + margin, color=line.get_color(), alpha=0.15, linewidth=0.0)
            for outlook in (outlook for outlook, is_known in zip(outlooks, known, strict=True) if not is_known):
                _draw_limit(axes, outlook, line.get_color())
        axes.set_xlabel("gap \N{GREEK CAPITAL LETTER DELTA} between the best arm and the others")
        setting = plan.setting
        currency = (setting.currency or "in money") if setting.is_in_money else "in units of the loss"
        axes.set_ylabel(f"expected total loss, {currency}")
        if _have_room(plan.gaps):
            axes.set_xticks(plan.gaps, [f"{gap:g}" for gap in plan.gaps])
            axes.xaxis.set_minor_locator(NullLocator())
        low_end, high_end = axes.get_ylim()
        if high_end < TWO_DECADES_AND_A_HALF * low_end:
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,.10g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(True, which="major", alpha=0.25)
        words = title(plan)
        words = words.replace("; ", ";\n") if len(words) > TITLE_LETTERS else words
        axes.set_title(words, fontsize=10, parse_math=False)
        if not all(outlook.measured_total.is_known for outlook in plan.outlooks):
            axes.plot([], [], color="black", marker=r"$\downarrow$", linestyle="", label="below this limit")
        if plan.outlooks:
            axes.legend(frameon=False, handlelength=3.5)
    return figure


def _draw_limit(axes: Axes, outlook: Outlook, color: Any) -> None:
    """Draw an arrow down from the upper end of what the total may be."""
    limit = outlook.largest_loss
    axes.plot(outlook.gap, limit, color=color, marker="_", markersize=9, linestyle="")
    axes.annotate(
        "", (outlook.gap, limit), (0, -22), textcoords="offset points",
        arrowprops={"arrowstyle": "<-", "color": color, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip


def _have_room(gaps: Sequence[float]) -> bool:
    """Return whether each gap can have its number below the axis without touching the next."""
    steps = np.diff(np.log(gaps))
    return bool(np.all(steps >= steps.sum() / 14.0))


def display_plan(plan: Plan) -> str:
    """Return title, advice, table, what the figures rest on, and how to create the study."""
    headers, lines = list_headers(plan), list(list_lines(plan))
    return make_display(
        title(plan),
        "",
        make_list(plan.advice),
        make_table(
            headers,
            [line.cells for line in lines],
            numbers=[header for header in headers if header not in LEFT],
            strong=[place for place, line in enumerate(lines) if line.is_best],
        ),
        make_list(notes(plan)),
        make_code(line for line in how_to_run(plan) if line),
    )
