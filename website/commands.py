"""The page on commands, from their own help."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from dbcare.cli import app

INTRODUCTION = """# Commands

Every command, as its `--help` describes it. In a terminal, commands explain themselves; in a pipe, they print only the
answer. Exit codes: 0 success, 2 error (with a line on standard error), 3 no trial available yet, 4 the study has
stopped. [Studies from the shell](../studies.md#from-the-shell) shows the most common ones at work.
"""
TYPE_NAMES = {int: "INTEGER", float: "NUMBER", Path: "PATH"}


def list_commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Return all commands with their full names, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def describe_value(parameter: Any) -> str:
    """Return what stands for the value of a parameter, such as INTEGER; empty for a flag."""
    if getattr(parameter, "is_flag", False):
        return ""
    if parameter.metavar:
        return str(parameter.metavar)
    kind = parameter.type_descriptor.annotation
    choices = [value for part in (kind, *get_args(kind)) if get_origin(part) is Literal for value in get_args(part)]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        choices = [member.value for member in kind]
    return "|".join(map(str, choices)) or TYPE_NAMES.get(kind, "TEXT")


def describe_parameter(parameter: Any) -> str:
    """Return a parameter with its help, as an entry of a definition list."""
    is_argument = parameter.param_type_name == "argument"
    names = [parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]
    term = ", ".join(f"`{name}`" for name in names)
    value = "" if is_argument else describe_value(parameter)
    facts = [(parameter.help or "").strip()]
    if parameter.required and not is_argument:
        facts.append("Required.")
    default = parameter.default
    if default not in (None, False, (), []) and not callable(default) and "Default:" not in facts[0]:
        facts.append(f"Default: `{getattr(default, 'value', default)}`.")
    if parameter.envvar:
        facts.append(f"Environment variable: `{parameter.envvar}`.")
    return f"{term}{f' `{value}`' if value else ''}\n: {' '.join(filter(None, facts)) or 'No description.'}\n"


def describe_command(name: str, command: Any) -> str:
    """Return the section of one command."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name != "argument" and not each.hidden]
    places = [each.name.upper() + ("..." if each.nargs == -1 else "") for each in arguments]
    places += ["COMMAND"] if hasattr(command, "commands") else []
    usage = " ".join([name, *(["[OPTIONS]"] if options else []), *places])
    help_text = (command.help or "").replace("\b", "").strip()
    parts = [f"## {name}", help_text, f"```console\n{usage}\n```"]
    parts += [describe_parameter(each) for each in (*arguments, *options)]
    return "\n\n".join(parts) + "\n"


def write_page() -> str:
    """Return the page."""
    program: Any = get_command(app)
    commands = [("dbcare", program), *sorted(list_commands(program, "dbcare"), key=lambda pair: pair[0])]
    return "\n".join([INTRODUCTION, *(describe_command(name, command) for name, command in commands)])
