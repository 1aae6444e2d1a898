"""Frames every command: examples in its help, its configuration, and failures in one line.

Nothing heavy is imported at the top: help must appear at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from app.cli.invocation import hint
from app.errors import BridgeError

if TYPE_CHECKING:
    from app.config import Configuration

INTERRUPTED: Final = 130
"""The exit status that shells expect after Ctrl-C."""
HELP: Final = {"help_option_names": ["-h", "--help"]}
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def examples(*commands: str) -> str:
    """Show commands below a help text, each on its own line."""
    shown = "\n".join(f"  agent-bridge {command}" for command in commands)
    return f"\b\nExamples:\n{shown}"


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
    from app.cli.lines import one_line  # noqa: PLC0415 - 0.2 s

    typer.echo(f"agent-bridge: {one_line(hint(words))}", err=True)
    raise typer.Exit(1)


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
    from app.cli.stored import read_registry  # noqa: PLC0415 - 0.5 s

    return read_registry(read_configuration()).configuration
