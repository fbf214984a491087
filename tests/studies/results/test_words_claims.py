"""What a study says, in twenty situations, against its numbers: no sentence claims a comparison they do not show."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dbcare.studies.results.status import Recommendation, Status
from tests.helpers.memory_studies import create_memory_study

AMOUNT = r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)"
# Claims that look ahead, or that are surer than any number of a study.
TOO_MUCH = ("worth their price", "worth another", "over 90%", "certainly", "cannot lose", "will be", "proves")
ARMS = (2, 3, 5, 8, 32)
KINDS: dict[str, dict[str, Any]] = {
    "normal": {"sigma": 1.0},
    "rates": {"sigma": None, "baseline": 0.1},
    "every wrong choice costs the same": {"sigma": 1.0, "risk": "misidentification"},
    "with a control": {"sigma": 1.0, "control": "A0"},
}
SITUATIONS = [(arms, kind) for arms in ARMS for kind in KINDS]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def check(status: Status, choice: Recommendation) -> list[str]:
    """Return what a study says that its numbers do not show."""
    wrong = []

    def expect(fact: bool, sentence: str) -> None:
        if not fact:
            wrong.append(sentence)

    for sentence in (*choice.sentences, choice.verdict, choice.reason):
        expect(not any(words in sentence for words in TOO_MUCH), sentence)
        if found := re.search(rf"Stopped at break-even after {AMOUNT} USD", sentence):
            loss = status.policy_loss
            expect(choice.final and loss is not None and loss <= 1.01 * number(found[1]), sentence)
            expect(number(found[1]) <= 1.01 * status.spent, sentence)
        if found := re.search(rf"expected to lose {AMOUNT} USD to (\S+); {AMOUNT} USD has been spent", sentence):
            loss, spent = number(found[1]), number(found[3])
            expect(loss <= 1.01 * spent if choice.final else loss >= 0.99 * spent, sentence)
            expect(status.policy_loss == pytest.approx(loss, rel=0.01), sentence)
            others = {arm.name: arm.policy_loss for arm in status.arms if arm.policy_loss is not None}
            expect(others[found[2]] == max(others.values()), sentence)
        if found := re.search(rf"(?:expected to lose|costs) about {AMOUNT} USD", sentence):
            expect(choice.expected_loss == pytest.approx(number(found[1]), rel=0.01), sentence)
        if found := re.search(r"is (\d+)% likely to be the best", sentence):
            chance = choice.probability_best or 0.0
            expect(chance <= 0.9 and abs(100.0 * chance - number(found[1])) <= 0.5, sentence)
        if "ahead of every rival" in sentence:
            estimates = [arm.estimate for arm in status.arms if arm.estimate is not None]
            expect((choice.probability_best or 0.0) > 0.9 and choice.estimate == max(estimates), sentence)
        if found := re.search(rf"leads (\S+?)(?:, the control,)? by about {AMOUNT} \({AMOUNT} to {AMOUNT}\)", sentence):
            expect(found[1] == choice.rival and choice.lead_interval is not None, sentence)
            if choice.lead is not None and choice.lead_interval is not None:
                said = [number(found[place]) for place in (2, 3, 4)]
                width = said[2] - said[1]
                expect(said == pytest.approx([choice.lead, *choice.lead_interval], abs=0.06 * width), sentence)
        if sentence.startswith("It beats"):
            expect(choice.lead_interval is not None and choice.lead_interval[0] > 0.0, sentence)
        if found := re.search(rf"Another 100 trials would cost about {AMOUNT} USD", sentence):
            expect(number(found[1]) == pytest.approx(100.0 * status.spent / status.rewards, rel=0.01), sentence)
    return wrong


@pytest.mark.parametrize(("arms", "kind"), SITUATIONS)
def test_every_claim_is_shown_by_the_numbers(arms: int, kind: str) -> None:
    """Looked at before the stop, about every tenth reward, and after it."""
    place = SITUATIONS.index((arms, kind))
    names = tuple(f"A{arm}" for arm in range(arms))
    study = create_memory_study(**{"arms": names, "cost": 1e-3, "value": 1_000.0} | KINDS[kind])
    generator = np.random.default_rng([40, place])
    means = (0.1 if "baseline" in KINDS[kind] else 0.0) + 0.4 * generator.random(arms)
    looks = 0
    while (trial := study.ask()) is not None:
        mean = means[names.index(trial.arm)]
        study.tell(trial, float(generator.random() < mean) if "baseline" in KINDS[kind] else generator.normal(mean))
        if generator.random() < 0.1:
            assert check(study.status(), study.recommendation()) == []
            looks += 1
    status, choice = study.status(), study.recommendation()
    assert choice.final
    assert check(status, choice) == []
    said = " ".join(choice.sentences)
    assert "Stopped at break-even after " in said
    assert "; " in choice.reason


def test_a_claim_that_the_numbers_do_not_show_is_found() -> None:
    """Negative control: each sentence with one number changed, or with one word too many."""
    study = create_memory_study(arms=("A0", "A1"), cost=1e-3, value=1_000.0, sigma=1.0)
    generator = np.random.default_rng(3)
    while (trial := study.ask()) is not None:
        study.tell(trial, generator.normal(0.3 * (trial.arm == "A1")))
    status, choice = study.status(), study.recommendation()
    assert check(status, choice) == []
    sentences = choice.sentences
    for wrong in (
        re.sub(r"after [\d,.]+ USD", "after 0.01 USD", " ".join(sentences)),
        re.sub(r"expected to lose about [\d,.]+", "expected to lose about 0.001", " ".join(sentences)),
        re.sub(r"by about -?[\d.]+", "by about 3.0", " ".join(sentences)),
        re.sub(r"would cost about [\d,.]+", "would cost about 1", " ".join(sentences)),
        "More trials are not worth their price.",
        "Choose A1: it is 95% likely to be the best.",
        "It beats A0, the control." if (choice.lead_interval or (0.0, 0.0))[0] <= 0.0 else "It will be the best.",
    ):
        assert check(status, replace(choice, sentences=(wrong,))) == [wrong], wrong
