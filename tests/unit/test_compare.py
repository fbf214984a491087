"""`compare`: what it asks, what it pays, and what it does with functions that misbehave."""

import asyncio
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare import Priced, compare
from dbcare.errors import ComparisonError, InvalidValueError, StudyMismatchError

LEVELS = {"short": 0.5, "long": 0.7, "odd": 0.55}
QUESTIONS = {f"q{number}": number for number in range(80)}


def make_arms(seed: int = 1) -> dict[str, Callable[[int], float]]:
    """Return arms of known quality: questions differ in difficulty, and each answer has some noise of its own."""

    def make(name: str, level: float) -> Callable[[int], float]:
        def answer(number: int) -> float:
            difficulty = random.Random(f"question {number}").gauss(0.0, 0.3)
            return level - difficulty + random.Random(f"{seed} {name} {number}").gauss(0.0, 0.1)

        return answer

    return {name: make(name, level) for name, level in LEVELS.items()}


def run(arms: Any = None, questions: Any = None, score: Any = None, **options: Any) -> dbcare.Comparison:
    defaults = {"value": 1_000, "price": 0.01, "progress": False, "retry_delay": 0.0}
    return compare(arms or make_arms(), QUESTIONS if questions is None else questions, score, **(defaults | options))


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


def test_reported_prices_and_the_judge_are_metered() -> None:
    arms = {name: lambda number, arm=arm: Priced(arm(number), 0.002) for name, arm in make_arms().items()}
    comparison = run(arms, None, lambda question, answer: Priced(answer, 0.003), price=None)
    count = len(list(comparison.answers()))
    assert comparison.spent == pytest.approx(0.005 * count)
    assert [line.price for line in comparison.arms] == pytest.approx([0.005] * 3)


def test_sync_and_async_functions_mix_and_calls_overlap() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def enter(step: int) -> None:
        nonlocal running, most
        with lock:
            running += step
            most = max(most, running)

    plain = make_arms()

    async def asynchronous(number: int) -> float:
        enter(1)
        await asyncio.sleep(0.02)
        enter(-1)
        return plain["long"](number)

    def synchronous(number: int) -> float:
        enter(1)
        time.sleep(0.02)
        enter(-1)
        return plain["short"](number)

    async def judge(question: int, answer: float) -> float:
        await asyncio.sleep(0.0)
        return answer

    arms = {"long": asynchronous, "short": synchronous, "odd": lambda number: asynchronous(int(number))}
    comparison = run(arms, None, judge, at_once=6)
    assert comparison.recommendation.arm in ("long", "odd")
    assert 3 <= most <= 6


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> dbcare.Comparison:
        return run()

    assert asyncio.run(notebook()).recommendation.arm == "long"


def test_context_variables_reach_the_functions() -> None:
    import contextvars  # noqa: PLC0415  # of this test alone

    key = contextvars.ContextVar("key", default="none")
    key.set("secret")
    seen = set()

    def answer(number: int) -> float:
        seen.add(key.get())
        return float(number % 3)

    run({"a": answer, "b": lambda number: 0.0}, range(10))
    assert seen == {"secret"}


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


def test_a_budget_is_kept_whatever_retries_cost() -> None:
    """Every attempt costs 0.01, as stated and as reported, so that the budget holds to the cent."""
    generator = random.Random(3)

    def shaky(number: int) -> Priced:
        if generator.random() < 0.4:
            failure = RuntimeError("no luck")
            failure.price = 0.01  # type: ignore[attr-defined]  # how an exception reports its price
            raise failure
        return Priced(generator.random(), 0.01)

    for budget in (0.05, 0.31, 1.0):
        comparison = run({"a": shaky, "b": shaky}, value=1e6, price=0.01, max_spend=budget, at_once=5, retries=3)
        assert budget - 0.015 < comparison.spent <= budget + 1e-9
        assert "max_spend" in comparison.recommendation.reason


def test_failures_leave_their_question_out_and_are_listed() -> None:
    arms: dict[str, Any] = make_arms()
    answer = arms["long"]

    def fragile(number: int) -> float:
        if number % 5 == 2:
            raise OSError(f"question {number} is unreachable")
        return float(answer(number))

    arms["long"] = fragile
    comparison = run(arms, retries=1, at_once=1)
    assert comparison.recommendation.arm == "long"
    assert comparison.failures
    for failure in comparison.failures:
        assert failure.arm == "long"
        assert QUESTIONS[failure.question] % 5 == 2
        assert isinstance(failure.error, OSError)
    failed = [answer for answer in comparison.answers() if answer.score is None]
    assert {answer.question for answer in failed} == {failure.question for failure in comparison.failures}
    assert [answer.price for answer in failed] == pytest.approx([0.02] * len(failed))  # both attempts


def test_a_retry_that_works_counts_and_costs() -> None:
    tries: Counter[int] = Counter()

    def flaky(number: int) -> float:
        tries[number] += 1
        if tries[number] == 1:
            raise RuntimeError("try again")
        return 0.9 - 0.01 * number

    comparison = run({"flaky": flaky, "bad": lambda number: -0.02 * number}, range(20), at_once=1)
    assert comparison.failures == ()
    prices = {answer.arm: answer.price for answer in comparison.answers()}
    assert prices == {"flaky": pytest.approx(0.02), "bad": pytest.approx(0.01)}


def test_waits_between_retries_double() -> None:
    times: list[float] = []

    def failing(number: int) -> float:
        times.append(time.monotonic())
        raise RuntimeError("no")

    with pytest.raises(ComparisonError):
        run({"failing": failing, "other": lambda number: 1.0}, at_once=1, retries=3, retry_delay=0.04)
    first, second, third = (later - earlier for earlier, later in pairwise(times[:4]))
    assert first >= 0.04
    assert second >= 0.08
    assert third >= 0.16


def test_nan_is_a_failed_attempt() -> None:
    scores: Counter[int] = Counter()

    def sometimes(number: int) -> float:
        scores[number] += 1
        return math.nan if number % 4 == 0 or scores[number] == 1 else 1.0 + 0.01 * number

    comparison = run({"sometimes": sometimes, "never": lambda number: 0.01 * number}, range(40), at_once=1)
    assert comparison.recommendation.arm == "sometimes"
    assert comparison.failures
    assert all((int(failure.question) - 1) % 4 == 0 for failure in comparison.failures)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_call_that_hangs_fails_in_time(kind: str) -> None:
    release = threading.Event()
    cancelled = []

    def hang(number: int) -> float:
        if number % 6 == 5:
            release.wait(60.0)
        return 0.5 + 0.01 * number

    async def hang_asynchronously(number: int) -> float:
        if number % 6 == 5:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise
        return 0.5 + 0.01 * number

    start = time.monotonic()
    function = hang if kind == "sync" else hang_asynchronously
    arms = {"hangs": function, "works": lambda number: 0.02 * number}
    comparison = run(arms, range(30), timeout=0.2, retries=0, value=1e6)
    release.set()
    assert time.monotonic() - start < 30.0
    assert {str(failure.error) for failure in comparison.failures} == {"no answer within 0.2 s"}
    assert bool(cancelled) is (kind == "async")


def test_an_arm_that_only_fails_ends_the_comparison_with_its_exception() -> None:
    def broken(number: int) -> float:
        raise KeyError("api_key")

    with pytest.raises(ComparisonError, match=r"Arm 'broken' failed on its first 3 questions.*KeyError") as caught:
        run({"broken": broken, "works": lambda number: 1.0}, at_once=1)
    assert isinstance(caught.value.__cause__, KeyError)


def test_after_a_mistake_in_a_function_nothing_is_lost(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    good = make_arms()

    def broken(number: int) -> float:
        raise KeyError("api_key")

    with pytest.raises(ComparisonError):
        run({**good, "long": broken}, storage=storage)
    comparison = run(good, storage=storage)
    assert comparison.recommendation.arm == "long"
    assert [answer for answer in comparison.answers() if answer.score is None] == []


@pytest.mark.parametrize(
    ("answer", "options", "message"),
    [
        (1.5, {"bounds": (0, 1)}, r"a score must lie within the bounds 0 and 1 but got 1\.5"),
        (0.5, {"binary": True}, r"a score must be 0 or 1 but got 0\.5"),
        (2, {"binary": True, "repeats": 2}, r"a score must be 0 or 1 but got 2"),
        ("good", {}, "a score must be a number but got 'good'"),
        (None, {}, "a score must be a number but got None"),
        (Priced(0.5, -1.0), {}, r"a reported price must not be negative but got -1\.0"),
        (Priced(0.5, math.nan), {}, "a reported price must be finite but got nan"),
        (0.5, {"price": None}, "the call reports no price; return dbcare.Priced"),
    ],
)
def test_what_is_wrong_for_every_question_names_arm_and_question(
    answer: Any, options: dict[str, Any], message: str
) -> None:
    arms = {"wrong": lambda number: answer, "right": lambda number: Priced(1.0, 0.01)}
    with pytest.raises(InvalidValueError, match=f"^Arm 'wrong', question 'q[0-9]+': {message}"):
        run(arms, **options)


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        (["one", "two", "one"], {}, "`questions` must be distinct but got 'one' at positions 1 and 3"),
        ([{"x": 1}, {"x": 1}], {}, r"`questions` must be distinct but got \{'x': 1\} at positions 1 and 2"),
        ({1: "one", "1": "two"}, {}, "`questions` must have ids of their own but got '1' twice"),
        (["one"], {}, "`questions` must be 2 or more questions but got 1"),
        ("text", {}, "`questions` must be a list of questions"),
        (["one", "two"], {"cluster": ["a", "a"]}, "`questions` must be 2 or more clusters of questions but got 1"),
        (["one", "two"], {"cluster": ["a"]}, r"`cluster` must be as long as `questions` \(2\) but got 1"),
        (["one", "two"], {"cluster": {"1": "a"}}, "`cluster` must have a group for every question.*'2'"),
        (["one", "two"], {"max_spend": 0.02}, r"must cover one question for every arm, 0\.03 USD, but got 0\.02 USD"),
        (["a", "b", "c"], {"max_spend": 0.05, "cluster": [1, 1, 2]}, r"must cover the largest cluster.*, 0\.06 USD,"),
        (["one", "two"], {"max_spend": 9.0, "price": None}, "`max_spend` requires `price`"),
        (["one", "two"], {"price": [0.01, 0.02]}, r"`price` must be one per arm \(3\) but got 2"),
        (["one", "two"], {"price": {"short": 1}}, "`price` must have an entry for each arm but got none for 'long'"),
        (["one", "two"], {"price": -1.0}, "`price` must be positive but got -1.0"),
        (["one", "two"], {"judge_price": -1.0}, "`judge_price` must not be negative but got -1.0"),
        (["one", "two"], {"rate_limit": {"other": 3}}, "`rate_limit` must be one of short, long, odd but got 'other'"),
        (["one", "two"], {"rate_limit": 0}, "`rate_limit` must be positive but got 0.0"),
        (["one", "two"], {"retries": -1}, "`retries` must be at least 0 but got -1"),
        (["one", "two"], {"at_once": 0}, "`at_once` must be at least 1 but got 0"),
        (["one", "two"], {"timeout": 0}, "`timeout` must be positive but got 0.0"),
        (["one", "two"], {"repeats": 0}, "`repeats` must be at least 1 but got 0"),
        (["one", "two"], {"progress": 1}, "`progress` must be True or False but got 1"),
        (["one", "two"], {"value": -3}, "`value` must be positive but got -3.0"),
        (["one", "two"], {"control": "nobody"}, "`control` must be one of short, long, odd but got 'nobody'"),
    ],
)
def test_bad_arguments(questions: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        run(None, questions, **options)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (["a", "b"], "`arms` must be a mapping of names to functions"),
        ({"a": len}, "`arms` must be 2 or more different names"),
        ({"a": len, "b": "prompt"}, "`arms` must have a function for 'b' but got 'prompt'"),
    ],
)
def test_bad_arms(arms: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        compare(arms, ["one", "two"], value=1)
    with pytest.raises(InvalidValueError, match="`score` must be a function"):
        run(None, ["one", "two"], 3)


def test_rate_limits_space_calls_evenly() -> None:
    """At 1,200 calls per minute, calls begin at least 50 ms apart; without a limit they do not."""

    def measure(**options: Any) -> list[float]:
        times: list[float] = []

        def answer(number: int) -> float:
            times.append(time.monotonic())
            return 0.1 * number

        run({"a": answer, "b": lambda number: 0.1 * (number % 3)}, range(8), value=1e6, **options)
        times.sort()
        return [later - earlier for earlier, later in pairwise(times)]

    assert min(measure(rate_limit={"a": 1_200})) > 0.04
    assert min(measure()) < 0.04


def test_the_same_call_resumes_and_other_settings_are_refused(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    first = run(storage=storage)
    calls: list[int] = []

    def unused(number: int) -> float:
        calls.append(number)
        return 0.0

    again = run(dict.fromkeys(LEVELS, unused), storage=storage)
    assert calls == []
    assert list(again.answers()) == list(first.answers())
    with pytest.raises(StudyMismatchError, match="blocks"):
        run(None, range(10), storage=storage)


def test_an_error_on_the_way_leaves_what_was_recorded(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = make_arms()
    called: Counter[tuple[str, int]] = Counter()

    def make(name: str, *, fails_at: int) -> Callable[[int], float]:
        def answer(number: int) -> float:
            called[name, number] += 1
            return 99.0 if sum(called.values()) == fails_at else min(1.0, max(-1.0, arms[name](number)))

        return answer

    with pytest.raises(InvalidValueError, match=r"within the bounds -1 and 1 but got 99"):
        run({name: make(name, fails_at=20) for name in arms}, storage=storage, bounds=(-1, 1), at_once=1)
    before = Counter(called)
    called.clear()
    run({name: make(name, fails_at=-1) for name in arms}, storage=storage, bounds=(-1, 1), at_once=1)
    assert len(before & called) == 1  # only the one whose score was refused


def test_ctrl_c_ends_it_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    import _thread  # noqa: PLC0415  # of this test alone

    storage = f"sqlite:///{tmp_path}/compare.db"
    arms = make_arms()
    called = 0

    def interrupting(number: int) -> float:
        nonlocal called
        called += 1
        if called == 5:
            _thread.interrupt_main()
            time.sleep(1.0)
        return arms["long"](number)

    with pytest.raises(KeyboardInterrupt):
        run({**arms, "long": interrupting}, storage=storage)
    assert run(arms, storage=storage).recommendation.arm == "long"


def test_the_summary_says_what_was_saved() -> None:
    comparison = run(at_once=1)
    text = str(comparison)
    assert text.startswith("Choose long")
    assert f"{comparison.questions_used} of 80 questions were asked" in text
    assert "asking every arm everything would have cost 2.40 USD" in text
    header, *rows = text.splitlines()[-4:]
    assert header.split()[:2] == ["arm", "questions"]
    assert [row.split()[0] for row in rows] == list(LEVELS)
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
    for outside in ("http://", "https://", "<script", "<link", "url(", "@import"):
        assert outside not in page
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InvalidValueError, match="`path` must be the path of a file but got 3"):
        comparison.report(3)  # type: ignore[arg-type]  # the point


def test_a_call_in_a_thread_of_the_users_own_does_not_keep_it_from_ending() -> None:
    release = threading.Event()

    async def waits(number: int) -> float:
        if number == 3:
            await asyncio.to_thread(release.wait, 20.0)
        return 0.01 * number

    start = time.monotonic()
    run({"waits": waits, "works": lambda number: 1.0 + 0.02 * number}, range(9), timeout=0.2, retries=0, value=1e6)
    assert time.monotonic() - start < 15.0
    release.set()


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
