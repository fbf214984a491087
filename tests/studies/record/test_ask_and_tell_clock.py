"""A clock that jumps ahead does not end leases: the trials asked before it get their remaining time again."""

import pytest

from dbcare.base.times import ClockJump, JumpWatch, extend_lease
from dbcare.studies.record.events import Event, EventKind
from dbcare.studies.record.ledger import Ledger
from dbcare.studies.settings import Settings

HOUR, HALF, NOON = 3600.0, 1800.0, 1_800_000_000.0


class Clocks:
    """A clock that jumps, and a steady one."""

    def __init__(self) -> None:
        self.now, self.steady = NOON, 5.0
        self.watch = JumpWatch(lambda: self.now, lambda: self.steady)

    def run(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds


def test_only_jumps_count_not_time_that_passes(caplog: pytest.LogCaptureFixture) -> None:
    """The steady clock runs while the machine sleeps, so a night of sleep ends leases as it should."""
    clocks = Clocks()
    clocks.run(8 * HOUR)
    clocks.now += 1.0  # a leap second
    assert clocks.watch.list_jumps() == ()
    clocks.now += 2 * HOUR
    (jump,) = clocks.watch.list_jumps()
    assert jump == ClockJump(NOON + 10 * HOUR + 1.0, 2 * HOUR + 1.0)
    assert "The clock jumped ahead by 2 h: leases of trials asked before" in caplog.text
    clocks.run(HOUR)
    assert clocks.watch.list_jumps() == (jump,)
    assert len(caplog.records) == 1


def test_a_clock_that_is_set_right_again_extends_nothing() -> None:
    clocks = Clocks()
    clocks.now += 2 * HOUR
    first = clocks.watch.list_jumps()
    clocks.run(60.0)
    clocks.now += HOUR
    assert len(clocks.watch.list_jumps()) == 2
    clocks.now -= HOUR
    assert clocks.watch.list_jumps() == first
    clocks.now -= 0.5 * HOUR
    (rest,) = clocks.watch.list_jumps()
    assert rest == ClockJump(first[0].at, 1.5 * HOUR)
    clocks.now -= 5 * HOUR
    assert clocks.watch.list_jumps() == ()
    clocks.now += HOUR
    assert [jump.seconds for jump in clocks.watch.list_jumps()] == [HOUR]


def test_reading_the_clocks_far_apart_is_no_jump() -> None:
    """As when the process is stopped between the two; they are read again."""
    delays = [0.0, 0.0, 0.0, HOUR, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    passed = [0.0]

    def read_steady() -> float:
        passed[0] += delays.pop(0) if delays else 0.0
        return passed[0]

    watch = JumpWatch(lambda: NOON + passed[0], read_steady)
    for _ in range(5):
        assert watch.list_jumps() == ()
    assert delays == []


def test_trials_asked_before_a_jump_keep_their_remaining_time() -> None:
    """A trial asked after it, and one that another machine asked by the right time, too."""
    ledger = Ledger(Settings.from_options(arms=["A", "B"], cost=1e-9, sigma=1.0))
    jumps = (ClockJump(NOON + 10 * 60 + 2 * HOUR, 2 * HOUR),)

    def ask(trial: int, at: float) -> None:
        ledger.apply(Event(EventKind.ASKED, at, trial, 0, None, True, at + HALF))

    ask(1, NOON)
    assert ledger.overdue(NOON + 10 * 60, ()) == []
    after = jumps[0].at
    assert ledger.overdue(after, jumps) == []
    ask(2, after)
    ask(3, NOON + 11 * 60)
    assert ledger.overdue(after + 20 * 60 - 1, jumps) == []
    assert ledger.overdue(after + 20 * 60, jumps) == [1]
    assert ledger.overdue(after + 30 * 60, jumps) == [2]
    assert ledger.overdue(after + 31 * 60, jumps) == [3]
    assert extend_lease(NOON, NOON + HALF, ()) == NOON + HALF


def test_set_back_leases_end_as_they_did() -> None:
    ledger = Ledger(Settings.from_options(arms=["A", "B"], cost=1e-9, sigma=1.0))
    ledger.apply(Event(EventKind.ASKED, NOON, 1, 0, None, True, NOON + HALF))
    jumps = (ClockJump(NOON + 2 * HOUR, 2 * HOUR),)
    assert ledger.overdue(NOON + 2 * HOUR, jumps) == []
    assert ledger.overdue(NOON + HALF - 1.0, ()) == []
    assert ledger.overdue(NOON + HALF, ()) == [1]
