"""One pass of runs for policies that differ only in their cap gives what `evaluate` gives for each policy alone."""

from dataclasses import replace

import pytest

from dbcare import Bandit, Risk, evaluate
from dbcare.engines.result import Evaluation
from dbcare.engines.simulate.runs import PlainRuns
from dbcare.lab.experiments.passes import Point, plan_passes
from dbcare.lab.experiments.results import compute
from dbcare.lab.experiments.shared_runs import share_caps
from dbcare.policies import Racing
from dbcare.policies.policy import Policy
from dbcare.problem.risk import Loss

CAPS = (1_000, 5, 4_000, 333, 100, 1_000)
RISK = Risk.misidentification(1e-3)


def racing(arms: int, caps: tuple[int, ...] = CAPS) -> list[Policy]:
    return [Racing(arms, 0.1, sigma=0.5, max_pulls=cap) for cap in caps]


def without_seconds(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, seconds=0.0)


def build_all(sources: list[PlainRuns]) -> list[Evaluation]:
    return [without_seconds(source.build(RISK)) for source in sources]


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
def test_with_every_pull_drawn_runs_are_those_of_each_policy_alone(bandit: Bandit) -> None:
    """To the bit."""
    policies = racing(len(bandit.arms))
    together = build_all(share_caps(policies, bandit, 1_500, 4, 1, direct=True))
    alone = [evaluate(policy, bandit, RISK, runs=1_500, seed=4, engine="direct") for policy in policies]
    assert together == [without_seconds(evaluation) for evaluation in alone]
    assert len({evaluation.pulls.mean for evaluation in together}) > 2


def test_jumps_are_used_where_they_apply_and_do_not_depend_on_threads() -> None:
    bandit = Bandit.drug_binary()
    one, two, other = (
        build_all(share_caps(racing(5), bandit, 2_000, seed, threads)) for seed, threads in ((4, 1), (4, 3), (5, 3))
    )
    assert {(evaluation.engine, evaluation.guarantee) for evaluation in one} == {
        ("skip", "jumps in which no arm can be dropped, exact")
    }
    assert one == two
    assert one[0] != other[0]
    assert [evaluation.policy for evaluation in one] == [repr(policy) for policy in racing(5)]
    assert one[0].pulls == one[5].pulls
    # A smaller cap means fewer pulls, never more than the cap.
    assert one[1].pulls.mean == 5.0
    assert one[1].capped == 1.0
    assert one[4].pulls.mean < one[3].pulls.mean < one[0].pulls.mean < one[2].pulls.mean <= 4_000


def test_rewards_with_many_values_are_drawn_pull_by_pull() -> None:
    bandit = Bandit.empirical([[0.01 * (index**2 % 97) + 0.001 * index for index in range(60)], [0.3, 0.5]])
    assert {evaluation.engine for evaluation in build_all(share_caps(racing(2), bandit, 100, 0, 1))} == {"direct"}


def test_the_exact_engine_serves_each_cap() -> None:
    bandit = Bandit.bernoulli([0.7, 0.5])
    points = [Point(policy, bandit, 1e-3, 100, 0) for policy in racing(2, (100, 2_000))]
    (work,) = plan_passes(points)
    record = compute(work)
    assert [result.engine for result in record.results] == ["exact", "exact"]
    for point, result in zip(points, record.results, strict=True):
        for loss in Loss:
            alone = evaluate(point.policy, bandit, Risk(loss, point.cost))
            assert result.risk(loss) == (alone.risk, 0.0)
