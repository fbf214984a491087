"""Which of two prompts is better? Asked in pairs, for a fraction of the price: `python examples/prompts.py`.

A prompt (or a model) is any callable that answers a question; here they are fakes of known quality that need no
network. Each has its own price per call. Scores vary mostly because some questions are harder than others, and that
part is the same for both prompts. So let both answer the same question, and look at the difference.

How to say that to a study. Its arms are the two prompts. A trial of either arm is *one new question answered by both*;
its price is that of both calls; its reward is half the difference of the scores, seen from the arm that was asked for:
(A - B) / 2 for a trial of A, (B - A) / 2 for one of B. That is right because

- the means of the arms differ by exactly what the prompts' mean scores differ by, so losses stay what they were;
- rewards are independent, as questions are new, and all have the same standard deviation, half of the difference's:
  all that the study takes for granted holds, whichever arm it asks for and however often;
- n trials estimate the difference with the variance Var(A - B) / n: nothing of any pair is lost.

The same money buys n calls of each prompt without pairs, and the variance (Var A + Var B) / n. With a correlation r
between the two scores of a question, pairs need 1 - r times the data. They pay whenever r is above 0. With more than
two prompts, subtract from each score what is known of the question beforehand, such as its mean score in old logs.

What a prompt costs in later use belongs into its score. The example makes the decision many times in both ways, and
compares what was spent, and lost by wrong choices.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator

import dbcare

Question = float  # here: how hard it is
Prompt = Callable[[Question], float]  # the score of its answer

PRICES = {"short": 0.002, "with examples": 0.006}  # of a call
QUALITIES = {"short": 0.70, "with examples": 0.76}  # mean scores, which the study is to find out about
VALUE = 500  # of a mean score that is higher by 1, over all calls to come
DECISIONS = 200
LOGGED = 300  # questions that both have answered before: they show how much scores vary


def fake(name: str, chance: random.Random) -> Prompt:
    """A prompt of known quality that scores less on hard questions, with some noise of its own."""
    return lambda hard: QUALITIES[name] - hard + chance.gauss(0.0, 0.1)


def questions(chance: random.Random) -> Iterator[Question]:
    """New ones without end."""
    while True:
        yield chance.gauss(0.0, 0.3)


def one_by_one(number: int, prompts: dict[str, Prompt], asked: Iterator[Question], sigma: float) -> dbcare.Study:
    """A trial is a question answered by one prompt."""
    study = dbcare.create_study(
        f"one by one {number}", list(PRICES), price=list(PRICES.values()), value=VALUE, sigma=sigma, seed=number
    )
    while (trial := study.ask()) is not None:
        study.tell(trial, prompts[trial.arm](next(asked)))
    return study


def in_pairs(number: int, prompts: dict[str, Prompt], asked: Iterator[Question], sigma: float) -> dbcare.Study:
    """A trial is a question answered by both prompts."""
    study = dbcare.create_study(
        f"in pairs {number}", list(PRICES), price=sum(PRICES.values()), value=VALUE, sigma=sigma, seed=number
    )
    while (trial := study.ask()) is not None:
        question = next(asked)
        scores = {name: prompt(question) for name, prompt in prompts.items()}
        (other,) = scores.keys() - {trial.arm}
        study.tell(trial, (scores[trial.arm] - scores[other]) / 2)
    return study


def report(way: str, studies: list[dbcare.Study]) -> float:
    """What a decision cost on average: spending, and the value of what wrong choices lost."""
    choices = [study.recommendation() for study in studies]
    best = max(QUALITIES.values())
    spent = statistics.mean(choice.spent for choice in choices)
    lost = statistics.mean(VALUE * (best - QUALITIES[choice.arm]) for choice in choices)
    wrong = sum(QUALITIES[choice.arm] < best for choice in choices)
    print(f"{way}: {spent:.2f} USD spent; {wrong} of {len(choices)} choices wrong, {lost:.2f} USD lost by that")
    return spent + lost


def main() -> None:
    chance = random.Random(1)
    prompts = {name: fake(name, chance) for name in PRICES}
    asked = questions(chance)
    log = [[prompt(question) for prompt in prompts.values()] for question, _ in zip(asked, range(LOGGED), strict=False)]
    alone = max(statistics.stdev(scores) for scores in zip(*log, strict=True))
    half = statistics.stdev((one - other) / 2 for one, other in log)
    print(f"standard deviation: {alone:.3f} of a score, {half:.3f} of half a difference")
    single = report("one by one", [one_by_one(number, prompts, asked, alone) for number in range(DECISIONS)])
    paired = report("in pairs", [in_pairs(number, prompts, asked, half) for number in range(DECISIONS)])
    print(f"A decision costs {single:.2f} USD one by one, {single / paired:.1f} times the {paired:.2f} USD in pairs.")


if __name__ == "__main__":
    main()
