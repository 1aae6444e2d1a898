"""Serves what an agent remembers under /api/v1/agents/{name}/memory: list, search, remove."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from app.core.memory.log import Remembered
from app.server.agent_shapes import NoteOut
from app.server.filters import Since
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

QUERY_CHARACTERS = 500
"""A sentence or two: what people search for."""

router = APIRouter(
    prefix="/api/v1/agents/{name}/memory",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("")
async def list_notes(
    runtime: RuntimeOf,
    name: str,
    q: Annotated[str, Query(max_length=QUERY_CHARACTERS)] = "",
    since: Since = None,
) -> Page[NoteOut]:
    """List what an agent noted, the newest first; with `q` only what has all these words.

    Notes have a day: `since` finds those of its day, and later ones.
    """
    agent = runtime.agents.find(name)
    first = "" if since is None else datetime.fromtimestamp(since, UTC).date().isoformat()
    found = await runtime.memory.entries(agent.id, q)
    return Page(items=[_out(note) for note in found if note.day >= first])


@router.delete("/{day}/{note}", status_code=204)
async def remove_note(runtime: RuntimeOf, name: str, day: str, note: str) -> None:
    """Remove one note; the file it was in keeps its earlier version for an undo."""
    await runtime.memory.remove(runtime.agents.find(name).id, day, note)


def _out(note: Remembered) -> NoteOut:
    return NoteOut(id=note.id, day=note.day, time=note.time, session=note.session, text=note.text)
