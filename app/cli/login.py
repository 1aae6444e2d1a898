"""`login`: a fresh link that opens the page, made by the bridge that runs."""

from __future__ import annotations

import asyncio
import sys

from app.cli.client import BridgeUnreachable, connected
from app.config import Configuration


def login(configuration: Configuration) -> None:
    """Print a link that logs in whoever opens it first.

    Raises:
        BridgeError: no bridge runs, or it does not answer.
    """

    async def link() -> str:
        async with connected(configuration) as bridge:
            if bridge is None:
                raise BridgeUnreachable(
                    f"no bridge runs on DATA_DIR {str(configuration.data_dir)!r}. Start one with "
                    "`agent-bridge serve`: it prints a link."
                )
            return await bridge.login_link()

    sys.stdout.write(f"{asyncio.run(link())}\n")
