"""Numbers about arms that share blocks: against the paired t test, and what blocks have in common."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import dbcare
from dbcare.policies.run import Comparisons

BLOCKS = 60
Floats = npt.NDArray[np.float64]


def run_study(name: str, rewards: Floats, direction: str = "maximize") -> dbcare.Study:
    """Return a study that has been told all rewards, by block and arm, in rounds; it would need far more to stop."""
    arms = [f"arm {arm}" for arm in range(rewards.shape[1])]
    study = dbcare.create_study(name, arms, cost=1e-9, rounds=True, direction=direction, not_before=BLOCKS * len(arms))
    for _ in range(rewards.size):
        trial = study.ask()
        assert trial is not None
        assert trial.block is not None
        study.tell(trial, float(rewards[int(trial.block) - 1, arms.index(trial.arm)]))
    return study


def draw_rewards(arms: int, seed: int) -> Floats:
    generator = np.random.default_rng(seed)
    return np.linspace(0.3, 0.0, arms) + generator.normal(size=(BLOCKS, arms)) + generator.normal(size=(BLOCKS, 1))


def test_the_error_of_a_lead_is_that_of_the_paired_t_test() -> None:
    """For two arms; negative control: the error of unpaired means is larger."""
    rewards = draw_rewards(2, seed=1)
    study = run_study("paired t", rewards)
    with study._ledger.read() as transaction:  # type: ignore[attr-defined]  # what the reports are made from
        beliefs = transaction.ledger.beliefs
    posterior = beliefs.posterior
    assert posterior is not None
    test = stats.ttest_rel(rewards[:, 0], rewards[:, 1])
    lead = rewards[:, 0].mean() - rewards[:, 1].mean()
    assert posterior.means[0] - posterior.means[1] == pytest.approx(lead)
    assert np.hypot(*posterior.errors) == pytest.approx(lead / test.statistic)
    unpaired = stats.ttest_ind(rewards[:, 0], rewards[:, 1], equal_var=False)
    assert np.hypot(*posterior.errors) < 0.9 * lead / unpaired.statistic


def test_what_blocks_share_changes_the_means_but_not_the_comparisons() -> None:
    """Shifts of whole blocks, far larger than the noise, make means uncertain, and nothing else."""
    rewards = draw_rewards(3, seed=2)
    shifts = 50.0 * np.random.default_rng(3).normal(size=(BLOCKS, 1))
    plain, shifted = (run_study(f"shifts {number}", each) for number, each in enumerate((rewards, rewards + shifts)))
    for one, other in zip(plain.status().arms, shifted.status().arms, strict=True):
        assert other.probability_best == pytest.approx(one.probability_best, rel=1e-6)
        assert other.expected_loss == pytest.approx(one.expected_loss, rel=1e-6)
        assert other.lead == pytest.approx(one.lead, rel=1e-6)
        assert other.lead_interval == pytest.approx(one.lead_interval, rel=1e-6)
        assert one.interval is not None
        assert other.interval is not None
        assert other.interval[1] - other.interval[0] > 10.0 * (one.interval[1] - one.interval[0])


def test_less_is_better_mirrors_everything() -> None:
    rewards = draw_rewards(3, seed=4)
    more, less = run_study("more", rewards), run_study("less", -rewards, "minimize")
    for one, other in zip(more.status().arms, less.status().arms, strict=True):
        assert one.estimate is not None
        assert other.estimate == pytest.approx(-one.estimate)
        assert other.probability_best == pytest.approx(one.probability_best)
        assert other.lead == pytest.approx(one.lead)


def test_errors_have_the_variances_and_covariances_of_shared_blocks() -> None:
    """Against draws: arms share the first n blocks with the leader, and all noise but a common part is independent.

    Variances and covariances of 200,000 draws are within 3%, which is more than 6 standard errors of each.
    """
    shared, draws = (40, 10, 40, 25), 200_000
    comparisons = Comparisons(0, shared, (0.0,) * 4, (2.0,) * 4, 0.0)
    generator = np.random.default_rng(5)
    own = [generator.normal(size=(draws, 1)) / np.sqrt(part) for part in (10, 15, 15)]  # means over parts of the blocks

    def mean_of(parts: list[Floats], blocks: int) -> Floats:
        sizes = (10, 15, 15)[: len(parts)]
        return sum(part * size for part, size in zip(parts, sizes, strict=True))[:, 0] / blocks  # type: ignore[index]  # a sum of arrays

    leader = own
    differences = []
    for blocks, parts in ((10, 1), (40, 3), (25, 2)):
        noise = [generator.normal(size=(draws, 1)) / np.sqrt(size) for size in (10, 15, 15)[:parts]]
        differences.append(mean_of(leader[:parts], blocks) - mean_of(noise, blocks))
    covariance = np.cov(differences)
    errors = comparisons.error_variances()
    assert [errors[0] + error for error in errors[1:]] == pytest.approx(np.diag(covariance), rel=0.03)
    assert errors[0] == pytest.approx(covariance[0, 1], rel=0.03)
    assert errors[0] == pytest.approx(covariance[1, 2], rel=0.03)
