"""`drain`: lets the running bridge finish, and waits for that."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from app.cli.client import connected_to_running
from app.config import Configuration
from app.features.pause.shapes import DrainOut

LOOK_SECONDS: Final = 0.5
"""Between two looks at what still runs."""


def drain(configuration: Configuration, *, wait: float | None, undo: bool) -> bool:
    """Begin or end a drain; with `wait`, return whether nothing ran after at most so long.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """
    found = asyncio.run(_drain(configuration, wait=wait, undo=undo))
    sys.stdout.write(f"{_words(found)}\n")
    return wait is None or undo or _is_over(found)


async def _drain(configuration: Configuration, *, wait: float | None, undo: bool) -> DrainOut:
    async with connected_to_running(configuration) as client:
        found = await client.drain("DELETE" if undo else "POST")
        deadline = time.monotonic() + (wait or 0.0)
        while not undo and not _is_over(found) and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
            found = await client.drain()
        return found


def _is_over(found: DrainOut) -> bool:
    return not found.turns and not found.posts


def _words(found: DrainOut) -> str:
    if not found.draining:
        return "Not draining: turns begin again."
    if _is_over(found):
        return "Drained: nothing runs. Stop the bridge now."
    turns = f"{found.turns} turn{'' if found.turns == 1 else 's'}"
    return f"Draining: {turns} and {found.posts} unsent posts are left."
