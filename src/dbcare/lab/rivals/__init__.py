"""Rules from the literature, measured: experiments in TOML files as for `dbcare sweep` (see `lab.experiments.definition`)."""

from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("rivals", "rivals_parts", "rivals_drug")  # in report order


def find_definition(name: str) -> Path:
    """Return the file that defines an experiment."""
    return FOLDER / f"{name}.toml"
