"""What is asked, and what is counted when."""

from __future__ import annotations

import random
import threading
from itertools import product

from dbcare.live.study import Study
from dbcare.policies.registry import POLICIES
from dbcare.risk import Loss
from dbcare.testing.studies.checks import NAMES, Checks, asked, close, rewards

THREADS, TRIALS_EACH = 8, 4


class Counting(Checks):
    """Answers count in the order asked, whatever the order they come in."""

    def test_one_at_a_time_it_is_a_run_stepped_by_hand(self) -> None:
        """The same arms, the same end, the same choice."""
        for policy, risk, seed in product(POLICIES, Loss, range(self.repeats)):
            study = self.study(policy=policy, risk=str(risk), cost=0.02, seed=seed)
            run, draw = study.settings.built_policy.start(seed=seed), rewards(seed)
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

    def test_less_is_better_where_it_is_said_so(self) -> None:
        """Rewards of the other sign make the same study."""
        study, mirror = self.study(direction="minimize", cost=0.02), self.study(cost=0.02)
        draw = rewards(3)
        while (trial := study.ask()) is not None:
            other = asked(mirror)
            assert other.arm == trial.arm
            reward = draw(trial.arm)
            study.tell(trial, -reward)
            mirror.tell(other, reward)
        assert mirror.should_stop()
        choice, same = study.recommendation(), mirror.recommendation()
        assert choice.arm == same.arm
        assert close(choice.mean, -(same.mean or 0.0))

    def test_an_answer_counts_once_all_earlier_ones_are_in(self) -> None:
        """Three trials out, the first one slow: the others are held, and counted in order when it comes."""
        study = self.study()
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

    def test_any_order_of_answers_gives_the_same_decisions(self) -> None:
        """Two rounds of three trials, told in some order, and then one at a time: the same asks and counts."""
        chance = random.Random(1)
        for seed in range(3 * self.repeats):
            plain, mixed = (self.study(seed=seed, max_ahead=6, cost=0.01) for _ in range(2))
            draw = rewards(seed)
            for study in (plain, mixed):
                assert len(study.ask(6)) == 6
            values = {trial: draw(NAMES[(trial - 1) % 3]) for trial in range(1, 7)}
            plain.tell_many(values.items())
            for trial in chance.sample(sorted(values), 6):
                mixed.tell(trial, values[trial])
            assert plain.status().arms == mixed.status().arms
            while (trial_of_plain := plain.ask()) is not None:
                again = asked(mixed)
                assert again.arm == trial_of_plain.arm
                reward = draw(again.arm)
                plain.tell(trial_of_plain, reward)
                mixed.tell(again, reward)
            assert mixed.ask() is None
            assert plain.recommendation() == mixed.recommendation()

    def test_a_policy_in_rounds_hands_out_one_round(self) -> None:
        """A failed trial is replaced, and the next round waits for it."""
        for policy in ("breakeven-racing", "dbcare"):
            study = self.study(policy=policy, max_ahead=100)
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

    def test_breakeven_spreads_its_workers(self) -> None:
        """Trials that are out count as made when the next arm is chosen."""
        study = self.study(max_ahead=9)
        assert sorted(trial.arm for trial in study.ask(3)) == list(NAMES)
        study.tell_many((number, 0.01 * number) for number in (1, 2, 3))
        assert sorted({trial.arm for trial in study.ask(9)}) == list(NAMES)

    def test_how_many_may_be_out(self) -> None:
        """`max_ahead`; or twice the workers seen, and at least one round."""
        assert len(self.study(max_ahead=2).ask(10)) == 2
        assert len(self.study().ask(10)) == 3
        busy = self.study()
        for worker in "abcdefgh":
            busy.ask(1, worker=worker)
        busy.ask(100, worker="a")
        assert busy.status().waiting == 16

    def test_eight_threads_at_once(self) -> None:
        """No trial is given out twice, none is lost, and all are counted."""
        study = self.study(cost=1e-9)
        told: list[int] = []

        def work(worker: str) -> None:
            done = 0
            while done < TRIALS_EACH:
                if (trial := study.ask(worker=worker)) is not None:
                    study.tell(trial, float(trial.id))
                    told.append(trial.id)
                    done += 1

        threads = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        everything = list(range(1, THREADS * TRIALS_EACH + 1))
        assert sorted(told) == everything
        assert study.status().counted == len(everything)
        assert [row.reward for row in study.trials()] == everything
        assert study.check() == 2 * len(everything)

    def test_observations_made_elsewhere_count_like_trials(self) -> None:
        """And those behind the stop are on record and charged."""
        for policy in POLICIES:
            first, added = (self.study(policy=policy, cost=0.02) for _ in range(2))
            sequence = finished(first)
            added.add(sequence[: len(sequence) // 2])
            added.add(sequence[len(sequence) // 2 :])
            assert added.should_stop()
            status = first.status()
            assert added.status().arms == status.arms
            assert added.recommendation() == first.recommendation()
            added.add([(NAMES[0], 0.0)])
            assert added.status().arms == status.arms
            assert close(added.status().spent, status.spent + 0.02)


def finished(study: Study, seed: int = 3) -> list[tuple[str, float]]:
    """Answer what it asks until it stops: the arms and rewards."""
    draw, sequence = rewards(seed), []
    while (trial := study.ask()) is not None:
        sequence.append((trial.arm, draw(trial.arm)))
        study.tell(trial, sequence[-1][1])
    return sequence
