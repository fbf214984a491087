"""Choose between three prompts, for a fraction of what asking everything costs: `python examples/prompts.py`.

A prompt (or a model) is any function that answers a question; here they are fakes of known quality that need no
network. Each call reports its price, and so does the judge that scores the answers. Scores vary mostly because some
questions are harder than others. All prompts answer the same questions, so that part cancels: `compare` looks at
differences only, drops what is clearly worse, and stops at break-even.

Include a prompt's future running cost in its score. The last lines make the same decision many times, and compare what
it costs, wrong choices included, with asking every prompt every question.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Awaitable, Callable

import dbcare

PRICES = {"short": 0.002, "with examples": 0.006, "step by step": 0.009}  # of a call, about
QUALITIES = {"short": 0.70, "with examples": 0.76, "step by step": 0.75}  # mean scores, which nobody knows yet
JUDGE_PRICE = 0.001
VALUE = 100  # what a mean score higher by 1 is worth, over all future calls
QUESTIONS = 300
DECISIONS = 30

Question = tuple[str, float]  # its text, and how hard it is, which no prompt sees


def make_prompt(name: str, generator: random.Random) -> Callable[[Question], Awaitable[dbcare.Priced]]:
    """Return a fake prompt of known quality, which scores less on hard questions and has some noise of its own."""

    async def answer(question: Question) -> dbcare.Priced:
        quality = QUALITIES[name] - question[1] + generator.gauss(0.0, 0.1)
        return dbcare.Priced(f"an answer worth {quality:.6f}", PRICES[name] * generator.uniform(0.8, 1.2))

    return answer


def judge(question: Question, answer: str) -> dbcare.Priced:
    """Return the score of an answer; a real judge would ask a model."""
    return dbcare.Priced(float(answer.rsplit(maxsplit=1)[-1]), JUDGE_PRICE)


def decide(seed: int, *, progress: bool) -> dbcare.comparing.Comparison:
    """Compare the prompts on questions of their own."""
    generator = random.Random(seed)
    questions = {f"question {number}": ("text", generator.gauss(0.0, 0.3)) for number in range(QUESTIONS)}
    prompts = {name: make_prompt(name, generator) for name in PRICES}
    return dbcare.compare(
        prompts, questions, judge, value=VALUE, price=PRICES, max_spend=4.0, seed=seed, progress=progress
    )


def main() -> None:
    comparison = decide(seed=1, progress=False)
    print(comparison, end="\n\n")
    decisions = [decide(seed, progress=False) for seed in range(DECISIONS)]
    choices = [str(decision.recommendation.arm) for decision in decisions]
    best = max(QUALITIES.values())
    spent = statistics.mean(decision.spent for decision in decisions)
    lost = statistics.mean(VALUE * (best - QUALITIES[choice]) for choice in choices)
    full = statistics.mean(decision.full_cost for decision in decisions)
    worst = choices.count("short")
    print(f"{DECISIONS} decisions: {spent:.2f} USD spent and {lost:.2f} USD lost by choices that are not the best;")
    print(f"{worst} chose the worst prompt. Asking everything would have cost {full:.2f} USD each time.")


if __name__ == "__main__":
    main()
