"""The plan of a search: candidates race over folds, and the unlikely ones drop out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbcare.policies.breakeven import pooled_rounds
from dbcare.policies.breakeven.rounds import BreakevenRounds
from dbcare.policies.breakeven.rounds_state import is_open
from dbcare.policies.breakeven.state import LEADER, LOSS, RIVAL, SPENT, section
from dbcare.policies.rule import STOP
from dbcare.policies.run import Comparisons
from dbcare.posterior import Posterior
from dbcare.problem.risk import Risk

Place = tuple[int, int]  # a candidate and a fold


@dataclass(frozen=True)
class FitOutcome:
    """What became of a candidate on a fold.

    Parameters
    ----------
    candidate, fold : int
        Which one was fitted, and where.
    score : float
        Its test score; larger is better. NaN if it has none, which rules a candidate out.
    price : float
        What the fit cost.
    """

    candidate: int
    fold: int
    score: float
    price: float


class FitPlan(ABC):
    """What to fit next.

    A batch depends on the outcomes of earlier batches alone: neither on the order in which its own fits finish, nor on
    how many are run at once.

    Attributes
    ----------
    fits : int
        Fits so far.
    spent : float
        What they cost.
    """

    def __init__(self) -> None:
        self.fits = 0
        self.spent = 0.0

    @abstractmethod
    def next_batch(self) -> list[Place]:
        """Return what to fit next; nothing once the search is over."""

    def tell(self, outcomes: Sequence[FitOutcome]) -> None:
        """Take the outcomes of a whole batch, in its order."""
        self.fits += len(outcomes)
        self.spent += sum(outcome.price for outcome in outcomes)

    @abstractmethod
    def describe_start(self) -> str:
        """Return what is going to be fitted, in a line."""

    @abstractmethod
    def why_stopped(self, labels: Sequence[str]) -> str:
        """Return why the search is over, in a sentence, given what candidates are called."""


class FitEverything(FitPlan):
    """Every candidate on every fold, as GridSearchCV does."""

    def __init__(self, candidates: int, folds: int) -> None:
        super().__init__()
        self.candidates, self.folds = candidates, folds

    def next_batch(self) -> list[Place]:
        if self.fits > 0:
            return []
        return [(candidate, fold) for candidate in range(self.candidates) for fold in range(self.folds)]

    def describe_start(self) -> str:
        return (
            f"Fitting {self.folds} folds for each of {self.candidates} candidates, "
            f"totalling {self.candidates * self.folds} fits"
        )

    def why_stopped(self, labels: Sequence[str]) -> str:
        return "All folds of all candidates were fitted."


ROUNDING = 1e-13  # of the leader's largest score: what is smaller is no difference between candidates


class FoldRace(FitPlan):
    """Candidates are compared within folds by `BreakevenRounds`, for which the folds are all there is.

    Every candidate is fitted on the first `min_folds`. Then a batch is as many fits as there are candidates in the
    race. A candidate without a score is ruled out, as its mean over all folds would not exist either.

    Parameters
    ----------
    candidates : int
        How many there are.
    order : sequence of int
        The folds, in the order in which every candidate is fitted on them.
    min_folds : int
        How many of them every candidate is fitted on.
    price : float
        What a fit is expected to cost, before any has.
    value : float
        What a score higher by 1 is worth, in the same currency.
    seed : int
        Random seed for ties.
    """

    def __init__(
        self, candidates: int, order: Sequence[int], *, min_folds: int, price: float, value: float, seed: int
    ) -> None:
        super().__init__()
        self.candidates = candidates
        self.order, self.min_folds, self.value = tuple(order), min_folds, value
        self.given_up: dict[int, int] = {}  # for each candidate that is not in the race, the fits made by then
        self.active = tuple(range(candidates))  # those that have not failed
        self._positions = {fold: position for position, fold in enumerate(self.order)}
        self._outcomes: list[FitOutcome] = []
        self._price, self._seed = price, seed
        self._start()

    def _start(self) -> None:
        """Start the rule without those candidates that failed, and tell it what is known about the others."""
        self._places = {candidate: place for place, candidate in enumerate(self.active)}
        self._policy: BreakevenRounds | None = None
        if len(self.active) < 2:
            return
        self._policy = BreakevenRounds(
            Risk.simple_regret(price=self._price, value=self.value),
            arms=len(self.active),
            pool=len(self.order),
            only_these_blocks=True,
            first_blocks=self.min_folds,
        )
        self._state: list[Any] = self._policy.start(self._seed).state
        self._state[SPENT] = (
            sum(each.price for each in self._outcomes if each.candidate not in self._places) / self.value
        )
        self._count(self._outcomes)

    def _count(self, outcomes: Sequence[FitOutcome]) -> None:
        """Let the rule decide once, given all these outcomes."""
        if self._policy is None:
            return
        state, tables = self._state, self._policy.tables
        for each in outcomes:
            if (place := self._places.get(each.candidate)) is not None:
                position, cost = self._positions[each.fold], each.price / self.value
                pooled_rounds.take_reward(state, tables, place, position, each.score, cost)
        self._policy.reopen(state)
        pooled_rounds.settle(state, tables)

    def next_batch(self) -> list[Place]:
        if self.fits == 0:
            return [(candidate, fold) for fold in self.order[: self.min_folds] for candidate in range(self.candidates)]
        if self._policy is None:
            return []
        planned, tables, size = list(self._state), self._policy.tables, len(self.racing)
        batch: list[Place] = []
        while len(batch) < size and (place := pooled_rounds.ask(planned, tables)) != STOP:
            position = pooled_rounds.block(planned, tables, place)
            pooled_rounds.send_block(planned, tables, place, position)  # as if its score had arrived
            batch.append((self.active[place], self.order[position]))
        return batch

    def tell(self, outcomes: Sequence[FitOutcome]) -> None:
        super().tell(outcomes)
        self._outcomes += outcomes
        failed = {each.candidate for each in outcomes if not math.isfinite(each.score)}
        if failed:
            self.active = tuple(candidate for candidate in self.active if candidate not in failed)
            self._start()
        else:
            self._count(outcomes)
        self._note_given_up()

    def _note_given_up(self) -> None:
        racing = {*self.racing, self.leader}  # which has won a tie, perhaps
        for candidate in range(self.candidates):
            if candidate in racing:
                self.given_up.pop(candidate, None)
            else:
                self.given_up.setdefault(candidate, self.fits)

    @property
    def fitted(self) -> list[Place]:
        """The fits so far."""
        return [(outcome.candidate, outcome.fold) for outcome in self._outcomes]

    @property
    def leader(self) -> int | None:
        """The candidate to choose now, the first of those that tie on the same folds; None if all failed."""
        if self._policy is None:
            return self.active[0] if self.active else None
        place, compared = self._policy.rule.recommend(self._state, self._policy.tables), self.comparisons
        if compared is None:
            return self.active[0]  # all scores are 0 so far
        negligible = self._find_negligible(self.active[place])
        return next(
            candidate
            for candidate, lead, folds in zip(self.active, compared.leads, compared.blocks, strict=True)
            if folds == compared.blocks[place] and abs(lead) <= negligible
        )

    def _find_negligible(self, candidate: int) -> float:
        """Return what is no difference between scores as large as those of a candidate."""
        return ROUNDING * max(abs(outcome.score) for outcome in self._outcomes if outcome.candidate == candidate)

    @property
    def racing(self) -> list[int]:
        """The candidates that may be worth another fit, the leader among them."""
        if self._policy is None:
            return list(self.active)
        leader, tables = int(self._state[LEADER]), self._policy.tables
        return [
            candidate
            for place, candidate in enumerate(self.active)
            if place == leader or is_open(self._state, tables, place)
        ]

    @property
    def comparisons(self) -> Comparisons | None:
        """How the leader compares with the active candidates on shared folds; None before anything is known."""
        return None if self._policy is None else self._policy.comparisons(self._state)

    def expected_losses(self) -> npt.NDArray[np.float64]:
        """Return what choosing each candidate is expected to lose on these folds, in units of the score.

        It is E[max_k mu_k - mu_candidate] by the posterior of `posterior.model`, given the comparisons with the leader;
        NaN for a candidate that failed, and for all where nothing is known.
        """
        losses = np.full(self.candidates, np.nan)
        compared = self.comparisons
        if compared is not None:
            errors = [math.sqrt(variance) for variance in compared.error_variances()]
            posterior = Posterior.from_means([-lead for lead in compared.leads], errors)
            found = np.array([posterior.expected_loss(place) for place in range(len(self.active))])
            negligible = self._find_negligible(self.active[compared.leader])
            losses[list(self.active)] = np.where(found <= negligible, 0.0, found)
        elif len(self.active) == 1 or self.fits == self.candidates * len(self.order):
            losses[list(self.active)] = 0.0
        return losses

    def describe_start(self) -> str:
        folds, least = len(self.order), self.min_folds
        return (
            f"Fitting {least} to {folds} folds for each of {self.candidates} candidates, "
            f"totalling {least * self.candidates} to {folds * self.candidates} fits"
        )

    def describe_standing(self, labels: Sequence[str]) -> str:
        """Return in a line who leads, and how many candidates are in the race."""
        if self.leader is None:
            return f"[Breakeven] {self.fits} fits: no candidate has a score on all of its folds"
        loss = self.expected_losses()[self.leader]
        return (
            f"[Breakeven] {self.fits} fits, {show_amount(self.spent)} spent: {len(self.racing)} of {self.candidates} "
            f"candidates in the race, {labels[self.leader]} leads, expected loss {loss:.3g}"
        )

    def why_stopped(self, labels: Sequence[str]) -> str:
        if self._policy is None:
            return (
                f"Only {labels[self.active[0]]} is left." if self.active else "No candidate has a score on all folds."
            )
        state, tables = self._state, self._policy.tables
        chosen, rival = self.leader, int(state[RIVAL])
        assert chosen is not None
        name = labels[chosen]
        if is_open(state, tables, rival):
            return f"{name} and every candidate that may be better have been fitted on all {len(self.order)} folds."
        loss = float(state[section(tables.cost, LOSS) + rival])
        # A tie may have been won by the rival.
        other = labels[self.active[rival if self.active[rival] != chosen else int(state[LEADER])]]
        return (
            f"Stopped by the rule: the chance that {other} is better than {name} is worth about "
            f"{show_amount(loss * self.value)}, no more than {self._policy.patience:.0%} of the "
            f"{show_amount(self.spent)} spent."
        )


def show_amount(amount: float) -> str:
    """Return an amount of whatever prices are in, with three digits, or all before the point."""
    return f"{amount:,.0f}" if amount >= 1000.0 else f"{amount:.3g}"
