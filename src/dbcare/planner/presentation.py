"""A plan on a page or a terminal: title, table, advice, what the figures rest on, and how to create its study."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement

from dbcare.planner.strategies import BEST_SIZE, DECIDE_NOW, FIXED_SIZE_TEST, find_label, find_strategy
from dbcare.planner.table import tabulate_plan
from dbcare.problem.risk import Loss
from dbcare.problem.spread import Spread

if TYPE_CHECKING:
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
