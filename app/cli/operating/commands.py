"""Defines the commands of the operator; each imports what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_configuration

operating = typer.Typer(rich_markup_mode=None)

Scope = Annotated[
    str | None,
    typer.Argument(
        metavar="AGENT|PLACE",
        help="The name of an agent, or a place such as slack:C0123 or github:acme/shop.",
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Everything.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@operating.command(epilog=examples("pause --all", "pause codex", "pause slack:C0123"))
def pause(scope: Scope = None, *, everything: Everything = False) -> None:
    """Pause everything, one agent, or one place.

    No new turn begins there, and running ones end as usual. Messages are kept and answered after
    `resume`; people are told once. This lasts over restarts.
    """
    _check_scope(scope, everything=everything)
    with in_one_line():
        from app.cli.operating.pausing import pause as run  # noqa: PLC0415 - 0.6 s

        run(read_configuration(), scope)


@operating.command(epilog=examples("resume --all", "resume codex"))
def resume(scope: Scope = None, *, everything: Everything = False, yes: Yes = False) -> None:
    """Let what was paused go on.

    After a restore it shows what will be sent and begun, and asks.
    """
    _check_scope(scope, everything=everything)
    with in_one_line():
        from app.cli.operating.pausing import resume as run  # noqa: PLC0415 - 0.6 s

        run(read_configuration(), scope, None if yes else _confirm)


@operating.command("pauses")
def list_pauses(*, as_json: Json = False) -> None:
    """List what is paused."""
    with in_one_line():
        from app.cli.operating.pausing import show  # noqa: PLC0415 - 0.6 s

        show(read_configuration(), as_json=as_json)


@operating.command(epilog=examples("drain --wait", "drain --wait --seconds 600", "drain --undo"))
def drain(
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until nothing runs.")] = False,
    seconds: Annotated[
        float, typer.Option(min=1, help="How long to wait; the status is 1 after that.")
    ] = 3600.0,
    undo: Annotated[bool, typer.Option("--undo", help="Begin turns again.")] = False,
) -> None:
    """Let running turns end, and begin no others.

    Before a restart: turns that wait for a person are parked, and the answer continues them.
    Messages are kept for the next start, and /readyz answers 503.
    """
    with in_one_line():
        from app.cli.operating.draining import drain as run  # noqa: PLC0415 - 0.6 s

        is_done = run(read_configuration(), wait=seconds if wait else None, undo=undo)
    raise typer.Exit(0 if is_done else 1)


@operating.command(epilog=examples("migrate --to postgresql://bridge@db.example.com/bridge"))
def migrate(
    to: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="An empty PostgreSQL database. Its password can be in PGPASSWORD or ~/.pgpass.",
        ),
    ],
) -> None:
    """Move the SQLite database of this installation to PostgreSQL.

    Stop the bridge first. Every row is copied and then checked; the file stays as it is. If it is
    cut off, run it again: it goes on where it ended. Then set DATABASE_URL and start the bridge.
    """
    with in_one_line():
        from app.cli.operating.migrating import migrate as run  # noqa: PLC0415 - 0.6 s

        run(read_configuration(), to)


def _check_scope(scope: str | None, *, everything: bool) -> None:
    if (scope is None) != everything:
        raise typer.BadParameter("say --all, or name one agent or place.")


def _confirm(question: str) -> bool:
    return typer.confirm(question, default=False, err=True)
