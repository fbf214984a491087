"""The paper's experiments, each as a TOML file of the kind that `dbcare sweep` takes (see `lab.definition`)."""

from pathlib import Path

FOLDER = Path(__file__).parent
NAMES = ("two_arm", "one_sparse", "linear_decay", "drug")  # in the order of the report


def file(name: str) -> Path:
    """The definition of one experiment."""
    return FOLDER / f"{name}.toml"
