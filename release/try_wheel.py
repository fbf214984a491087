"""Install a wheel into bare environments and run the README's example there.

    python release/try_wheel.py dist/*.whl python3.11 python3.12

What an interpreter prints must be what the README shows. Those that passed may be listed as classifiers.
"""

import argparse
import doctest
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Try the wheel with each interpreter; exit with an error if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("interpreters", nargs="*", default=[sys.executable])
    arguments = parser.parse_args()
    for interpreter in arguments.interpreters:
        with tempfile.TemporaryDirectory() as folder:
            print(try_wheel(arguments.wheel.resolve(), interpreter, Path(folder)))


def try_wheel(wheel: Path, interpreter: str, folder: Path) -> str:
    """Return a sentence about an interpreter on which the README's example ran."""
    code, expected = read_example()
    environment = folder / "environment"
    run([interpreter, "-m", "venv", str(environment)], folder)
    python = str(environment / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*install, "-c", str(ROOT / "constraints.txt"), str(wheel)], folder)
    began = time.monotonic()
    printed = run([python, "-W", "error", "-c", code], folder)
    seconds = time.monotonic() - began
    if not doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS):
        raise SystemExit(f"{interpreter}: the README shows\n{expected}\nbut this was printed:\n{printed}")
    home = run([python, "-c", "import dbcare; print(dbcare.__file__)"], folder)
    if str(environment) not in home:
        raise SystemExit(f"{interpreter}: the wheel was not used, but {home}")
    command = run([str(environment / "bin" / "dbcare"), "--version"], folder).strip()
    version = run([python, "-c", "import platform; print(platform.python_version())"], folder).strip()
    return f"Python {version}: {command} installed from {wheel.name}; the README's example ran in {seconds:.0f} s."


def read_example() -> tuple[str, str]:
    """Return the first Python block of the README, and the text block after it."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    place = next(place for place, (language, _) in enumerate(blocks) if language == "python")
    (_, code), (language, expected) = blocks[place : place + 2]
    if language != "text":
        raise SystemExit("The README must show what its example prints.")
    return code, expected


def run(command: list[str], folder: Path) -> str:
    """Run a command outside the checkout, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    main()
