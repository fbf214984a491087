"""Bandits by name, for experiments defined as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dbcare.base import checks
from dbcare.lab.random_gaps import make_random_bernoulli, make_random_gaussian
from dbcare.policies.build import refuse_unknown, require_all
from dbcare.problem.bandits import Bandit

BANDITS: dict[str, Callable[..., Bandit]] = {
    "gaussian": Bandit.gaussian,
    "bernoulli": Bandit.bernoulli,
    "two-arm": Bandit.two_arm,
    "two-arm-bernoulli": Bandit.two_arm_bernoulli,
    "one-sparse": Bandit.one_sparse,
    "linear-decay": Bandit.linear_decay,
    "random-gaps": make_random_gaussian,
    "random-gaps-bernoulli": make_random_bernoulli,
    "drug-binary": Bandit.drug_binary,
    "drug-leveled": Bandit.drug_leveled,
}


def build_bandit(name: str, options: dict[str, Any]) -> Bandit:
    """Build the bandit called `name`; an unknown name or option is an error that lists the valid ones.

    Underscores serve for hyphens, as in the names of the paper's experiments.
    """
    if isinstance(name, str) and (hyphenated := name.replace("_", "-")) in BANDITS:
        name = hyphenated
    make = BANDITS[checks.one_of("bandit", name, BANDITS)]
    parameters = inspect.signature(make).parameters
    refuse_unknown(f"Options of {name}", options, [option for option in parameters if option != "bound"])
    require_all(name, parameters, options)
    return make(**options)
