"""`compare`: the best of several prompts or models, on the same questions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.text import Text

from dbcare.base import checks
from dbcare.base.checks import check_arm_names, order_by_arm, show
from dbcare.base.numbers import DEFAULT_CURRENCY, Money
from dbcare.comparing.calls import InterruptedCallError, make_rate_limits, run_in_own_thread
from dbcare.comparing.comparison import Comparison
from dbcare.comparing.questions import Cluster, QuestionPool, describe_questions, read_questions
from dbcare.comparing.runner import Runner
from dbcare.comparing.trials import Attempts, Meter, ScoreCheck, TrialCalls
from dbcare.errors import AlreadyToldError, InvalidValueError, StudyMismatchError
from dbcare.problem.spread import Spread
from dbcare.studies.api import create_in
from dbcare.studies.settings import Settings
from dbcare.studies.show.progress import StudyProgress
from dbcare.studies.stored import StoredStudy
from dbcare.studies.stores.base import Store
from dbcare.studies.stores.memory import MemoryStore
from dbcare.studies.stores.open import STORAGE_VARIABLE, open_store

MAX_AT_ONCE = 1_000
FIRST_GUESS = 0.01  # of the price of a call, where calls report it and nobody states one
BINARY_BOUNDS = (0.0, 1.0)


def compare(
    arms: Mapping[str, Callable[..., Any]],
    questions: Iterable[Any] | Mapping[Any, Any],
    score: Callable[..., Any] | None = None,
    *,
    value: float,
    price: float | Sequence[float] | Mapping[str, float] | None = None,
    judge_price: float = 0.0,
    max_spend: float | None = None,
    at_once: int = 8,
    rate_limit: float | Mapping[str, float] | None = None,
    retries: int = 2,
    retry_delay: float = 1.0,
    timeout: float | None = None,
    repeats: int = 1,
    cluster: Cluster | None = None,
    only_these_questions: bool = False,
    direction: str = Settings.direction,
    risk: str = Settings.risk,
    bounds: tuple[float, float] | None = None,
    binary: bool = Settings.binary,
    control: str | None = None,
    currency: str = DEFAULT_CURRENCY,
    seed: int = Settings.seed,
    name: str = "comparison",
    storage: str | Store | None = None,
    progress: bool = True,
) -> Comparison:
    """Compare prompts or models on the same questions, and stop at break-even.

    Arms are compared only on questions that both have answered, so that hard questions do not blur the difference. The
    questions are asked in a random order by `seed`; arms that are clearly worse drop out early, and the comparison ends
    once the choice is expected to lose no more to any single rival than has been spent. It works in scripts and
    notebooks; where an event loop is running, it blocks that loop until it is done. Asynchronous functions run on an
    event loop of another thread, so create clients that belong to a loop inside of them.

    Parameters
    ----------
    arms : mapping
        Name and function of each arm. A function gets a question and returns an answer, or `Priced(answer, price)` to
        report what the call cost. It may be asynchronous; other functions run in threads, several at once.
    questions : iterable or mapping
        What to ask: anything the functions accept. The ids of a mapping name the questions; else they are numbered
        from 1. The rows of a data frame become dictionaries. To resume a comparison, pass the same ones in the same
        order; others are refused, as far as they are texts, numbers, arrays, dataclasses, or lists and dictionaries of
        those.
    score : callable, optional
        Gets a question and an answer and returns a number, or `Priced(number, price)` if judging costs money. It may be
        asynchronous. Default: answers are scores.
    value : float
        What a mean score higher by 1 is worth, over all future use; with the risk "misidentification", what a wrong
        choice costs.
    price : float, sequence of float or mapping, optional
        Price of a call, or one per arm, for calls that do not report it. It is also what a call is expected to cost
        before the first ones have reported. Default: every call reports its price, and is expected to cost 0.01 before
        the first one has.
    judge_price : float
        Price of a call of `score` that does not report it.
    max_spend : float, optional
        Budget: no trial is started that would exceed it if those under way cost what is expected. The same call with
        a larger one continues. Requires `price`.
    at_once : int
        Calls under way at the same time.
    rate_limit : float or mapping, optional
        Maximum number of calls per minute, of all arms together, or of each arm by name. Retries count too.
    retries : int
        How often a call is repeated that raises an exception or takes too long, or whose score is NaN or infinite. Each
        attempt costs what it reports, by `Priced` or by an attribute `price` of the exception, or else the stated
        price. After the last one the arm goes without this question, and the failure is in `Comparison.failures`.
    retry_delay : float
        Seconds before the first retry; they double for each further one.
    timeout : float, optional
        Seconds that a call may take. An asynchronous call is cancelled then; the thread of another one is abandoned.
    repeats : int
        How often each arm answers a question; its score is the mean.
    cluster : callable, sequence or mapping, optional
        The group of each question, for questions that belong together, such as those about one document: a function of
        the question, a list as long as `questions`, or a mapping by id. Groups are asked as a whole. The reward of a
        group is the sum of its scores times the number of groups over the number of questions, so that the mean over
        groups is the mean over questions.
    only_these_questions : bool
        Whether the decision is about these questions alone, rather than about more like them.
    direction, risk, bounds, binary, control, currency
        As in `create_study`; `bounds` and `binary` are about scores.
    seed : int
        Random seed for the order of the questions and for ties.
    name : str
        Name of the study.
    storage : str or Store, optional
        Where to keep the study, as in `create_study`. The same call with the same storage and name resumes: no answer
        that was recorded is asked for again, and what was under way when a process died is asked first. Default: the
        environment variable DBCARE_STORAGE, or else memory that is gone after the call. Only one process at a time may
        run a comparison: a second one makes the pending calls of the first again, and the first of them to record a
        different outcome ends the other. Calls under way when a process dies are not charged.
    progress : bool
        Whether to show progress on standard error.

    Returns
    -------
    Comparison
        The recommendation, the answers, and what was saved; print it for a summary.

    Raises
    ------
    InvalidValueError
        If an argument is invalid, a budget does not cover one question for every arm, or a call returns what is wrong
        for any question: a score that is not a number or outside `bounds`, a negative price, or no price where none is
        stated. The message names the arm and the question. What was recorded before stays.
    ComparisonError
        If an arm fails on its first three questions; the cause is its last exception. What its calls cost is recorded
        with the last of these questions, which the arm goes without; a corrected call asks the others again.
    StudyMismatchError
        If `storage` has a study of that name with other settings or for other questions.
    AlreadyToldError
        If another process runs the same comparison.

    Examples
    --------
    >>> from dbcare import Priced, compare
    >>> questions = {f"{number} + 1": number for number in range(200)}
    >>> def careful(number):
    ...     return Priced(number + 1, price=0.004)
    >>> async def hasty(number):
    ...     return Priced(number + (number % 7 > 0), price=0.001)
    >>> def is_right(number, answer):
    ...     return answer == number + 1
    >>> arms = {"careful": careful, "hasty": hasty}
    >>> comparison = compare(arms, questions, is_right, value=50, binary=True, progress=False)
    >>> comparison.recommendation.arm
    'careful'
    """
    functions = _check_arms(arms)
    if score is not None and not callable(score):
        raise InvalidValueError(f"`score` must be a function of a question and an answer but got {show(score)}.")
    pool = read_questions(questions, cluster)
    repeats = checks.whole("repeats", repeats, at_least=1)
    attempts = Attempts(
        retries=checks.whole("retries", retries, at_least=0, at_most=100),
        delay=checks.non_negative("retry_delay", retry_delay),
        timeout=None if timeout is None else checks.positive("timeout", timeout),
    )
    at_once = checks.whole("at_once", at_once, at_least=1, at_most=MAX_AT_ONCE)
    judge_price = checks.non_negative("judge_price", judge_price)
    stated = _read_prices(price, tuple(functions))
    prices = {arm: (FIRST_GUESS if each is None else each) + judge_price for arm, each in stated.items()}
    if max_spend is not None:
        _check_budget(max_spend, price, sum(prices.values()) * repeats, pool, currency)
    checks.flag("progress", progress)
    bounds = Spread(bounds=bounds, binary=binary).bounds
    many = pool.has_clusters or repeats > 1
    score_bounds = BINARY_BOUNDS if binary and many else bounds
    settings = Settings.from_options(
        list(functions),
        price=[each * repeats / pool.weight for each in prices.values()],
        value=value,
        blocks=list(pool.blocks),
        only_these_blocks=only_these_questions,
        direction=direction,
        risk=risk,
        bounds=score_bounds if score_bounds is None else pool.find_bounds(score_bounds),
        binary=binary and not many,
        control=control,
        currency=currency,
        seed=seed,
        description=describe_questions(pool.questions, pool.blocks),
    )
    in_memory = storage is None and STORAGE_VARIABLE not in os.environ
    store = MemoryStore() if in_memory else open_store(storage, create=True)
    study = create_in(store, name, settings, load_if_exists=True)
    _check_same_questions(study, settings)
    calls = TrialCalls(
        arms=functions,
        score=score,
        prices=stated,
        judge_price=judge_price,
        pool=pool,
        repeats=repeats,
        attempts=attempts,
        check=ScoreCheck(bounds, binary),
        rate_limits=make_rate_limits(rate_limit, tuple(functions)),
        meter=Meter(prices, max_spend, study.status().spent),
    )
    runner = _run(study, calls, at_once, progress=progress, can_resume=not in_memory)
    per_question = {arm: each * repeats for arm, each in prices.items()}
    return Comparison(study, pool, per_question, runner.failures, runner.describe_shortage())


def _run(study: StoredStudy, calls: TrialCalls, at_once: int, *, progress: bool, can_resume: bool) -> Runner:
    noun = "clusters" if calls.pool.has_clusters else "questions"
    console = Console(stderr=True, highlight=False)
    shown = StudyProgress(study, console, limit=calls.meter.limit, noun=noun) if progress else None
    runner = Runner(study, calls, at_once, (lambda: None) if shown is None else shown.update)
    try:
        with nullcontext() if shown is None else shown:
            run_in_own_thread(runner.run())
    except InterruptedCallError as interrupted:
        raise interrupted.interruption from None
    except AlreadyToldError as refused:
        raise AlreadyToldError(
            f"Another process is running comparison {study.name!r}: {refused} Run one at a time; the same call resumes."
        ) from None
    except KeyboardInterrupt:
        if shown is not None and can_resume:
            console.print(Text(f"{study.name}: all answers up to here are stored; the same call resumes."))
        raise
    return runner


def _check_same_questions(study: StoredStudy, given: Settings) -> None:
    stored = study.settings.description
    if stored != given.description:
        raise StudyMismatchError(
            f"Study {study.name!r} was created for other questions: {given.description} was given, {stored} is stored; "
            "pass the same questions to resume it, or choose another `name`."
        )


def _check_arms(arms: Any) -> dict[str, Callable[..., Any]]:
    if not isinstance(arms, Mapping):
        raise InvalidValueError(f"`arms` must be a mapping of names to functions but got {show(arms)}.")
    check_arm_names(list(arms))
    for arm, function in arms.items():
        if not callable(function):
            raise InvalidValueError(f"`arms` must have a function for {arm!r} but got {show(function)}.")
    return dict(arms)


def _read_prices(price: Any, arms: Sequence[str]) -> dict[str, float | None]:
    """Return the stated price of a call by arm; None where calls report it."""
    if price is None:
        return dict.fromkeys(arms)
    listed = order_by_arm("price", price, arms)
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        if len(listed) != len(arms):
            raise InvalidValueError(f"`price` must be one per arm ({len(arms)}) but got {len(listed)}.")
        return {arm: checks.positive("price", each) for arm, each in zip(arms, listed, strict=True)}
    return dict.fromkeys(arms, checks.positive("price", listed))


def _check_budget(max_spend: Any, price: Any, per_question: float, pool: QuestionPool, currency: str) -> None:
    """Refuse a budget that cannot be kept, or does not cover one question, or cluster, for every arm."""
    budget = checks.positive("max_spend", max_spend)
    if price is None:
        raise InvalidValueError("`max_spend` requires `price`, the expected price of a call before any has reported.")
    once = per_question * max(map(len, pool.blocks.values()))
    if budget < once:
        what = "the largest cluster" if pool.has_clusters else "one question"
        raise InvalidValueError(
            f"`max_spend` must cover {what} for every arm, {Money(once, currency)}, but got {Money(budget, currency)}."
        )
