"""Run a benchmark: `python -m benchmarks NAME [--quick] [--out DIR]`. `all` runs every one; no name lists them."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def find_benchmarks() -> dict[str, Path]:
    """Return the file of every benchmark, by its name."""
    return {path.stem: path for kind in ("quality", "speed") for path in sorted((FOLDER / kind).glob("[!_]*.py"))}


def list_benchmarks() -> None:
    """Print the names, each with the first line of what it says about itself."""
    kind = ""
    for name, path in find_benchmarks().items():
        if path.parent.name != kind:
            kind = path.parent.name
            print(f"{kind}:")
        print(f"  {name:<18}{(ast.get_docstring(ast.parse(path.read_text())) or '').splitlines()[0]}")
    print("\npython -m benchmarks NAME [--quick]; `all` instead of a name runs every one")


def run_all(options: list[str]) -> None:
    """Run every benchmark in a process of its own, also after one has failed."""
    failed = []
    for name in find_benchmarks():
        print(f"\n{name}", flush=True)
        if subprocess.run([sys.executable, "-m", "benchmarks", name, *options], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"These benchmarks failed: {', '.join(failed)}")


def main() -> None:
    if len(sys.argv) == 1:
        list_benchmarks()
        return
    name, *options = sys.argv[1:]
    path = find_benchmarks().get(name)
    if name == "all":
        run_all(options)
    elif name in ("-h", "--help"):
        print(__doc__)
    elif path is None:
        sys.exit(f"There is no benchmark {name!r}; `python -m benchmarks` lists their names.")
    else:
        sys.argv = [str(path), *options]
        importlib.import_module(f"benchmarks.{path.parent.name}.{name}").main()


if __name__ == "__main__":
    main()
