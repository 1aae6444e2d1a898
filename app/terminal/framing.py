"""Frames every command: help with examples, settings, questions, and the name to run it by.

Nothing heavy is imported at the top: help must appear at once.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer import Option

from app.errors import BridgeError

if TYPE_CHECKING:
    from app.config import Configuration

NAME: Final = "agent-bridge"
Json = Annotated[bool, Option("--json", help="Print JSON, for scripts.")]
Yes = Annotated[bool, Option("--yes", help="Do not ask.")]


class NotConfirmed(BridgeError):
    """The person at the terminal said no, or could not say yes."""


def examples(*commands: str) -> str:
    """Show commands below a help text, each on its own line."""
    shown = "\n".join(f"  {NAME} {command}" for command in commands)
    return f"\b\nExamples:\n{shown}"


def commands() -> typer.Typer:
    """Begin the commands of a module."""
    return typer.Typer(rich_markup_mode=None)


def add_group(
    to: typer.Typer, name: str, help_line: str | None = None, *, epilog: str | None = None
) -> typer.Typer:
    """Begin a group of commands, such as `agents`; without a line, add to that of another."""
    made = typer.Typer(help=help_line, epilog=epilog, no_args_is_help=True, rich_markup_mode=None)
    to.add_typer(made, name=name)
    return made


def confirm(question: str, *, yes: bool = False, otherwise: str) -> None:
    """Ask the person at the terminal, unless they said yes already; Enter means no.

    Raises:
        NotConfirmed: they said no; it tells `otherwise`.
    """
    if not yes and not typer.confirm(question, default=False, err=True):
        raise NotConfirmed(otherwise)


def read_configuration(given: Mapping[str, str] = MappingProxyType({})) -> Configuration:
    """Read the configuration of this process.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    from app.agents.catalog import known_agents  # noqa: PLC0415 - 0.3 s
    from app.config import from_process  # noqa: PLC0415 - 0.4 s
    from app.services import registered_services  # noqa: PLC0415 - after the settings, 0.05 s

    return from_process(known_agents(), registered_services(), given)


def read_all_agents() -> Configuration:
    """Read the configuration of this process, with the agents of the store.

    Raises:
        StoreUnavailable: the store cannot be read.
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    from app.terminal.stored import read_registry  # noqa: PLC0415 - 0.5 s

    return read_registry(read_configuration()).configuration


def command_name(argv0: str | None = None, path: str | None = None) -> str:
    """Return the shortest way to run this command from the current folder.

    After `make run` it is not on PATH: then its path is the way.
    """
    script = Path(sys.argv[0] if argv0 is None else argv0)
    if script.name != NAME or not script.exists():
        return NAME
    on_path = shutil.which(NAME, path=path)
    if on_path is not None and script.samefile(on_path):
        return NAME
    absolute = Path(os.path.abspath(script))  # noqa: PTH100 - a link stays what it is
    folder = Path.cwd()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)


def hint(text: str) -> str:
    """Put the real name of this command into every command that a text quotes."""
    return text.replace(f"`{NAME} ", f"`{command_name()} ")
