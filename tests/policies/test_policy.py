"""Policies refuse invalid arguments, and say what must hold and what was passed."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dbcare import errors
from dbcare.base.checks import MAX_MAGNITUDE, MIN_MAGNITUDE
from dbcare.errors import DbcareError, DbcareWarning, InvalidValueError
from dbcare.policies.elimination.dbcare import DBCARE
from dbcare.policies.elimination.racing import Racing, TwoArmConfidence
from dbcare.policies.planned import Guess, KnownGapOracle, SequentialHalving, SuccessiveRejects, Uniform
from dbcare.policies.policy import CustomPolicy, Policy
from dbcare.problem.risk import Risk
from tests.helpers.play_run import play_by

MI = Risk.misidentification(1e-3)
SR = Risk.simple_regret(1e-3)
DIFFERING = "`cost` must be the same for all arms here but got (0.001, 0.002); Breakeven accepts one per arm."
BY_ARM = Risk.misidentification([1e-3, 2e-3])


def custom(**fields: Any) -> CustomPolicy:
    sound = Guess(2)
    arguments: dict[str, Any] = {"arms": 2, "tables": sound.tables, "state_size": sound.state_size, "max_pulls": 0}
    return CustomPolicy(rule=sound.rule, **(arguments | fields))


def check_arms(make: Callable[[Any], Policy]) -> list[tuple[Callable[[], Policy], str]]:
    return [
        (lambda: make(1), "`arms` must be at least 2 but got 1."),
        (lambda: make(0), "`arms` must be at least 2 but got 0."),
        (lambda: make(-3), "`arms` must be at least 2 but got -3."),
        (lambda: make(2.5), "`arms` must be a whole number but got 2.5."),
        (lambda: make(math.nan), "`arms` must be finite but got nan."),
        (lambda: make("2"), "`arms` must be a real number but got '2'."),
        (lambda: make(True), "`arms` must be a real number but got True."),
        (lambda: make(None), "`arms` must be a real number but got None."),
    ]


def check_positive(name: str, make: Callable[..., Policy]) -> list[tuple[Callable[[], Policy], str]]:
    return [
        (lambda: make(**{name: 0.0}), f"`{name}` must be positive but got 0.0."),
        (lambda: make(**{name: -1.0}), f"`{name}` must be positive but got -1.0."),
        (lambda: make(**{name: math.nan}), f"`{name}` must be finite but got nan."),
        (lambda: make(**{name: math.inf}), f"`{name}` must be finite but got inf."),
        (lambda: make(**{name: "1"}), f"`{name}` must be a real number but got '1'."),
    ]


def check_delta(make: Callable[..., Policy]) -> list[tuple[Callable[[], Policy], str]]:
    return [
        (lambda: make(delta=0.0), "`delta` must lie strictly between 0 and 1 but got 0.0."),
        (lambda: make(delta=1.0), "`delta` must lie strictly between 0 and 1 but got 1.0."),
        (lambda: make(delta=-0.1), "`delta` must lie strictly between 0 and 1 but got -0.1."),
        (lambda: make(delta=math.nan), "`delta` must be finite but got nan."),
    ]


REFUSED: list[tuple[Callable[[], Policy], str]] = [
    *check_arms(lambda arms: DBCARE(MI, arms)),
    *check_arms(lambda arms: Racing(arms, 0.1)),
    *check_arms(lambda arms: SequentialHalving(arms, 100)),
    *check_arms(lambda arms: SuccessiveRejects(arms, 100)),
    *check_arms(lambda arms: Uniform(arms, 1)),
    *check_arms(Guess),
    *check_arms(lambda arms: custom(arms=arms)),
    *check_positive("sigma", lambda sigma: DBCARE(MI, 2, sigma)),
    *check_positive("bound", lambda bound: DBCARE(SR, 2, 1.0, bound)),
    *check_positive("sigma", lambda sigma: Racing(2, 0.1, sigma)),
    *check_positive("sigma", lambda sigma: TwoArmConfidence(0.1, sigma)),
    *check_positive("sigma", lambda sigma: KnownGapOracle(MI, 0.5, sigma)),
    *check_positive("gap", lambda gap: KnownGapOracle(MI, gap)),
    *check_delta(lambda delta: Racing(3, delta)),
    *check_delta(lambda delta: TwoArmConfidence(delta, rate="union")),
    (lambda: DBCARE(1e-4, 2), "`risk` must be a Risk but got 0.0001."),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: KnownGapOracle("MI", 0.5), "`risk` must be a Risk but got 'MI'."),  # type: ignore[arg-type]  # wrong on purpose
    (
        lambda: DBCARE(MI, 2, confidence="theorems"),
        "`confidence` must be one of paper, theorem, corrected but got 'theorems'.",
    ),
    (
        lambda: DBCARE(BY_ARM, 2),
        DIFFERING,
    ),
    (
        lambda: KnownGapOracle(BY_ARM, 0.5),
        DIFFERING,
    ),
    (
        lambda: DBCARE(Risk.misidentification([1e-3] * 3), 2),
        "`cost` must have one entry per arm (2) but got 3.",
    ),
    (
        lambda: KnownGapOracle(Risk.misidentification([1e-3] * 3), 0.5),
        "`cost` must have one entry per arm (2) but got 3.",
    ),
    # 1.8e8, 1.8e19 (beyond int64) and 1.8e49 epochs, and 2.6e66 with simple regret
    (lambda: DBCARE(Risk.misidentification(1e-9), 2), "`cost` must allow at most 50,000,000 epochs but got"),
    (lambda: DBCARE(Risk.misidentification(1e-20), 2), "`cost` must allow at most 50,000,000 epochs but got"),
    (lambda: DBCARE(Risk.misidentification(1e-50), 2), "`cost` must allow at most 50,000,000 epochs but got"),
    (lambda: DBCARE(Risk.simple_regret(1e-50), 2, sigma=1e50), "`cost` must allow at most 50,000,000 epochs but got"),
    (
        lambda: TwoArmConfidence(0.2),
        "`delta` must be at most 0.1 with rate 'kaufmann', which is proven only there, but got 0.2.",
    ),
    (lambda: TwoArmConfidence(0.1, rate="chernoff"), "`rate` must be one of kaufmann, heuristic, union but got"),
    (lambda: TwoArmConfidence(0.1, max_pulls=1), "`max_pulls` must be at least 2 but got 1."),
    (lambda: Racing(5, 0.1, max_pulls=4), "`max_pulls` must be at least 5 but got 4."),
    (lambda: Racing(5, 0.1, max_pulls=10.5), "`max_pulls` must be a whole number but got 10.5."),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Racing(5, 0.1, max_pulls=10**12), "`max_pulls` must allow at most 50,000,000 epochs but got"),
    (lambda: SequentialHalving(8, 23), "`budget` must be at least arms * rounds = 8 * 3 = 24 but got 23."),
    (lambda: SequentialHalving(2, 1), "`budget` must be at least arms * rounds = 2 * 1 = 2 but got 1."),
    (lambda: SequentialHalving(2, -1), "`budget` must be at least"),
    (lambda: SequentialHalving(2, 2.5), "`budget` must be a whole number but got 2.5."),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: SequentialHalving(4, 16, "mean"), "`ranking` must be one of round, all but got 'mean'."),
    (lambda: SuccessiveRejects(4, 4), "`budget` must be at least 5 but got 4."),
    (lambda: SuccessiveRejects(4, math.inf), "`budget` must be finite but got inf."),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Uniform(2, 0), "`pulls` must be at least 1 but got 0."),
    (lambda: Uniform(2, 10**400), "`pulls` must be"),
    (lambda: custom(state_size=0), "`state_size` must be at least 1 but got 0."),
    (lambda: custom(max_pulls=-1), "`max_pulls` must be at least 0 but got -1."),
]


@pytest.mark.parametrize(("make", "start"), REFUSED, ids=[start for _, start in REFUSED])
def test_invalid_arguments_are_refused(make: Callable[[], Policy], start: str) -> None:
    """The message starts as expected, and has the form that errors.py describes."""
    with pytest.raises(InvalidValueError) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(start)
    assert re.fullmatch(r"`\w+` must .+ but got .+\.", message)
    assert "np." not in message


WHOLE: dict[str, Callable[[Any], Policy]] = {
    "DBCARE": lambda four: DBCARE(MI, four),
    "Racing": lambda four: Racing(four, 0.1, max_pulls=4 * four),
    "TwoArmConfidence": lambda four: TwoArmConfidence(0.1, max_pulls=four),
    "SequentialHalving": lambda four: SequentialHalving(four, 4 * four),
    "SuccessiveRejects": lambda four: SuccessiveRejects(four, 4 * four),
    "Uniform": lambda four: Uniform(four, four),
    "Guess": Guess,
}


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE.keys())
@pytest.mark.parametrize("four", [4.0, np.int64(4), np.float64(4.0)], ids=repr)
def test_whole_numbers_may_have_any_type(make: Callable[[Any], Policy], four: Any) -> None:
    """4.0 counts as whole and gives the same policy as 4."""
    usual, same = make(4), make(four)
    assert same == usual
    assert repr(same) == repr(usual)
    (first, asked), (second, asked_too) = play_by(usual, float), play_by(same, float)
    assert asked == asked_too
    assert first.snapshot() == second.snapshot()
    assert first.why() == second.why()


@pytest.mark.parametrize("sigma", [MIN_MAGNITUDE, 1e-5, MAX_MAGNITUDE])
@pytest.mark.parametrize("policy", [Racing(3, 0.1, max_pulls=9), TwoArmConfidence(0.1, max_pulls=8), DBCARE(MI, 3)])
def test_the_radius_is_correct_for_extreme_sigmas(policy: Racing | TwoArmConfidence | DBCARE, sigma: float) -> None:
    """The radius is proportional to sigma up to the limits of magnitude."""
    assert replace(policy, sigma=sigma).radius(2, 2) / sigma == pytest.approx(policy.radius(2, 2), rel=1e-12)


def test_the_exception_tree_in_the_docstring_is_correct() -> None:
    """Every class of errors.py appears below its parent."""
    documentation = errors.__doc__
    assert documentation is not None
    parents: list[str] = []
    drawn = {}
    for line in documentation.splitlines():
        if entry := re.match(r"([├└│─ ]*)(\w+(?:Error|Warning))\b", line):
            depth = len(entry[1]) // 4
            parents[depth:] = [entry[2]]
            drawn[entry[2]] = parents[depth - 1] if depth else None
    classes: dict[str, Any] = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    assert drawn.keys() == classes.keys()
    for name, parent in drawn.items():
        above = classes[parent] if parent else {DbcareError: Exception, DbcareWarning: UserWarning}[classes[name]]
        assert classes[name].__bases__[0] is above
    assert issubclass(InvalidValueError, ValueError)
