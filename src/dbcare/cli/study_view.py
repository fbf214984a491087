"""A study as commands print it to a pipe and for programs; `terminal_view` has it for a person."""

from dataclasses import asdict
from typing import Any

from dbcare.studies.results.status import ArmStatus, Recommendation, Status
from dbcare.studies.results.words import (
    describe_rewards,
    format_capped,
    format_counts,
    format_estimate,
    format_number,
    format_spending,
)
from dbcare.studies.settings import Settings
from dbcare.studies.study import Study


def make_record(study: Study) -> dict[str, Any]:
    """Return the main figures in one flat record."""
    status, choice = study.status(), study.recommendation()
    return {
        "study": status.name,
        "state": status.state,
        "asked": status.asked,
        "rewards": status.rewards,
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
