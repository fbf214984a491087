"""The command line: parses, calls, prints. Everything heavy is imported by the command that needs it."""

import contextlib
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Find the best of K options when every observation costs money.",
)


class Family(StrEnum):
    """Reward families that the command line simulates."""

    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"


class RiskName(StrEnum):
    """Losses by their short names."""

    REGRET = "regret"
    ERROR = "error"


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


@app.command()
def simulate(
    policy: Annotated[str, typer.Option(help="Name of the policy, such as dbcare or racing.")],
    means: Annotated[str, typer.Option(help="True means of the arms, such as 0.5,0,0.")],
    cost: Annotated[float, typer.Option(help="Cost of a pull, in units of the loss.")],
    risk: Annotated[
        RiskName, typer.Option(help="regret: gap of the choice; error: 1 if it is wrong.")
    ] = RiskName.REGRET,
    family: Annotated[Family, typer.Option(help="What rewards are like.")] = Family.GAUSSIAN,
    sigma: Annotated[float, typer.Option(help="Standard deviation of Gaussian rewards.")] = 1.0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the policy, such as delta=0.1.")] = None,
    runs: Annotated[float, typer.Option(help="How many runs, where Monte Carlo is needed.")] = 1e5,
    seed: Annotated[int, typer.Option(help="Seed of the runs.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, exact, skip or direct.")] = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads; all processors if not given.")] = None,
    format: Annotated[Format, typer.Option(help="How to print.")] = Format.TABLE,  # noqa: A002  # the flag's name
) -> None:
    """How good a policy is if the truth were known: one evaluation."""
    from dbcare import Bandit, Risk, evaluate, validation
    from dbcare.lab.catalog import Problem, policy_by_name

    with friendly_errors():
        numbers = [number("means", each) for each in means.split(",")]
        bandit = Bandit.bernoulli(numbers) if family is Family.BERNOULLI else Bandit.gaussian(numbers, sigma)
        make = Risk.simple_regret if risk is RiskName.REGRET else Risk.misidentification
        problem = Problem(bandit, make(cost))
        chosen = policy_by_name(policy, problem, dict(parsed(each) for each in option or []))
        many = validation.whole("runs", runs, at_least=1)
        found = evaluate(chosen, bandit, problem.risk, many, seed, engine, threads)
    typer.echo(json.dumps(found.to_dict(), indent=2) if format is Format.JSON else str(found))


def number(name: str, text: str) -> float:
    """A number typed by the user."""
    from dbcare.errors import InvalidValueError

    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"`{name}` must be a number but got {text!r}.") from None


def parsed(option: str) -> tuple[str, float | int | str]:
    """`name=value` as a name and a number, or a text if it is none."""
    name, _, text = option.partition("=")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(text)
    return name, text


@contextlib.contextmanager
def friendly_errors() -> Iterator[None]:
    """Errors of the library in one line, and exit code 2."""
    from dbcare.errors import DbcareError

    try:
        yield
    except DbcareError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the figures and their numbers.")] = Path("out"),
) -> None:
    """Reproduce the paper's figure of bounds and its two-arm experiments."""
    from dbcare.lab.bounds import draw_bounds
    from dbcare.lab.two_arm import draw_two_arm

    for path in draw_bounds(out) + draw_two_arm(out):
        typer.echo(path)


def main() -> None:
    """Entry point of the `dbcare` command."""
    app()
