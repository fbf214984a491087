"""The paper's experiments, each defined in a TOML file as for `dbcare sweep` (see `lab.experiments.definition`)."""

from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("two_arm", "one_sparse", "linear_decay", "drug")  # in report order


def find_definition(name: str) -> Path:
    """Return the file that defines an experiment."""
    return FOLDER / f"{name}.toml"
