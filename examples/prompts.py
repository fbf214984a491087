"""Choose between two prompts, in pairs and for a fraction of the price: `python examples/prompts.py`.

A prompt (or a model) is any callable that answers a question; here they are fakes of known quality that need no
network. Each has its own price per call. Scores vary mostly because some questions are harder than others, and that
part is the same for both prompts. So let both answer the same question, and look at the difference.

How to set up such a study: its arms are the two prompts. A trial of either arm is *one new question answered by both*.
Its price is that of both calls. Its reward is half the difference of the scores, seen from the arm that was asked for:
(A - B) / 2 for a trial of A, (B - A) / 2 for one of B. That is valid because

- the means of the arms differ by exactly as much as the prompts' mean scores, so losses stay the same;
- rewards are independent, since questions are new, and all have the same standard deviation, half that of the
  difference: everything the study assumes holds, whichever arm it asks for and however often;
- n trials estimate the difference with the variance Var(A - B) / n: no part of any pair is lost.

Without pairs, the same money buys n calls of each prompt, and the variance (Var A + Var B) / n. With a correlation r
between the two scores of a question, pairs need 1 - r times the data. They pay off whenever r is above 0. With more
than two prompts, subtract from each score what is known about the question in advance, such as its mean score in old
logs.

Include a prompt's future running cost in its score. The example makes the decision many times in both ways, and
compares what was spent and what was lost by wrong choices.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator

import dbcare

Question = float  # here: its difficulty
Prompt = Callable[[Question], float]  # returns the score of its answer

PRICES = {"short": 0.002, "with examples": 0.006}  # per call
QUALITIES = {"short": 0.70, "with examples": 0.76}  # mean scores, which the study has to find out
VALUE = 500  # what a mean score higher by 1 is worth, over all future calls
DECISIONS = 100
LOGGED_QUESTIONS = 300  # answered by both before: they show how much scores vary


def make_prompt(name: str, generator: random.Random) -> Prompt:
    """Return a fake prompt of known quality, which scores less on hard questions and has some noise of its own."""
    return lambda difficulty: QUALITIES[name] - difficulty + generator.gauss(0.0, 0.1)


def draw_questions(generator: random.Random) -> Iterator[Question]:
    """Yield new questions without end."""
    while True:
        yield generator.gauss(0.0, 0.3)


def decide_one_by_one(
    number: int, prompts: dict[str, Prompt], questions: Iterator[Question], sigma: float
) -> dbcare.Study:
    """Run a study in which a trial is a question answered by one prompt."""
    study = dbcare.create_study(
        f"one by one {number}", list(PRICES), price=list(PRICES.values()), value=VALUE, sigma=sigma, seed=number
    )
    while (trial := study.ask()) is not None:
        study.tell(trial, prompts[trial.arm](next(questions)))
    return study


def decide_in_pairs(
    number: int, prompts: dict[str, Prompt], questions: Iterator[Question], sigma: float
) -> dbcare.Study:
    """Run a study in which a trial is a question answered by both prompts."""
    study = dbcare.create_study(
        f"in pairs {number}", list(PRICES), price=sum(PRICES.values()), value=VALUE, sigma=sigma, seed=number
    )
    while (trial := study.ask()) is not None:
        question = next(questions)
        scores = {name: prompt(question) for name, prompt in prompts.items()}
        (other,) = scores.keys() - {trial.arm}
        study.tell(trial, (scores[trial.arm] - scores[other]) / 2)
    return study


def report(method: str, studies: list[dbcare.Study]) -> float:
    """Print and return what a decision cost on average: the spend, and what wrong choices lost."""
    choices = [study.recommendation() for study in studies]
    best = max(QUALITIES.values())
    spent = statistics.mean(choice.spent for choice in choices)
    lost = statistics.mean(VALUE * (best - QUALITIES[choice.arm]) for choice in choices)
    wrong = sum(QUALITIES[choice.arm] < best for choice in choices)
    print(f"{method}: {spent:.2f} USD spent; {wrong} of {len(choices)} choices wrong, which lost {lost:.2f} USD")
    return spent + lost


def main() -> None:
    generator = random.Random(1)
    prompts = {name: make_prompt(name, generator) for name in PRICES}
    questions = draw_questions(generator)
    log = [
        [prompt(question) for prompt in prompts.values()]
        for question, _ in zip(questions, range(LOGGED_QUESTIONS), strict=False)
    ]
    sigma = max(statistics.stdev(scores) for scores in zip(*log, strict=True))
    pair_sigma = statistics.stdev((one - other) / 2 for one, other in log)
    print(f"standard deviation: {sigma:.3f} of a score, {pair_sigma:.3f} of half a difference")
    single = report("one by one", [decide_one_by_one(number, prompts, questions, sigma) for number in range(DECISIONS)])
    paired = report(
        "in pairs", [decide_in_pairs(number, prompts, questions, pair_sigma) for number in range(DECISIONS)]
    )
    print(f"A decision costs {single:.2f} USD one by one, {single / paired:.1f} times the {paired:.2f} USD in pairs.")


if __name__ == "__main__":
    main()
