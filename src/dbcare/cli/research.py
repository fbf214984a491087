"""Commands for researchers: one evaluation, the paper's experiments, experiments of one's own, and the theory."""

import contextlib
import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.shared import RiskName, Threads, friendly_errors, numbers_of, one_or_each

if TYPE_CHECKING:
    from dbcare.lab.experiment import Experiment


class Family(StrEnum):
    """Reward families that the command line simulates."""

    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"


class EvaluationFormat(StrEnum):
    """How an evaluation is printed: too deep for a table of lines."""

    TABLE = "table"
    JSON = "json"


Out = Annotated[Path, typer.Option(help="Folder for results, figures, tables and the report.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few points and runs, to see that all works.")]
Seed = Annotated[int | None, typer.Option(help="Seed of all runs, instead of the experiments' own.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler that does the work instead.")]


def simulate(
    policy: Annotated[str, typer.Option(help="Name of the policy, such as dbcare or racing.")],
    means: Annotated[str, typer.Option(help="True means of the arms, such as 0.5,0,0.")],
    cost: Annotated[
        str, typer.Option(help="Cost of a pull, in units of the loss; or one for each arm, such as 1e-3,2e-3.")
    ],
    risk: Annotated[
        RiskName, typer.Option(help="regret: gap of the choice; error: 1 if it is wrong.")
    ] = RiskName.REGRET,
    family: Annotated[Family, typer.Option(help="What rewards are like.")] = Family.GAUSSIAN,
    sigma: Annotated[float, typer.Option(help="Standard deviation of Gaussian rewards.")] = 1.0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the policy, such as delta=0.1.")] = None,
    runs: Annotated[float, typer.Option(help="How many runs, where Monte Carlo is needed.")] = 1e5,
    seed: Annotated[int, typer.Option(help="Seed of the runs.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, exact, skip or direct.")] = "auto",
    threads: Threads = None,
    shape: Annotated[EvaluationFormat, typer.Option("--format", help="How to print.")] = EvaluationFormat.TABLE,
) -> None:
    """How good a policy is if the truth were known: one evaluation."""
    from dbcare import Bandit, Risk, evaluate, validation
    from dbcare.lab.bandit_names import Problem, policy_by_name

    with friendly_errors():
        numbers = numbers_of("means", means)
        bandit = Bandit.bernoulli(numbers) if family is Family.BERNOULLI else Bandit.gaussian(numbers, sigma)
        make = Risk.simple_regret if risk is RiskName.REGRET else Risk.misidentification
        problem = Problem(bandit, make(one_or_each("cost", cost)), bound=max(bandit.spread, 1.0))
        chosen = policy_by_name(policy, problem, dict(parsed(each) for each in option or []))
        many = validation.whole("runs", runs, at_least=1)
        found = evaluate(chosen, bandit, problem.risk, many, seed, engine, threads)
    typer.echo(json.dumps(found.to_dict(), indent=2) if shape is EvaluationFormat.JSON else str(found))


WORDS = {"true": True, "false": False, "none": None}


def parsed(option: str) -> tuple[str, float | int | str | bool | None]:
    """`name=value` as a name and a number, true, false or none, or else a text."""
    name, _, text = option.partition("=")
    if text.lower() in WORDS:
        return name, WORDS[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(text)
    return name, text


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments; all if none is named.")] = None,
    out: Out = Path("out"),
    quick: Quick = False,
    full: Annotated[bool, typer.Option("--full", help="As many runs for our policies too; an hour.")] = False,
    threads: Threads = None,
    seed: Seed = None,
    dask: Dask = None,
    list_them: Annotated[bool, typer.Option("--list", help="Say which experiments there are.")] = False,
) -> None:
    """The paper's experiments: figures, numbers, and its claims checked. What is on disk is not run again."""
    from dbcare import validation
    from dbcare.lab import bounds, definition, paper

    with friendly_errors():
        known = [bounds.NAME, *paper.NAMES]
        chosen = [validation.one_of("names", name, known) for name in names or known]
        experiments = [
            definition.load(paper.file(name), seed=seed, quick=quick, full=full)
            for name in paper.NAMES
            if name in chosen
        ]
        if list_them:
            if bounds.NAME in chosen:
                typer.echo(f"{bounds.NAME:<14} {bounds.TITLE} ({bounds.SOURCE})")
            for each in experiments:
                typer.echo(f"{each.name:<14} {each.title} ({each.source}): {len(set(each.points)):,} points")
            return
        title = "Balancing Performance and Costs in Best Arm Identification, reproduced"
        if quick:
            title += " (a quick look: with few points and runs, verdicts mean little)"
        whole = not quick and set(chosen) == set(known)
        run(experiments, out, threads, dask, title, whole_paper=whole, bounds=bounds.NAME in chosen)


def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML file that describes the experiment; see docs/sweeps.md.")],
    out: Annotated[Path | None, typer.Option(help="Folder for everything; out/NAME if not given.")] = None,
    quick: Quick = False,
    threads: Threads = None,
    seed: Seed = None,
    dask: Dask = None,
) -> None:
    """Your own experiment, with figures and a report. What is on disk is not run again."""
    from dbcare.lab import definition

    with friendly_errors():
        experiment = definition.load(file, seed=seed, quick=quick)
        run([experiment], out or Path("out") / experiment.name, threads, dask, experiment.title)


def run(
    experiments: "list[Experiment]",
    out: Path,
    threads: int | None,
    dask: str | None,
    title: str,
    *,
    whole_paper: bool = False,
    bounds: bool = False,
) -> None:
    """Run experiments and say what was written where."""
    from rich.console import Console

    from dbcare import validation
    from dbcare.lab.reproduce import RESULTS, reproduce
    from dbcare.lab.sweep import local_workers

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if dask is not None:
        from dbcare.lab.cluster import dask_workers

        workers = dask_workers(dask)
    else:
        workers = local_workers(None if threads is None else validation.whole("threads", threads, at_least=1))
    try:
        written = reproduce(experiments, out, workers, console, title=title, whole_paper=whole_paper, bounds=bounds)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What is done is in {out / RESULTS}; the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    (hold, claims), (our_hold, ours) = written.claims, written.of_ours
    said = f" {hold} of {claims} claims hold." if claims else ""
    said += f" Of {ours} about our own policies, {our_hold} hold." if ours else ""
    made = f"Computed {written.computed:,} points." if written.drawn else "Nothing to do: all is up to date."
    typer.echo(f"{made}{said} {len(written.files)} files in {out}, see {written.files[0]}")


def bounds(
    cost: Annotated[float, typer.Option(help="Cost of a pull, in units of the loss.")] = 1e-4,
    sigma: Annotated[float, typer.Option(help="Sub-Gaussian parameter of the rewards.")] = 1.0,
    arms: Annotated[int, typer.Option(help="Number of arms; more than two: one is better than all others.")] = 2,
    smallest: Annotated[float, typer.Option(help="Smallest gap.")] = 3e-3,
    largest: Annotated[float, typer.Option(help="Largest gap.")] = 3.0,
    points: Annotated[int | None, typer.Option(help="How many gaps: 13 in a table, 200 in a figure.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw PATH.svg and PATH.png instead of a table.")] = None,
) -> None:
    """What theory says: lower bounds for any policy, upper bounds for DBCARE and the oracle, by gap."""
    from rich.console import Console
    from rich.table import Table

    from dbcare.lab import bounds as theory
    from dbcare.risk import Loss

    with friendly_errors():
        setup = theory.Setup(
            cost, sigma, arms, smallest, largest, (13 if figure is None else 200) if points is None else points
        )
        if figure is not None:
            from dbcare.lab.figures import draw

            for path in draw(
                figure.with_suffix("") if figure.suffix in (".svg", ".png") else figure,
                setup.title,
                theory.plots(setup),
                columns=2,
            ):
                typer.echo(path)
            return
        for loss in Loss:
            found = theory.bounds(setup, loss)
            table = Table("gap", *found, title=f"{str(loss).replace('_', ' ')}: {setup.title}", title_justify="left")
            for row in zip(setup.gaps, *found.values(), strict=True):
                table.add_row(*(f"{value:.4g}" for value in row))
            Console().print(table)
