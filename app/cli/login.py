"""`login`: prints a new log-in link for the page of the running bridge."""

from __future__ import annotations

import asyncio
import sys

from app.cli.client import connected_to_running
from app.config import Configuration


def login(configuration: Configuration) -> None:
    """Print a link that logs in the person who opens it first.

    Raises:
        BridgeError: no bridge runs, or it does not answer.
    """

    async def link() -> str:
        async with connected_to_running(configuration) as bridge:
            return await bridge.login_link()

    sys.stdout.write(f"{asyncio.run(link())}\n")
