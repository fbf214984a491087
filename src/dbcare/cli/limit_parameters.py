"""Command-line options for the limits of the service, made from `ServiceLimits`."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dbcare.cli.shared import friendly_errors
from dbcare.server.service_limits import DEFAULT_LIMITS, ServiceLimits, describe_limits


def with_limits(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every limit in place of its parameter `limits`."""
    limits = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(DEFAULT_LIMITS, name),
            annotation=Annotated[kind, typer.Option(help=meaning, rich_help_panel="Limits")],
        )
        for name, kind, meaning in describe_limits()
    ]

    def run(**arguments: Any) -> None:
        values = {limit.name: arguments.pop(limit.name) for limit in limits}
        with friendly_errors():
            chosen = ServiceLimits(**values)
        command(**arguments, limits=chosen)

    own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "limits"]
    parameters = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in (*own, *limits)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
