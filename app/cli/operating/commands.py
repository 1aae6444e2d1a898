"""Defines the commands of the operator; each imports what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
Passphrase = Annotated[
    bool,
    typer.Option("--passphrase", help="Seal or open it with a passphrase; asks for it."),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", exists=True, dir_okay=False, help="The file with the passphrase."),
]
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


@operating.command(
    "backup",
    epilog=examples(
        "backup /mnt/backups",
        "backup bridge.backup --passphrase-file /etc/agent-bridge/passphrase",
        "backup --check bridge.backup",
    ),
)
def back_up(
    target: Annotated[Path, typer.Argument(metavar="TO", help="A new file, or a folder for one.")],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Check this backup instead of making one.")
    ] = False,
    passphrase: Passphrase = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Back up everything, while the bridge runs.

    The backup is sealed: with a passphrase, else with BRIDGE_SECRET_KEY, which is then not in it.
    """
    with in_one_line():
        from app.cli.operating import backup as commands  # noqa: PLC0415 - 1.5 s

        run = commands.check if check else commands.backup
        ask = _passphrase_of(passphrase, passphrase_file, confirm=not check)
        run(read_configuration(), target, ask)


@operating.command(epilog=examples("restore /mnt/backups/agent-bridge-20260101-120000.backup"))
def restore(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The backup.")
    ],
    *,
    passphrase: Passphrase = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Restore a backup on an empty machine.

    Nothing is overwritten: DATA_DIR and the database have to be empty. The bridge then starts
    paused, and `resume --all` lets it go on.
    """
    with in_one_line():
        from app.cli.operating.backup import restore as run  # noqa: PLC0415 - 1.5 s

        ask = _passphrase_of(passphrase, passphrase_file, confirm=False)
        run(read_configuration(), source, ask)


@operating.command(
    epilog=examples(
        "migrate", "migrate --back", "migrate --to postgresql://bridge@db.example.com/bridge"
    )
)
def migrate(
    *,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Move it to an empty PostgreSQL database, with its password in PGPASSWORD or "
            "~/.pgpass. Every row is copied and then checked; the file stays as it is.",
        ),
    ] = None,
    back: Annotated[
        bool,
        typer.Option("--back", help="Undo the newest migration, for the release before this one."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Bring the database to this release, or move it.

    No bridge may run meanwhile. A start brings it to the release too. If --to is cut off, run it
    again: it goes on where it ended. Then set DATABASE_URL and start the bridge.
    """
    if back and to is not None:
        raise typer.BadParameter("--back and --to exclude each other.")
    with in_one_line():
        from app.cli.operating.migrating import migrate as move  # noqa: PLC0415 - 0.6 s
        from app.cli.operating.schema import migrate_back, migrate_forward  # noqa: PLC0415 - 0.6 s

        if to is not None:
            move(read_configuration(), to)
        elif back:
            migrate_back(read_configuration(), None if yes else _confirm)
        else:
            migrate_forward(read_configuration())


def _passphrase_of(
    wanted: bool,
    file: Path | None,
    *,
    confirm: bool,
) -> Callable[[], str] | None:
    if file is not None:
        return lambda: file.read_text().strip()
    if not wanted:
        return None
    return lambda: str(
        typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    )


def _check_scope(scope: str | None, *, everything: bool) -> None:
    if (scope is None) != everything:
        raise typer.BadParameter("say --all, or name one agent or place.")


def _confirm(question: str) -> bool:
    return typer.confirm(question, default=False, err=True)
