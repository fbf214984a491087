"""Commands for researchers: evaluate a policy, print bounds, run experiments, and compile kernels in advance."""

import contextlib
import errno
import json
import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.shared import RISK_HELP, Threads, friendly_errors, parse_amounts, parse_numbers

if TYPE_CHECKING:
    from dbcare.lab.experiments.experiment import Experiment
    from dbcare.lab.warm_up import Done, Task


def warm_up(
    policies: Annotated[list[str] | None, typer.Argument(help="Names of policies. Default: all that ship.")] = None,
    processes: Annotated[int | None, typer.Option(help="Number of processes. Default: all CPUs.")] = None,
) -> None:
    """Compile the simulators of all policies now, so that no later command waits. Takes a minute or two, once."""
    from dbcare.base import checks
    from dbcare.engines.kernels.cache import cache_folder
    from dbcare.lab.warm_up import list_shipped, plan_tasks
    from dbcare.policies.registry import POLICIES

    with friendly_errors():
        names = [POLICIES.entry(name, "policies").name for name in policies or list_shipped()]
        width = None if processes is None else checks.whole("processes", processes, at_least=1)
        require_writable(folder := cache_folder())
    began = time.monotonic()
    try:
        compiled, found = show_progress(plan_tasks(names), width)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Finished kernels are in {folder}; the same command resumes from there.", err=True)
        raise typer.Exit(130) from None
    seconds = time.monotonic() - began
    there = f"{found} {'was' if found == 1 else 'were'} already there"
    typer.echo(f"Compiled {format_kernels(compiled)} in {seconds:.0f} s; {there}. All are in {folder}.")


def require_writable(folder: Path) -> None:
    """Create the folder if needed; raise PermissionError if nothing can be written there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def show_progress(tasks: "list[Task]", processes: int | None) -> tuple[int, int]:
    """Run tasks with a bar on a terminal, plain lines elsewhere; return how many kernels were compiled and found."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from dbcare.lab.warm_up import run_tasks

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    compiled: set[str] = set()
    found: set[str] = set()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("starting", total=len(tasks))
        for done in run_tasks(tasks, processes):
            compiled |= done.compiled
            found |= done.found
            progress.update(bar, advance=1, description=done.task.label)
            if done.compiled and not console.is_terminal:
                console.print(format_done(done))
    return len(compiled), len(found - compiled)


def format_done(done: "Done") -> str:
    """Format a finished task as a line."""
    return f"{format_kernels(len(done.compiled))} for {done.task.label} ({done.seconds:.0f} s)"


def format_kernels(count: int) -> str:
    """Format a number of kernels."""
    return f"{count} kernel{'' if count == 1 else 's'}"


class Family(StrEnum):
    """Reward families that the command line simulates."""

    GAUSSIAN = "gaussian"
    BERNOULLI = "bernoulli"


class EvaluationFormat(StrEnum):
    """How an evaluation is printed; it is too nested for CSV."""

    TABLE = "table"
    JSON = "json"


Quick = Annotated[bool, typer.Option("--quick", help="Use few points and runs, to check that everything works.")]
Seed = Annotated[int | None, typer.Option(help="Random seed of all runs. Default: the experiments' own.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to use instead of this machine.")]


def simulate(
    policy: Annotated[str, typer.Option(help="Name of a registered policy, or module:function.")],
    means: Annotated[str, typer.Option(help="True means of the arms, such as 0.5,0,0.")],
    cost: Annotated[str, typer.Option(help="Cost of a pull in units of the loss, or one per arm, such as 1e-3,2e-3.")],
    risk: Annotated[str, typer.Option(help=RISK_HELP)] = "simple_regret",
    family: Annotated[Family, typer.Option(help="Distribution of the rewards.")] = Family.GAUSSIAN,
    sigma: Annotated[float, typer.Option(help="Standard deviation of Gaussian rewards.")] = 1.0,
    option: Annotated[list[str] | None, typer.Option(help="Option of the policy, such as delta=0.1.")] = None,
    runs: Annotated[float, typer.Option(help="Number of runs, where simulation is needed.")] = 1e5,
    seed: Annotated[int, typer.Option(help="Random seed of the runs.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, exact, skip or direct.")] = "auto",
    threads: Threads = None,
    shape: Annotated[EvaluationFormat, typer.Option("--format", help="Output format.")] = EvaluationFormat.TABLE,
) -> None:
    """Evaluate a policy on arms with known means."""
    from dbcare import Bandit, Loss, Risk, build_policy, evaluate
    from dbcare.base import checks

    with friendly_errors():
        numbers = parse_numbers("means", means)
        bandit = Bandit.bernoulli(numbers) if family is Family.BERNOULLI else Bandit.gaussian(numbers, sigma)
        loss = Loss(checks.one_of("risk", risk, list(Loss)))
        price = Risk(loss, parse_amounts("cost", cost))  # type: ignore[arg-type]  # a list becomes a tuple
        chosen = build_policy(policy, bandit, price, **dict(parse_option(text) for text in option or []))
        count = checks.whole("runs", runs, at_least=1)
        evaluation = evaluate(chosen, bandit, price, count, seed, engine, threads)
    typer.echo(json.dumps(evaluation.to_dict(), indent=2) if shape is EvaluationFormat.JSON else str(evaluation))


WORDS = {"true": True, "false": False, "none": None}


def parse_option(option: str) -> tuple[str, float | int | str | bool | None]:
    """Parse `name=value` into a name and a number, true, false or none, or else a text."""
    name, _, text = option.partition("=")
    if text.lower() in WORDS:
        return name, WORDS[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, kind(text)
    return name, text


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Names of experiments. Default: all.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all output. Default: out, or out/rivals.")] = None,
    quick: Quick = False,
    threads: Threads = None,
    seed: Seed = None,
    dask: Dask = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    with_rivals: Annotated[
        bool, typer.Option("--rivals", help="Compare rules from the literature instead of reproducing the paper.")
    ] = False,
) -> None:
    """Reproduce the paper's experiments: figures, numbers and verdicts on its claims. Results on disk are reused."""
    from dbcare.lab import bounds, paper, rivals
    from dbcare.lab.experiments import definition

    with friendly_errors():
        source = rivals if with_rivals else paper
        known = [*([] if with_rivals else [bounds.NAME]), *source.NAMES]
        chosen = choose_experiments(names or known, known, with_rivals)
        experiments = [
            definition.load(source.find_definition(name), seed=seed, quick=quick)
            for name in source.NAMES
            if name in chosen
        ]
        if list_them:
            if bounds.NAME in chosen:
                typer.echo(f"{bounds.NAME:<14} {bounds.TITLE} ({bounds.SOURCE})")
            for experiment in experiments:
                points = f"{len(set(experiment.points)):,} points"
                typer.echo(f"{experiment.name:<14} {experiment.title} ({experiment.source}): {points}")
            return
        title = "Balancing Performance and Costs in Best Arm Identification, reproduced"
        if with_rivals:
            title = "Rules from the literature, measured by loss plus cost"
        if quick:
            title += " (quick: with so few points and runs, verdicts mean little)"
        folder = out or (Path("out/rivals") if with_rivals else Path("out"))
        whole = not with_rivals and not quick and set(chosen) == set(known)
        run(experiments, folder, threads, dask, title, quick=quick, whole_paper=whole, bounds=bounds.NAME in chosen)


def choose_experiments(names: list[str], known: list[str], with_rivals: bool) -> list[str]:
    """Return the names, if all are known; where `--rivals` was forgotten or is too much, say so.

    Hyphens serve for underscores, as in the names of bandits.
    """
    from dbcare.base import checks
    from dbcare.errors import InvalidValueError
    from dbcare.lab import bounds, paper, rivals

    every = {*known, *paper.NAMES, *rivals.NAMES}
    names = [plain if (plain := name.replace("-", "_")) in every else name for name in names]
    for name in names:
        if name not in known and with_rivals and name in (bounds.NAME, *paper.NAMES):
            raise InvalidValueError(f"{name} is one of the paper's experiments; leave out --rivals to run it.")
        if name not in known and name in rivals.NAMES:
            raise InvalidValueError(f"{name} is about rules from the literature; add --rivals to run it.")
    return [checks.one_of("names", name, known) for name in names]


def sweep(
    file: Annotated[Path, typer.Argument(help="A TOML file that describes the experiment; see docs/sweeps.md.")],
    out: Annotated[Path | None, typer.Option(help="Folder for all output. Default: out/NAME.")] = None,
    quick: Quick = False,
    threads: Threads = None,
    seed: Seed = None,
    dask: Dask = None,
) -> None:
    """Run an experiment of your own, with figures and a report. Results on disk are reused."""
    from dbcare.lab.experiments import definition

    with friendly_errors():
        experiment = definition.load(file, seed=seed, quick=quick)
        folder = out or Path("out") / experiment.name
        run([experiment], folder, threads, dask, experiment.title, quick=quick, modules=file.parent)


def run(
    experiments: "list[Experiment]",
    out: Path,
    threads: int | None,
    dask: str | None,
    title: str,
    *,
    quick: bool,
    whole_paper: bool = False,
    bounds: bool = False,
    modules: Path | None = None,
) -> None:
    """Run experiments and print what was written where; Dask workers get the modules that are in folder `modules`."""
    from rich.console import Console

    from dbcare.base import checks
    from dbcare.lab.experiments.sweep import make_local_workers
    from dbcare.lab.reproduce import RESULTS, reproduce

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    if dask is not None:
        from dbcare.lab.experiments.sweep import make_dask_workers

        workers = make_dask_workers(dask, modules)
    else:
        workers = make_local_workers(None if threads is None else checks.whole("threads", threads, at_least=1))
    try:
        reproduction = reproduce(
            experiments, out, workers, console, title=title, whole_paper=whole_paper, bounds=bounds
        )
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Finished results are in {out / RESULTS}; the same command resumes from there.", err=True)
        raise typer.Exit(130) from None
    (hold, claims), (our_hold, ours) = reproduction.paper_claims, reproduction.our_claims
    verdicts = f" Claims of the paper that hold: {hold} of {claims}." if claims else ""
    verdicts += f" Other claims that hold: {our_hold} of {ours}." if ours else ""
    if verdicts and quick:
        verdicts += " These verdicts rest on few points and runs; leave out --quick to judge the claims."
    done = "Nothing to do: everything is up to date."
    if reproduction.drawn:
        done = f"Computed {reproduction.computed:,} points."
    typer.echo(f"{done}{verdicts} {len(reproduction.files)} files in {out}; start with {reproduction.files[0]}")


def bounds(
    cost: Annotated[float, typer.Option(help="Cost of a pull, in units of the loss.")] = 1e-4,
    sigma: Annotated[float, typer.Option(help="Sub-Gaussian parameter of the rewards.")] = 1.0,
    arms: Annotated[int, typer.Option(help="Number of arms; with more than two, one is better than all others.")] = 2,
    smallest: Annotated[float, typer.Option(help="Smallest gap.")] = 3e-3,
    largest: Annotated[float, typer.Option(help="Largest gap.")] = 3.0,
    points: Annotated[int | None, typer.Option(help="Number of gaps. Default: 13 in a table, 200 in a figure.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw PATH.svg and PATH.png instead of a table.")] = None,
) -> None:
    """Print what theory says by gap: lower bounds for any policy, upper bounds for DBCARE and the oracle."""
    from rich.console import Console
    from rich.table import Table

    from dbcare.lab import bounds as theory
    from dbcare.lab.curves import format_loss
    from dbcare.problem.risk import Loss

    with friendly_errors():
        setup = theory.Setup(
            cost, sigma, arms, smallest, largest, (13 if figure is None else 200) if points is None else points
        )
        if figure is not None:
            from dbcare.lab.figures import draw

            for path in draw(
                figure.with_suffix("") if figure.suffix in (".svg", ".png") else figure,
                setup.title,
                theory.make_plots(setup),
                columns=2,
            ):
                typer.echo(path)
            return
        for loss in Loss:
            columns = theory.compute_bounds(setup, loss)
            labels = [bound.label for bound in columns]
            title = f"{format_loss(loss).capitalize()}. {setup.title}"
            table = Table("gap", *labels, title=title, title_justify="left")
            for row in zip(setup.gaps, *(bound.values for bound in columns), strict=True):
                table.add_row(*(f"{value:.4g}" for value in row))
            Console().print(table)
