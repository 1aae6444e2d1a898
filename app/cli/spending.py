"""`spending`: shows what today has cost so far, and what it may cost."""

from __future__ import annotations

import asyncio

from app.cli.client import connected_to_running
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.features.spending.web import SpendingOut


def show_spending(configuration: Configuration, *, as_json: bool) -> None:
    """Show what people, places and agents have spent today, the most first.

    Raises:
        BridgeError: no bridge runs, or it does not answer.
    """

    async def read() -> list[SpendingOut]:
        async with connected_to_running(configuration) as bridge:
            return await bridge.spending()

    found = asyncio.run(read())
    if as_json:
        show_json([each.model_dump() for each in found])
        return
    show_table(
        ("for", "name", "spent", "budget"),
        [
            (
                each.share,
                each.name,
                f"${each.usd:.2f}",
                "" if each.limit_usd is None else f"${each.limit_usd:.2f}",
            )
            for each in found
        ],
    )
