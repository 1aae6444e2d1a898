"""`grants`: lists what people allowed for good in the running bridge, and takes it back."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime

from app.cli.client import connected_to_running
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.server.grants_api import GrantOut


def show_grants(
    configuration: Configuration, *, agent: str | None, every: bool, as_json: bool
) -> None:
    """Show the grants that hold, or all that are known.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """

    async def read() -> list[GrantOut]:
        async with connected_to_running(configuration) as client:
            return await client.grants(agent, None if every else "active")

    found = asyncio.run(read())
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        sys.stderr.write("No grants.\n")
    else:
        rows = [
            (
                *(str(each.id), each.agent, each.place, each.words, each.granted_by),
                f"{datetime.fromtimestamp(each.expires_at).astimezone():%Y-%m-%d}",
                f"ended by {each.ended_by}" if each.ended_by else each.state,
            )
            for each in found
        ]
        show_table(("id", "agent", "place", "always", "by", "until", "state"), rows)


def revoke_grant(configuration: Configuration, number: int) -> None:
    """Take a grant back.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """

    async def revoke() -> None:
        async with connected_to_running(configuration) as client:
            await client.revoke_grant(number)

    asyncio.run(revoke())
    sys.stdout.write(f"Grant {number} was taken back.\n")
