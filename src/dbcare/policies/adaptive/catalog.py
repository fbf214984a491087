"""The parts by name, and which of them make no sense together."""

from dbcare.base import checks
from dbcare.errors import InvalidValueError
from dbcare.policies.adaptive import (
    breakeven_parts,
    budget,
    chick_frazier,
    eb_tci,
    kg_star,
    kl_lucb,
    likelihood,
    lil_ucb,
    lucb,
    ocba,
    track_and_stop,
    ugape,
)
from dbcare.policies.adaptive.parts import SamplingPart, StoppingPart

SAMPLING_PARTS = {
    "breakeven": breakeven_parts.SAMPLING,
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
    "breakeven": breakeven_parts.STOPPING,
    "lucb": lucb.STOPPING,
    "kl-lucb": kl_lucb.STOPPING,
    "lil-ucb": lil_ucb.STOPPING,
    "ugape": ugape.STOPPING,
    "likelihood-ratio": likelihood.STOPPING,
    "budget": budget.STOPPING,
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
