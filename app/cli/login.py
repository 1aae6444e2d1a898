"""`login`: prints a new log-in link for the page of the running bridge."""

from __future__ import annotations

import asyncio
import sys

from app.cli.client import connected_to_running
from app.config import Configuration
from app.server.shapes import LinkOut


def login(configuration: Configuration) -> None:
    """Print a link that logs in the person who opens it first.

    Raises:
        BridgeError: no bridge runs, or it does not answer.
    """

    async def link() -> LinkOut:
        async with connected_to_running(configuration) as bridge:
            return await bridge.login_link()

    made = asyncio.run(link())
    sys.stdout.write(f"{made.url}\n")
    if made.plain:
        # Not on stdout: a pipe gets the link alone.
        sys.stderr.write(f"{second_way(made.plain)}\n")


def second_way(link: str) -> str:
    """Say how to open the page in a browser that does not resolve its name."""
    return f"Or, if your browser does not find that name, {link}"
