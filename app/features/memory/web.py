"""Serves what an agent remembers, to list, search and remove: in the API and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.core.runtime import Runtime
from app.errors import NotFound
from app.features.memory.model import NoteOut, Remembered
from app.features.memory.service import Memory
from app.features.part import find_part
from app.model.conversations import path_of
from app.server.filters import Since
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.actions import FormRoute
from app.server.page.agents import list_agents, to_html
from app.server.page.view import done, render
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

TEMPLATE = Path(__file__).with_name("memory.html")
QUERY_CHARACTERS = 500
"""A sentence or two: what people search for."""

MemoryOf = Annotated[Memory, Depends(find_part(Memory))]
Words = Annotated[str, Query(max_length=QUERY_CHARACTERS)]
Who = Annotated[Visitor, Depends(visitor)]

router = APIRouter(
    prefix="/api/v1/agents/{name}/memory",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)
pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)


@router.get("")
async def list_notes(
    runtime: RuntimeOf, memory: MemoryOf, name: str, q: Words = "", since: Since = None
) -> Page[NoteOut]:
    """List what an agent noted, the newest first; with `q` only what has all these words.

    Notes have a day: `since` finds those of its day, and later ones.
    """
    agent = runtime.agents.find(name)
    first = "" if since is None else datetime.fromtimestamp(since, UTC).date().isoformat()
    found = await memory.entries(agent.id, q)
    return Page(items=[NoteOut.model_validate(note) for note in found if note.day >= first])


@router.delete("/{day}/{note}", status_code=204)
async def remove_note(runtime: RuntimeOf, memory: MemoryOf, name: str, day: str, note: str) -> None:
    """Remove one note; the file it was in keeps its earlier version for an undo."""
    await memory.remove(runtime.agents.find(name).id, day, note)


@dataclass(frozen=True, slots=True)
class MemoryNote:
    """One thing that an agent remembers, and the thread it came from."""

    entry: Remembered
    path: str


@pages.get("/agents/{name}/memory")
async def show_memory(
    runtime: RuntimeOf, memory: MemoryOf, who: Who, name: str, q: Words = ""
) -> HTMLResponse:
    """Show what an agent remembers."""
    return await _show(runtime, memory, who, name, q)


@forms.post("/agents/{name}/memory/{day}/{note}")
async def remove(
    runtime: RuntimeOf, memory: MemoryOf, who: Who, name: str, day: str, note: str
) -> Response:
    """Remove one note."""
    try:
        await memory.remove(runtime.agents.find(name).id, day, note)
    except NotFound:
        words = "This note was changed or removed meanwhile."
        return await _show(runtime, memory, who, name, problem=words)
    return RedirectResponse(done.address(f"/agents/{name}/memory", "note-removed"), 303)


async def _show(
    runtime: Runtime, memory: Memory, who: Visitor, name: str, query: str = "", *, problem: str = ""
) -> HTMLResponse:
    card = runtime.agents.find(name)
    listed = await list_agents(runtime, who, problem)
    line = next(line for line in listed.lines if line.agent.id == card.id)
    notes = [
        MemoryNote(each, _where(runtime, each.session))
        for each in await memory.entries(card.id, query)
    ]
    shown = render.with_agents(TEMPLATE, listed, line=line, notes=notes, query=query, on=line.path)
    return to_html(shown, 409 if problem else 200)


def _where(runtime: Runtime, session: int | None) -> str:
    """Return the path of a session's thread; empty if there is none any more."""
    found = runtime.stores.sessions.session(session) if session is not None else None
    return path_of(found.place) if found is not None else ""
