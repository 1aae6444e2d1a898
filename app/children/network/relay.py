"""Relays bytes between two connections until both ends are done or both are idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from app.children.network.outside import Streams

_CHUNK_BYTES: Final = 256 * 1024
IDLE_SECONDS: Final = 900.0
"""A model may think for minutes without output; a longer silence closes the connection."""


async def relay(near: Streams, far: Streams) -> None:
    """Relay bytes both ways and close both connections in the end."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(IDLE_SECONDS) as bound, asyncio.TaskGroup() as group:

            def keep_alive() -> None:
                bound.reschedule(loop.time() + IDLE_SECONDS)

            group.create_task(_carry(near[0], far[1], keep_alive))
            group.create_task(_carry(far[0], near[1], keep_alive))
    except* (OSError, TimeoutError):
        pass  # one of the two is gone
    finally:
        near[1].close()
        far[1].close()


async def _carry(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, keep_alive: Callable[[], None]
) -> None:
    while data := await source.read(_CHUNK_BYTES):
        keep_alive()
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
