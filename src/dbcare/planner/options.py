"""The options of a plan, defined once: `plan` spells them out with their defaults; other interfaces read them here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypedDict

from dbcare.base.options import Option, OptionKind
from dbcare.problem.risk import Loss

MAX_CURRENCY_LENGTH = 200
MAX_GAPS_PER_REQUEST = 12


class PlanOptions(TypedDict, total=False):
    """The options that a server accepts too."""

    price: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        Option(
            OptionKind.PER_ARM,
            "Price of an observation, such as 0.40, or one per arm, such as 0.4,0.4,2 or A=0.4,B=0.4,C=2.",
        ),
    ]
    value: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "What one unit of reward is worth, or what a wrong choice costs (risk misidentification).",
        ),
    ]
    cost: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        Option(OptionKind.PER_ARM, "price / value, instead of both."),
    ]
    currency: Annotated[
        str | None, Option(OptionKind.TEXT, "Currency of price and value, such as EUR.", longest=MAX_CURRENCY_LENGTH)
    ]
    sigma: Annotated[
        float | None,
        Option(OptionKind.NUMBER, "Standard deviation of a reward, as a guess that the rewards will correct."),
    ]
    baseline: Annotated[
        float | None, Option(OptionKind.NUMBER, "For rewards of 0 or 1: their usual rate, such as 0.04.")
    ]
    bounds: Annotated[
        tuple[float, float] | None, Option(OptionKind.INTERVAL, "Range of possible rewards, such as 0,5.")
    ]
    binary: Annotated[bool, Option(OptionKind.FLAG, "Rewards are 0 or 1, and their rate is unknown.")]
    sigma_pulls: Annotated[
        float,
        Option(
            OptionKind.WEIGHT,
            "How many rewards the stated spread counts as; inf if it is known for certain. Default: 6.",
        ),
    ]
    risk: Annotated[
        str,
        Option(
            OptionKind.CHOICE,
            "What a wrong choice loses: its gap in means (simple_regret), or the same whatever the gap "
            "(misidentification). Default: simple_regret.",
            lambda: sorted(map(str, Loss), reverse=True),
        ),
    ]
    gaps: Annotated[
        float | Iterable[float] | None,
        Option(
            OptionKind.NUMBERS,
            "Gaps between the best arm and the others, such as 0.01,0.1.",
            longest=MAX_GAPS_PER_REQUEST,
        ),
    ]
    per_day: Annotated[float | None, Option(OptionKind.NUMBER, "Observations per day, to see how long a run takes.")]
    not_before: Annotated[
        int | str | None,
        Option(
            OptionKind.TRIALS,
            "Do not stop before so many observations, or, with the observations per day, before so long, such as 14d.",
            minimum=0,
            maximum=2**53,
            longest=20,
        ),
    ]
    control: Annotated[
        str | None,
        Option(OptionKind.TEXT, "Name of the arm in use today, which deciding now would keep.", longest=200),
    ]
    seed: Annotated[int, Option(OptionKind.WHOLE, "Random seed of the runs. Default: 0.", minimum=0, maximum=2**63 - 1)]


class LocalPlanOptions(PlanOptions, total=False):
    """All options of a plan."""

    policies: Annotated[
        str | Iterable[str] | None,
        Option(OptionKind.NAMES, "Compare only these policies, such as breakeven,dbcare."),
    ]
    threads: Annotated[int | None, Option(OptionKind.WHOLE, "Number of threads. Default: all CPUs.", minimum=1)]
    runs: Annotated[
        int | None,
        Option(
            OptionKind.WHOLE,
            "Plain runs of each simulation. Default: as many as the figures need, in about a second.",
            minimum=2,
        ),
    ]
