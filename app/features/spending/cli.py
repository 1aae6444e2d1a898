"""`spending`: shows what today has cost so far."""

from __future__ import annotations

from app.features.spending.web import SpendingOut
from app.terminal.api import Api
from app.terminal.framing import Json, commands, examples, show_list

COMMANDS = commands()


@COMMANDS.command(epilog=examples("spending"))
def spending(*, as_json: Json = False) -> None:
    """Show what today has cost so far, where a daily budget is set."""
    show_list(
        Api().items(SpendingOut, "/spending"),
        ("for", "name", "spent", "budget"),
        lambda each: (
            *(each.share, each.name, f"${each.usd:.2f}"),
            None if each.limit_usd is None else f"${each.limit_usd:.2f}",
        ),
        as_json=as_json,
    )
