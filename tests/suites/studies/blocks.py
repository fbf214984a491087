"""Studies whose arms share blocks: questions of a pool, or rounds of trials that are run at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable

from dbcare.errors import InvalidValueError
from dbcare.policies.rule import BlockRule
from dbcare.problem.risk import Loss
from dbcare.studies.study import Study
from dbcare.studies.trial import Trial
from tests.suites.studies.checks import COST, NAMES, Checks, ask_one, catch_error, is_close

QUESTIONS = [f"question {number}" for number in range(1, 31)]


def answer(trial: Trial) -> float:
    """Return a trial's reward, whoever runs it and when: some blocks are harder than others, and B is the best arm."""
    difficulty = random.Random(f"block {trial.block}").gauss(0.0, 1.0)
    return 0.3 * (trial.arm == "B") + difficulty + random.Random(f"{trial.arm} {trial.block}").gauss(0.0, 0.5)


def finish_together(study: Study, order: Callable[[list[Trial]], list[Trial]]) -> list[tuple[str, str | None]]:
    """Ask for all trials available, tell them in some order, and so on; return the arms and blocks as asked."""
    asked: list[tuple[str, str | None]] = []
    while trials := study.ask(100):
        asked += [(trial.arm, trial.block) for trial in trials]
        for trial in order(trials):
            study.tell(trial, answer(trial))
    assert study.should_stop()
    return asked


class Blocks(Checks):
    """Arms are compared within blocks, whatever the order in which their trials are run and told."""

    def test_a_pool_equals_a_run_stepped_by_hand(self) -> None:
        """The arms, the stop and the choice are the same, and all arms take the blocks in one random order."""
        for risk, seed in ((risk, seed) for risk in Loss for seed in range(self.repeats)):
            study = self.make_study(blocks=QUESTIONS, risk=str(risk), cost=1e-3, seed=seed)
            policy = study.settings.built_policy
            run, rule = policy.start(seed=seed), policy.rule
            assert isinstance(rule, BlockRule)
            taken: dict[str, list[str | None]] = {name: [] for name in NAMES}
            while (trial := study.ask()) is not None:
                arm = run.ask()
                assert arm is not None
                assert trial.arm == NAMES[arm]
                assert trial.block == study.settings.name_block(rule.block(run.state, policy.tables, arm))
                taken[trial.arm].append(trial.block)
                study.tell(trial, answer(trial))
                run.tell(answer(trial))
            assert run.ask() is None
            assert study.recommendation().arm == NAMES[run.recommendation()]
            longest = max(taken.values(), key=len)
            assert all(blocks == longest[: len(blocks)] for blocks in taken.values())
            assert set(longest) <= set(QUESTIONS)
            assert longest != QUESTIONS[: len(longest)], "the order is random"

    def test_blocks_may_have_numbers(self) -> None:
        """They are 1, 2 and so on, in the same order as names would be."""
        numbered, named = self.make_study(blocks=30, seed=5), self.make_study(blocks=QUESTIONS, seed=5)
        for number, question in ((ask_one(numbered).block, ask_one(named).block) for _ in range(3)):
            assert f"question {number}" == question
        assert self.make_study(blocks=30, seed=6).ask(3)[0].block != self.make_study(blocks=30, seed=5).ask(3)[0].block

    def test_rounds_are_handed_out_as_a_whole(self) -> None:
        """The next round may begin before the last one is told, in an ask of its own; each starts with another arm."""
        study = self.make_study(rounds=True, max_ahead=6)
        trials = study.ask(100) + study.ask(100) + study.ask(100)
        assert [trial.block for trial in trials] == ["1", "1", "1", "2", "2", "2"]
        assert len({trial.block for trial in self.make_study(rounds=True, max_ahead=6).ask(6)}) == 1
        assert [trial.arm for trial in trials] == ["A", "B", "C", "B", "C", "A"]
        assert [pending.block for pending in study.pending()] == ["1", "1", "1", "2", "2", "2"]
        assert (study.status().blocks_used, study.status().blocks) == (2, None)
        assert [row.block for row in study.trials()] == ["1", "1", "1", "2", "2", "2"]

    def test_any_order_of_telling_gives_the_same_decisions(self) -> None:
        """Among others, delays that depend on the reward: answers that come late count like those that come early."""
        orders: list[Callable[[list[Trial]], list[Trial]]] = [
            lambda trials: sorted(trials, key=lambda trial: trial.id),
            lambda trials: sorted(trials, key=answer),
            lambda trials: sorted(trials, key=answer, reverse=True),
            lambda trials: random.Random(len(trials)).sample(trials, len(trials)),
        ]
        for options in ({"rounds": True}, {"blocks": 200}):
            studies = [self.make_study(**options, max_ahead=7, cost=1e-5) for _ in orders]
            asked = [finish_together(study, order) for study, order in zip(studies, orders, strict=True)]
            assert asked.count(asked[0]) == len(orders)
            assert len(asked[0]) > 40
            results = [(study.status().arms, study.recommendation(), study.history()[-1].spent) for study in studies]
            assert results.count(results[0]) == len(orders)
            assert results[0][1].arm == "B"
            for study in studies:
                study.check()

    def test_nothing_is_decided_before_a_round_is_complete(self) -> None:
        """Fast answers of a round change nothing as long as one is missing; a failed one is not waited for."""
        study = self.make_study(rounds=True, cost=1e-12)
        for _ in range(8):
            for trial in study.ask(3):
                study.tell(trial, answer(trial))
        before = study.status().policy_loss
        assert before is not None
        trials = study.ask(3)
        assert {trial.block for trial in trials} == {"9"}
        study.tell(trials[0], failed=True)
        study.tell(trials[1], 100.0)
        assert study.status().policy_loss == before
        study.tell(trials[2], -100.0)
        assert study.status().policy_loss != before

    def test_a_trial_without_reward_closes_its_block_for_its_arm(self) -> None:
        """It is not replaced, whether it failed or expired; the others are compared without it."""
        for options in ({"rounds": True}, {"blocks": 20}):
            study = self.make_study(**options, cost=1e-9, max_ahead=100)
            failed = ask_one(study)
            expired = ask_one(study, lease=self.lease_seconds)
            study.tell(failed, failed=True)
            self.wait_for_expiry()
            seen = {(failed.arm, failed.block), (expired.arm, expired.block)}
            while len(seen) < 42:
                for trial in study.ask(42 - len(seen)):
                    assert (trial.arm, trial.block) not in seen
                    seen.add((trial.arm, trial.block))
                    study.tell(trial, answer(trial))
            study.tell(expired, 5.0)
            status = study.status()
            assert (status.rewards, status.surplus) == (40, 1)
            study.check()

    def test_a_study_ends_when_its_pool_is_used_up(self) -> None:
        """Every arm had every block once; the reason says so."""
        study = self.make_study(blocks=QUESTIONS, cost=1e-12)
        asked = finish_together(study, lambda trials: trials)
        assert sorted(asked) == sorted((arm, question) for arm in NAMES for question in QUESTIONS)
        status = study.status()
        assert (status.blocks_used, status.blocks, status.rewards) == (30, 30, 90)
        assert status.reason.endswith("; all 30 blocks have been used")
        assert study.recommendation().arm == "B"

    def test_retiring_an_arm_of_a_pool_equals_a_study_without_it(self) -> None:
        """The others are decided among by the same answers to the same blocks."""
        study, other = self.make_study(blocks=40, cost=1e-5), self.make_study(arms=["A", "C"], blocks=40, cost=1e-5)
        told = []
        for _ in range(60):
            trial = ask_one(study)
            study.tell(trial, answer(trial))
            told.append((trial.arm, answer(trial), str(trial.block)))
        study.retire("B", "sold out")
        other.add([each for each in told if each[0] != "B"])
        while (trial := study.ask()) is not None:  # type: ignore[assignment]  # the last one is None
            same = ask_one(other)
            assert (trial.arm, trial.block) == (same.arm, same.block)
            study.tell(trial, answer(trial))
            other.tell(same, answer(same))
        assert other.should_stop()
        assert [study.status().arms[place].mean for place in (0, 2)] == [arm.mean for arm in other.status().arms]
        study.check()

    def test_retiring_an_arm_of_rounds(self) -> None:
        """Rounds that were begun count without it, and it is not asked for again."""
        study = self.make_study(rounds=True, cost=3e-5, max_ahead=5)
        for _ in range(6):
            trials = study.ask(5)
            for trial in trials[:-1]:
                study.tell(trial, answer(trial))
            study.tell(trials[-1], failed=True)
        last = study.ask(5)
        study.retire("B", "sold out")
        for trial in last:
            study.tell(trial, answer(trial))
        rest = finish_together(study, lambda trials: trials)
        assert {arm for arm, _ in rest} == {"A", "C"}
        assert int(rest[0][1] or 0) == max(int(trial.block or 0) for trial in last) + 1
        study.check()
        study.retire("A")
        assert study.recommendation().arm == "C"

    def test_reported_prices_are_what_the_policy_weighs(self) -> None:
        """Trials that cost a hundred times as much as stated end a study sooner."""
        for options in ({"rounds": True}, {"blocks": 100}):
            stated, dear = (self.make_study(**options, cost=1e-5) for _ in range(2))
            finish_together(stated, lambda trials: trials)
            while (trial := dear.ask()) is not None:
                dear.tell(trial, answer(trial), price=1e-3)
            assert dear.status().rewards < 0.7 * stated.status().rewards
            assert is_close(dear.status().spent, 1e-3 * dear.status().rewards)

    def test_the_budget_covers_whole_rounds(self) -> None:
        """A round that would exceed it is not begun."""
        study = self.make_study(rounds=True, max_spend=5 * COST)
        assert len(finish_together(study, lambda trials: trials)) == 3
        assert "another trial would exceed max_spend" in study.status().reason

    def test_observations_of_blocks(self) -> None:
        """They are added by the block's name, each arm at most once in a block; rounds take none."""
        study = self.make_study(blocks=QUESTIONS)
        study.add([("A", 0.5, "question 7"), ("B", 0.25, "question 7")])
        assert [(row.arm, row.block, row.reward) for row in study.trials()] == [
            ("A", "question 7", 0.5),
            ("B", "question 7", 0.25),
        ]
        message = catch_error(
            InvalidValueError, lambda: study.add([("C", 0.0, "question 1"), ("B", 0.5, "question 7")])
        )
        assert message == (
            "`observations` must have each arm at most once in a block but got 'B' again in 'question 7'."
        )
        message = catch_error(InvalidValueError, lambda: study.add([("C", 0.0, "question 31")]))
        assert message == "`block` must be one of this study's 30 blocks but got 'question 31'."
        message = catch_error(InvalidValueError, lambda: study.add([("C", 0.0)]))
        assert message.startswith("`observations` must be triples of an arm's name, a reward and a block but got ('C'")
        assert study.status().asked == 2
        asked = [ask_one(study) for _ in range(3)]
        assert ("A", "question 7") not in [(trial.arm, trial.block) for trial in asked]
        rounds = self.make_study(name="in rounds", rounds=True)
        assert catch_error(InvalidValueError, lambda: rounds.add([("A", 0.5)])) == (
            "Study 'in rounds' compares arms within rounds, which observations made elsewhere have no part in; "
            "create a study with `blocks` instead."
        )
