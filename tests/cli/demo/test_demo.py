"""`dbcare demo`, in a terminal and in a pipe."""

import io
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dbcare.cli.demo import scene, shop
from tests.helpers.terminal import run_at_terminal, strip_codes

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
    assert result.stdout.splitlines() == scene.summarize(
        shop.simulate(shop.TYPICAL_SEED, only_last=True)[-1], shop.TYPICAL_SEED
    )
    assert result.stderr == ""
    assert not database.exists()


def test_a_terminal_gets_the_animation_and_the_summary() -> None:
    begin = time.monotonic()
    code, written = run_at_terminal([COMMAND, "demo", "--seconds", "3"], dict(os.environ))
    assert code == 0
    assert 3.0 <= time.monotonic() - begin < 60.0
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


@pytest.mark.parametrize(("width", "height"), [(120, 36), (80, 24), (60, 24), (50, 28)])
def test_a_frame_fits_the_terminal(width: int, height: int) -> None:
    """Also where lines are wrapped: nothing is cut off, and the state of the study is in the last line."""
    moments = shop.simulate(2, only_last=True)
    console = Console(width=width, height=height, file=io.StringIO())
    console.print(scene.make_frame(moments, scene.make_axes(moments), width, height))
    rows = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # a StringIO
    assert len(rows) == height
    assert rows[-1].strip() == "Break-even. Stopped: choose Free shipping"


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


def test_only_the_typical_run_is_called_typical() -> None:
    last = shop.simulate(2, only_last=True)[-1]
    assert not [line for line in scene.summarize(last, 2) if "typical" in line]
    assert len([line for line in scene.summarize(last, shop.TYPICAL_SEED) if "typical" in line]) == 1


def test_a_wrong_choice_is_called_wrong() -> None:
    """A page that sells less by 4 points, of which each is worth 10,000 USD."""
    last = shop.simulate(2, only_last=True)[-1]
    wrong = replace(last, choice=replace(last.choice, arm="20% off today"))
    truth = "20% off today sells to 12% of visitors, but Free shipping to 16%, so this choice loses 40,000 USD."
    assert scene.describe_truth(wrong).endswith(truth)
    assert scene.describe_truth(last).endswith("Free shipping sells to 16% of visitors and is the best of all.")
    assert shop.compute_total_loss(wrong) == pytest.approx(last.choice.spent + 40_000)


@pytest.mark.soak
def test_the_run_that_is_shown_is_typical() -> None:
    """It has the median total loss, as the demo says; the best page was chosen as often as it says."""
    ends = [shop.simulate(seed, only_last=True)[-1] for seed in range(shop.COMPARED_RUNS)]
    losses = [shop.compute_total_loss(last) for last in ends]
    assert losses[shop.TYPICAL_SEED] == pytest.approx(statistics.median(losses))
    assert sum(last.choice.arm == "Free shipping" for last in ends) == shop.RUNS_THAT_CHOSE_BEST
    assert all(last.status.policy_loss is not None and last.status.policy_loss <= last.choice.spent for last in ends)
