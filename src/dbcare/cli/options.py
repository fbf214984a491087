"""Options of commands, made from the definitions of studies, plans and limits."""

import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any

import typer

from dbcare.base.options import Option, OptionKind, parse_blocks, parse_number, read_options
from dbcare.cli.shared import friendly_errors, parse_amounts, parse_numbers, parse_whole
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


METAVARS = {
    OptionKind.NUMBER: "NUMBER",
    OptionKind.WHOLE: "INTEGER",
    OptionKind.PER_ARM: "NUMBER[,NUMBER...]",
    OptionKind.WEIGHT: "NUMBER|inf",
    OptionKind.INTERVAL: "LOW,HIGH",
    OptionKind.NUMBERS: "NUMBER[,NUMBER...]",
    OptionKind.NAMES: "NAME[,NAME...]",
    OptionKind.TRIALS: "INTEGER|DURATION",
    OptionKind.BLOCKS: "INTEGER|NAME,NAME[,NAME...]",
}
PARSERS: dict[OptionKind, Callable[[str, str], Any]] = {
    OptionKind.WHOLE: parse_whole,
    # Values by arm are passed on, because the library says what to do instead.
    OptionKind.NUMBER: lambda name, text: (parse_amounts if name == "value" else parse_number)(name, text),
    OptionKind.PER_ARM: parse_amounts,
    OptionKind.WEIGHT: parse_number,
    OptionKind.INTERVAL: lambda name, text: tuple(parse_numbers(name, text)),
    OptionKind.NUMBERS: parse_numbers,
    OptionKind.TRIALS: lambda name, text: text if text[-1:].isalpha() else parse_whole(name, text),
    OptionKind.NAMES: lambda _name, text: [part.strip() for part in text.split(",")],
    OptionKind.BLOCKS: parse_blocks,
}


def with_options(
    options: type, *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a typed dictionary, but for some, in place of its parameter `options`.

    The command receives the options that were passed, parsed, as a dictionary; for all others the defaults apply.
    """
    defined = {name: option for name, option in read_options(options).items() if name not in without}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in defined}
            with friendly_errors():
                parsed = {
                    name: PARSERS[defined[name].kind](name, value) if defined[name].kind in PARSERS else value
                    for name, value in values.items()
                    if value is not None and value is not False  # 0 is a value
                }
            command(**arguments, options=parsed)

        own = inspect.signature(command, eval_str=True).parameters
        added = [_make_parameter(name, option) for name, option in defined.items()]
        parameters = [parameter for name, one in own.items() for parameter in (added if name == "options" else [one])]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what typer reads
            [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
        )
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def _make_parameter(name: str, option: Option) -> inspect.Parameter:
    flag = f"--{name.replace('_', '-')}"
    if option.kind is OptionKind.FLAG:
        annotation: Any = Annotated[bool, typer.Option(flag, help=option.help)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
    annotation = Annotated[str | None, typer.Option(flag, help=option.help, metavar=METAVARS.get(option.kind))]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
