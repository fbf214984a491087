"""Comparisons of arms of known quality."""

import random
from collections.abc import Callable
from typing import Any

import dbcare
from dbcare import compare

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


def run(arms: Any = None, questions: Any = None, score: Any = None, **options: Any) -> dbcare.comparing.Comparison:
    defaults = {"value": 1_000, "price": 0.01, "progress": False, "retry_delay": 0.0}
    return compare(arms or make_arms(), QUESTIONS if questions is None else questions, score, **(defaults | options))
