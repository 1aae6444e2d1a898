"""`spending`: shows what today and the days before it have cost."""

from __future__ import annotations

import csv
import sys
from typing import Annotated

from typer import Option

from app.features.spending.web import SpendingOut
from app.terminal.api import Api
from app.terminal.framing import Json, commands, examples, show_list

COMMANDS = commands()


@COMMANDS.command(epilog=examples("spending", "spending --days 30 --csv > costs.csv"))
def spending(
    *,
    days: Annotated[int, Option(min=1, max=400, help="Today, and so many days in all.")] = 1,
    as_csv: Annotated[bool, Option("--csv", help="Print CSV, for spreadsheets.")] = False,
    as_json: Json = False,
) -> None:
    """Show what today has cost so far, or the last days."""
    found = Api().items(SpendingOut, "/spending", days=days)
    if as_csv:
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(("day", "for", "name", "usd"))
        rows.writerows((each.day, each.share, _plain(each.name), each.usd) for each in found)
        return
    show_list(
        found,
        ("day", "for", "name", "spent", "budget"),
        lambda each: (
            *(each.day, each.share, each.name, f"${each.usd:.2f}"),
            None if each.limit_usd is None else f"${each.limit_usd:.2f}",
        ),
        as_json=as_json,
    )


def _plain(name: str) -> str:
    """Keep a spreadsheet from reading a name as a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name
