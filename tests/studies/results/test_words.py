"""What studies say about their decision, situation by situation."""

from collections.abc import Callable
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import pytest

from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.studies.stored import StoredStudy
from tests.helpers.memory_studies import create_memory_study

SO_FEW = "A leads so far, but it has few rewards: it is too early to say how likely it is the best."
NOTHING = "No rewards have been counted, so nothing is recommended."
LOSES = "Choosing it is expected to lose about 143 USD against the unknown best."
MEAN = "Its mean is about 0.58 (95% interval 0.46 to 0.73), and it leads"
LEAD = "by about 0.05 (-0.08 to 0.28); both are adjusted for selection."
ENDED = "The study was stopped: enough."
LIKELY = "75% likely to be the best."


def alternate(arm: str, mean: float, rewards: int) -> list[tuple[str, float]]:
    """Return rewards half a unit above and below a mean, in turn."""
    return [(arm, mean + (0.5 if turn % 2 else -0.5)) for turn in range(rewards)]


def mix(*arms: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the rewards of several arms in turn."""
    return [pair for pair in chain(*zip_longest(*arms)) if pair is not None]


def compare(first: float, second: float, rewards: int = 60, second_rewards: int | None = None) -> list[Any]:
    """Return rewards of A and B with these means."""
    return mix(alternate("A", first, rewards), alternate("B", second, second_rewards or rewards))


def run(observations: list[tuple[str, float]], reason: str | None = None, **settings: Any) -> StoredStudy:
    """Return a study with these rewards, which is stopped if there is a reason; it does not stop by itself."""
    defaults = {"arms": ("A", "B"), "cost": 1e-13, "value": 20_000.0, "sigma": 0.5}
    study = create_memory_study(**defaults | settings)
    study.add(observations)
    if reason is not None:
        study.stop(reason)
    return study


def run_with_retired() -> StoredStudy:
    study = run(compare(0.6, 0.5))
    study.retire("B")
    return study


GUESS: dict[str, Any] = {"cost": 1.5, "binary": True, "sigma": None}
THREE = [*compare(0.6, 0.5), *alternate("C", 0.58, 60)]
# The study, its verdict, and its sentences but for what more trials would cost.
SITUATIONS: dict[str, tuple[Callable[[], StoredStudy], str, list[str]]] = {
    "new": (partial(run, []), "undecided", [NOTHING]),
    "cancelled": (partial(run, [], "cancelled"), "stopped without data", [NOTHING]),
    "one reward": (partial(run, [("A", 1.0)]), "undecided", [SO_FEW]),
    "few rewards": (
        partial(run, compare(0.6, 0.5, 4)),
        "undecided",
        [SO_FEW, "Choosing it is expected to lose about 1,440 USD against the unknown best."],
    ),
    "rewards that do not vary": (
        partial(run, [("A", 1.0), ("B", 1.0)] * 40),
        "undecided",
        [
            SO_FEW.replace("few rewards", "rewards that hardly vary"),
            "Choosing it is expected to lose about 198 USD against the unknown best.",
        ],
    ),
    "an interval but no chance": (
        partial(run, compare(0.6, 0.5, 20)),
        "undecided",
        [
            SO_FEW,
            "Choosing it is expected to lose about 426 USD against the unknown best.",
            "Its mean is about 0.57 (95% interval 0.38 to 0.82), and it leads B by about 0.05 (-0.22 to 0.42); both "
            "are adjusted for selection.",
        ],
    ),
    "equal arms": (
        partial(run, compare(0.5, 0.5)),
        "undecided",
        [
            "A leads so far: it is 50% likely to be the best.",
            "Choosing it is expected to lose about 447 USD against the unknown best.",
            "Its mean is about 0.50 (95% interval 0.37 to 0.63), and it leads B by about 0.00 (-0.18 to 0.18); both "
            "are adjusted for selection.",
        ],
    ),
    "a leader": (
        partial(run, compare(0.6, 0.5)),
        "undecided",
        [f"A leads so far: it is {LIKELY}", LOSES, f"{MEAN} B {LEAD}"],
    ),
    "the control leads": (
        partial(run, compare(0.6, 0.5), control="A"),
        "undecided",
        [f"A, the control, leads so far: it is {LIKELY}", LOSES, f"{MEAN} B {LEAD}"],
    ),
    "a clear leader": (
        partial(run, compare(0.9, 0.5)),
        "undecided",
        [
            "A leads so far: it is ahead of every rival.",
            "Choosing it is expected to lose about 0.0294 USD against the unknown best.",
            "Its mean is about 0.88 (95% interval 0.75 to 1.03), and it leads B by about 0.36 (0.17 to 0.58); both "
            "are adjusted for selection.",
        ],
    ),
    "stopped by a person": (
        partial(run, compare(0.6, 0.5), "enough"),
        "75% likely best",
        [f"Choose A: it is {LIKELY}", LOSES, f"{MEAN} B {LEAD}", ENDED],
    ),
    "stopped by itself": (
        partial(run, compare(0.6, 0.5, 200), cost=2e-5),
        "81% likely best",
        [
            "Choose A: it is 81% likely to be the best.",
            "Choosing it is expected to lose about 84.5 USD against the unknown best.",
            "Its mean is about 0.58 (95% interval 0.48 to 0.71), and it leads B by about 0.06 (-0.05 to 0.26); both "
            "are adjusted for selection.",
            "Stopped at break-even after 66.80 USD: by the rule's own estimate, the choice loses no more than that to "
            "its strongest rival.",
        ],
    ),
    "out of budget": (
        partial(run, compare(0.6, 0.5), cost=1e-6, max_spend=120e-6),
        "75% likely best",
        [
            f"Choose A: it is {LIKELY}",
            LOSES,
            f"{MEAN} B {LEAD}",
            "The study has stopped: another trial would exceed max_spend: 2.40 USD of 2.40 USD has been spent.",
        ],
    ),
    "the control is best": (
        partial(run, compare(0.6, 0.5), "enough", control="A"),
        "keep the control",
        [f"Keep A, the control: it is {LIKELY}", LOSES, f"{MEAN} B {LEAD}", ENDED],
    ),
    "the control is beaten": (
        partial(run, compare(0.9, 0.5), "enough", control="B"),
        "beats the control",
        [
            "Choose A: it is ahead of every rival.",
            "Choosing it is expected to lose about 0.0294 USD against the unknown best.",
            "Its mean is about 0.88 (95% interval 0.75 to 1.03), and it leads B, the control, by about 0.36 (0.17 to "
            "0.58); both are adjusted for selection.",
            "It beats B, the control, which is worth about 7,260 USD (3,470 to 11,600).",
            ENDED,
        ],
    ),
    "the control may be as good": (
        partial(run, compare(0.6, 0.5), "enough", control="B"),
        "may not beat the control",
        [
            f"Choose A: it is {LIKELY}",
            LOSES,
            f"{MEAN} B, the control, {LEAD}",
            "It is 75% likely to beat B, the control, but that is not certain.",
            ENDED,
        ],
    ),
    "the control has few rewards": (
        partial(run, compare(0.6, 0.5, 60, 4), "enough", control="B"),
        "59% likely best",
        [
            "Choose A: it is 59% likely to be the best.",
            "Choosing it is expected to lose about 922 USD against the unknown best.",
            "Its mean is about 0.60 (95% interval 0.47 to 0.73), adjusted for selection.",
            "It is too early to say whether it beats B, the control, which has few rewards.",
            ENDED,
        ],
    ),
    "three arms with a control": (
        partial(run, THREE, "enough", arms=("A", "B", "C"), control="B"),
        "may not beat the control",
        [
            "Choose A: it is 46% likely to be the best.",
            "Choosing it is expected to lose about 396 USD against the unknown best.",
            "Its mean is about 0.58 (95% interval 0.47 to 0.73), and it leads B, the control, by about 0.04 (-0.08 to "
            "0.28); both are adjusted for selection.",
            "It is 72% likely to beat B, the control, but that is not certain.",
            ENDED,
        ],
    ),
    "a guess": (
        partial(run, [], **GUESS),
        "chosen without data",
        [
            "A is as good a guess as any: a trial of each arm costs more than a better choice could gain, so none was "
            "made.",
        ],
    ),
    "a guess with a control": (
        partial(run, [], **GUESS, control="B"),
        "keep the control",
        ["Keep B, the control: a trial of each arm costs more than a better choice could gain."],
    ),
    "misidentification": (
        partial(run, compare(0.6, 0.5), "enough", risk="misidentification"),
        "75% likely best",
        [
            f"Choose A: it is {LIKELY}",
            "The risk that it isn't the best costs about 4,900 USD on average.",
            f"{MEAN} B {LEAD}",
            ENDED,
        ],
    ),
    "minimize": (
        partial(run, compare(0.6, 0.5), "enough", direction="minimize"),
        "75% likely best",
        [
            f"Choose B: it is {LIKELY}",
            LOSES,
            f"Its mean is about 0.52 (95% interval 0.37 to 0.64), and it leads A {LEAD}",
            ENDED,
        ],
    ),
    "no value": (
        partial(run, compare(0.6, 0.5), "enough", value=None),
        "75% likely best",
        [
            f"Choose A: it is {LIKELY}",
            "Choosing it is expected to lose about 0.00713 against the unknown best.",
            f"{MEAN} B {LEAD}",
            ENDED,
        ],
    ),
    "only one left": (run_with_retired, "only one left", ["A is the only arm left."]),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_sentences(name: str) -> None:
    make_study, verdict, sentences = SITUATIONS[name]
    choice = make_study().recommendation()
    assert choice.verdict == verdict
    said = [sentence for sentence in choice.sentences if not sentence.startswith("Another ")]
    assert said == sentences


def test_what_more_would_cost() -> None:
    """A study that took two days is told the price of a third; a short one that of 100 trials, without a value none."""
    study = run(compare(0.6, 0.5, 50), cost=2e-5)
    assert study.recommendation().sentences[-1] == "Another 100 trials would cost about 40 USD."
    assert "Another" not in run(compare(0.6, 0.5, 50), value=None).recommendation().sentences[-1]
    with study._ledger.read() as transaction:
        ledger = transaction.ledger
        for counts in ledger.counts:
            counts.added = 0  # as if they had been asked for
        ledger.history.times[:] = [3_600.0 * number for number in range(len(ledger.history.times))]
        days = (len(ledger.history.times) - 1) / 24.0
        per_day = Money((ledger.standing()[1] or 0.0) * 20_000.0 / days, "USD")
    assert study.recommendation().sentences[-1] == f"Another day at this pace would cost about {per_day.rough()}."


def test_numbers_in_words() -> None:
    chances = {0.001: "under 1%", 0.014: "1%", 0.5: "50%", 0.9: "90%", 0.901: "ahead", 1.0: "ahead"}
    assert {chance: format_chance(chance) for chance in chances} == chances
    assert round_together(0.5712, 0.4049, 0.7781) == ("0.57", "0.40", "0.78")
    assert round_together(1234.6, 1000.2, 1500.9) == ("1,235", "1,000", "1,501")
    assert round_together(-0.001, -0.01, 0.3) == ("0.00", "-0.01", "0.30")
    assert round_together(2.0, 2.0, 2.0) == ("2", "2", "2")
    # The sign of an end is visible.
    assert round_together(0.0101, -0.00008, 0.0243) == ("0.010", "-0.00008", "0.024")
    assert round_together(-0.0101, -0.0243, 0.00012) == ("-0.010", "-0.024", "0.0001")
    assert round_together(27.3, -0.213, 54.1) == ("27", "-0.2", "54")
    assert round_together(0.5, -1e-17, 1.0) == ("0.5", "-1e-17", "1.0")
    assert round_together(0.5, 0.0, 1.0) == ("0.5", "0.0", "1.0")
    assert round_together(0.5, -0.0, 1.0) == ("0.5", "0.0", "1.0")
    assert [Money(amount, "USD").rough() for amount in (0.05234, 12.0, 150.3, 999.6, 12_345.0)] == [
        "0.0523 USD",
        "12 USD",
        "150 USD",
        "1,000 USD",
        "12,300 USD",
    ]
