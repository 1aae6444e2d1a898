"""`grants`: lists and takes back what people always allow."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated

from typer import Argument, Option

from app.features.grants.web import GrantOut
from app.terminal.api import MOST_LISTED, Api
from app.terminal.framing import Json, add_group, commands, examples, show_list

COMMANDS = commands()
grants = add_group(COMMANDS, "grants", "See and take back what people always allow.")


@grants.command("list", epilog=examples("grants list", "grants list --agent claude --all"))
def list_grants(
    agent: Annotated[str | None, Option(help="Only grants for this agent.")] = None,
    *,
    every: Annotated[
        bool, Option("--all", help="Also those that expired or were taken back.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List what people always allow, and until when."""
    state = None if every else "active"
    show_list(
        Api().all_items(GrantOut, "/grants", agent=agent, state=state, limit=MOST_LISTED),
        ("id", "agent", "place", "always", "by", "until", "state"),
        lambda each: (
            *(each.id, each.agent, each.place, each.words, each.granted_by),
            f"{datetime.fromtimestamp(each.expires_at).astimezone():%Y-%m-%d}",
            f"ended by {each.ended_by}" if each.ended_by else each.state,
        ),
        as_json=as_json,
        nothing="No grants.",
    )


@grants.command("revoke", epilog=examples("grants revoke 3"))
def revoke(
    grant: Annotated[int, Argument(metavar="ID", min=1, help="Its number; see `grants list`.")],
) -> None:
    """Take a grant back; people are asked again."""
    Api().request("DELETE", f"/grants/{grant}")
    sys.stdout.write(f"Grant {grant} was taken back.\n")
