"""Runs on rewards that are written out in a test."""

from collections.abc import Callable, Iterable

from dbcare.policies.policy import Policy
from dbcare.policies.run import Run

# The arms asked for, sorted within each round: there, every surviving arm is pulled once, in any order.
Turns = list[list[int]]


def play(policy: Policy, rewards: Iterable[Iterable[float]], seed: int = 0) -> tuple[Run, Turns]:
    """Step a run to its stop; arm k gives rewards[k], one after the other."""
    streams = [iter(stream) for stream in rewards]
    return play_by(policy, lambda arm: next(streams[arm]), seed)


def play_by(policy: Policy, pull: Callable[[int], float], seed: int = 0) -> tuple[Run, Turns]:
    """Step a run to its stop; `pull(arm)` returns the rewards."""
    run = policy.start(seed=seed)
    turns: Turns = []
    while (arm := run.ask()) is not None:
        if not turns or arm in turns[-1]:
            turns.append([])
        turns[-1].append(arm)
        run.tell(pull(arm), arm)
    return run, [sorted(turn) for turn in turns]
