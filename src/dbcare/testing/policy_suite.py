"""The conformance suite that every policy passes, the shipped ones and yours.

Subclass it in a test file and say which policies to check; pytest collects the subclass and runs every check on each
of them.

    from collections.abc import Iterable

    from dbcare import Policy, Uniform
    from dbcare.testing import PolicySuite


    class TestUniform(PolicySuite):
        def policies(self) -> Iterable[Policy]:
            return [Uniform(arms=2, pulls=3), Uniform(arms=8, pulls=1)]

Without pytest, call a check: `PolicySuite().test_stops_within_its_bound(policy)`. Choose policies of at most a few
hundred pulls: the checks make some five hundred runs of each. Only numpy and the standard library are needed.
"""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from dbcare.errors import DbcareError, InvalidRewardError, NotAskedError, StoppedError
from dbcare.policies.policy import Policy
from dbcare.policies.rule import STOP
from dbcare.policies.run import Run

# What is asked, what would be recommended, and the snapshot.
Moment = tuple[int | None, int, dict[str, Any]]
# The reward of one pull: of this arm, with randomness from this generator.
Draw = Callable[[np.random.Generator, int], float]


def _gaussian(generator: np.random.Generator, arm: int) -> float:
    return generator.normal(0.1 * arm, 1.0)


def _binary(generator: np.random.Generator, arm: int) -> float:
    return float(generator.random() < 1.0 / (2.0 + arm))


def _equal(generator: np.random.Generator, arm: int) -> float:
    return 0.0


def _far_apart(generator: np.random.Generator, arm: int) -> float:
    return 1000.0 * (arm % 5)


class PolicySuite:
    """Checks of what every policy promises; subclasses define `policies`.

    Class attributes to override where the defaults do not fit: `rewards`, the kinds of rewards that runs are given
    (by name); `starts`, how many runs show that ties are broken uniformly; `longest`, the pulls after which a check
    other than that of the stop has seen enough of a run.
    """

    rewards: ClassVar[dict[str, Draw]] = {
        "gaussian": _gaussian,
        "binary": _binary,
        "equal": _equal,
        "far apart": _far_apart,
    }
    starts: ClassVar[int] = 400
    longest: ClassVar[int] = 2000

    def policies(self) -> Iterable[Policy]:
        """The policies to check."""
        raise NotImplementedError("define `policies` in a subclass")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make each check of each policy a test of its own; called by pytest."""
        policies = list(self.policies())
        metafunc.parametrize("policy", policies, ids=[f"{type(each).__name__}-{each.arms}" for each in policies])

    def test_asks_only_legal_arms(self, policy: Policy) -> None:
        """Every arm asked for or recommended is one of 0..arms-1."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind):
                for verb, arm in (("asked for", run.ask()), ("recommended", run.recommendation())):
                    assert arm is None or arm in range(policy.arms), (
                        f"{policy} {verb} arm {arm} of {policy.arms} at pull {run.pulls + 1} ({kind} rewards)"
                    )

    def test_stops_within_its_bound(self, policy: Policy) -> None:
        """A run stops, after at most `max_pulls` pulls."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, policy.max_pulls):
                pass
            assert run.ask() is None, f"{policy} still asks after max_pulls = {policy.max_pulls} pulls ({kind} rewards)"

    def test_is_deterministic(self, policy: Policy) -> None:
        """The same seed and rewards give the same run."""
        for kind in self.rewards:
            first, second = (list(self._moments(policy.start(seed=1), kind)) for _ in range(2))
            assert first == second, f"{policy} made two different runs of the same seed and rewards ({kind} rewards)"

    def test_runs_are_independent(self, policy: Policy) -> None:
        """Two runs stepped in turn are the runs they would be alone: all memory is in the state."""
        for kind in self.rewards:
            alone = [list(self._moments(policy.start(seed=seed), kind, seed)) for seed in (1, 2)]
            runs = [self._moments(policy.start(seed=seed), kind, seed) for seed in (1, 2)]
            turns = list(zip_longest(*runs))
            together = [[moment for moment in run if moment is not None] for run in zip(*turns, strict=True)]
            assert together == alone, f"{policy} let two runs stepped in turn disturb each other ({kind} rewards)"

    def test_state_survives_json(self, policy: Policy) -> None:
        """A run taken through JSON before every pull is the run it would be otherwise.

        Infinite and NaN numbers are no JSON: a state must hold neither.
        """
        for kind, draw in self.rewards.items():
            generator = np.random.default_rng(1)
            run = policy.start(seed=1)
            for moment in self._moments(policy.start(seed=1), kind):
                try:
                    text = json.dumps(run.snapshot(), allow_nan=False)
                except (TypeError, ValueError) as error:
                    raise AssertionError(f"{policy} has a state that is no JSON after {run.pulls} pulls") from error
                run = policy.resume(json.loads(text))
                assert _moment(run) == moment, (
                    f"{policy} is not the same after a round trip through JSON after {run.pulls} pulls ({kind} rewards)"
                )
                arm = run.ask()
                if arm is not None:
                    run.tell(draw(generator, arm))

    def test_lists_and_arrays_agree(self, policy: Policy) -> None:
        """The rule decides the same on a list of numbers and on a float64 array, as the simulator uses it."""
        rule, tables = policy.rule, policy.tables
        for kind, draw in self.rewards.items():
            generator = np.random.default_rng(1)
            states: list[Any] = [[0.0] * policy.state_size, np.zeros(policy.state_size)]
            for state in states:
                rule.init(state, tables, 123456789)
            for pull in range(min(policy.max_pulls, self.longest) + 1):
                by_list, by_array = ((int(rule.ask(s, tables)), int(rule.recommend(s, tables))) for s in states)
                assert by_list == by_array, (
                    f"{policy} decides {by_list} on a list but {by_array} on an array at pull {pull} ({kind} rewards)"
                )
                arm = by_list[0]
                if arm == STOP:
                    break
                reward = float(draw(generator, arm))
                for state in states:
                    rule.tell(state, tables, arm, reward)

    def test_ask_changes_nothing(self, policy: Policy) -> None:
        """Asking, again and again, reading the recommendation and the reason leave a run as it was."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind):
                before = run.snapshot()
                for verb, look in (("ask", run.ask), ("recommendation", run.recommendation), ("why", run.why)):
                    assert look() == look(), f"{policy}: two calls of `{verb}` at pull {run.pulls + 1} differ"
                    assert run.snapshot() == before, f"{policy}: `{verb}` changed the run at pull {run.pulls + 1}"

    def test_leaves_its_tables_alone(self, policy: Policy) -> None:
        """No run changes the tables: they belong to all runs of the policy."""
        before = copy.deepcopy(policy.tables)
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind):
                pass
        assert _same(before, policy.tables), f"{policy} changed its tables during a run"

    def test_breaks_ties_uniformly(self, policy: Policy) -> None:
        """Over the seeds, tied arms are recommended equally often.

        Two settings: all rewards equal, where every arm has the chance 1/arms; the first and the last arm tied above
        the others, where each is recommended in half of the runs that recommend one of them. Counts over `starts`
        seeds are tested by the exact binomial distribution, each tail at 1e-6 divided by the number of tails, so that
        a policy with uniform ties fails for fewer than one choice of the seeds in 1e6. The seeds are fixed.
        """
        alpha = 1e-6 / (2 * policy.arms + 2)
        counts = self._recommended(policy, lambda generator, arm: 0.0)
        for arm in range(policy.arms):
            assert _plausible(counts[arm], self.starts, 1.0 / policy.arms, alpha), (
                f"{policy} recommended arm {arm} in {counts[arm]} of {self.starts} runs with all rewards equal"
            )
        last = policy.arms - 1
        counts = self._recommended(policy, lambda generator, arm: float(arm in {0, last}))
        assert _plausible(counts[0], counts[0] + counts[last], 0.5, alpha), (
            f"{policy} recommended arm 0 in {counts[0]} runs, the tied arm {last} in {counts[last]}"
        )

    def test_refuses_bad_rewards(self, policy: Policy) -> None:
        """A reward that is no finite number is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, pulls=policy.arms + 1):
                if run.ask() is not None:
                    for bad in (math.nan, math.inf, -math.inf, None, "1", 1j, [1.0]):
                        _refuses(InvalidRewardError, policy, run, bad)

    def test_refuses_another_arm(self, policy: Policy) -> None:
        """A reward of another arm than the one asked for is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, pulls=policy.arms + 1):
                asked = run.ask()
                if asked is not None:
                    for other in range(-1, policy.arms + 1):
                        if other != asked:
                            _refuses(NotAskedError, policy, run, 1.0, other)

    def test_refuses_rewards_after_the_stop(self, policy: Policy) -> None:
        """A reward told after the stop is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, policy.max_pulls):
                pass
            if run.ask() is None:
                _refuses(StoppedError, policy, run, 1.0)

    def _runs(self, policy: Policy) -> Iterator[tuple[str, Run]]:
        """A fresh run for every kind of rewards."""
        for kind in self.rewards:
            yield kind, policy.start(seed=1)

    def _play(self, run: Run, kind: str, pulls: int | None = None, seed: int = 1) -> Iterator[int]:
        """Step the run, pausing before each pull and at the stop; end after `pulls` if it has not stopped by then."""
        generator = np.random.default_rng(seed)
        most = min(run.policy.max_pulls, self.longest) if pulls is None else pulls
        for pull in range(most + 1):
            yield pull
            arm = run.ask()
            if arm is None or pull == most:
                return
            run.tell(self.rewards[kind](generator, arm))

    def _moments(self, run: Run, kind: str, seed: int = 1) -> Iterator[Moment]:
        """Step the run, giving all there is to know of it before each pull and at the stop."""
        return (_moment(run) for _ in self._play(run, kind, seed=seed))

    def _recommended(self, policy: Policy, draw: Draw) -> Counter[int]:
        """How often each arm is recommended at the stop, over the seeds."""
        generator = np.random.default_rng(1)
        counts: Counter[int] = Counter()
        for seed in range(self.starts):
            run = policy.start(seed=seed)
            for _ in range(policy.max_pulls):
                arm = run.ask()
                if arm is None:
                    break
                run.tell(draw(generator, arm))
            counts[run.recommendation()] += 1
        return counts


def _moment(run: Run) -> Moment:
    """Where a run is and what it would do next."""
    return run.ask(), run.recommendation(), run.snapshot()


def _refuses(expected: type[DbcareError], policy: Policy, run: Run, reward: Any, arm: int | None = None) -> None:
    before = run.snapshot()
    told = f"{reward!r} for arm {'asked' if arm is None else arm} after {run.pulls} pulls"
    try:
        run.tell(reward, arm)
    except expected:
        assert run.snapshot() == before, f"{policy} refused {told} but the run has changed"
    except Exception as error:
        raise AssertionError(f"{policy} refused {told} with {error!r}, not {expected.__name__}") from error
    else:
        raise AssertionError(f"{policy} accepted {told}")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _plausible(count: int, trials: int, chance: float, alpha: float) -> bool:
    """Whether both tails of the binomial distribution at `count` have a probability of `alpha` or more."""
    logs = (
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(chance)
        + (trials - hits) * math.log1p(-chance)
        for hits in range(trials + 1)
    )
    masses = [math.exp(each) for each in logs]
    return math.fsum(masses[: count + 1]) >= alpha and math.fsum(masses[count:]) >= alpha
