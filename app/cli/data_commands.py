"""Defines the commands about what is kept and what is spent; each imports what it needs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_configuration
from app.errors import Conflict

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def add_data_commands(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog=examples("purge", "purge --yes < leaked.txt"))(purge)
    app.command(epilog=examples("spending"))(spending)
    app.command(epilog=examples("forget Ann", "forget slack:U024BE7LH"))(forget)


def purge(
    *,
    discard: Annotated[
        bool,
        typer.Option("--discard", help="Also delete work that is nowhere else."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Erase a text that leaked, wherever it was kept or posted.

    The text is read from a hidden prompt, or from stdin; it is never an argument.
    """
    with in_one_line():
        from app.cli.erasing import purge as run  # noqa: PLC0415 - 0.4 s

        at_terminal = sys.stdin.isatty()
        if not (at_terminal or yes):
            raise Conflict("there is no terminal to ask at; add --yes")
        text = typer.prompt("Text", hide_input=True, err=True) if at_terminal else sys.stdin.read()
        run(read_configuration(), text.rstrip("\r\n"), None if yes else _confirm, discard=discard)


def forget(
    who: Annotated[
        str, typer.Argument(metavar="PERSON", help="SERVICE:ID, or a name to look for.")
    ],
    *,
    yes: Yes = False,
) -> None:
    """Forget a person: what they said and decided, their name."""
    with in_one_line():
        from app.cli.erasing import forget as run  # noqa: PLC0415 - 0.4 s

        run(read_configuration(), who, None if yes else _confirm)


def spending(*, as_json: Json = False) -> None:
    """Show what today has cost so far, where a daily budget is set."""
    with in_one_line():
        from app.cli.spending import show_spending  # noqa: PLC0415 - 0.4 s

        show_spending(read_configuration(), as_json=as_json)


def _confirm(question: str) -> bool:
    return typer.confirm(question, default=False, err=True)
