"""`evaluate_together` gives the same results as `evaluate` for each policy alone, from one pass."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbcare import (
    DBCARE,
    Bandit,
    CustomPolicy,
    Guess,
    Policy,
    Racing,
    Risk,
    Rule,
    SequentialHalving,
    TwoArmConfidence,
    evaluate,
    evaluate_together,
)
from dbcare.engines.evaluation import Evaluation
from dbcare.errors import EngineError, InvalidValueError, NotCompiledWarning
from dbcare.policies.rule import State

ERROR = Risk.misidentification(1e-3)
REGRET = Risk.simple_regret(1e-4)
CAPS = (1_000, 5, 4_000, 333, 100, 1_000, 4_000)
RISKS = [Risk.misidentification(1e-3), Risk.simple_regret(1e-4), *[Risk.misidentification(1e-5)] * 5]


def without_effort(evaluations: list[Evaluation]) -> list[Evaluation]:
    """Drop the time and the pulls, which the evaluations of a pass share."""
    return [replace(evaluation, seconds=0.0, pulls_simulated=0) for evaluation in evaluations]


def racing(arms: int, caps: tuple[int, ...] = CAPS) -> list[Policy]:
    return [Racing(arms, 0.1, sigma=0.5, max_pulls=cap) for cap in caps]


@pytest.mark.parametrize(
    "bandit",
    [
        Bandit.gaussian([0.5, 0.2, 0.0, 0.0]),
        Bandit.two_arm(0.2),
        Bandit.bernoulli([0.7, 0.5, 0.4, 0.2]),
        Bandit.drug_leveled(),
        Bandit.empirical([[0.1, 0.4, 0.77], [0.3, 0.5, 0.6], [0.0, 0.2]]),
    ],
)
def test_the_direct_engine_gives_the_same_bits_as_each_policy_alone(bandit: Bandit) -> None:
    policies = racing(len(bandit.arms))
    together = evaluate_together(policies, bandit, RISKS, runs=1_500, seed=4, engine="direct")
    alone = [
        evaluate(policy, bandit, risk, runs=1_500, seed=4, engine="direct")
        for policy, risk in zip(policies, RISKS, strict=True)
    ]
    assert without_effort(together) == without_effort(alone)
    assert len({evaluation.pulls.mean for evaluation in together}) > 2
    assert [evaluation.pulls_simulated for evaluation in together] == [0, 0, alone[2].pulls_simulated, 0, 0, 0, 0]
    assert [evaluation.seconds > 0.0 for evaluation in together] == [False, False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("policy", "bandit", "engine"),
    [
        (SequentialHalving(5, 100), Bandit.drug_leveled(), "skip"),
        (DBCARE(REGRET, 4), Bandit.one_sparse(4, 0.4), "direct"),
        (Racing(3, 0.1), Bandit.bernoulli([0.6, 0.5, 0.4]), "skip"),
        (Guess(3), Bandit.one_sparse(3, 0.4), "exact"),
        (TwoArmConfidence(0.1), Bandit.two_arm(0.5), "exact"),
    ],
)
def test_equal_policies_share_one_simulation_for_all_risks(policy: Policy, bandit: Bandit, engine: str) -> None:
    risks = [REGRET, ERROR, Risk.misidentification(1e-6)]
    together = evaluate_together([policy] * 3, bandit, risks, runs=800, seed=2)
    alone = [evaluate(policy, bandit, risk, runs=800, seed=2) for risk in risks]
    assert without_effort(together) == without_effort(alone)
    assert [evaluation.pulls_simulated for evaluation in together] == [alone[0].pulls_simulated, 0, 0]
    assert together[0].engine in {engine, "skip"}


def test_the_exact_engine_serves_each_cap() -> None:
    policies, bandit = racing(2, (100, 2_000)), Bandit.bernoulli([0.7, 0.5])
    together = evaluate_together(policies, bandit, [ERROR, REGRET])
    assert [evaluation.engine for evaluation in together] == ["exact", "exact"]
    alone = [evaluate(policies[0], bandit, ERROR), evaluate(policies[1], bandit, REGRET)]
    assert without_effort(together) == without_effort(alone)


def test_jumps_are_used_where_they_apply_and_do_not_depend_on_threads() -> None:
    bandit = Bandit.drug_binary()
    one, two, other = (
        evaluate_together(racing(5), bandit, RISKS, runs=2_000, seed=seed, threads=threads)
        for seed, threads in ((4, 1), (4, 3), (5, 3))
    )
    assert {(evaluation.engine, evaluation.guarantee) for evaluation in one} == {
        ("skip", "jumps in which no arm can be dropped, exact")
    }
    assert without_effort(one) == without_effort(two)
    assert without_effort(one)[0] != without_effort(other)[0]
    assert [evaluation.policy for evaluation in one] == [repr(policy) for policy in racing(5)]
    assert [evaluation.cost for evaluation in one] == [risk.cost for risk in RISKS]
    assert one[0].pulls == one[5].pulls
    # A smaller cap means fewer pulls, never more than the cap.
    assert one[1].pulls.mean == 5.0
    assert one[1].capped == 1.0
    assert one[4].pulls.mean < one[3].pulls.mean < one[0].pulls.mean < one[2].pulls.mean <= 4_000


def test_rewards_with_many_values_are_drawn_pull_by_pull() -> None:
    bandit = Bandit.empirical([[0.01 * (index**2 % 97) + 0.001 * index for index in range(60)], [0.3, 0.5]])
    evaluations = evaluate_together(racing(2), bandit, RISKS, runs=100)
    assert {evaluation.engine for evaluation in evaluations} == {"direct"}
    with pytest.raises(EngineError, match="few values"):
        evaluate_together(racing(2), bandit, RISKS, runs=100, engine="skip")


def uncompilable(state: State, tables: object) -> int:
    mixed: dict[str, Any] = {"arm": -1, "why": None}  # which numba cannot compile
    return int(mixed["arm"])


def test_interpreted_policies_give_a_warning() -> None:
    policy = CustomPolicy(
        2,
        Rule(
            lambda state, tables, tie: None,
            uncompilable,
            lambda state, tables, arm, reward: None,
            lambda state, tables: 0,
        ),
        tables=(),
        state_size=1,
        max_pulls=1,
    )
    with pytest.warns(NotCompiledWarning, match="interpreted") as caught:
        evaluations = evaluate_together([policy, policy], Bandit.two_arm(0.5), [ERROR, REGRET], runs=5)
    assert caught[0].filename == __file__
    assert [evaluation.error for evaluation in evaluations] == [0.0, 0.0]


SPARSE = Bandit.one_sparse(3, 0.5)


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: evaluate_together([], SPARSE, []), InvalidValueError, "at least 1, but got 0 and 0"),
        (lambda: evaluate_together(racing(3), SPARSE, [ERROR]), InvalidValueError, "but got 7 and 1"),
        (lambda: evaluate_together(Guess(3), SPARSE, [ERROR]), InvalidValueError, "`policies` must be a sequence"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: evaluate_together([Guess(3)], SPARSE, ERROR), InvalidValueError, "`risks` must be a sequence"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: evaluate_together(["x"], SPARSE, [ERROR]), InvalidValueError, "`policy` must be a Policy"),  # type: ignore[list-item]  # wrong on purpose
        (lambda: evaluate_together([Guess(3)], SPARSE, ["x"]), InvalidValueError, "`risk`"),  # type: ignore[list-item]  # wrong on purpose
        (
            lambda: evaluate_together([Racing(3, 0.1), Racing(3, 0.2, max_pulls=9)], SPARSE, [ERROR, ERROR]),
            InvalidValueError,
            "at index 1, Racing(arms=3, delta=0.2",
        ),
        (
            lambda: evaluate_together([SequentialHalving(3, 60), SequentialHalving(3, 90)], SPARSE, [ERROR, ERROR]),
            InvalidValueError,
            "`policies` must be equal",
        ),
        (
            lambda: evaluate_together([Racing(3, 0.1), Guess(3)], SPARSE, [ERROR, ERROR]),
            InvalidValueError,
            "`policies` must be equal",
        ),
        (lambda: evaluate_together(racing(3), SPARSE, RISKS, runs=0), InvalidValueError, "`runs`"),
        (lambda: evaluate_together(racing(3), SPARSE, RISKS, engine="fast"), InvalidValueError, "`engine`"),
        (lambda: evaluate_together(racing(3), SPARSE, RISKS, engine="skip"), EngineError, "finitely many outcomes"),
        (lambda: evaluate_together(racing(3), SPARSE, RISKS, engine="exact"), EngineError, "two arms"),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[], object], exception: type[Exception], message: str) -> None:
    with pytest.raises(exception, match=re.escape(message)):
        call()
