"""`dbcare demo`, in a terminal and in a pipe."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.terminal import run_at_terminal, strip_codes

from dbcare.cli.demo import scene, shop

COMMAND = Path(sys.executable).with_name("dbcare")
OWN_SCREEN, OLD_SCREEN, CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


def test_a_pipe_gets_only_the_summary(tmp_path: Path) -> None:
    """At once and without colors; the user's own storage is not touched."""
    database = tmp_path / "mine.db"
    result = subprocess.run(
        [COMMAND, "demo", "--seconds", "600"],
        capture_output=True, text=True, check=True, timeout=60,
        env=os.environ | {"DBCARE_STORAGE": f"sqlite:///{database}"},
    )  # fmt: skip
    assert result.stdout.splitlines() == scene.summarize(shop.simulate(0)[-1])
    assert result.stderr == ""
    assert not database.exists()


def test_a_terminal_gets_the_animation_and_the_summary() -> None:
    begin = time.monotonic()
    code, written = run_at_terminal([COMMAND, "demo", "--seconds", "2"], dict(os.environ))
    assert code == 0
    assert 2.0 <= time.monotonic() - begin < 30.0
    before, _, rest = written.partition(OWN_SCREEN)
    film, _, after = rest.partition(OLD_SCREEN)
    assert before.strip() == ""
    counted = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+) counted", strip_codes(film))]
    assert len(set(counted)) > 5  # that many different frames, in order
    assert counted == sorted(counted)
    assert "a real study in a simulated shop" in strip_codes(film)
    assert "Break-even." in strip_codes(film)
    assert CURSOR in film + after
    assert "Start your own:" in strip_codes(after)
    assert all(len(line) <= 80 for line in strip_codes(after).splitlines())


def test_control_c_restores_the_terminal() -> None:
    code, written = run_at_terminal([COMMAND, "demo", "--seconds", "50"], dict(os.environ), interrupt_after=0.3)
    assert code == 130
    assert written.rfind(OLD_SCREEN) > written.rfind(OWN_SCREEN) >= 0
    assert CURSOR in written[written.rfind(OWN_SCREEN) :]
    assert "Traceback" not in written


def test_an_invalid_duration_is_refused_in_one_line() -> None:
    result = subprocess.run([COMMAND, "demo", "--seconds", "0"], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "Error: `--seconds` must be positive but got 0.0.\n"


def test_the_simulated_shop() -> None:
    """Rewards arrive late and out of order; the study stops where the loss that the policy weighs meets the spend."""
    moments = shop.simulate(1)
    last = moments[-1]
    assert last.status.state == "stopped"
    assert any(moment.status.held for moment in moments)
    assert last.status.policy_loss is not None
    assert last.status.policy_loss <= last.choice.spent
    running = [moment.status for moment in moments[:-1] if moment.status.policy_loss is not None]
    assert all(status.policy_loss > status.spent - shop.PRICE * 2 * shop.SERVERS for status in running)  # type: ignore[operator]  # known while it runs
    counted = sum(arm.trials for arm in last.status.arms)
    assert last.choice.spent >= round(counted * shop.PRICE, 6)
    assert sum(last.recent) == pytest.approx(1.0)
    # Visitors follow the rates: no mean is more than 5 standard errors away (seed 1; by chance about 1 in 300,000).
    for arm, rate in zip(last.status.arms, shop.RATES.values(), strict=True):
        assert arm.mean is not None
        assert abs(arm.mean - rate) < 5.0 * (rate * (1.0 - rate) / arm.trials) ** 0.5
