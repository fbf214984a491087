"""A ledger as plain numbers, texts, and lists: the stored summary that makes opening a study fast."""

from __future__ import annotations

from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from dbcare.live.arm_statistics import ArmStatistics, Charges, History, TrialCounts
from dbcare.live.events import EventKind
from dbcare.live.ledger import Ledger, OpenTrial
from dbcare.live.loss_curve import LossCurve
from dbcare.live.settings import Settings
from dbcare.live.status import Activity
from dbcare.live.tail import Tail
from dbcare.live.variety import Variety

AS_THEY_ARE = (
    "asked", "counted", "waiting", "spent", "workers", "interrupted", "expired_at", "began", "last_counted",
    "description", "paused", "ended", "max_ahead", "refused", "handed_out", "turned_away",
)  # fmt: skip
TRIAL_FIELDS = [field.name for field in fields(OpenTrial)]
read_trial = attrgetter(*TRIAL_FIELDS)  # as `dataclasses.astuple`, which takes ten times as long


def summarize(ledger: Ledger) -> dict[str, Any]:
    """Return the whole state, ready for JSON."""
    return {
        **{name: getattr(ledger, name) for name in AS_THEY_ARE},
        "retired": sorted(ledger.retired),
        "withdrawn": {str(arm): reason for arm, reason in ledger.withdrawn.items()},
        "decision": ledger.decision.to_dict(),
        "open": [[number, *read_trial(trial)] for number, trial in ledger.open.items()],  # there may be many
        "tallies": [statistics.to_dict() for statistics in ledger.statistics],
        "tails": [asdict(statistics.tail) for statistics in ledger.statistics],
        "varieties": [asdict(statistics.variety) for statistics in ledger.statistics],
        "counts": [asdict(counts) for counts in ledger.counts],
        "charges": [asdict(charges) for charges in ledger.charges],
        "history": ledger.history.to_dict(),
        "times": ledger.history.times,
        "losses": {"points": ledger.losses.compute(), "seen": ledger.losses.seen},
        "activities": [asdict(activity) for activity in ledger.activities],
    }


def restore(settings: Settings, plain: dict[str, Any]) -> Ledger:
    """Return the ledger that `summarize` described."""
    ledger = Ledger(settings, frozenset(plain["retired"]))
    ledger.decision.restore(plain["decision"])
    ledger.restore_open({number: _restore_trial(values) for number, *values in plain["open"]})
    ledger.withdrawn = {int(arm): reason for arm, reason in plain["withdrawn"].items()}
    ledger.statistics = [
        ArmStatistics(**entry, tail=Tail(**tail), variety=Variety(**variety))
        for entry, tail, variety in zip(plain["tallies"], plain["tails"], plain["varieties"], strict=True)
    ]
    ledger.counts = [TrialCounts(**entry) for entry in plain["counts"]]
    ledger.charges = [Charges(**entry) for entry in plain["charges"]]
    ledger.history = History(**plain["history"], times=plain["times"])
    ledger.losses = LossCurve(**plain["losses"])
    ledger.activities = [Activity(**activity) for activity in plain["activities"]]
    for name in AS_THEY_ARE:
        setattr(ledger, name, plain[name])
    return ledger


def _restore_trial(values: list[Any]) -> OpenTrial:
    trial = OpenTrial(*values)
    trial.status = EventKind(trial.status)
    return trial
