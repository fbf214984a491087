"""Every example runs offline, and reaches the right conclusion."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(name: str, *changes: str) -> str:
    """Return what an example prints, with some of its constants changed."""
    module = name.removesuffix(".py")
    changed = "".join(f"{module}.{change}; " for change in changes)
    process = subprocess.run(
        [sys.executable, "-B", "-c", f"import {module}; {changed}{module}.main()"]
        if changes
        else [sys.executable, name],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    notes = [line for line in process.stderr.splitlines() if not line.startswith("Created the database sqlite:")]
    assert notes == []
    return process.stdout


def test_every_example_has_a_test() -> None:
    tests = Path(__file__).read_text()
    assert len(list(EXAMPLES.glob("*.py"))) == 4
    assert all(f'run_example("{example.name}"' in tests for example in EXAMPLES.glob("*.py"))


def test_shop_finds_its_best_page() -> None:
    """Who sees what depends on timing, so the pages differ by more than in the example.

    The wrong page then has a probability of about 1e-8 (400,000 simulated runs, pooled).
    """
    output = run_example("shop.py", 'CHANCE_TO_BUY = {"one page": 0.9, "three steps": 0.2, "with account": 0.1}')
    assert re.search(r"^one page \(final, [^)]*\): stopped after", output, re.MULTILINE)
    visitors = [int(count) for count in re.findall(r"(\d+) visitors, +\d+% bought", output)]
    assert len(visitors) == 3
    came, counted = re.findall(r"(\d+) visitors came, (\d+) of them in the study", output)[0]
    assert min(visitors) > 0
    assert sum(visitors) <= int(counted) <= int(came)


def test_prompts_are_compared_for_a_fraction_of_the_price() -> None:
    """Asking everything costs 300 times the prices of the three prompts and of three judgments: 6 USD."""
    output = run_example("prompts.py", "DECISIONS = 12")
    assert re.match(r"Choose (with examples|step by step)", output)
    spent, lost = re.findall(r"12 decisions: ([\d.]+) USD spent and ([\d.]+) USD lost", output)[0]
    (full,) = re.findall(r"Asking everything would have cost ([\d.]+) USD", output)
    assert float(full) == pytest.approx(300 * (0.002 + 0.006 + 0.009 + 3 * 0.001), rel=0.05)
    assert 0.0 < float(spent) < 0.3 * float(full)
    assert float(spent) + float(lost) < 0.5 * float(full)
    assert "\n0 chose the worst prompt." in output


def test_model_choice_needs_fewer_fits_than_cross_validation() -> None:
    output = run_example("model_choice.py", "FOLDS = 5")
    fits, spent = re.findall(r"The study: support vectors \(.*\), (\d+) fits, (\d+) cents", output)[0]
    all_fits, all_spent = re.findall(r"cross-validation: support vectors, (\d+) fits, (\d+) cents", output)[0]
    assert int(all_fits) == 25
    assert 5 < int(fits) < int(all_fits)
    assert 15 < int(spent) < int(all_spent)


def test_search_needs_fewer_fits_than_a_grid_search() -> None:
    """GridSearchCV says what the choice loses on the same folds; 16 candidates take at least three folds each."""
    output = run_example("search_digits.py", "GRID['n_neighbors'] = [1, 3, 6, 20]")  # half of them
    (fits,) = re.findall(r"^The search: .*, (\d+) fits$", output, re.MULTILINE)
    (all_fits,) = re.findall(r"^GridSearchCV: .*, (\d+) fits$", output, re.MULTILINE)
    (loss,) = re.findall(r"The search loses ([\d.]+) of the mean score", output)
    assert int(all_fits) == 160
    assert 48 <= int(fits) < 0.6 * int(all_fits)
    assert 0.0 <= float(loss) < 0.005
