"""The command line as a whole: collects the commands of all modules, and runs one.

Nothing heavy is imported at the top: help must appear at once. A module is imported when one of its
commands is run, so no command pays for another; until then its lines here stand for it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from app.errors import BridgeError
from app.features import registered_features
from app.terminal.framing import NAME, examples, hint, one_line

INTERRUPTED: Final = 130
"""The exit status that shells expect after Ctrl-C."""
PRIVATE: Final = 0o077
"""The umask of the bridge: only the owner can use its files."""
OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "app.cli.serve": {
        "serve": "Run the bridge until Ctrl-C or TERM.",
        "login": "Print a link that opens the page of the running bridge.",
    },
    "app.cli.ask": {"ask": "Ask an agent something and follow what it does."},
    "app.cli.manifest": {"manifest": "Set up an agent on Slack, GitHub or Linear."},
    "app.cli.relay": {"relay": "Let a bridge on another machine use an agent of this one."},
    "app.cli.migrate": {"migrate": "Bring the database to this release, or move it."},
}
"""Each module with `COMMANDS`, a Typer application; its commands and groups with their help lines.

Several modules can add to one group; the first one's line is shown.
"""


def modules() -> Mapping[str, Mapping[str, str]]:
    """Return every module with commands, those of features too.

    Raises:
        ConfigurationError: a package adds a feature that cannot be used.
    """
    features = [each for each in registered_features() if each.commands]
    return {**OWN, **{f"{each.package}.cli": each.commands for each in features}}


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn a known failure into one line and an exit status."""
    try:
        yield
    except BridgeError as error:
        words = str(error)
    except BrokenPipeError:
        # The reader of the output has closed it; click ends quietly by itself.
        raise
    except OSError as error:
        place = error.filename or "this machine"
        words = f"{place}: {error.strerror or error}. Check its permissions and the disk."
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    else:
        return
    typer.echo(f"{NAME}: {one_line(hint(words))}", err=True)
    raise typer.Exit(1)


class Later(TyperCommand):
    """Stands for a command or group in lists, and is replaced by it when it is used."""

    def load(self) -> Any:
        """Import the modules that have the command, and return it."""
        found: list[Any] = [
            get_group(import_module(module).COMMANDS).commands[str(self.name)]
            for module, lines in modules().items()
            if self.name in lines
        ]
        # The one that says what the group is for.
        group = next((each for each in found if each.help), found[0])
        for other in (each for each in found if each is not group):
            group.commands |= other.commands
        return group

    def make_context(self, *given: Any, **more: Any) -> Any:
        """Let the command itself go on."""
        return self.load().make_context(*given, **more)


class CommandGroup(TyperGroup):
    """The group of all commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for lines in modules().values():
            for name, line in lines.items():
                if line or name not in self.commands:
                    self.commands[name] = Later(name, help=line)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a failure that is known becomes one line and a status."""
        with in_one_line():
            return super().invoke(ctx)


app = typer.Typer(
    name=NAME,
    cls=CommandGroup,
    help="Coding agents in the places where a team already talks.",
    epilog=examples("serve", 'ask claude "fix the failing test"', "doctor"),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    # No other user may read what the bridge keeps.
    os.umask(PRIVATE)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except BridgeError as error:  # the commands themselves cannot be listed
        sys.exit(f"{NAME}: {error}")


@app.callback(invoke_without_command=True)
def agent_bridge(
    show_version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Coding agents in the places where a team already talks."""
    if show_version:
        typer.echo(f"{NAME} {version(NAME)}")
        raise typer.Exit
