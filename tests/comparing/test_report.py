"""What a person sees while a comparison runs in a terminal."""

import os
import re
import sys
from pathlib import Path

import dbcare
from tests.helpers.terminal import run_at_terminal, strip_codes

CODE = """
import random, time, dbcare

def make(name):
    def answer(number):
        time.sleep(0.05)
        return random.Random(f"{name} {number}").random()
    return answer

dbcare.compare({name: make(name) for name in "AB"}, range(120), value=1e6, price=0.01, max_spend=50, name="prompts",
               at_once=4)
"""


def test_a_live_line_in_a_terminal() -> None:
    """The calls take 3 seconds: the line is drawn again in place, and the last one stays."""
    environment = os.environ | {"PYTHONPATH": str(Path(dbcare.__file__).parents[1])}
    code, output = run_at_terminal([sys.executable, "-c", CODE], environment, columns=120)
    assert code == 0
    lines = re.findall(
        r"prompts: ([\d.]+) USD of 50\.00 USD spent, (\d+) of 120 questions, (A|B) (leads|chosen), expected loss",
        strip_codes(output),
    )
    assert len(lines) >= 3
    spent = [float(amount) for amount, *_ in lines]
    assert spent == sorted(spent)
    assert [state for *_, state in lines].count("chosen") == 1
    assert lines[-1][3] == "chosen"
    assert "\x1b[" in output  # redrawn in place
