"""Pooled estimates against sums over all histories of a small experiment, and against formulas written out.

A policy pulls two or three Bernoulli arms in turn and stops early if one is ahead by two. Its histories are few enough
to list, so means under any bandit are exact sums, without random numbers.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Breakeven, Categorical, Loss, Policy, Risk, evaluate, evaluate_grid
from dbcare.engines.pooling import model as model_module
from dbcare.engines.pooling import runs as pooled_runs
from dbcare.engines.pooling.columns import (
    COLUMNS,
    CUBE,
    ERROR,
    FOLDS,
    MARTINGALES,
    PULLS,
    REGRET,
    TILTED,
    WEIGHT,
    exp_of,
)
from dbcare.engines.pooling.estimates import NO_WEIGHTS, Chunk, SourceSums, Sums, combine, estimate, sum_chunk
from dbcare.engines.pooling.evaluate import Target, evaluate_pooled, make_decoys
from dbcare.engines.pooling.model import (
    Labels,
    Model,
    build_model,
    choose_labels,
    find_family,
    make_labelings,
    tabulate,
)
from dbcare.engines.pooling.runs import PooledRuns
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.rng import stream
from dbcare.engines.simulate.simulators import direct_simulator, skip_simulator, trace
from dbcare.errors import EngineError, InvalidValueError
from dbcare.policies import Guess, KnownGapOracle, Racing, SequentialHalving
from dbcare.policies.planned import Keep

BANDITS = [Bandit.bernoulli(means) for means in ([0.7, 0.5], [0.55, 0.4], [0.9, 0.3])]
THREE = [Bandit.bernoulli(means) for means in ([0.7, 0.5, 0.4], [0.6, 0.5, 0.2])]
ROUNDS = 3


class History(NamedTuple):
    """The pulls and sums of each arm at the end of a run, its recommendation, and the share of its probability."""

    pulls: tuple[int, ...]
    sums: tuple[int, ...]
    recommended: int
    share: float

    def probability(self, bandit: Bandit) -> float:
        """The probability of the rewards, in this order, under a bandit."""
        factors = [
            mean**total * (1.0 - mean) ** (made - total)
            for mean, made, total in zip(bandit.means, self.pulls, self.sums, strict=True)
        ]
        return self.share * math.prod(factors)


def list_histories(arms: int, rounds: int) -> Iterator[History]:
    """List all histories; ties are broken evenly, so the policy treats arms alike."""

    def follow(sums: tuple[int, ...], made: int) -> Iterator[History]:
        ordered = sorted(sums, reverse=True)
        if made == rounds or ordered[0] - ordered[1] >= 2:
            best = [arm for arm in range(arms) if sums[arm] == ordered[0]]
            for arm in best:
                yield History((made,) * arms, sums, arm, 1.0 / len(best))
            return
        for rewards in itertools.product((0, 1), repeat=arms):
            yield from follow(tuple(total + reward for total, reward in zip(sums, rewards, strict=True)), made + 1)

    return follow((0,) * arms, 0)


def as_outcomes(history: History) -> Outcomes:
    out = Outcomes.empty(1, tallied_arms=len(history.pulls))
    out.recommended[0], out.pulls[0], out.undecided[0] = history.recommended, sum(history.pulls), False
    out.tallies.pulls[0], out.tallies.sums[0] = history.pulls, history.sums
    return out


@pytest.mark.parametrize("bandits", [BANDITS, THREE], ids=["two arms", "three arms"])
@pytest.mark.parametrize("labels", [Labels.ONE, Labels.ALL])
def test_weighted_columns_have_their_exact_means(bandits: list[Bandit], labels: Labels) -> None:
    check_means(bandits, build_model(bandits, labels), label_seeds=[0])


def test_relabeled_columns_have_their_exact_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer labelings than there are, runs are relabeled by one of them, each as likely as the others."""
    monkeypatch.setattr(model_module, "MAX_LABELINGS", 3)
    model = build_model(THREE, Labels.SOME)
    assert len(model.labelings.partners) == 3
    seeds = {int(stream(seed, 0)[0] % 3): seed for seed in range(50)}  # one for each partner of run 0
    check_means(THREE, model, [seeds[partner] for partner in range(3)])
    with pytest.raises(AssertionError):  # the negative control: runs that are never relabeled
        check_means(THREE, model, [seeds[model.labelings.best]])


def test_columns_of_runs_on_decoys_have_their_exact_means() -> None:
    decoy = Bandit.bernoulli([0.3, 0.5, 0.4])
    model = build_model(THREE, Labels.ALL, [decoy])
    check_means(THREE, model, [0], [decoy])
    with pytest.raises(AssertionError):  # the negative control: runs on another bandit than the model's decoy
        check_means(THREE, model, [0], [THREE[0]])


def test_decoys_lower_the_best_arm_where_labels_are_exchanged() -> None:
    steep = [Bandit.linear_decay(6, gap) for gap in (0.5, 1.0, 2.0)]
    decoys = make_decoys(steep, build_model(steep, Labels.SOME))
    assert [decoy.means[1:] for decoy in decoys] == [steep[0].means[1:], steep[2].means[1:]]
    assert [decoy.means[0] for decoy in decoys] == pytest.approx([-0.25, -1.0])
    alike = [Bandit.one_sparse(6, gap) for gap in (0.5, 1.0)]
    assert make_decoys(alike, build_model(alike, Labels.SOME)) == []  # all labelings are averaged
    assert make_decoys(steep, build_model(steep, Labels.ALL)) == []  # runs in epochs
    assert make_decoys(steep[:1], build_model(steep[:1], Labels.SOME)) == []


def check_means(bandits: list[Bandit], model: Model, label_seeds: list[int], decoys: Sequence[Bandit] = ()) -> None:
    """Check the means of a run's columns: 1 for the weight, 0 for martingales, those under a bandit for the others.

    Runs are made on the decoys, too.
    """
    sources = [*bandits, *decoys]
    histories = list(list_histories(len(bandits[0].arms), ROUNDS))
    assert sum(history.probability(bandits[0]) for history in histories) == pytest.approx(1.0, abs=1e-12)
    shares = np.linspace(1.0, 2.0, len(sources))
    shares /= shares.sum()
    means = np.zeros((len(bandits), COLUMNS))
    steps = tabulate(model)
    for history, label_seed in itertools.product(histories, label_seeds):
        mixture = sum(share * history.probability(bandit) for share, bandit in zip(shares, sources, strict=True))
        sums = sum_chunk(model, steps, shares, Chunk(0, label_seed, 0, as_outcomes(history)), NO_WEIGHTS)
        means += mixture / len(label_seeds) * sums.columns[0]
    for place, bandit in enumerate(bandits):
        gaps = np.array(bandit.gaps)
        probabilities = np.array([history.probability(bandit) for history in histories])
        chosen = np.array([history.recommended for history in histories])
        made = np.array([sum(history.pulls) for history in histories])
        assert means[place, WEIGHT] == pytest.approx(1.0, abs=1e-12)
        assert means[place, MARTINGALES:ERROR] == pytest.approx(0.0, abs=1e-11)
        assert means[place, ERROR] == pytest.approx(probabilities @ (gaps[chosen] > 0.0), abs=1e-12)
        assert means[place, REGRET] == pytest.approx(probabilities @ gaps[chosen], abs=1e-12)
        assert means[place, PULLS] == pytest.approx(probabilities @ made, abs=1e-11)


def test_runs_that_are_added_later_leave_estimates_unbiased() -> None:
    """Runs are weighted by other shares than those they have; without scales, the means are wrong."""
    model = build_model(THREE, Labels.ALL)
    steps = tabulate(model)
    counts, shares = np.array([30.0, 10.0]), np.array([0.4, 0.6])
    parts = [SourceSums.empty(source, 2) for source in range(2)]
    histories = list(list_histories(3, ROUNDS))
    for history, part in itertools.product(histories, parts):
        sums = sum_chunk(model, steps, shares, Chunk(part.source, 0, 0, as_outcomes(history)), NO_WEIGHTS)
        expected = counts[part.source] * history.probability(THREE[part.source])
        part.add(SourceSums(part.source, *(expected * numbers for numbers in sums[1:])))
    means, naive = (
        Sums.combine(parts, scales).columns[0].sum(axis=1) / counts.sum()
        for scales in (shares / (counts / counts.sum()), np.ones(2))
    )
    for place, bandit in enumerate(THREE):
        pulls = sum(history.probability(bandit) * sum(history.pulls) for history in histories)
        assert means[place, WEIGHT] == pytest.approx(1.0, abs=1e-12)
        assert means[place, MARTINGALES:ERROR] == pytest.approx(0.0, abs=1e-11)
        assert means[place, PULLS] == pytest.approx(pulls, abs=1e-11)
        assert abs(naive[place, WEIGHT] - 1.0) > 0.01


def test_runs_that_have_become_few_do_not_dominate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs on one bandit grow to nearly all; the old weights of the other's would keep the variance up."""
    bandits = [Bandit.two_arm(gap) for gap in (0.5, 1.0)]
    policy, combination = DBCARE(RISK, 2), combine(RISK.loss, RISK.single_cost)
    model = build_model(bandits, choose_labels(policy))

    def grow(looks: list[int]) -> float:
        source = PooledRuns(policy, bandits, 1, 1)
        for runs in looks:
            source.extend(np.array([64, runs]))
            sums = source.sum(model)
        return float(estimate(sums, source.counts, model, [combination]).variances(combination)[1])

    at_once = grow([20_000])
    assert grow([64, 20_000]) == pytest.approx(at_once, rel=0.01)
    monkeypatch.setattr(pooled_runs, "MAX_FALL", math.inf)  # the negative control
    assert grow([64, 20_000]) > 1.2 * at_once


def test_the_exponential_function_is_that_of_the_standard_library() -> None:
    for x in np.linspace(-30.0, 30.0, 1001).tolist():
        assert exp_of(x) == pytest.approx(math.exp(x), rel=1e-14)


def test_rewards_without_a_likelihood_have_an_exponential_martingale() -> None:
    """Its mean is 0 in an exact sum over all histories, and is not with other exponents."""
    rates = (0.7, 0.5, 0.4)
    bandit = Bandit(tuple(Categorical((0.0, 1.0), (1.0 - rate, rate)) for rate in rates))
    assert find_family([bandit]) is None
    model = build_model([bandit], Labels.ALL)
    check_means([bandit], model, [0])
    wrong = model._replace(tilt=model.tilt._replace(best=1.5 * model.tilt.best))
    means, largest = np.zeros(2), 0.0
    models = [(each, tabulate(each)) for each in (model, wrong)]
    for history in list_histories(3, ROUNDS):
        for place, (each, steps) in enumerate(models):
            chunk = Chunk(0, 0, 0, as_outcomes(history))
            tilted = sum_chunk(each, steps, np.ones(1), chunk, NO_WEIGHTS).columns[0, 0, TILTED]
            means[place] += history.probability(bandit) * tilted
            largest = max(largest, abs(tilted))
    assert means[0] == pytest.approx(0.0, abs=1e-12)
    assert abs(means[1]) > 0.05
    assert largest > 0.5  # one that is always 0 would pass otherwise


def test_a_martingale_of_the_wrong_moments_has_another_mean() -> None:
    """The negative control of the test above: with a third moment of 0 the difference's cube has not mean 0."""
    model = build_model(THREE, Labels.ONE)
    wrong = model._replace(third_moment=np.zeros_like(model.third_moment))
    steps, shares = tabulate(wrong), np.array([1.0, 0.0])
    mean = sum(
        history.probability(THREE[0])
        * sum_chunk(wrong, steps, shares, Chunk(0, 0, 0, as_outcomes(history)), NO_WEIGHTS).columns[0, 0, CUBE]
        for history in list_histories(3, ROUNDS)
    )
    assert abs(mean) > 0.05


def test_labelings_are_all_or_exchange_the_best_arm() -> None:
    assert len(make_labelings(np.array([0, 1, 1, 1]), Labels.ALL).moves) == 4
    assert len(make_labelings(np.arange(5), Labels.ALL).moves) == 120
    assert len(make_labelings(np.arange(6), Labels.ALL).moves) == 1
    some = make_labelings(np.array([2, 0, 1, 3, 4, 5]), Labels.SOME)
    assert some.best == 1
    assert some.partners.tolist() == list(range(6))
    assert sorted(some.moves.tolist()) == [0, 2, 2, 2, 2, 2]
    listed = set()
    full = make_labelings(np.array([0, 1, 2]), Labels.ALL)
    for label in range(6):
        classes = full.reference.copy()
        for move in range(full.moves[label]):
            assert classes[full.arm[label, move]] == full.before[label, move]
            classes[full.arm[label, move]] = full.after[label, move]
        listed.add(tuple(classes.tolist()))
    assert listed == set(itertools.permutations(range(3)))


def test_families_whose_likelihoods_are_known() -> None:
    assert find_family([Bandit.one_sparse(3, 0.5), Bandit.linear_decay(3, 0.1)]) == "gaussian"
    assert find_family([Bandit.one_sparse(3, 0.5), Bandit.one_sparse(3, 0.5, sigma=2.0)]) is None
    assert find_family(BANDITS) == "bernoulli"
    assert find_family([Bandit.bernoulli([1.0, 0.5])]) is None
    assert find_family([Bandit.drug_leveled()]) is None


RISK = Risk.misidentification(1e-2)


@pytest.mark.parametrize(
    ("policy", "bandit"),
    [
        (Breakeven(RISK, 3, 1.0), Bandit.gaussian([0.5, 0.2, 0.0])),
        (Racing(3, 0.1, max_pulls=300), Bandit.gaussian([0.5, 0.2, 0.0])),
        (Racing(3, 0.1, sigma=0.5, max_pulls=300), Bandit.bernoulli([0.7, 0.5, 0.4])),
        (DBCARE(RISK, 2), Bandit.two_arm(0.5)),
        (SequentialHalving(4, 60), Bandit.one_sparse(4, 0.5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tallies_are_the_pulls_and_sums_of_each_arm(policy: Breakeven, bandit: Bandit) -> None:
    arms = make_arms(bandit)
    simulator = direct_simulator(policy, arms, 3, tallied=True)
    out = simulator.allocate(20)
    simulator.block()(out, 0)
    for run in range(20):
        traced = trace(policy, arms, 3, run)
        for arm in range(policy.arms):
            rewards = [reward for pulled, reward in traced.pulls if pulled == arm]
            assert out.tallies.pulls[run, arm] == len(rewards)
            assert out.tallies.sums[run, arm] == pytest.approx(math.fsum(rewards), abs=1e-9)


def test_skipped_runs_are_tallied_too() -> None:
    """Pulls add up to the run's own, and sums are within 7 standard errors of their means."""
    for bandit, sigma in ((Bandit.linear_decay(4, 0.3), 1.0), (Bandit.bernoulli([0.7, 0.5, 0.4, 0.2]), 0.5)):
        policy = Racing(4, 0.1, sigma=sigma, max_pulls=4_000)
        simulator = skip_simulator(policy, make_arms(bandit), 3, tallied=True)
        out = simulator.allocate(400)
        simulator.block()(out, 0)
        pulls = out.tallies.pulls.sum(axis=0)
        assert np.array_equal(out.tallies.pulls.sum(axis=1), out.pulls)
        # S_k - n_k mean_k is a martingale with variance n_k sigma^2 at most.
        deviations = out.tallies.sums.sum(axis=0) - pulls * np.array(bandit.means)
        assert np.all(np.abs(deviations) < 7.0 * sigma * np.sqrt(pulls))
        assert np.any(deviations != 0.0)


def test_results_are_the_same_bits_for_any_number_of_threads() -> None:
    policy, bandits = Breakeven(RISK, 7, 1.0), [Bandit.linear_decay(7, gap) for gap in (0.5, 0.7, 1.0)]
    one, three = (
        evaluate_pooled(policy, bandits, [(Loss.MISIDENTIFICATION, 1e-2)], Target(runs=400_000), 5, threads)
        for threads in (1, 3)
    )
    assert one.runs.max() > 8192  # more than a chunk
    assert np.array_equal(one.runs, three.runs)
    assert np.array_equal(one.estimates.means, three.estimates.means)
    assert np.array_equal(one.estimates.covariance, three.estimates.covariance)


def test_the_target_is_met_at_every_gap() -> None:
    risk = Risk.simple_regret(1e-2)
    gaps = np.geomspace(0.3, 3.0, 6)
    policy = Breakeven(risk, 4, 1.0)
    by_runs = evaluate_grid(policy, gaps, shape="one-sparse", runs=5_000, seed=2)
    assert np.all(by_runs.plain_runs(risk) >= 5_000)
    assert np.all(by_runs.standard_error(risk) > 0.0)
    by_precision = evaluate_grid(policy, gaps, shape="one-sparse", precision=0.01, seed=2)
    assert np.all(by_precision.standard_error(risk) <= 0.01 * by_precision.risk(risk))


def test_rules_whose_rare_runs_cost_most_make_more_runs() -> None:
    """A run of racing may cost ten times an error; with a lower cap, the negative control, half of one."""
    bandits = [Bandit.linear_decay(6, gap) for gap in (0.5, 1.0, 2.0)]
    risk = Risk.misidentification(1e-4)
    for cap, are_many in ((100_000, True), (5_000, False)):
        pooled = evaluate_pooled(
            Racing(6, 0.1, max_pulls=cap), bandits, [(risk.loss, risk.single_cost)], Target(runs=400), 1, 1
        )
        assert bool(np.all(pooled.estimates.effective_runs >= 2 * 400)) == are_many


def test_one_type_of_result_serves_both_engines() -> None:
    risk = Risk.misidentification(1e-2)
    exact = evaluate_grid(DBCARE(risk, 2), [0.5, 1.0], shape="two-arm")
    pooled = evaluate_grid(DBCARE(risk, 2), [0.5, 1.0], shape=[0.5, -0.5], runs=2_000)
    assert (exact.engine, pooled.engine) == ("exact", "pooled")
    assert exact.standard_error(risk).tolist() == [0.0, 0.0]
    assert np.all(np.isinf(exact.plain_runs(risk)))
    assert exact.runs.tolist() == [0, 0]
    assert pooled.quantiles.shape == exact.quantiles.shape
    # Medians of the pulls: the exact ones are even numbers of pulls.
    assert np.abs(pooled.quantiles[:, 2] - exact.quantiles[:, 2]).max() <= 4.0
    assert pooled.deviation_pulls == pytest.approx(exact.deviation_pulls, rel=0.15)
    with pytest.raises(InvalidValueError, match="same cost"):
        pooled.risk(Risk.misidentification((1e-2, 2e-2)))


def test_at_a_gap_of_zero_no_choice_is_an_error() -> None:
    risk = Risk.misidentification(1e-2)
    curve = evaluate_grid(Breakeven(risk, 3, 1.0), [0.0, 1.0], shape="one-sparse", runs=500)
    assert curve.error[0] == 0.0
    assert curve.regret[0] == 0.0
    assert curve.error[1] > 0.0
    assert curve.risk(risk)[0] == pytest.approx(1e-2 * curve.mean_pulls[0])


def test_policies_say_whether_they_treat_arms_alike() -> None:
    assert Breakeven(RISK, 3, 1.0).treats_arms_alike
    assert not Breakeven(RISK, 3).treats_arms_alike  # the first arms get a second pull before the others
    assert not Breakeven(Risk.misidentification((1e-2, 2e-2, 3e-2)), 3, 1.0).treats_arms_alike
    assert choose_labels(Breakeven(RISK, 3)) is Labels.ONE
    assert choose_labels(Racing(3, 0.1)) is Labels.ALL
    assert choose_labels(Breakeven(RISK, 3, 1.0)) is Labels.SOME


def test_a_run_without_an_error_still_has_a_standard_error() -> None:
    """Where no run made an error, one is assumed: the variance is at least (largest loss / runs)^2."""
    sums = Sums.combine([SourceSums.empty(0, 1)], np.ones(1))
    runs = 64
    for fold in range(FOLDS):
        sums.columns[fold, 0, 0, [WEIGHT, PULLS]] = runs / FOLDS * np.array([1.0, 10.0])
        sums.products[fold, 0, WEIGHT, WEIGHT] = runs / FOLDS
        sums.products[fold, 0, PULLS, PULLS] = 100.0 * runs / FOLDS
        sums.products[fold, 0, WEIGHT, PULLS] = sums.products[fold, 0, PULLS, WEIGHT] = 10.0 * runs / FOLDS
    sums.plain[0, :4] = runs * np.array([1.0, 0.0, 0.0, 10.0])
    sums.plain[0, 7:9] = runs * np.array([100.0, 1.0])
    model = build_model([Bandit.gaussian([0.5, 0.0])], Labels.ONE)
    estimates = estimate(sums, np.array([runs]), model, [combine(Loss.MISIDENTIFICATION, 1e-2)])
    assert estimates.at(0, combine(Loss.MISIDENTIFICATION, 1e-2)).value == pytest.approx(0.1)
    assert estimates.at(0, combine(Loss.MISIDENTIFICATION, 1e-2)).standard_error == pytest.approx(1.0 / runs)
    assert estimates.at(0, combine(Loss.SIMPLE_REGRET, 1e-2)).standard_error == pytest.approx(0.5 / runs)
    assert estimates.plain_runs(combine(Loss.SIMPLE_REGRET, 1e-2)) == pytest.approx(runs)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: evaluate_grid(lambda gap: KnownGapOracle(RISK, gap), [0.5], shape="two-arm"),
            EngineError,
            "the exact engine",
        ),
        (lambda: evaluate_grid(KnownGapOracle(RISK, 0.5), [0.5], shape="two-arm"), EngineError, "not know the gap"),
        (
            lambda: evaluate_grid(Breakeven(RISK, 2, 1.0), [0.5], "bernoulli", shape="two-arm"),
            EngineError,
            "Gaussian rewards but got 'bernoulli'; without `shape`, the exact engine",
        ),
        (
            lambda: evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape=[1.0, 1.0, 0.0]),
            InvalidValueError,
            "one best arm but got .*; `evaluate`",
        ),
        (lambda: evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape="ring"), InvalidValueError, "one-sparse"),
        (lambda: evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape="two-arm"), InvalidValueError, "two arms"),
        (lambda: evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape=[1.0, 0.0]), InvalidValueError, "per arm"),
        (lambda: evaluate_grid(Racing(3, 0.1), [0.5], shape="one-sparse"), InvalidValueError, "`risk` is required"),
        (lambda: evaluate_grid(DBCARE(RISK, 2), [0.5], shape="two-arm", risk="x"), InvalidValueError, "must be a Risk"),  # type: ignore[arg-type]  # wrong on purpose
        (
            lambda: evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape="one-sparse", precision=2.0),
            InvalidValueError,
            "precision",
        ),
        (
            lambda: evaluate_grid(
                Racing(3, 0.1), [0.5], shape="one-sparse", risk=Risk.misidentification((1e-2, 1e-2, 2e-2))
            ),
            InvalidValueError,
            "same cost",
        ),
    ],
)  # fmt: skip
def test_invalid_questions_are_rejected(call: object, error: type[Exception], message: str) -> None:
    assert callable(call)
    with pytest.raises(error, match=message):
        call()


def test_evaluate_averages_over_labels_unless_told_to_draw_plain_runs() -> None:
    policy, bandit = Breakeven(RISK, 3, 1.0), Bandit.gaussian([1.0, 0.5, 0.0])
    averaged = evaluate(policy, bandit, runs=1_001, seed=1)
    plain = evaluate(policy, bandit, runs=1_001, seed=1, engine="direct")
    assert (averaged.runs, plain.runs) == (1_001, 1_001)
    assert averaged.pulls_simulated == plain.pulls_simulated  # the same runs
    assert averaged.pulls.quantiles == plain.pulls.quantiles
    assert averaged.error_interval is None
    assert plain.error_interval is not None
    assert plain.plain_runs == 1_001
    assert averaged.plain_runs > 2_000
    assert averaged.standard_error < plain.standard_error
    assert "by count" in str(plain)
    assert "by count" not in str(averaged)
    assert "worth" in str(averaged)
    assert averaged.to_dict()["error_interval"] is None
    same = evaluate(policy, bandit, runs=1_001, seed=1, threads=3)
    assert same.risks == averaged.risks


@pytest.mark.parametrize(
    ("policy", "bandit", "runs"),
    [
        (Breakeven(RISK, 3), Bandit.gaussian([1.0, 0.5, 0.0]), 300),  # does not treat arms alike
        (Breakeven(RISK, 3, 1.0), Bandit.gaussian([1.0, 0.5, 0.0], sigma=[1.0, 1.0, 2.0]), 300),
        (Breakeven(RISK, 3, 1.0), Bandit.gaussian([0.0, 0.0, 0.0]), 300),  # labels tell nothing
        (Breakeven(RISK, 3, 1.0), Bandit.gaussian([1.0, 0.5, 0.0]), 200),  # too few runs
        (Breakeven(RISK, 50, 1.0), Bandit.linear_decay(50, 1.0), 300),  # too few for so many labels
        (Breakeven(RISK, 130, 1.0), Bandit.one_sparse(130, 1.0), 2_000),  # too many labels
        (Racing(3, 0.1, max_pulls=300), Bandit.gaussian([1.0, 0.5, 0.0]), 300),
    ],
)
def test_other_evaluations_count_wrong_runs(policy: Policy, bandit: Bandit, runs: int) -> None:
    result = evaluate(policy, bandit, RISK, runs=runs, seed=1)
    assert result.error_interval is not None
    assert result.plain_runs == runs


def test_precision_holds_for_averaged_runs() -> None:
    result = evaluate(Breakeven(RISK, 3, 1.0), Bandit.gaussian([1.0, 0.5, 0.0]), precision=0.002, seed=1)
    assert result.standard_error <= 0.002 * result.risk
    assert result.runs >= 4_096


@pytest.mark.parametrize("offset", [1e6, 1e8, -1e9])
def test_large_means_lose_no_digits(offset: float) -> None:
    """A common shift of all means changes nothing but the last digits of the rewards."""
    policy = Breakeven(RISK, 3, 1.0)
    here, there = (
        evaluate(policy, Bandit.gaussian([shift + 1.0, shift + 0.5, shift]), runs=2_000, seed=1)
        for shift in (0.0, offset)
    )
    assert there.risk == pytest.approx(here.risk, abs=2.0 * here.standard_error)
    assert there.standard_error == pytest.approx(here.standard_error, rel=0.2)


def test_risks_of_zero_are_known() -> None:
    """A guess costs nothing and, where all arms are alike, loses nothing: the target is met at once."""
    for policy in (Guess(3), Breakeven(Risk.misidentification(0.9), 3, 1.0)):
        for target in ({"runs": 500}, {"precision": 0.1}):
            curve = evaluate_grid(policy, [0.0, 0.5], shape="one-sparse", risk=Risk.misidentification(0.9), **target)
            risk = Risk.misidentification(0.9)
            assert curve.risk(risk)[0] == 0.0
            assert curve.standard_error(risk)[0] == 0.0
            assert curve.risk(risk)[1] == pytest.approx(2.0 / 3.0, abs=0.2)


def test_a_policy_without_luck_is_known_at_once() -> None:
    curve = evaluate_grid(Keep(3, 1), [0.5, 1.0], shape="one-sparse", risk=RISK, runs=300)
    assert curve.risk(RISK) == pytest.approx([1.0, 1.0], abs=1e-6)
    assert np.all(curve.plain_runs(RISK) >= 300)


def test_a_shape_may_be_an_array() -> None:
    listed, array = (
        evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5], shape=shape, runs=300)
        for shape in ([1.0, 0.0, -1.0], np.array([1.0, 0.0, -1.0]))
    )
    assert listed.error.tolist() == array.error.tolist()


def test_a_grid_prints_as_a_table() -> None:
    pooled = str(evaluate_grid(Breakeven(RISK, 3, 1.0), [0.5, 1.0], shape="one-sparse", runs=300)).splitlines()
    exact = str(evaluate_grid(DBCARE(RISK, 2), [0.5, 1.0])).splitlines()
    assert pooled[0].startswith("Breakeven(")
    assert pooled[2].split() == ["gap", "error", "regret", "pulls", "runs"]
    assert len({len(line) for line in pooled[2:5]}) == 1
    assert pooled[3].count("\N{PLUS-MINUS SIGN}") == 3
    assert pooled[-1].startswith("pooled: runs at all gaps serve each gap, losses averaged over labels")
    assert exact[2].split() == ["gap", "error", "regret", "pulls"]
    assert "\N{PLUS-MINUS SIGN}" not in exact[3]
    assert exact[-1].startswith("exact: no Monte Carlo")
