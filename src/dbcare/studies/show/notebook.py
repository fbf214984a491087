"""Studies, their status and their recommendation as notebooks show them."""

from __future__ import annotations

from dbcare.base.html import Html, make_display, make_facts, make_list, make_paragraph, make_table
from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from dbcare.studies.results.words import (
    describe_rewards,
    describe_uncounted,
    format_best,
    format_blocks,
    format_estimate,
    format_lift,
    format_number,
)
from dbcare.studies.study import StudyReports

MAX_ARMS_SHOWN = 50


def display_study(study: StudyReports) -> str:
    """Return a study at a glance: what to choose, the arms, and what the decision rests on."""
    status, choice = study.snapshot()
    currency = study.settings.currency
    return make_display(
        study.name,
        status.state,
        *([] if status.description is None else [make_paragraph(status.description)]),
        make_paragraph(" ".join(choice.sentences)),
        make_arms(status, choice.arm),
        make_facts(
            [
                *list_counts(status, currency),
                ("why it stopped" if choice.final else "now", choice.reason),
                ("rewards", describe_rewards(study.settings)),
                ("policy", study.settings.policy_entry.label),
            ]
        ),
        make_list(status.notes),
    )


def display_status(status: Status) -> str:
    """Return a status; it does not know the currency of its amounts."""
    return make_display(
        status.name,
        status.state,
        *([] if status.description is None else [make_paragraph(status.description)]),
        make_arms(status, None),
        make_facts([*list_counts(status, ""), ("reason", status.reason)]),
        make_list(status.notes),
    )


def display_recommendation(choice: Recommendation) -> str:
    """Return a recommendation: the sentences first, then the numbers they are made from."""
    facts = [("verdict", choice.verdict), ("spent", str(Money(choice.spent, "")))]
    if choice.expected_loss is not None:
        facts.append(("expected loss", Money(choice.expected_loss, "").rough()))
    if choice.probability_best is not None:
        facts.append(("probability of being best", format_chance(choice.probability_best)))
    if choice.estimate is not None and choice.interval is not None:
        facts.append(("mean, corrected for selection", _format_interval(choice.estimate, choice.interval)))
    if choice.lead is not None and choice.lead_interval is not None:
        facts.append((f"lead over {choice.rival}", _format_interval(choice.lead, choice.lead_interval)))
    facts.append(("why it stopped" if choice.final else "now", choice.reason))
    return make_display(
        choice.arm or "no recommendation",
        "final" if choice.final else "so far",
        make_paragraph(" ".join(choice.sentences)),
        make_facts(facts),
    )


def _format_interval(value: float, interval: tuple[float, float]) -> str:
    middle, low, high = round_together(value, *interval)
    return f"{middle} (95% interval {low} to {high})"


def list_counts(status: Status, currency: str | None) -> list[tuple[str, str]]:
    """Return what is counted, pending and spent."""
    counts = f"{status.rewards:,} counted, {status.waiting:,} pending, {status.held:,} held"
    facts = [
        ("rewards so far" if status.state != "stopped" else "rewards in all", counts),
        ("spent", str(Money(status.spent, currency))),
    ]
    if uncounted := describe_uncounted(status, currency):
        facts.append(("of which", ", ".join(uncounted)))
    if status.blocks_used is not None:
        facts.append(("blocks", format_blocks(status)))
    return facts


def make_arms(status: Status, chosen: str | None) -> Html:
    """Return a table of the arms: of very many, the first ones and the one that is recommended."""
    arms = list(status.arms[:MAX_ARMS_SHOWN])
    arms += [arm for arm in status.arms[MAX_ARMS_SHOWN:] if arm.name == chosen]
    has_chance = any(arm.probability_best is not None for arm in arms)
    has_lift = any(arm.lift is not None for arm in arms)
    columns = ["arm", "trials", "naive mean", "estimate", "95% interval"]
    columns += ["best"] * has_chance + ["lift"] * has_lift
    rows = [
        [
            arm.name,
            f"{arm.trials:,}",
            format_number(arm.mean),
            *format_estimate(arm),
            *([format_best(arm)] if has_chance else []),
            *([format_lift(arm)] if has_lift else []),
        ]
        for arm in arms
    ]
    table = make_table(
        columns,
        rows,
        numbers=[column for column in columns if column not in ("arm", "95% interval")],
        strong=[place for place, arm in enumerate(arms) if arm.name == chosen],
        faint=[place for place, arm in enumerate(arms) if is_inactive(arm)],
    )
    more = len(status.arms) - len(arms)
    return Html(table + make_paragraph(f"{more:,} more arms are not shown.")) if more else table


def is_inactive(arm: ArmStatus) -> bool:
    """Return whether an arm was dropped or retired."""
    return arm.left is not None
