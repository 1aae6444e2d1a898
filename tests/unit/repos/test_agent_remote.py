"""The door of a gate: who is let in, and how many at a time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from app.repos.agent_remote import GUESTS, AgentRemote

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def test_an_agent_cannot_take_up_all_handles_of_the_bridge(tmp_path: Path) -> None:
    inside, leave = 0, asyncio.Event()

    async def host(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal inside
        inside += 1
        await leave.wait()
        writer.write(b"served")
        writer.close()

    door = AgentRemote(tmp_path / "door", "web:t1:demo")
    door.lay()
    await door.open({"objects": host, "fetch": host})
    guests = [await knock(door, ("objects", "fetch")[each % 2]) for each in range(100)]

    refused = [await asyncio.wait_for(guest[0].read(), 5) for guest in guests[GUESTS:]]
    leave.set()
    served = [await asyncio.wait_for(guest[0].read(), 5) for guest in guests[:GUESTS]]
    later = await knock(door)

    assert refused == [b""] * (100 - GUESTS)
    assert served == [b"served"] * GUESTS
    assert await asyncio.wait_for(later[0].read(), 5) == b"served"
    assert inside == GUESTS + 1
    await door.close()
    for _, writer in (*guests, later):
        writer.close()


async def knock(door: AgentRemote, name: str = "objects") -> Connection:
    """Come to the door as an agent could."""
    folder = os.open(door.folder, os.O_RDONLY)
    try:
        # The path of a socket has room for 100 bytes.
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)
