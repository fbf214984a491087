"""`dbcare demo`: a simulated study, watched at a terminal."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.output import at_terminal
from dbcare.cli.shared import friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.cli.demo.shop import Moment

FRAMES = 15  # a second
HOLD = 0.15  # of the time, for the last picture


def demo(
    seconds: Annotated[float, typer.Option(help="How long it takes.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Seed of the visitors.")] = 0,
) -> None:
    """Watch a study find the best of five front pages of a shop; everything is simulated."""
    from rich.console import Console

    from dbcare import validation
    from dbcare.cli.demo import scene
    from dbcare.cli.demo.shop import simulate

    with friendly_errors():
        validation.positive("seconds", seconds)
        moments = simulate(validation.whole("seed", seed, at_least=0))
    if not at_terminal():
        for line in scene.summary(moments[-1]):
            typer.echo(line)
        return
    console = Console(highlight=False)
    try:
        play(moments, seconds, console)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    scene.ending(moments[-1], console)


def play(moments: "list[Moment]", seconds: float, console: "Console") -> None:
    """Show the moments one after another on a screen of their own, in about the time given."""
    from rich.live import Live

    from dbcare.cli.demo import scene

    axes = scene.axes_of(moments)
    begin, moving = time.monotonic(), seconds * (1.0 - HOLD)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            passed = time.monotonic() - begin
            last = min(len(moments) - 1, int(passed / moving * (len(moments) - 1)))
            live.update(scene.frame(moments[: last + 1], axes, console.width, console.height), refresh=True)
            if passed >= seconds:
                return
            time.sleep(min(1.0 / FRAMES, seconds - passed))
