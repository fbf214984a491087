"""Which arms are asked for, and when rewards count."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from itertools import product

from dbcare.problem.risk import Loss
from dbcare.studies.study import Study
from tests.suites.studies.checks import NAMES, Checks, ask_one, draw_rewards, is_close, works_in_epochs

THREADS, TRIALS_PER_THREAD = 8, 4


class Counting(Checks):
    """Rewards count in the order asked, whatever the order they arrive in."""

    def test_one_trial_at_a_time_equals_a_run_stepped_by_hand(self) -> None:
        """The arms, the stop and the choice are the same."""
        for policy, risk, seed in product(self.policies, Loss, range(self.repeats)):
            study = self.make_study(policy=policy, risk=str(risk), cost=0.02, seed=seed)
            run, draw = study.settings.built_policy.start(seed=seed), draw_rewards(seed)
            while (trial := study.ask()) is not None:
                arm = run.ask()
                assert arm is not None
                assert trial.arm == NAMES[arm]
                reward = draw(trial.arm)
                study.tell(trial, reward)
                run.tell(reward)
            assert run.ask() is None
            assert study.should_stop()
            assert study.recommendation().arm == NAMES[run.recommendation()]
            assert study.status().counted == run.pulls

    def test_minimizing_equals_maximizing_the_negative(self) -> None:
        """Rewards of opposite sign give the same study."""
        study, mirror = self.make_study(direction="minimize", cost=0.02), self.make_study(cost=0.02)
        draw = draw_rewards(3)
        while (trial := study.ask()) is not None:
            other = ask_one(mirror)
            assert other.arm == trial.arm
            reward = draw(trial.arm)
            study.tell(trial, -reward)
            mirror.tell(other, reward)
        assert mirror.should_stop()
        choice, mirrored = study.recommendation(), mirror.recommendation()
        assert choice.arm == mirrored.arm
        assert is_close(choice.mean, -(mirrored.mean or 0.0))

    def test_a_reward_counts_once_all_earlier_ones_are_told(self) -> None:
        """While the first of three pending trials is not told, the others are held; then all count in order."""
        study = self.make_study()
        first, second, third = study.ask(3)
        assert [trial.arm for trial in (first, second, third)] == list(NAMES)
        study.tell(third, 5.0)
        study.tell(second, 1.0)
        status = study.status()
        assert (status.counted, status.waiting, status.held) == (0, 1, 2)
        assert [arm.trials for arm in status.arms] == [0, 0, 0]
        study.tell(first, 0.0)
        status = study.status()
        assert (status.counted, status.waiting, status.held) == (3, 0, 0)
        assert study.recommendation().arm == "C"

    def test_any_order_of_rewards_gives_the_same_decisions(self) -> None:
        """Two rounds of three trials are told in any order, then one at a time: arms and counts are the same."""
        chance = random.Random(1)
        for seed in range(3 * self.repeats):
            ordered, shuffled = (self.make_study(seed=seed, max_ahead=6, cost=0.01) for _ in range(2))
            draw = draw_rewards(seed)
            for study in (ordered, shuffled):
                assert len(study.ask(6)) == 6
            values = {trial: draw(NAMES[(trial - 1) % 3]) for trial in range(1, 7)}
            ordered.tell_many(values.items())
            for trial in chance.sample(sorted(values), 6):
                shuffled.tell(trial, values[trial])
            assert ordered.status().arms == shuffled.status().arms
            while (trial_in_order := ordered.ask()) is not None:
                again = ask_one(shuffled)
                assert again.arm == trial_in_order.arm
                reward = draw(again.arm)
                ordered.tell(trial_in_order, reward)
                shuffled.tell(again, reward)
            assert shuffled.ask() is None
            assert ordered.recommendation() == shuffled.recommendation()

    def test_policies_in_epochs_hand_out_one_epoch_at_a_time(self) -> None:
        """A failed trial is replaced, and the next epoch waits for the replacement."""
        studies = [self.make_study(policy=policy, max_ahead=100) for policy in self.policies]
        assert any(map(works_in_epochs, studies))
        for study in filter(works_in_epochs, studies):
            assert [trial.arm for trial in study.ask(10)] == list(NAMES)
            assert study.ask() is None
            assert not study.should_stop()
            study.tell(2, 0.1)
            study.tell(1, failed=True)
            again = study.ask(10)
            assert [trial.arm for trial in again] == ["A"]
            study.tell(3, 0.2)
            study.tell(again[0], 0.0)
            assert [trial.arm for trial in study.ask(10)] == list(NAMES)

    def test_breakeven_spreads_its_workers_over_the_arms(self) -> None:
        """Pending trials count as made when the next arm is chosen."""
        study = self.make_study(max_ahead=9)
        assert sorted(trial.arm for trial in study.ask(3)) == list(NAMES)
        study.tell_many((number, 0.01 * number) for number in (1, 2, 3))
        assert sorted({trial.arm for trial in study.ask(9)}) == list(NAMES)

    def test_the_number_of_pending_trials_is_limited(self) -> None:
        """The limit is `max_ahead`, or else twice the number of workers, but at least one per arm."""
        assert len(self.make_study(max_ahead=2).ask(10)) == 2
        assert len(self.make_study().ask(10)) == 3
        busy = self.make_study()
        for worker in "abcdefgh":
            busy.ask(1, worker=worker)
        busy.ask(100, worker="a")
        assert busy.status().waiting == 16

    def test_eight_threads_at_once(self) -> None:
        """No trial is handed out twice, none is lost, and all are counted."""
        study = self.make_study(cost=1e-9)
        told: list[int] = []

        def work(worker: str) -> None:
            done = 0
            while done < TRIALS_PER_THREAD:
                if (trial := study.ask(worker=worker)) is not None:
                    study.tell(trial, float(trial.id))
                    told.append(trial.id)
                    done += 1

        threads = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = list(range(1, THREADS * TRIALS_PER_THREAD + 1))
        assert sorted(told) == numbers
        assert study.status().counted == len(numbers)
        assert [row.reward for row in study.trials()] == numbers
        assert study.check() >= 2 * len(numbers)  # and some that asks were refused

    def test_observations_from_elsewhere_count_like_trials(self) -> None:
        """Those after the stop are recorded and charged, and change nothing else."""
        for policy in self.policies:
            first, added = (self.make_study(policy=policy, cost=0.02) for _ in range(2))
            if first.settings.has_blocks:  # see `Blocks`
                continue
            sequence = finish(first)
            added.add(sequence[: len(sequence) // 2])
            added.add(sequence[len(sequence) // 2 :])
            assert added.should_stop()
            status = first.status()
            assert added.status().arms == status.arms
            assert added.recommendation() == first.recommendation()
            added.add([(NAMES[0], 0.0)])
            assert added.status().arms == (replace(status.arms[0], late=1), *status.arms[1:])
            assert is_close(added.status().spent, status.spent + 0.02)


def finish(study: Study, seed: int = 3) -> list[tuple[str, float]]:
    """Tell rewards until the study stops; return the arms and rewards."""
    draw, sequence = draw_rewards(seed), []
    while (trial := study.ask()) is not None:
        sequence.append((trial.arm, draw(trial.arm)))
        study.tell(trial, sequence[-1][1])
    return sequence
