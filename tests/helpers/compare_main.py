"""A comparison in a process of its own, which notes every call in a file: `compare_main.py STORAGE JOURNAL SLEEP`."""

import sys
import time
from pathlib import Path

import dbcare

QUESTIONS = {f"q{number}": number for number in range(60)}


def make_arm(name: str, level: float, journal: Path, pause: float) -> object:
    def answer(number: int) -> dbcare.Priced:
        with journal.open("a") as file:
            file.write(f"{name} q{number}\n")
        time.sleep(pause)
        return dbcare.Priced(level + 0.05 * (number * 7 % 11) + 0.02 * (number * len(name) % 5), 0.01)

    return answer


def main() -> None:
    storage, journal, pause = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    arms = {name: make_arm(name, level, journal, pause) for name, level in (("a", 0.5), ("bb", 0.5), ("ccc", 0.51))}
    comparison = dbcare.compare(
        arms,  # type: ignore[arg-type]  # they are functions
        QUESTIONS,
        value=20_000,
        price=0.01,
        name="kill",
        storage=storage,
        progress=False,
        at_once=4,
    )
    choice = comparison.recommendation
    sys.stdout.write(f"{choice.arm} {choice.final} {choice.spent:.4f}\n")


if __name__ == "__main__":
    main()
