"""A plan as a table, and in sentences on what follows from it."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from dbcare.planner.strategies import DECIDE_NOW, FIXED_SIZE_TEST, find_strategy
from dbcare.policies.registry import DEFAULT_POLICY, POLICIES
from dbcare.risk import Loss

if TYPE_CHECKING:
    from dbcare.planner.plan import Outlook, Plan

DEFAULT_WIDTH = 80


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


def make_table(plan: Plan) -> Table:
    """Return a section per gap with a line per policy; a star marks the lowest total loss."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in ("gap", "policy", "observations", "spend", "wrong", "total loss", "\N{PLUS-MINUS SIGN}", ""):
        table.add_column(header, justify="left" if header in ("policy", "") else "right", no_wrap=True)
    for gap in plan.gaps:
        outlooks = [outlook for outlook in plan.outlooks if outlook.gap == gap]
        best = min(outlooks, key=lambda outlook: outlook.total_loss)
        for place, outlook in enumerate(outlooks):
            is_best = outlook is best and len(outlooks) > 1
            table.add_row(
                f"{gap:g}" if place == 0 else "",
                find_strategy(outlook.name).label,
                f"{outlook.observations:,.0f}",
                str(plan.setting.money(outlook.spend)),
                format_chance(outlook),
                str(plan.setting.money(outlook.total_loss)),
                _margin(plan, outlook),
                "*" if is_best else "",
                style="bold" if is_best else None,
                end_section=place == len(outlooks) - 1,
            )
    return table


def title(plan: Plan) -> str:
    """Return the setting in one line."""
    setting = plan.setting
    costs = sorted(set(setting.risk.costs(setting.arms)))
    price = " to ".join(f"{setting.unit * cost:,g}" for cost in (costs[0], costs[-1])[: len(costs)])
    regret = setting.risk.loss is Loss.SIMPLE_REGRET
    rewards = f"sigma {setting.sigma:g}" if setting.baseline is None else f"baseline {setting.baseline:g}"
    if setting.risk.value is None:
        worth = f"{price} {'units of reward' if regret else 'of a wrong choice'}"
    else:
        worth = f"{price}, {'a unit of reward is worth' if regret else 'a wrong choice'} {setting.unit:,g}"
    return f"{setting.arms} arms, {rewards}; an observation costs {worth}"


def advice(plan: Plan) -> tuple[str, ...]:
    """Say whether to experiment, what that saves against the fixed-size test, and the most that is spent."""
    if DEFAULT_POLICY not in plan.policies:
        return ()
    ours = plan.of(DEFAULT_POLICY)
    sentences = []
    if DECIDE_NOW.name in plan.policies:
        sentences.append(judge_worth(plan, ours, plan.of(DECIDE_NOW.name)))
    if FIXED_SIZE_TEST.name in plan.policies and plan.max_spend:
        sentences.append(compare_with_test(plan, ours, plan.of(FIXED_SIZE_TEST.name)))
    return (*sentences, describe_spending(plan, ours))


def judge_worth(plan: Plan, ours: Sequence[Outlook], guesses: Sequence[Outlook]) -> str:
    """Say at which gaps the default policy beats a choice without data, by more than two standard errors."""
    setting = plan.setting
    one_each = setting.money(setting.unit * math.fsum(setting.risk.costs(setting.arms)))
    if ours[0].policy.max_pulls == 0:
        return (
            f"Experimenting is not worth it at all: decide now. One observation of each arm would cost {one_each}, "
            "and a choice without data loses no more."
        )
    pays = [_clearly_less(one, other) for one, other in zip(ours, guesses, strict=True)]
    costs = [_clearly_less(other, one) for one, other in zip(ours, guesses, strict=True)]
    if all(costs):
        extra = _most_saved(plan, guesses, ours)
        return (
            f"Experimenting is not worth it at any of these gaps: decide now. {_label()} would lose up to {extra} more."
        )
    groups = []
    if any(pays):
        gain = _most_saved(plan, ours, guesses)
        groups.append(f"Experimenting pays {_where(plan, pays)}: {_label()} loses up to {gain} less than deciding now.")
    if any(costs):
        extra = _most_saved(plan, guesses, ours)
        groups.append(f"It does not {_where(plan, costs)}, and loses at most {extra} more.")
    unclear = [not (one or other) for one, other in zip(pays, costs, strict=True)]
    if any(unclear):
        groups.append(f"With {plan.runs:,} runs it is too close to tell {_where(plan, unclear)}.")
    return " ".join(groups)


def compare_with_test(plan: Plan, ours: Sequence[Outlook], tests: Sequence[Outlook]) -> str:
    """Compare the total losses of the default policy and of the test."""
    better = [_clearly_less(one, other) for one, other in zip(ours, tests, strict=True)]
    worse = [_clearly_less(other, one) for one, other in zip(ours, tests, strict=True)]
    shares = [1.0 - one.total_loss / other.total_loss for one, other in zip(ours, tests, strict=True)]
    if not any(better) and not any(worse):
        return f"{_label()} and the fixed-size test lose about the same."
    sentences = []
    if any(better):
        won = [share for share, is_better in zip(shares, better, strict=True) if is_better]
        low, high = format_percent(min(won)), format_percent(max(won))
        share = low if low == high else f"{low} to {high}"
        sentences.append(
            f"{_label()} loses {share} less than the fixed-size test {_where(plan, better)}, "
            f"which is up to {_most_saved(plan, ours, tests)}."
        )
    if any(worse):
        sentences.append(f"The test is better {_where(plan, worse)}, by up to {_most_saved(plan, tests, ours)}.")
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
    return (
        f"{_label()} never spends more than {plan.setting.money(plan.max_spend)}, whatever the truth; "
        f"at the gaps above it {usual} in 95% of runs."
    )


def notes(plan: Plan) -> list[str]:
    """Return what the figures rest on."""
    setting = plan.setting
    others = "the other" if setting.arms == 2 else f"each of the {setting.arms - 1} others"
    sentences = [f"In each section one arm is better than {others} by the gap."]
    if setting.baseline is not None:
        sentences[0] = (
            f"In each section one arm has the rate {setting.baseline:g} + gap, {others} {setting.baseline:g}."
        )
    if FIXED_SIZE_TEST.name in plan.policies:
        sentences.append(
            "The fixed-size test is designed for the gap of its section, as if it were known: two-sided 5%, 80% power "
            "for two arms; then the best mean is chosen."
        )
    sentences += [f"{find_strategy(name).label} is left out: {why}." for name, why in plan.left_out.items()]
    unit = "" if setting.risk.value is not None else " Amounts are in units of the loss."
    sentences.append(
        f"Total loss is spend plus the expected loss of the choice; * marks the lowest.{unit} Figures that are not "
        f"exact come from {plan.runs:,} runs each, seed {plan.seed}; \N{PLUS-MINUS SIGN} is two standard "
        "errors of the total loss."
    )
    return sentences


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


def _most_saved(plan: Plan, ours: Sequence[Outlook], others: Sequence[Outlook]) -> str:
    most = max(other.total_loss - one.total_loss for one, other in zip(ours, others, strict=True))
    return str(plan.setting.money(most))


def _where(plan: Plan, holds: Sequence[bool]) -> str:
    """Return the gaps where something holds, in words."""
    places = [place for place, held in enumerate(holds) if held]
    gaps = [f"{plan.gaps[place]:g}" for place in places]
    if len(places) == len(holds):
        return "at every gap above" if len(gaps) > 1 else f"at a gap of {gaps[0]}"
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"at gaps from {gaps[0]} to {gaps[-1]}"
    return f"at a gap of {gaps[0]}" if len(gaps) == 1 else f"at gaps of {', '.join(gaps[:-1])} and {gaps[-1]}"
