"""The conformance suite for policies: those that ship, and yours.

Subclass it in a test file and return the policies to check; pytest runs every check on each of them.

    from collections.abc import Iterable

    from dbcare import Policy
    from dbcare.policies import Uniform
    from dbcare.testing import PolicySuite


    class TestUniform(PolicySuite):
        def policies(self) -> Iterable[Policy]:
            return [Uniform(arms=2, pulls=3), Uniform(arms=8, pulls=1)]

Without pytest, call a check yourself: `PolicySuite().test_stops_within_its_bound(policy)`. Choose policies that stop
within a few hundred pulls, since the checks make about five hundred runs of each. The suite itself needs only numpy.
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
from dbcare.policies.run import Run, Wording

# The arm asked for, the arm recommended, and the snapshot.
Moment = tuple[int | None, int, dict[str, Any]]
# Returns the reward of one pull of an arm, with randomness from the generator.
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
    """Checks what every policy promises; subclasses define `policies`.

    Attributes
    ----------
    rewards : dict of str to callable
        The kinds of rewards to make runs with, by name; each draws the reward of an arm from a generator.
    tie_runs : int
        Number of runs for the check that ties are broken uniformly.
    max_steps : int
        Number of pulls after which a check ends a run that has not stopped, unless the check is about the stop.

    Examples
    --------
    >>> from dbcare.policies import Uniform
    >>> from dbcare.testing import PolicySuite
    >>> class TestUniform(PolicySuite):
    ...     def policies(self):
    ...         return [Uniform(arms=2, pulls=3), Uniform(arms=8, pulls=1)]
    >>> for policy in TestUniform().policies():  # or let pytest run all checks
    ...     TestUniform().test_is_deterministic(policy)
    """

    rewards: ClassVar[dict[str, Draw]] = {
        "gaussian": _gaussian,
        "binary": _binary,
        "equal": _equal,
        "far apart": _far_apart,
    }
    tie_runs: ClassVar[int] = 400
    max_steps: ClassVar[int] = 2000

    def policies(self) -> Iterable[Policy]:
        """Return the policies to check."""
        raise NotImplementedError("Define `policies` in a subclass of PolicySuite.")

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Make each check of each policy a test of its own; pytest calls this."""
        policies = list(self.policies())
        metafunc.parametrize("policy", policies, ids=[f"{type(policy).__name__}-{policy.arms}" for policy in policies])

    def test_asks_only_legal_arms(self, policy: Policy) -> None:
        """Every arm asked for or recommended is one of 0, ..., arms - 1."""
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
            assert first == second, f"{policy} made two different runs from the same seed and rewards ({kind} rewards)"

    def test_runs_are_independent(self, policy: Policy) -> None:
        """Two runs stepped in turn do what each would do alone: all memory is in the state."""
        for kind in self.rewards:
            alone = [list(self._moments(policy.start(seed=seed), kind, seed)) for seed in (1, 2)]
            runs = [self._moments(policy.start(seed=seed), kind, seed) for seed in (1, 2)]
            turns = list(zip_longest(*runs))
            together = [[moment for moment in run if moment is not None] for run in zip(*turns, strict=True)]
            assert together == alone, f"{policy} let two runs stepped in turn disturb each other ({kind} rewards)"

    def test_state_survives_json(self, policy: Policy) -> None:
        """A run that is saved as JSON and restored before every pull does what it would do otherwise.

        JSON has neither infinite numbers nor NaN, so a state must not contain them.
        """
        for kind, draw in self.rewards.items():
            generator = np.random.default_rng(1)
            run = policy.start(seed=1)
            for moment in self._moments(policy.start(seed=1), kind):
                try:
                    text = json.dumps(run.snapshot(), allow_nan=False)
                except (TypeError, ValueError) as error:
                    raise AssertionError(
                        f"{policy} has a state that is not valid JSON after {run.pulls} pulls"
                    ) from error
                run = policy.resume(json.loads(text))
                assert _observe(run) == moment, (
                    f"{policy} changed in a round trip through JSON after {run.pulls} pulls ({kind} rewards)"
                )
                arm = run.ask()
                if arm is not None:
                    run.tell(draw(generator, arm))

    def test_lists_and_arrays_agree(self, policy: Policy) -> None:
        """The rule decides the same on a list of numbers and on a float64 array, which the simulator uses."""
        rule, tables = policy.rule, policy.tables
        for kind, draw in self.rewards.items():
            generator = np.random.default_rng(1)
            states: list[Any] = [[0.0] * policy.state_size, np.zeros(policy.state_size)]
            for state in states:
                rule.init(state, tables, 123456789)
            for pull in range(min(policy.max_pulls, self.max_steps) + 1):
                by_list, by_array = (
                    (int(rule.ask(state, tables)), int(rule.recommend(state, tables))) for state in states
                )
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
        """Asking repeatedly, and reading the recommendation and the reason, does not change a run."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind):
                before = run.snapshot()
                for method, look in (("ask", run.ask), ("recommendation", run.recommendation), ("why", run.why)):
                    assert look() == look(), f"{policy}: two calls of `{method}` at pull {run.pulls + 1} differ"
                    assert run.snapshot() == before, f"{policy}: `{method}` changed the run at pull {run.pulls + 1}"

    def test_leaves_its_tables_alone(self, policy: Policy) -> None:
        """Runs do not change the tables, which all runs of the policy share."""
        before = copy.deepcopy(policy.tables)
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind):
                pass
        assert _are_equal(before, policy.tables), f"{policy} changed its tables during a run"

    def test_breaks_ties_uniformly(self, policy: Policy) -> None:
        """Over the seeds, tied arms are recommended equally often.

        There are two cases. If all rewards are equal, every arm has the chance 1/arms. If the first and the last arm
        are tied above the others, each has the chance 1/2 in the runs that recommend one of them. Counts over
        `tie_runs` fixed seeds are tested by the exact binomial distribution, each tail at 1e-6 divided by the number
        of tails: a policy that breaks ties uniformly would fail for fewer than one choice of the seeds in 1e6.
        """
        alpha = 1e-6 / (2 * policy.arms + 2)
        counts = self._count_recommendations(policy, lambda generator, arm: 0.0)
        for arm in range(policy.arms):
            assert _is_plausible(counts[arm], self.tie_runs, 1.0 / policy.arms, alpha), (
                f"{policy} recommended arm {arm} in {counts[arm]} of {self.tie_runs} runs with all rewards equal"
            )
        last = policy.arms - 1
        counts = self._count_recommendations(policy, lambda generator, arm: float(arm in {0, last}))
        assert _is_plausible(counts[0], counts[0] + counts[last], 0.5, alpha), (
            f"{policy} recommended arm 0 in {counts[0]} runs, the tied arm {last} in {counts[last]}"
        )

    def test_hooks_agree_with_the_rule(self, policy: Policy) -> None:
        """What live studies read of a run fits its arms, and its sentences can name them."""
        wording = Wording(tuple(f"option {arm}" for arm in range(policy.arms)), "trial")
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, pulls=min(policy.max_pulls, 3 * policy.arms)):
                losses, upcoming, asked = policy.expected_losses(run.state), policy.upcoming(run.state), run.ask()
                assert losses is None or len(losses) == policy.arms, f"{policy} has {losses} for {policy.arms} arms"
                if upcoming is not None:
                    assert upcoming[:1] == ([] if asked is None else [asked]), (
                        f"{policy} asks for arm {asked}, but its upcoming arms are {upcoming[:5]} ({kind} rewards)"
                    )
                if asked is None or asked in range(policy.arms):
                    assert run.why(wording), f"{policy} has no words for its state after {run.pulls} pulls"
        assert repr(policy) == repr(copy.deepcopy(policy)), f"{policy} is described differently each time"

    def test_refuses_bad_rewards(self, policy: Policy) -> None:
        """A reward that is not a finite number is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, pulls=policy.arms + 1):
                if run.ask() is not None:
                    before = run.snapshot()
                    for reward in (math.nan, math.inf, -math.inf, None, "1", 1j, [1.0]):
                        _check_refusal(InvalidRewardError, run, before, reward)

    def test_refuses_another_arm(self, policy: Policy) -> None:
        """A reward for an arm other than the one asked for is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, pulls=policy.arms + 1):
                asked = run.ask()
                if asked is not None:
                    before = run.snapshot()
                    for other in range(-1, policy.arms + 1):
                        if other != asked:
                            _check_refusal(NotAskedError, run, before, 1.0, other)

    def test_refuses_rewards_after_the_stop(self, policy: Policy) -> None:
        """A reward told after the stop is refused and changes nothing."""
        for kind, run in self._runs(policy):
            for _ in self._play(run, kind, policy.max_pulls):
                pass
            if run.ask() is None:
                _check_refusal(StoppedError, run, run.snapshot(), 1.0)

    def _runs(self, policy: Policy) -> Iterator[tuple[str, Run]]:
        """Start a run for each kind of rewards."""
        for kind in self.rewards:
            yield kind, policy.start(seed=1)

    def _play(self, run: Run, kind: str, pulls: int | None = None, seed: int = 1) -> Iterator[int]:
        """Step the run, pausing before each pull and at the stop; end after `pulls` pulls at the latest."""
        generator = np.random.default_rng(seed)
        limit = min(run.policy.max_pulls, self.max_steps) if pulls is None else pulls
        for pull in range(limit + 1):
            yield pull
            arm = run.ask()
            if arm is None or pull == limit:
                return
            run.tell(self.rewards[kind](generator, arm))

    def _moments(self, run: Run, kind: str, seed: int = 1) -> Iterator[Moment]:
        """Step the run, yielding everything it shows before each pull and at the stop."""
        return (_observe(run) for _ in self._play(run, kind, seed=seed))

    def _count_recommendations(self, policy: Policy, draw: Draw) -> Counter[int]:
        """Count how often each arm is recommended at the stop, over the seeds.

        The rule is stepped without a `Run`, which would take most of the time to check rewards and to record events.
        """
        rule, tables = policy.rule, policy.tables
        generator = np.random.default_rng(1)
        counts: Counter[int] = Counter()
        for seed in range(self.tie_runs):
            state = policy.start(seed=seed).state
            for _ in range(policy.max_pulls):
                arm = int(rule.ask(state, tables))
                if arm == STOP:
                    break
                rule.tell(state, tables, arm, draw(generator, arm))
            counts[int(rule.recommend(state, tables))] += 1
        return counts


def _observe(run: Run) -> Moment:
    """Return everything that a run shows."""
    return run.ask(), run.recommendation(), run.snapshot()


def _check_refusal(
    expected: type[DbcareError], run: Run, before: dict[str, Any], reward: Any, arm: int | None = None
) -> None:
    """Check that the run refuses the reward and keeps its snapshot."""
    attempt = f"{reward!r} for {'the arm asked for' if arm is None else f'arm {arm}'} after {run.pulls} pulls"
    try:
        run.tell(reward, arm)
    except expected:
        assert run.snapshot() == before, f"{run.policy} refused {attempt} but the run has changed"
    except Exception as error:
        raise AssertionError(f"{run.policy} refused {attempt} with {error!r}, not {expected.__name__}") from error
    else:
        raise AssertionError(f"{run.policy} accepted {attempt}")


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(_are_equal(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _is_plausible(count: int, trials: int, chance: float, alpha: float) -> bool:
    """Return whether both tails of the binomial distribution at `count` have a probability of at least `alpha`."""
    logs = (
        math.lgamma(trials + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(trials - hits + 1)
        + hits * math.log(chance)
        + (trials - hits) * math.log1p(-chance)
        for hits in range(trials + 1)
    )
    masses = [math.exp(log) for log in logs]
    return math.fsum(masses[: count + 1]) >= alpha and math.fsum(masses[count:]) >= alpha
