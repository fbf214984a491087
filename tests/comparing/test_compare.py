"""`compare`: what it asks, in which order, and what it says about it."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import dbcare
from dbcare.errors import InvalidValueError
from tests.helpers.comparisons import LEVELS, QUESTIONS, make_arms, run


def test_the_best_arm_wins_and_the_answers_are_those_of_the_functions() -> None:
    arms = make_arms()
    comparison = run(arms)
    assert comparison.recommendation.arm == "long"
    assert comparison.recommendation.final
    answers = list(comparison.answers())
    assert answers
    for answer in answers:
        assert answer.score == arms[answer.arm](QUESTIONS[answer.question])
        assert answer.price == 0.01
    assert comparison.spent == pytest.approx(0.01 * len(answers))
    assert comparison.full_cost == pytest.approx(0.01 * 3 * 80)
    assert comparison.saved == pytest.approx(comparison.full_cost - comparison.spent)
    assert comparison.questions_used == len({answer.question for answer in answers})
    pairs = Counter((answer.question, answer.arm) for answer in answers)
    assert set(pairs.values()) == {1}


def test_one_at_a_time_is_the_study_stepped_by_hand() -> None:
    """An independent way to the same decision: `create_study` with blocks, asked and told by hand."""
    arms = make_arms()
    comparison = run(arms, at_once=1, seed=5)
    study = dbcare.create_study(
        "compare by hand", list(arms), price=0.01, value=1_000, blocks=list(QUESTIONS), seed=5, storage=None
    )
    asked = []
    while (trial := study.ask(lease=None)) is not None:
        assert trial.block is not None
        asked.append((trial.block, trial.arm))
        study.tell(trial, arms[trial.arm](QUESTIONS[trial.block]))
    assert [(answer.question, answer.arm) for answer in comparison.answers()] == asked
    assert comparison.recommendation.arm == study.recommendation().arm
    assert comparison.spent == pytest.approx(study.recommendation().spent)
    dbcare.delete_study("compare by hand")


def test_the_order_of_the_questions_follows_the_seed() -> None:
    orders = [[answer.question for answer in run(at_once=1, seed=seed).answers()] for seed in (1, 1, 2)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_repeats_are_averaged_and_paid() -> None:
    calls: Counter[tuple[str, int]] = Counter()

    def make(name: str, level: float) -> Callable[[int], float]:
        def answer(number: int) -> float:
            calls[name, number] += 1
            return level + 0.1 * (number % 7) + (0.3 if calls[name, number] == 1 else 0.0)

        return answer

    arms = {"low": make("low", 0.2), "high": make("high", 0.6)}
    comparison = run(arms, range(30), repeats=3, at_once=1)
    answers = list(comparison.answers())
    assert set(calls.values()) == {3}
    first = next(answer for answer in answers if answer.arm == "low")
    assert first.score == pytest.approx(0.2 + 0.1 * ((int(first.question) - 1) % 7) + 0.1)
    assert [answer.price for answer in answers] == pytest.approx([0.03] * len(answers))


def test_clusters_keep_the_mean_over_questions() -> None:
    """The mean reward over all groups of unequal size is the mean score over all questions."""
    arms = make_arms()
    groups = {name: f"doc {number % 7 if number < 40 else number % 3}" for name, number in QUESTIONS.items()}
    comparison = run(arms, cluster=groups, price=1e-9, value=1e9, only_these_questions=True)
    used = {answer.question for answer in comparison.answers() if answer.arm == "long"}
    assert used == set(groups.values())  # at this value, every group is asked
    status = next(line.status for line in comparison.arms if line.status.name == "long")
    assert status.mean == pytest.approx(math.fsum(arms["long"](number) for number in QUESTIONS.values()) / 80)
    sizes = Counter(groups.values())
    answers = list(comparison.answers())
    asked = {arm: sum(sizes[answer.question] for answer in answers if answer.arm == arm) for arm in arms}
    assert comparison.spent == pytest.approx(1e-9 * sum(asked.values()))
    assert {line.status.name: line.questions for line in comparison.arms} == asked
    by_function = run(arms, range(80), cluster=lambda number: groups[f"q{number}"], price=1e-9, value=1e9)
    assert {answer.question for answer in by_function.answers()} == set(groups.values())


def test_the_summary_says_what_was_saved() -> None:
    comparison = run(at_once=1)
    text = str(comparison)
    assert text.startswith("Choose long")
    assert f"{comparison.questions_used} of 80 questions were asked" in text
    assert "asking every arm everything would have cost 2.40 USD" in text
    header, *rows = text.splitlines()[-4:]
    assert header.split()[:3] == ["arm", "answered", "failed"]
    assert [row.split()[0] for row in rows] == list(LEVELS)
    answered = Counter(answer.arm for answer in comparison.answers())
    assert [row.split()[1:3] for row in rows] == [[str(answered[arm]), "0"] for arm in LEVELS]
    assert "Arms have answered different questions: compare their estimates" in text  # short dropped out
    frame = comparison.to_dataframe()
    assert list(frame.columns) == ["question", "arm", "score", "price"]
    assert len(frame) == len(list(comparison.answers()))


def test_the_report_is_one_file_without_resources_from_elsewhere(tmp_path: Path) -> None:
    arms = {"<b>short</b>": lambda number: 0.1 * (number % 3), "long": lambda number: 1.0 + 0.1 * (number % 3)}
    comparison = run(arms, name="a & b")
    path = comparison.report(tmp_path / "report.html")
    page = path.read_text(encoding="utf-8")
    assert "a &amp; b" in page
    assert "&lt;b&gt;short&lt;/b&gt;" in page
    assert "<b>short" not in page
    assert "(light)" not in page  # which of two colors is lighter depends on the scheme
    assert page.count('<rect width="12"') == 2
    for outside in ("http://", "https://", "<script", "<link", "url(", "@import"):
        assert outside not in page
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidValueError, match="`path` must be the path of a file but got 3"):
        comparison.report(3)  # type: ignore[arg-type]  # the point


def test_a_choice_without_calls() -> None:
    """Where the first questions cost as much as a wrong choice, nothing is asked, and the control stays."""
    comparison = run(risk="misidentification", value=0.2, control="odd")
    assert list(comparison.answers()) == []
    assert comparison.recommendation.arm == "odd"
    assert comparison.spent == 0.0
    assert "0 of 80 questions were asked" in str(comparison)


def test_progress_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    comparison = run(progress=True, max_spend=2.0)
    (line,) = capsys.readouterr().err.splitlines()
    used = comparison.questions_used
    assert f"USD of 2.00 USD spent, {used} of 80 questions, long chosen, expected loss" in line
    run(progress=False)
    assert capsys.readouterr().err == ""


def test_what_was_under_way_at_the_stop_is_said_apart() -> None:
    """The money for rewards that came after the stop, by the study's own count."""
    texts = []
    for at_once in (1, 24):
        comparison = run(at_once=at_once)
        late = sum(row.status == "told" for row in comparison.study.trials()) - sum(
            line.status.trials for line in comparison.arms
        )
        texts.append((late, str(comparison)))
    (none, alone), (some, together) = texts
    assert none == 0
    assert "under way" not in alone
    assert some > 0
    assert f"of which {dbcare.problem.Money(0.01 * some, 'USD')} on calls that were under way at the stop;" in together
