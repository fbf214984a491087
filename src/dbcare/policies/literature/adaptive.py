"""`Adaptive`: any sampling part with any stop that it makes sense with, by name."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dbcare.base import checks
from dbcare.base.look import PolicyKind
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven.policy import Breakeven
from dbcare.policies.breakeven.rule import choose as choose_by_loss
from dbcare.policies.breakeven.rule import decide as decide_by_loss
from dbcare.policies.breakeven.state import DEVIATION, LEADER, LOSS, RIVAL, SPENT, section
from dbcare.policies.elimination.racing import DEFAULT_MAX_PULLS
from dbcare.policies.literature import (
    chick_frazier,
    eb_tci,
    kg_star,
    kl_lucb,
    likelihood,
    lil_ucb,
    lucb,
    ocba,
    parts,
    track_and_stop,
    ugape,
)
from dbcare.policies.literature.parts import (
    DEFAULT_DELTA,
    FAMILIES,
    PROVEN,
    AdaptivePolicy,
    AdaptiveProblem,
    AdaptiveTables,
    SamplingPart,
    StoppingPart,
    check_regret,
)
from dbcare.policies.rule import State
from dbcare.policies.run import Wording
from dbcare.problem.risk import Risk
from dbcare.problem.spread import DEFAULT_SIGMA_PULLS


def no_numbers(problem: AdaptiveProblem) -> Any:
    """Return nothing: what is read is in `AdaptiveTables.losses`."""
    return ()


def choose(state: State, tables: AdaptiveTables) -> int:
    """Return the arm whose next pull removes the most loss per unit of cost."""
    return choose_by_loss(state, tables.losses)


def decide(state: State, tables: AdaptiveTables) -> None:
    """Stop once the largest expected loss is no more than the spend."""
    if state[section(tables.cost, LOSS) + int(state[RIVAL])] <= state[SPENT]:
        decide_by_loss(state, tables.losses)


def describe(state: State, tables: AdaptiveTables, wording: Wording, risk: Risk | None) -> str:
    """Explain in one clause how the largest loss compares with the spend."""
    assert risk is not None
    if state[DEVIATION] == 0.0:
        return "the rewards do not vary yet, so their spread is unknown"
    loss = risk.money(state[section(tables.cost, LOSS) + int(state[RIVAL])], wording.currency)
    return (
        f"against {wording.arm(int(state[RIVAL]))}, {wording.arm(int(state[LEADER]))} is expected to lose {loss}, and "
        f"{risk.money(state[SPENT], wording.currency)} has been spent"
    )


SAMPLING = SamplingPart(choose, no_numbers, needs=("risk",), weighs_losses=True)
STOPPING = StoppingPart(decide, no_numbers, describe, needs=("risk",), weighs_losses=True)


SAMPLING_PARTS = {
    "breakeven": SAMPLING,
    "lucb": lucb.SAMPLING,
    "kl-lucb": kl_lucb.SAMPLING,
    "lil-ucb": lil_ucb.SAMPLING,
    "ugape": ugape.SAMPLING,
    "ugape-budget": ugape.BUDGETED_SAMPLING,
    "track-and-stop": track_and_stop.SAMPLING,
    "eb-tci": eb_tci.SAMPLING,
    "ocba": ocba.SAMPLING,
    "chick-frazier": chick_frazier.SAMPLING,
    "kg-star": kg_star.SAMPLING,
}
STOPPING_PARTS = {
    "breakeven": STOPPING,
    "lucb": lucb.STOPPING,
    "kl-lucb": kl_lucb.STOPPING,
    "lil-ucb": lil_ucb.STOPPING,
    "ugape": ugape.STOPPING,
    "likelihood-ratio": likelihood.STOPPING,
    "budget": parts.STOPPING,
    "chick-frazier": chick_frazier.STOPPING,
    "kg-star": kg_star.STOPPING,
}
NOT_APART = {
    name: f"{name} has no parts: dropping an arm is its way both of sampling and of stopping"
    for name in ("kn", "racing", "dbcare", "breakeven-racing", "sequential-halving", "successive-rejects")
}


def find_parts(sampling: str, stopping: str) -> tuple[SamplingPart, StoppingPart]:
    """Return two parts by name; an error if one is unknown, or if they make no sense together."""
    for value in (sampling, stopping):
        if isinstance(value, str) and value in NOT_APART:
            raise InvalidValueError(f"{NOT_APART[value]}.")
    sampler = SAMPLING_PARTS[checks.one_of("sampling", sampling, SAMPLING_PARTS)]
    stopper = STOPPING_PARTS[checks.one_of("stopping", stopping, STOPPING_PARTS)]
    if sampler.only_with not in (None, stopper):
        raise InvalidValueError(f"`sampling` {sampling!r} does not go with `stopping` {stopping!r}: {sampler.why}.")
    if stopper.only_with not in (None, sampler):
        raise InvalidValueError(f"`stopping` {stopping!r} does not go with `sampling` {sampling!r}: {stopper.why}.")
    return sampler, stopper


@dataclass(frozen=True)
class Adaptive(AdaptivePolicy):
    """A rule put together from the sampling of one policy and the stop of another.

    Sampling: breakeven, lucb, kl-lucb, lil-ucb, ugape, ugape-budget, track-and-stop, eb-tci, ocba, chick-frazier,
    kg-star. Stopping: breakeven, lucb, kl-lucb, lil-ucb, ugape, likelihood-ratio (that of Track-and-Stop and EB-TCI),
    budget, chick-frazier, kg-star. The arm with the largest mean is recommended.

    What a pair keeps and loses:

    - The stops lucb, kl-lucb, ugape and likelihood-ratio hold at all times and however arms are chosen: under any
      sampling, the error is at most `delta` (with rate "proven"). What is lost is what the papers prove about the
      number of pulls. A round of LUCB is two pulls; under another sampling it is one.
    - Under another sampling, the stop of breakeven still spends no more than the largest loss and one pull, but not
      the sharper limit of `Breakeven.max_spend`; those of chick-frazier and kg-star have no guarantee even in a pair.
    - Samplings that depend on `delta` (lucb, kl-lucb, lil-ucb, ugape) explore for it, whatever the stop.
    - The stop of lil-ucb goes only with its own sampling, and ugape-budget only with a budget: others are refused.
    - KN, racing and other eliminations have no parts: dropping an arm is both.

    Parameters
    ----------
    arms : int
        Number of arms.
    sampling, stopping : str
        Names of the parts, as above.
    risk : Risk, optional
        What a pull costs and what a wrong choice loses, for parts that weigh them.
    sigma : float, optional
        Standard deviation of a reward; without it, breakeven learns it, and parts that rely on it are refused.
    sigma_pulls, bound, largest_sigma : float
        As in `Breakeven`, for its parts.
    delta : float
        The error that is allowed, for parts that aim at one.
    budget : int, optional
        Number of pulls, for parts that have a budget.
    family : {"gaussian", "bernoulli"}
        Distribution of the rewards, for track-and-stop, eb-tci and likelihood-ratio.
    rate : {"proven", "heuristic"}
        The rate of kl-lucb, lil-ucb and likelihood-ratio.
    max_pulls : int
        Cap on the pulls.

    Examples
    --------
    >>> from dbcare import Risk
    >>> from dbcare.policies import Adaptive
    >>> policy = Adaptive(arms=3, sampling="eb-tci", stopping="breakeven", risk=Risk.simple_regret(0.001), sigma=0.5)
    >>> run = policy.start(seed=1)
    >>> while (arm := run.ask()) is not None:
    ...     run.tell([0.9, 0.4, 0.1][arm])
    >>> run.recommendation(), run.pulls
    (0, 10)
    """

    label = "two parts"
    kind = PolicyKind.COST_AWARE
    live = False

    arms: int
    sampling: str
    stopping: str
    risk: Risk | None = None
    sigma: float | None = None
    sigma_pulls: float = DEFAULT_SIGMA_PULLS
    bound: float | None = None
    largest_sigma: float | None = None
    delta: float = DEFAULT_DELTA
    budget: int | None = None
    family: str = FAMILIES[0]
    rate: str = PROVEN
    max_pulls: int = DEFAULT_MAX_PULLS

    def __post_init__(self) -> None:
        sampler, stopper = self._parts  # raises if a name is unknown
        super().__post_init__()
        self._check_part(self.sampling, sampler)
        self._check_part(self.stopping, stopper)
        _ = self._weights  # raises for arguments that Breakeven rejects

    def _check_part(self, name: str, part: SamplingPart | StoppingPart) -> None:
        """Refuse a part that lacks what it needs."""
        is_bernoulli = self.family == FAMILIES[1]
        if part.is_bernoulli and not is_bernoulli:
            raise InvalidValueError(
                f"{name} takes rewards from 0 to 1, so `family` must be bernoulli but got {self.family}."
            )
        for need in part.needs:
            if getattr(self, need) is None and not (need == "sigma" and is_bernoulli):  # 1/2 will do
                raise InvalidValueError(f"`{need}` is required by {name} but was not given.")
        if "risk" in part.needs and not part.weighs_losses:
            assert self.risk is not None
            check_regret(self, self.risk)

    @property
    def _parts(self) -> tuple[SamplingPart, StoppingPart]:
        return find_parts(self.sampling, self.stopping)

    @property
    def sampling_part(self) -> SamplingPart:
        return self._parts[0]

    @property
    def stopping_part(self) -> StoppingPart:
        return self._parts[1]

    @cached_property
    def _weights(self) -> Breakeven | None:
        """The Breakeven policy whose losses are weighed, if any are."""
        if self.risk is None or not any(part.weighs_losses for part in self._parts):
            return None
        return Breakeven(self.risk, self.arms, self.sigma, self.sigma_pulls, self.bound, self.largest_sigma)

    @property
    def problem(self) -> AdaptiveProblem:
        losses = None if self._weights is None else self._weights.tables
        if losses is not None and not self.stopping_part.weighs_losses:
            losses = losses._replace(guess=False)
        sigma = 0.5 if self.sigma is None and self.is_bernoulli else self.sigma
        return super().problem._replace(sigma=sigma, losses=losses)
