"""Frames every command: help with examples, settings, questions, tables and JSON.

Nothing heavy is imported at the top: help must appear at once. Text from agents and strangers
passes `printable` first: a terminal obeys control characters, and a question about a command must
show that command.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar
from unicodedata import category, east_asian_width

import typer
from typer import Option

from app.errors import BridgeError

if TYPE_CHECKING:
    from pydantic import BaseModel

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


M = TypeVar("M", bound="BaseModel")

ONE_LINE_CHARACTERS = 600
"""The longest error on one line: the last words of an agent can be a whole traceback."""

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, clipboard
    r"|\x1b.?",
    re.DOTALL,
)
# Control characters except tab and newline, and those that change the direction of text.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Remove what a terminal would obey instead of show."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def one_line(text: str, limit: int = ONE_LINE_CHARACTERS) -> str:
    """Put a text onto one line, no longer than a limit."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def say(words: str) -> None:
    """Tell the person something that is no output, such as what was done."""
    sys.stderr.write(f"{one_line(hint(words))}\n")


def count(number: float, word: str) -> str:
    """Count things, such as `2 steps`."""
    return f"{number:g} {word}{'' if number == 1 else 's'}"


def when(at: float) -> str:
    """Format a time in local time."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def show_list(
    found: Sequence[M],
    header: Sequence[str],
    row: Callable[[M], Sequence[object]],
    *,
    as_json: bool,
    nothing: str = "",
) -> None:
    """Show models: as JSON, or a row for each; None is an empty cell.

    If there are none, people read the words for `nothing` on stderr, or else the header alone.
    """
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
    elif nothing and not found:
        sys.stderr.write(f"{nothing}\n")
    else:
        cells = [["" if cell is None else str(cell) for cell in row(each)] for each in found]
        show_table(header, cells)


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows under a header."""
    clean = [[one_line(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(header, clean)
    else:
        for line in columns([[name.upper() for name in header], *clean]):
            sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")
    sys.stdout.flush()


def _draw(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # 0.1 s that only a person pays for.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Column, Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    names = [Column(name, overflow="fold") for name in header]
    table = Table(*names, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align rows in columns, for people and for `awk`."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _width(text: str) -> int:
    """Count the columns of a text: most emoji take two, marks on a character none."""
    return sum(
        2 if east_asian_width(character) in "WF" else category(character) not in {"Mn", "Cf"}
        for character in text
    )
