"""`dbcare demo`: a simulated study to watch, from its first trial until it stops."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from dbcare.cli.output import at_terminal
from dbcare.cli.shared import friendly_errors

if TYPE_CHECKING:
    from rich.console import Console

    from dbcare.cli.demo.shop import Moment


FRAMES_PER_SECOND = 15
HOLD_SHARE = 0.15  # of the time, for the last frame


def demo(
    seconds: Annotated[float, typer.Option(help="How long the animation takes, in seconds.")] = 20.0,
    seed: Annotated[int | None, typer.Option(help="Random seed of the visitors. Default: a typical run's.")] = None,
) -> None:
    """Watch a simulated study find the best of five home pages for a shop."""
    from rich.console import Console

    from dbcare.base import checks
    from dbcare.cli.demo import scene
    from dbcare.cli.demo.shop import TYPICAL_SEED, simulate

    with friendly_errors():
        checks.positive("seconds", seconds)
        chosen = TYPICAL_SEED if seed is None else checks.whole("seed", seed, at_least=0)
        moments = simulate(chosen)
    if not at_terminal():
        for line in scene.summarize(moments[-1], chosen):
            typer.echo(line)
        return
    console = Console(highlight=False)
    try:
        play(moments, seconds, console)
    except KeyboardInterrupt:
        if console.is_alt_screen:  # rich was interrupted before it was ready to clean up itself
            console.set_alt_screen(False)
            console.show_cursor(True)
        raise typer.Exit(130) from None
    scene.print_ending(moments[-1], chosen, console)


def play(moments: "list[Moment]", seconds: float, console: "Console") -> None:
    """Show the moments one after another on a separate screen, within `seconds`."""
    from rich.live import Live

    from dbcare.cli.demo import scene

    axes = scene.make_axes(moments)
    start, moving = time.monotonic(), seconds * (1.0 - HOLD_SHARE)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            passed = time.monotonic() - start
            last = min(len(moments) - 1, int(passed / moving * (len(moments) - 1)))
            live.update(scene.make_frame(moments[: last + 1], axes, console.width, console.height), refresh=True)
            if passed >= seconds:
                return
            time.sleep(min(1.0 / FRAMES_PER_SECOND, seconds - passed))
