"""A plan as a table, and in sentences on what follows from it."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from dbcare.planner.strategies import DECIDE_NOW, FIXED_SIZE_TEST, find_strategy, strategy_names
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.risk import Loss
from dbcare.spread import Spread

if TYPE_CHECKING:
    from dbcare.planner.outlook import Outlook
    from dbcare.planner.plan import Plan

DEFAULT_WIDTH = 80
OMITTED = "left out"

Pairs = Sequence[tuple["Outlook", "Outlook"]]  # of two policies at the same gaps


def format_plan(plan: Plan) -> str:
    """Return title, table and sentences as plain text."""
    console = Console(file=io.StringIO(), width=DEFAULT_WIDTH, color_system=None)
    with console.capture() as captured:
        show(plan, console)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())


def show(plan: Plan, console: Console) -> None:
    """Print title, table and sentences to a console; a table wider than that is not cut."""
    table = make_table(plan)
    table.width = Measurement.get(console, console.options.update(max_width=10 * DEFAULT_WIDTH), table).maximum
    console.print(title(plan), markup=False, highlight=False)
    console.print(table, soft_wrap=table.width > console.width)
    for sentence in (*plan.advice, "", *notes(plan)):
        lines = textwrap.fill(sentence, max(20, console.width - 1), initial_indent="- ", subsequent_indent="  ")
        console.print(lines if sentence else "", markup=False, highlight=False, soft_wrap=True)
    for line in how_to_run(plan):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def make_table(plan: Plan) -> Table:
    """Return a section per gap with a line per policy; a star marks the lowest total loss if all are known."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in ("gap", "policy", "observations", "spend", "wrong", "total loss", "\N{PLUS-MINUS SIGN}", ""):
        table.add_column(header, justify="left" if header in ("policy", "") else "right", no_wrap=True)
    for gap in plan.gaps:
        outlooks = {outlook.name: outlook for outlook in plan.outlooks if outlook.gap == gap}
        omitted = {omission.name for omission in plan.omissions if omission.gap == gap}
        names = [name for name in strategy_names() if name in outlooks or name in omitted]
        best = None if omitted or len(names) == 1 else min(names, key=lambda name: outlooks[name].total_loss)
        for place, name in enumerate(names):
            is_best = name == best
            table.add_row(
                f"{gap:g}" if place == 0 else "",
                find_strategy(name).label,
                *(_figures(plan, outlooks[name]) if name in outlooks else [OMITTED]),
                "*" if is_best else "",
                style="bold" if is_best else None,
                end_section=place == len(names) - 1,
            )
    return table


def _figures(plan: Plan, outlook: Outlook) -> list[str]:
    """Return the figures of a line of the table."""
    return [
        f"{outlook.observations:,.0f}",
        str(plan.setting.money(outlook.spend)),
        format_chance(outlook),
        str(plan.setting.money(outlook.total_loss)),
        _margin(plan, outlook),
    ]


def title(plan: Plan) -> str:
    """Return the setting in one line."""
    setting = plan.setting
    costs = sorted(set(setting.risk.costs(setting.arms)))
    price = " to ".join(f"{setting.unit * cost:,g}" for cost in (costs[0], costs[-1])[: len(costs)])
    regret = setting.risk.loss is Loss.SIMPLE_REGRET
    if setting.risk.value is None:
        worth = f"{price} {'units of reward' if regret else 'of a wrong choice'}"
    else:
        worth = f"{price}, {'a unit of reward is worth' if regret else 'a wrong choice'} {setting.unit:,g}"
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


def advice(plan: Plan) -> tuple[str, ...]:
    """Say whether to experiment, what that saves against the test, the most that is spent, and what is missing."""
    omitted = describe_omissions(plan)
    if DEFAULT_POLICY not in plan.policies:
        return omitted
    sentences = []
    if guesses := _pair_up(plan, DECIDE_NOW.name):
        sentences.append(judge_worth(plan, guesses))
    if plan.max_spend != 0.0 and (tests := _pair_up(plan, FIXED_SIZE_TEST.name)):
        sentences.append(compare_with_test(plan, tests))
    return (*sentences, describe_spending(plan, plan.of(DEFAULT_POLICY)), *omitted)


def judge_worth(plan: Plan, pairs: Pairs) -> str:
    """Say at which gaps the default policy beats a choice without data, by more than two standard errors."""
    setting = plan.setting
    one_each = setting.money(setting.unit * math.fsum(setting.risk.costs(setting.arms)))
    if pairs[0][0].policy.max_pulls == 0:
        return (
            f"Experimenting is not worth it at all: decide now. One observation of each arm would cost {one_each}, "
            "and a choice without data loses no more."
        )
    pays = [one.gap for one, other in pairs if _clearly_less(one, other)]
    costs = [one.gap for one, other in pairs if _clearly_less(other, one)]
    unclear = [one.gap for one, _ in pairs if one.gap not in (*pays, *costs)]
    gain, extra = _most_saved(plan, pairs), _most_saved(plan, [(other, one) for one, other in pairs])
    if len(costs) == len(plan.gaps):
        return (
            f"Experimenting is not worth it at any of these gaps: decide now. {_label()} would lose up to {extra} more."
        )
    groups = []
    if pays:
        groups.append(f"Experimenting pays {_where(plan, pays)}: {_label()} loses up to {gain} less than deciding now.")
    if costs:
        groups.append(f"It does not {_where(plan, costs)}, and loses at most {extra} more.")
    if unclear:
        groups.append(f"With {plan.runs:,} runs it is too close to tell {_where(plan, unclear)}.")
    return " ".join(groups)


def compare_with_test(plan: Plan, pairs: Pairs) -> str:
    """Compare the total losses of the default policy and of the test."""
    better = {one.gap: 1.0 - one.total_loss / other.total_loss for one, other in pairs if _clearly_less(one, other)}
    worse = [one.gap for one, other in pairs if _clearly_less(other, one)]
    if not better and not worse:
        return f"{_label()} and the fixed-size test lose about the same."
    sentences = []
    if better:
        low, high = format_percent(min(better.values())), format_percent(max(better.values()))
        share = low if low == high else f"{low} to {high}"
        sentences.append(
            f"{_label()} loses {share} less than the fixed-size test {_where(plan, better)}, "
            f"which is up to {_most_saved(plan, pairs)}."
        )
    if worse:
        most = _most_saved(plan, [(other, one) for one, other in pairs])
        sentences.append(f"The test is better {_where(plan, worse)}, by up to {most}.")
    return " ".join(sentences)


def describe_spending(plan: Plan, ours: Sequence[Outlook]) -> str:
    """State the guarantee, and what nearly all runs stay below."""
    assert plan.max_spend is not None
    if plan.max_spend == 0.0:
        return f"{_label()} spends nothing."
    most = max(outlook.evaluation.pulls.quantiles[0.95] for outlook in ours)
    usual = f"makes at most {most:,.0f} observations"
    if not plan.setting.risk.costs_differ:
        cost = plan.setting.unit * plan.setting.risk.single_cost
        usual = f"spends at most {plan.setting.money(most * cost)}"
    where = "at the gaps above" if len(ours) == len(plan.gaps) else _where(plan, [outlook.gap for outlook in ours])
    if math.isinf(plan.max_spend):
        return (
            f"No limit on what {_label()} spends is known in advance; {where} it {usual} in 95% of runs. "
            "Give the study a budget to set one."
        )
    return (
        f"{_label()} never spends more than {plan.setting.money(plan.max_spend)} if trials are made one at a time, "
        f"whatever the truth; {where} it {usual} in 95% of runs."
    )


def describe_omissions(plan: Plan) -> tuple[str, ...]:
    """Say what did not fit into the budget of work, how much it is, and what to do about it."""
    sentences = []
    for name in dict.fromkeys(omission.name for omission in plan.omissions):
        omissions = [omission for omission in plan.omissions if omission.name == name]
        # The largest gap takes the least work.
        there = "" if len(omissions) == 1 else f"at a gap of {omissions[-1].gap:g}, "
        sentences.append(
            f"{find_strategy(name).label} is left out {_where(plan, [omission.gap for omission in omissions])}: "
            f"{there}{omissions[-1].why}."
        )
    if sentences:
        sentences.append(
            "That is more work than one plan may take here: choose larger gaps or fewer runs, or run `dbcare plan` on "
            "your own machine, which has no limit."
        )
    return tuple(sentences)


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
    if FIXED_SIZE_TEST.name in plan.policies:
        sentences.append(
            "The fixed-size test is designed for the gap of its section, as if it were known: two-sided 5%, 80% power "
            "for two arms; then the best mean is chosen."
        )
    for name, why in plan.left_out.items():
        where = " at some gaps" if name in plan.policies else ""
        sentences.append(f"{find_strategy(name).label} is left out{where}: {why}.")
    unit = "" if setting.risk.value is not None else " Amounts are in units of the loss."
    sentences.append(
        f"Total loss is spend plus the expected loss of the choice; * marks the lowest.{unit} Figures that are not "
        f"exact come from {plan.runs:,} runs each, seed {plan.seed}; \N{PLUS-MINUS SIGN} is two standard "
        "errors of the total loss."
    )
    return sentences


def how_to_run(plan: Plan) -> list[str]:
    """Return lines with the command and the Python call that create the study; none if it would stop at once."""
    if plan.study is None or plan.max_spend == 0.0:
        return []
    ways = [way for way in (plan.study.command, plan.study.call) if way is not None]
    return ["", f"Run it with {find_strategy(plan.study.policy).label}:", *(f"  {way}" for way in ways)]


def format_chance(outlook: Outlook) -> str:
    """Return the chance of a wrong choice; where no run chose wrong, the limit that so many runs allow."""
    high = outlook.evaluation.error_interval[1]
    if outlook.chance_wrong == 0.0 < high:
        return f"<{format_percent(high).lstrip('<')}"
    return format_percent(outlook.chance_wrong)


def format_percent(share: float) -> str:
    """Return a share in percent; one that rounds to nothing or all is said to be near it."""
    if share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1.0 else f"{100.0 * share:.1f}%"


def _margin(plan: Plan, outlook: Outlook) -> str:
    """Return two standard errors of the total loss."""
    if outlook.standard_error == 0.0:
        return "exact"
    return str(plan.setting.money(2.0 * outlook.standard_error))


def _label() -> str:
    return POLICIES[DEFAULT_POLICY].label


def _clearly_less(one: Outlook, other: Outlook) -> bool:
    return other.total_loss - one.total_loss > 2.0 * math.hypot(one.standard_error, other.standard_error)


def _pair_up(plan: Plan, name: str) -> Pairs:
    """Return the default policy and another one at each gap that has both."""
    others = {outlook.gap: outlook for outlook in plan.outlooks if outlook.name == name}
    return [(one, others[one.gap]) for one in plan.of(DEFAULT_POLICY) if one.gap in others]


def _most_saved(plan: Plan, pairs: Pairs) -> str:
    """Return the largest amount by which the first of a pair loses less than the second."""
    return str(plan.setting.money(max(other.total_loss - one.total_loss for one, other in pairs)))


def _where(plan: Plan, holds: Collection[float]) -> str:
    """Return the gaps where something holds, in words."""
    places = [place for place, gap in enumerate(plan.gaps) if gap in holds]
    gaps = [f"{plan.gaps[place]:g}" for place in places]
    if len(places) == len(plan.gaps):
        return "at every gap above" if len(gaps) > 1 else f"at a gap of {gaps[0]}"
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"at gaps from {gaps[0]} to {gaps[-1]}"
    return f"at a gap of {gaps[0]}" if len(gaps) == 1 else f"at gaps of {', '.join(gaps[:-1])} and {gaps[-1]}"
