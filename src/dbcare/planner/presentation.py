"""A plan in words: the table, and sentences on what follows from it."""

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

from dbcare.policies.breakeven import Breakeven
from dbcare.risk import Loss, money

if TYPE_CHECKING:
    from dbcare.planner.plan import Outlook, Plan

LABELS = {
    "breakeven": "Breakeven",
    "dbcare": "DBCARE",
    "fixed-size-test": "fixed-size test",
    "decide-now": "decide now",
}
WIDTH = 80


def text(plan: Plan) -> str:
    """The same as plain text."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as captured:
        show(plan, console)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())


def show(plan: Plan, console: Console) -> None:
    """PlanSetting, table and sentences on a console; a table wider than that is not cut."""
    made = table(plan)
    made.width = Measurement.get(console, console.options.update(max_width=10 * WIDTH), made).maximum
    console.print(title(plan), markup=False, highlight=False)
    console.print(made, soft_wrap=made.width > console.width)
    for sentence in (*plan.advice, "", *notes(plan)):
        lines = textwrap.fill(sentence, max(20, console.width - 1), initial_indent="- ", subsequent_indent="  ")
        console.print(lines if sentence else "", markup=False, highlight=False, soft_wrap=True)


def table(plan: Plan) -> Table:
    """A section for each gap, a line for each policy; a star at the lowest total loss."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for header in ("gap", "policy", "observations", "spend", "wrong", "total loss", "\N{PLUS-MINUS SIGN}", ""):
        made.add_column(header, justify="left" if header in ("policy", "") else "right", no_wrap=True)
    in_money = plan.setting.risk.value is not None
    for gap in plan.gaps:
        here = [each for each in plan.outlooks if each.gap == gap]
        least = min(here, key=lambda each: each.total_loss)
        for place, each in enumerate(here):
            made.add_row(
                f"{gap:g}" if place == 0 else "",
                LABELS[each.name],
                f"{each.observations:,.0f}",
                amount(each.spend, in_money=in_money),
                chance(each),
                amount(each.total_loss, in_money=in_money),
                _margin(each, in_money=in_money),
                "*" if each is least and len(here) > 1 else "",
                style="bold" if each is least and len(here) > 1 else None,
                end_section=place == len(here) - 1,
            )
    return made


def title(plan: Plan) -> str:
    """The setting in a line."""
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
    """Whether to experiment, what it saves against the fixed-size test, and the most that is spent."""
    if "breakeven" not in plan.policies:
        return ()
    ours = plan.of("breakeven")
    said = []
    if "decide-now" in plan.policies:
        said.append(worth_it(plan, ours, plan.of("decide-now")))
    if "fixed-size-test" in plan.policies and plan.max_spend:
        said.append(against_test(plan, ours, plan.of("fixed-size-test")))
    return (*said, spending(plan, ours))


def worth_it(plan: Plan, ours: Sequence[Outlook], guesses: Sequence[Outlook]) -> str:
    """At which gaps Breakeven beats a choice without data, by more than two standard errors."""
    setting = plan.setting
    one_each = _amount(plan, setting.unit * math.fsum(setting.risk.costs(setting.arms)))
    if isinstance(ours[0].policy, Breakeven) and ours[0].policy.guesses:
        return (
            f"Experimenting is not worth it at all: decide now. One observation of each arm would cost {one_each}, "
            "and a choice without data loses no more."
        )
    pays = [_clearly_less(one, other) for one, other in zip(ours, guesses, strict=True)]
    costs = [_clearly_less(other, one) for one, other in zip(ours, guesses, strict=True)]
    if all(costs):
        extra = _most_saved(plan, guesses, ours)
        said = "Experimenting is not worth it at any of these gaps: decide now."
        return f"{said} Breakeven would lose up to {extra} more."
    groups = []
    if any(pays):
        gain = _most_saved(plan, ours, guesses)
        groups.append(f"Experimenting pays {_where(plan, pays)}: Breakeven loses up to {gain} less than deciding now.")
    if any(costs):
        extra = _most_saved(plan, guesses, ours)
        groups.append(f"It does not {_where(plan, costs)}, and loses at most {extra} more.")
    unclear = [not (one or other) for one, other in zip(pays, costs, strict=True)]
    if any(unclear):
        groups.append(f"With {plan.runs:,} runs it is too close to tell {_where(plan, unclear)}.")
    return " ".join(groups)


def against_test(plan: Plan, ours: Sequence[Outlook], tests: Sequence[Outlook]) -> str:
    """How the total losses of Breakeven and of the test compare."""
    better = [_clearly_less(one, other) for one, other in zip(ours, tests, strict=True)]
    worse = [_clearly_less(other, one) for one, other in zip(ours, tests, strict=True)]
    shares = [1.0 - one.total_loss / other.total_loss for one, other in zip(ours, tests, strict=True)]
    if not any(better) and not any(worse):
        return "Breakeven and the fixed-size test lose about the same."
    said = []
    if any(better):
        won = [share for share, is_better in zip(shares, better, strict=True) if is_better]
        low, high = percent(min(won)), percent(max(won))
        share = low if low == high else f"{low} to {high}"
        said.append(
            f"Breakeven loses {share} less than the fixed-size test {_where(plan, better)}, "
            f"which is up to {_most_saved(plan, ours, tests)}."
        )
    if any(worse):
        said.append(f"The test is better {_where(plan, worse)}, by up to {_most_saved(plan, tests, ours)}.")
    return " ".join(said)


def spending(plan: Plan, ours: Sequence[Outlook]) -> str:
    """The guarantee, and what nearly all runs stay below."""
    assert plan.max_spend is not None
    if plan.max_spend == 0.0:
        return "Breakeven spends nothing."
    most = max(each.evaluation.pulls.quantiles[0.95] for each in ours)
    usual = f"makes at most {most:,.0f} observations"
    if not plan.setting.risk.costs_differ:
        usual = f"spends at most {_amount(plan, most * plan.setting.unit * plan.setting.risk.single_cost)}"
    return (
        f"Breakeven never spends more than {_amount(plan, plan.max_spend)}, whatever the truth is; "
        f"at the gaps above it {usual} in 95% of all runs."
    )


def notes(plan: Plan) -> list[str]:
    """What the figures rest on."""
    setting = plan.setting
    others = "the other" if setting.arms == 2 else f"each of the {setting.arms - 1} others"
    said = [f"In each section one arm is better than {others} by the gap."]
    if setting.baseline is not None:
        said[0] = f"In each section one arm has the rate {setting.baseline:g} + gap, {others} {setting.baseline:g}."
    if "fixed-size-test" in plan.policies:
        said.append(
            "The fixed-size test is designed for the gap of its section, as if it were known: two-sided 5%, 80% power "
            "for two arms; then the best mean is chosen."
        )
    said += [f"{LABELS[name]} is left out: {why}." for name, why in plan.left_out.items()]
    unit = "" if setting.risk.value is not None else " Amounts are in units of the loss."
    said.append(
        f"Total loss is spend plus the expected loss of the choice; * marks the lowest.{unit} Figures that are not "
        f"exact come from {plan.runs:,} runs each, seed {plan.seed}; \N{PLUS-MINUS SIGN} is two standard "
        "errors of the total loss."
    )
    return said


def amount(number: float, *, in_money: bool) -> str:
    """An amount of money, or a number to three digits."""
    return money(number) if in_money else f"{number:.3g}"


def chance(outlook: Outlook) -> str:
    """The chance of a wrong choice; where no run chose wrong, below the limit that so many runs allow."""
    high = outlook.evaluation.error_interval[1]
    return f"<{percent(high).lstrip('<')}" if outlook.chance_wrong == 0.0 < high else percent(outlook.chance_wrong)


def percent(share: float) -> str:
    """A share in percent; one that rounds to nothing or all is said to be near it."""
    if share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1.0 else f"{100.0 * share:.1f}%"


def _margin(outlook: Outlook, *, in_money: bool) -> str:
    """Two standard errors of the total loss."""
    if outlook.standard_error == 0.0:
        return "exact"
    margin = 2.0 * outlook.standard_error
    return amount(margin, in_money=True) if in_money else f"{margin:.2g}"


def _amount(plan: Plan, number: float) -> str:
    return amount(number, in_money=plan.setting.risk.value is not None)


def _clearly_less(one: Outlook, other: Outlook) -> bool:
    return other.total_loss - one.total_loss > 2.0 * math.hypot(one.standard_error, other.standard_error)


def _most_saved(plan: Plan, ours: Sequence[Outlook], others: Sequence[Outlook]) -> str:
    return _amount(plan, max(other.total_loss - one.total_loss for one, other in zip(ours, others, strict=True)))


def _where(plan: Plan, holds: Sequence[bool]) -> str:
    """The gaps where something holds, in words."""
    places = [place for place, each in enumerate(holds) if each]
    gaps = [f"{plan.gaps[place]:g}" for place in places]
    if len(places) == len(holds):
        return "at every gap above" if len(gaps) > 1 else f"at a gap of {gaps[0]}"
    if len(places) > 1 and places[-1] - places[0] == len(places) - 1:
        return f"at gaps from {gaps[0]} to {gaps[-1]}"
    return f"at a gap of {gaps[0]}" if len(gaps) == 1 else f"at gaps of {', '.join(gaps[:-1])} and {gaps[-1]}"
