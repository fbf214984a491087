"""`evaluate` chooses an engine, keeps its promises about seeds and threads, and rejects invalid arguments."""

import json
import math
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dbcare import DBCARE, Bandit, Risk, evaluate, evaluate_grid
from dbcare.engines import Estimate
from dbcare.engines.simulate.draws import make_arms
from dbcare.engines.simulate.outcomes import Outcomes
from dbcare.engines.simulate.simulator import Simulator
from dbcare.engines.simulate.simulators import direct_simulator, skip_simulator
from dbcare.engines.workers import fill
from dbcare.errors import EngineError, InvalidValueError, NotCompiledWarning, PrecisionWarning
from dbcare.policies import CustomPolicy, Guess, Racing, Rule, SequentialHalving, TwoArmConfidence, Uniform
from dbcare.problem.risk import Loss

REGRET = Risk.simple_regret(1e-3)
ERROR = Risk.misidentification(1e-3)
TWO_COSTS = Risk.misidentification((1e-3, 1e-3))
MANY_VALUES = Bandit.empirical(np.random.default_rng(1).random((3, 60)).tolist())


@pytest.mark.parametrize(
    ("policy", "bandit", "engine"),
    [
        (DBCARE(REGRET, 2), Bandit.two_arm(0.5), "exact"),
        (DBCARE(REGRET, 2, sigma=0.5), Bandit.bernoulli([0.7, 0.2]), "exact"),
        (TwoArmConfidence(0.1), Bandit.two_arm(0.5), "exact"),
        (Uniform(2, 10), Bandit.two_arm(0.5), "exact"),
        (Guess(5), Bandit.drug_binary(), "exact"),
        (SequentialHalving(4, 100), Bandit.one_sparse(4, 0.5), "skip"),
        (SequentialHalving(5, 100), Bandit.drug_leveled(), "skip"),
        (DBCARE(REGRET, 5, sigma=0.5), Bandit.drug_binary(), "skip"),
        (Racing(2, 0.1, max_pulls=500), Bandit.empirical([(0.0, 0.5, 1.0), (0.0, 0.5)]), "skip"),
        (Racing(3, 0.1, max_pulls=500), MANY_VALUES, "direct"),
        (Racing(3, 0.01, max_pulls=100_000), Bandit.one_sparse(3, 0.05), "skip"),
        (Racing(32, 0.1), Bandit.one_sparse(32, 0.6), "direct"),
    ],
)
def test_auto_chooses_the_cheapest(policy: Racing, bandit: Bandit, engine: str) -> None:
    assert evaluate(policy, bandit, ERROR, runs=300).engine == engine


def test_one_pass_gives_both_risks() -> None:
    bandit = Bandit.one_sparse(3, 0.5)
    evaluation = evaluate(SequentialHalving(3, 60), bandit, ERROR, runs=20_000)
    assert evaluation.risks[Loss.MISIDENTIFICATION].value == pytest.approx(
        evaluation.error + 1e-3 * evaluation.pulls.mean
    )
    assert evaluation.risks[Loss.SIMPLE_REGRET].value == pytest.approx(
        evaluation.simple_regret + 1e-3 * evaluation.pulls.mean
    )
    assert evaluation.risk == evaluation.risks[Loss.MISIDENTIFICATION].value
    assert evaluation.simple_regret == pytest.approx(0.5 * evaluation.error)


def simulate(simulator: Simulator, threads: int, max_block_runs: int, runs: int = 700) -> Outcomes:
    outcomes = Outcomes.empty(runs, control=simulator.checkpoint > 0)
    fill(outcomes, [simulator.block() for _ in range(threads)], 0, max_block_runs)
    return outcomes


@pytest.mark.parametrize("make", [direct_simulator, skip_simulator])
@pytest.mark.parametrize("policy", [DBCARE(REGRET, 4), Racing(4, 0.1, max_pulls=3_000), SequentialHalving(4, 100)])
@pytest.mark.parametrize("bandit", [Bandit.one_sparse(4, 0.4), Bandit.bernoulli([0.53, 0.5, 0.5, 0.4])])
def test_results_do_not_depend_on_threads_and_blocks(
    make: Callable[..., Simulator], policy: DBCARE, bandit: Bandit
) -> None:
    simulator = make(policy, make_arms(bandit), 9)
    expected = simulate(simulator, 1, 65_536)
    for threads in (1, 2, 3):
        for max_block_runs in (1, 37, 65_536):
            outcomes = simulate(simulator, threads, max_block_runs)
            for actual, wanted in zip(vars(outcomes).values(), vars(expected).values(), strict=True):
                assert np.array_equal(actual, wanted)
    other = simulate(make(policy, make_arms(bandit), 10), 1, 65_536)
    assert not np.array_equal(other.recommended, expected.recommended)


def test_evaluations_are_reproducible() -> None:
    first, second, third = (
        evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 0.3), ERROR, runs=5_000, seed=seed, threads=threads).to_dict()
        for seed, threads in ((4, 1), (4, 2), (5, 2))
    )
    for evaluation in (first, second, third):
        evaluation.pop("seconds")
    assert first == second
    assert first["risk"] != third["risk"]


def test_the_requested_precision_is_reached() -> None:
    loose, tight = (
        evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 0.5), ERROR, precision=precision) for precision in (0.05, 0.02)
    )
    assert loose.standard_error <= 0.05 * loose.risk
    assert tight.standard_error <= 0.02 * tight.risk
    assert tight.runs > loose.runs


def test_an_unreachable_precision_gives_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbcare.engines.evaluate.MAX_RUNS", 5_000)
    with pytest.warns(PrecisionWarning, match="more than 5,000 runs"):
        evaluation = evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 0.5), ERROR, precision=1e-4)
    assert evaluation.runs == 5_000


def test_pulls_and_caps() -> None:
    evaluation = evaluate(Racing(3, 0.1, max_pulls=60), Bandit.one_sparse(3, 0.0), ERROR, runs=2_000, engine="direct")
    assert evaluation.error == 0.0  # all arms tie for best
    assert evaluation.capped > 0.95
    assert evaluation.pulls.quantiles[0.5] == 60.0
    assert evaluation.pulls_simulated == pytest.approx(2_000 * evaluation.pulls.mean)


def test_prints_and_converts() -> None:
    evaluation = evaluate(DBCARE(REGRET, 3), Bandit.one_sparse(3, 0.5), runs=500, seed=3)
    text = str(evaluation)
    assert re.search(r"risk \(simple regret\) +0\.\d+ ± ", text)
    assert "seed 3" in text
    plain = json.loads(json.dumps(evaluation.to_dict()))
    assert plain["risk"] == evaluation.risk
    assert plain["pulls"]["quantiles"]["0.5"] == evaluation.pulls.quantiles[0.5]
    assert evaluation.control is not None
    assert (
        plain["control"]["checkpoint"] == evaluation.control.checkpoint == 35
    )  # floor(1.5/e * (1 / (2 * 1e-3))^(2/3)) + 1


def test_a_negative_estimate_is_printed_as_0_and_kept() -> None:
    """A control variate may push the estimate of a loss below 0."""
    evaluation = evaluate(DBCARE(REGRET, 3), Bandit.one_sparse(3, 0.5), runs=500, seed=3)
    below = replace(evaluation, losses={loss: Estimate(-2.2e-5, 1.5e-5) for loss in Loss})
    lines = [line for line in str(below).splitlines() if line.startswith(("error", "simple regret"))]
    assert [re.split(" {2,}|,", line)[1] for line in lines] == ["0 ± 3e-05 (2 s.e.)"] * 2
    assert "-2.2e-05" not in str(below) + below._repr_html_()
    assert below.simple_regret == below.to_dict()["losses"]["simple_regret"]["value"] == -2.2e-5
    assert all(bar.get_width() >= 0.0 for bar in below.plot().axes[0].patches)  # type: ignore[attr-defined]  # rectangles


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: evaluate(Racing(3, 0.1), Bandit.two_arm(0.5), ERROR), InvalidValueError, "3 and 2"),
        (lambda: evaluate(Racing(2, 0.1), Bandit.two_arm(0.5)), InvalidValueError, "Racing"),
        (lambda: evaluate(Racing(2, 0.1), Bandit.two_arm(0.5), ERROR, runs=0), InvalidValueError, "`runs`"),
        (lambda: evaluate(Racing(2, 0.1), Bandit.two_arm(0.5), ERROR, threads=0), InvalidValueError, "`threads`"),
        (
            lambda: evaluate(Racing(2, 0.1), Bandit.two_arm(0.5), ERROR, engine="fast"),
            InvalidValueError,
            "auto, direct",
        ),
        (lambda: evaluate(Racing(2, 0.1), Bandit.two_arm(0.5), ERROR, precision=2.0), InvalidValueError, "`precision`"),
        (lambda: evaluate(DBCARE(REGRET, 2), Bandit.two_arm(1.5)), InvalidValueError, "`bound`"),
        (lambda: evaluate_grid(DBCARE(REGRET, 2), [0.5, 1.5]), InvalidValueError, "`bound`"),
        (lambda: evaluate_grid("x", [0.5]), InvalidValueError, "`policy`"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: evaluate(3, Bandit.two_arm(1)), InvalidValueError, "`policy`"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: evaluate("x", Bandit.two_arm(1), ERROR), InvalidValueError, "`policy`"),
        (lambda: evaluate(Racing(2, 0.1), "x", ERROR), InvalidValueError, "`bandit`"),  # type: ignore[arg-type]  # wrong on purpose
        (
            lambda: evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 1), TWO_COSTS),
            InvalidValueError,
            "one entry per arm (3)",
        ),
        (lambda: evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 1), ERROR, engine="exact"), EngineError, "two arms"),
        (
            lambda: evaluate(Racing(3, 0.1), MANY_VALUES, ERROR, engine="skip"),
            EngineError,
            "sums take few values",
        ),
        (
            lambda: evaluate(thermostat(), Bandit.two_arm(1), ERROR, engine="skip"),
            EngineError,
            "CustomPolicy",
        ),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[], object], exception: type[Exception], message: str) -> None:
    with pytest.raises(exception, match=re.escape(message)):
        call()


def start(state, tables, tie):
    for index in range(len(state)):
        state[index] = 0.0


def alternate(state, tables):
    if state[2] >= 20 or abs(state[0] - state[1]) > tables[0]:
        return -1
    return int(state[2]) % 2


def count(state, tables, arm, reward):
    state[arm] += reward
    state[2] += 1


def larger(state, tables):
    return 0 if state[0] >= state[1] else 1


def thermostat(ask: Callable[..., int] = alternate) -> CustomPolicy:
    return CustomPolicy(2, Rule(start, ask, count, larger), tables=(4.0,), state_size=3, max_pulls=20)


def uncompilable(state, tables):
    chosen: int = alternate(state, {"limit": tables[0], "why": None} and tables)
    return chosen


def again(state, tables, depth=1):
    """Call itself, which numba cannot compile without a type."""
    return alternate(state, tables) if depth == 0 else again(state, tables, depth - 1)


@pytest.mark.parametrize("ask", [uncompilable, again])
@pytest.mark.parametrize("engine", ["auto", "direct"])
def test_compiled_and_interpreted_custom_policies_agree(ask: Callable[..., int], engine: str) -> None:
    bandit = Bandit.bernoulli([0.6, 0.3])
    compiled = evaluate(thermostat(), bandit, ERROR, runs=500, engine=engine)
    with pytest.warns(NotCompiledWarning, match="interpreted") as caught:
        interpreted = evaluate(thermostat(ask=ask), bandit, ERROR, runs=500, engine=engine)
    assert caught[0].filename == __file__
    assert compiled.error == interpreted.error
    assert compiled.pulls == interpreted.pulls
    assert 0.0 < compiled.error < 0.5


def ask_as_told(state, tables):
    return alternate(state, tables) if tables[1] == -1 else int(tables[1])


def recommend_as_told(state, tables):
    return int(tables[2])


def ask_as_told_by_a_dictionary(state, tables):
    return {"arm": ask_as_told(state, tables), "why": None}["arm"]


def obedient(asked: int, recommended: int, ask: Callable[..., int] = ask_as_told) -> CustomPolicy:
    """Return a policy that always asks for the same arm, unless that is -1, and recommends the given one."""
    tables = (4.0, float(asked), float(recommended))
    return CustomPolicy(2, Rule(start, ask, count, recommend_as_told), tables=tables, state_size=3, max_pulls=20)


@pytest.mark.filterwarnings("ignore::dbcare.errors.NotCompiledWarning")
@pytest.mark.parametrize(
    ("asked", "recommended", "ask"),
    [
        (2, 0, ask_as_told),
        (-3, 0, ask_as_told),
        (-1, 2, ask_as_told),
        (-1, -3, ask_as_told),
        (2, 0, ask_as_told_by_a_dictionary),
        (-1, -3, ask_as_told_by_a_dictionary),
    ],
)
def test_illegal_arms_are_rejected(asked: int, recommended: int, ask: Callable[..., int]) -> None:
    with pytest.raises(InvalidValueError, match="arms 0 to 1"):
        evaluate(obedient(asked, recommended, ask), Bandit.bernoulli([0.6, 0.3]), ERROR, runs=10)


def test_a_changed_constant_compiles_a_new_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(limited.__globals__, "MAX_STEPS", 4)
    short = evaluate(thermostat(ask=limited), Bandit.bernoulli([0.6, 0.3]), ERROR, runs=10)
    monkeypatch.setitem(limited.__globals__, "MAX_STEPS", 8)
    long = evaluate(thermostat(ask=limited), Bandit.bernoulli([0.6, 0.3]), ERROR, runs=10)
    assert (short.pulls.mean, long.pulls.mean) == (4.0, 8.0)


MAX_STEPS = 0


def limited(state, tables):
    return -1 if state[2] >= MAX_STEPS else int(state[2]) % 2


def test_a_policy_that_never_stops_is_cut_off_at_max_pulls() -> None:
    evaluation = evaluate(obedient(0, 0), Bandit.bernoulli([0.6, 0.3]), ERROR, runs=10)
    assert evaluation.pulls.mean == 20.0
    assert evaluation.capped == 1.0


def test_an_interrupt_stops_soon_and_leaves_no_thread() -> None:
    """Uses a real process and a real SIGINT."""
    script = """
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
from dbcare import Bandit, Risk, evaluate
from dbcare.policies import Racing
evaluate(Racing(4, 0.1), Bandit.one_sparse(4, 0.5), Risk.misidentification(1e-4), runs=10, engine="direct")
print("ready", flush=True)
try:
    evaluate(Racing(4, 1e-9, max_pulls=1_000_000), Bandit.one_sparse(4, 0.0), Risk.misidentification(1e-4),
             runs=10**9, engine="direct", threads=2)
except KeyboardInterrupt:
    print("stopped", threading.active_count(), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)  # the second call works on its runs by then
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped 1\n"
        assert time.monotonic() - sent < 20.0  # a fraction of a second unless the machine is busy; the runs take hours
        assert process.wait(60) == 0


def test_a_failing_block_stops_all_threads() -> None:
    def block(outcomes: Outcomes, first: int) -> None:
        if first > 100:
            raise OSError("no more")
        outcomes.pulls[:] = 1

    before = threading.active_count()
    with pytest.raises(OSError, match="no more"):
        fill(Outcomes.empty(10_000, control=False), [block, block], 0, max_block_runs=10)
    assert threading.active_count() == before


def test_one_run_has_an_infinite_standard_error() -> None:
    evaluation = evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 1.0), ERROR, runs=1)
    assert evaluation.standard_error == math.inf
    assert json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))["standard_error"] is None


def test_no_observed_errors_do_not_mean_certainty(monkeypatch: pytest.MonkeyPatch) -> None:
    """800 pulls per arm at a gap of 0.4 sigma: the error is about 2 Q(8) = 1e-15, which no run shows."""
    monkeypatch.setattr("dbcare.engines.evaluate.MAX_RUNS", 50_000)
    with pytest.warns(PrecisionWarning):
        evaluation = evaluate(
            Uniform(3, 800), Bandit.one_sparse(3, 0.4), Risk.misidentification(1e-12), precision=0.01, threads=2
        )
    assert evaluation.error == 0.0
    assert evaluation.standard_error == pytest.approx(1.0 / evaluation.runs, rel=1e-3)


def test_seeds_may_be_any_integer_type() -> None:
    evaluation = evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 1.0), ERROR, runs=20, seed=np.int64(3))  # type: ignore[arg-type]  # NumPy integers are taken too
    assert json.loads(json.dumps(evaluation.to_dict()))["seed"] == 3
    with pytest.raises(InvalidValueError, match="`seed` must be at most 9223372036854775807"):
        evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 1.0), ERROR, seed=2**63)
