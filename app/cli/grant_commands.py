"""Defines the commands about grants; each imports what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_configuration

grants = typer.Typer(
    help="See and take back what people always allow.", no_args_is_help=True, rich_markup_mode=None
)


@grants.command("list", epilog=examples("grants list", "grants list --agent claude --all"))
def list_grants(
    agent: Annotated[str | None, typer.Option(help="Only grants for this agent.")] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also those that expired or were taken back.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List what people always allow, and until when."""
    with in_one_line():
        from app.cli.grants import show_grants  # noqa: PLC0415 - 0.6 s

        show_grants(read_configuration(), agent=agent, every=every, as_json=as_json)


@grants.command("revoke", epilog=examples("grants revoke 3"))
def revoke(
    grant: Annotated[
        int, typer.Argument(metavar="ID", min=1, help="Its number; see `grants list`.")
    ],
) -> None:
    """Take a grant back; people are asked again."""
    with in_one_line():
        from app.cli.grants import revoke_grant  # noqa: PLC0415 - 0.6 s

        revoke_grant(read_configuration(), grant)
