"""Every example runs offline, and finds out what there is to find out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed_by(example: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(EXAMPLES / example)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


def test_no_example_is_left_out() -> None:
    tests = Path(__file__).read_text()
    assert len(list(EXAMPLES.glob("*.py"))) == 3
    assert all(f'printed_by("{example.name}")' in tests for example in EXAMPLES.glob("*.py"))


def test_the_shop_finds_its_best_page() -> None:
    """Who sees what depends on timing; the chance of a wrong choice is below 2e-4 (20,000 simulated runs: none)."""
    said = printed_by("shop.py")
    assert re.search(
        r"^one page \(final, (clear winner|too close to be worth more)\): stopped after", said, re.MULTILINE
    )
    visitors = [int(found) for found in re.findall(r"(\d+) visitors, +\d+% bought", said)]
    assert len(visitors) == 3
    came, counted = re.findall(r"(\d+) visitors came, (\d+) of them in the study", said)[0]
    assert 20 < sum(visitors) <= int(counted) <= int(came)


def test_pairs_save_money() -> None:
    """The standard deviations are known: sqrt(0.3^2 + 0.1^2) of a score and 0.1 / sqrt(2) of half a difference."""
    said = printed_by("prompts.py")
    score, half = (float(found) for found in re.findall(r"(0\.\d+) of", said.splitlines()[0]))
    assert score == pytest.approx(0.316, rel=0.15)
    assert half == pytest.approx(0.0707, rel=0.15)
    (wrong, wrong_in_pairs) = (int(found) for found in re.findall(r"(\d+) of 200 choices wrong", said))
    assert wrong_in_pairs <= wrong < 20
    (times,) = re.findall(r"([\d.]+) times the", said)
    assert 3.0 < float(times) < 10.0  # 1 / (1 - r) = 10 is what they would save at the same precision


def test_a_model_is_chosen_with_fewer_fits() -> None:
    said = printed_by("model_choice.py")
    (fits, spent) = re.findall(r"The study: support vectors \(.*\), (\d+) fits, (\d+) cents", said)[0]
    (all_fits, all_spent) = re.findall(r"cross-validation: support vectors, (\d+) fits, (\d+) cents", said)[0]
    assert 5 < int(fits) < int(all_fits)
    assert 15 < int(spent) < int(all_spent)
