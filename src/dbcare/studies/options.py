"""The options of a study, defined once.

`create_study` spells them out with their defaults; the client, `replay_log`, the command line, the HTTP API and the
dashboard's form read them here. A new option needs an entry here, a parameter of `create_study`, and a field of
`Settings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from dbcare.base.checks import MAX_BLOCKS, MAX_WHOLE
from dbcare.base.options import Option, OptionKind
from dbcare.problem.risk import Loss

DIRECTIONS = ("maximize", "minimize")
AT_RANDOM = "at random"
MISSING = ("unknown", AT_RANDOM)  # what is known of answers that never come
MAX_ARMS = 1000  # each trial, and each stored summary, takes time and room for all of them
MAX_PENDING = 1_000_000
MAX_NOT_BEFORE = 2**53  # trials
MAX_NAME_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 500


def _live_policies() -> list[str]:
    from dbcare.policies.registry import POLICIES  # noqa: PLC0415  # so that --help needs no numpy

    return POLICIES.live


class ReplayOptions(TypedDict, total=False):
    """The options that a replay of logged data takes too."""

    price: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        Option(
            OptionKind.PER_ARM,
            "Price of a trial, or one per arm, such as 0.4,0.4,2 or A=0.4,B=0.4,C=2.",
            label="Price of a trial",
            hint="Or one per arm: 0.4 2, or A=0.4, B=2.",
        ),
    ]
    value: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "What one unit of reward is worth, or what a wrong choice costs (risk misidentification).",
            label="Value",
            hint="What one unit of reward is worth, or what a wrong choice costs.",
        ),
    ]
    cost: Annotated[
        float | Sequence[float] | Mapping[str, float] | None,
        Option(OptionKind.PER_ARM, "price / value, instead of both.", label="Cost"),
    ]
    direction: Annotated[
        str,
        Option(
            OptionKind.CHOICE,
            "Whether to maximize or minimize rewards. Default: maximize.",
            lambda: DIRECTIONS,
            label="Goal",
        ),
    ]
    risk: Annotated[
        str,
        Option(
            OptionKind.CHOICE,
            "What a wrong choice loses: its gap in means (simple_regret), or the same whatever the gap "
            "(misidentification). Default: simple_regret.",
            lambda: sorted(map(str, Loss), reverse=True),
            label="A wrong choice loses",
        ),
    ]
    sigma: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "Standard deviation of a reward, as a guess that the rewards correct.",
            label="Standard deviation (sigma)",
        ),
    ]
    baseline: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "For rewards of 0 or 1: their usual rate, such as 0.04.",
            label="Usual rate",
        ),
    ]
    bounds: Annotated[
        tuple[float, float] | None,
        Option(OptionKind.INTERVAL, "Range of possible rewards, such as 0,5.", label="Bounds"),
    ]
    binary: Annotated[
        bool, Option(OptionKind.FLAG, "Rewards are 0 or 1, and their rate is unknown.", label="Binary rewards")
    ]
    sigma_pulls: Annotated[
        float,
        Option(
            OptionKind.WEIGHT,
            "How many rewards the stated spread counts as; inf if it is known for certain. Default: 6.",
            label="Weight of the stated spread",
            hint="How many rewards it counts as; inf if it is certain.",
        ),
    ]
    cap: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "Count rewards above this as this, so that a few huge ones cannot decide.",
            label="Cap",
            hint="Larger rewards count as this.",
        ),
    ]
    control: Annotated[
        str | None,
        Option(
            OptionKind.TEXT,
            "Name of the arm that is in use today: others are compared with it, and without data it stays.",
            longest=MAX_NAME_LENGTH,
            label="Control",
            hint="The arm in use today, if there is one.",
        ),
    ]
    policy: Annotated[
        str, Option(OptionKind.CHOICE, "Name of the policy. Default: breakeven.", _live_policies, label="Policy")
    ]
    currency: Annotated[
        str,
        Option(OptionKind.TEXT, "Currency of all amounts. Default: USD.", longest=MAX_NAME_LENGTH, label="Currency"),
    ]
    seed: Annotated[
        int,
        Option(
            OptionKind.WHOLE, "Random seed for breaking ties. Default: 0.", minimum=0, maximum=MAX_WHOLE, label="Seed"
        ),
    ]


class StudyOptions(ReplayOptions, total=False):
    """All options of a study."""

    rounds: Annotated[
        bool,
        Option(
            OptionKind.FLAG,
            "Compare arms only within rounds of trials that run at the same time, so that drift cancels.",
            label="Rounds",
            hint="Compare arms within rounds that run at the same time.",
        ),
    ]
    blocks: Annotated[
        int | Sequence[str] | None,
        Option(
            OptionKind.BLOCKS,
            "Blocks that all arms share, such as questions: their number, or their names separated by commas.",
            minimum=2,
            maximum=MAX_BLOCKS,
            longest=MAX_BLOCKS,
            label="Blocks",
            hint="Questions or folds that all arms share: their number or names.",
        ),
    ]
    only_these_blocks: Annotated[
        bool,
        Option(
            OptionKind.FLAG,
            "The decision is about these blocks alone, not about more like them.",
            label="Only these blocks matter",
        ),
    ]

    description: Annotated[
        str | None,
        Option(
            OptionKind.TEXT,
            "What the study is about, shown with its status. It can be edited later.",
            longest=MAX_DESCRIPTION_LENGTH,
            label="Description",
        ),
    ]
    max_spend: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "Stop the study before it spends more than this.",
            label="Budget",
            hint="Leave empty for no limit.",
        ),
    ]
    not_before: Annotated[
        int | str | None,
        Option(
            OptionKind.TRIALS,
            "Earliest stop: a number of rewards, or a duration after the first trial, such as 14d.",
            minimum=0,
            maximum=MAX_NOT_BEFORE,
            longest=20,
            label="Not before",
            hint="Rewards, or a duration such as 14d.",
        ),
    ]
    max_ahead: Annotated[
        int | None,
        Option(
            OptionKind.WHOLE,
            "Maximum number of pending trials. Default: no limit for units and with a reward for expired trials, "
            "otherwise twice the number of workers.",
            minimum=1,
            maximum=MAX_PENDING,
            label="Max pending trials",
            hint="Default: no limit for units or with a timeout reward, else twice the workers.",
        ),
    ]
    timeout_reward: Annotated[
        float | None,
        Option(
            OptionKind.NUMBER,
            "Reward to record when a trial's lease expires. Default: replace the trial, or do without it in its block.",
            label="Reward of an expired trial",
            hint="For rates: 0 if no answer means no. Empty: the trial is replaced, or its block does without it.",
        ),
    ]
    missing: Annotated[
        str,
        Option(
            OptionKind.CHOICE,
            "Whether answers go missing at random, whatever they would have been. Default: unknown.",
            lambda: MISSING,
            label="Missing answers",
            hint="At random: whether an answer comes does not depend on it.",
        ),
    ]
