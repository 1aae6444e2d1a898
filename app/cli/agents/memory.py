"""Shows and removes what an agent of the running bridge remembers."""

from __future__ import annotations

import asyncio

from app.cli.client import Client, connected_to_running
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.server.agent_shapes import NoteOut


def show_memory(configuration: Configuration, name: str, words: str, *, as_json: bool) -> None:
    """Show an agent's notes, the newest first, or those with all these words.

    Raises:
        BridgeError: there is no such agent, or no bridge runs.
    """

    async def read() -> list[NoteOut]:
        async with connected_to_running(configuration) as bridge:
            return await bridge.notes(name, words)

    notes = asyncio.run(read())
    if as_json:
        show_json([note.model_dump() for note in notes])
        return
    show_table(
        ("note", "time", "session", "text"),
        [
            (
                f"{each.day}/{each.id}",
                each.time,
                "" if each.session is None else str(each.session),
                each.text,
            )
            for each in notes
        ],
    )


def remove_note(configuration: Configuration, name: str, note: str) -> None:
    """Remove one note, named as it is listed.

    Raises:
        BridgeError: there is no such note, or no bridge runs.
    """

    async def remove() -> None:
        async with connected_to_running(configuration) as bridge:
            await _remove(bridge, name, note)

    asyncio.run(remove())


async def _remove(bridge: Client, name: str, note: str) -> None:
    day, _, entry = note.partition("/")
    await bridge.remove_note(name, day, entry or "none")
