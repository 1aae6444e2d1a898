"""Serves the page with what an agent remembers: search, read, remove."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import NotFound
from app.model.conversations import path_of
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.memory_api import QUERY_CHARACTERS
from app.server.page.actions import FormRoute
from app.server.page.agent_pages import list_crew, to_html
from app.server.page.view import done, render
from app.server.page.view.agents import MemoryNote
from app.server.parts import Parts, PartsOf

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@pages.get("/agents/{name}/memory")
async def show_memory(
    parts: PartsOf,
    who: Who,
    name: str,
    q: Annotated[str, Query(max_length=QUERY_CHARACTERS)] = "",
) -> HTMLResponse:
    """Show what an agent remembers."""
    return await _show(parts, who, name, q)


@forms.post("/agents/{name}/memory/{day}/{note}")
async def remove_note(parts: PartsOf, who: Who, name: str, day: str, note: str) -> Response:
    """Remove one note."""
    try:
        await parts.memory.remove(parts.find_agent(name).id, day, note)
    except NotFound:
        return await _show(parts, who, name, "", "This note was changed or removed meanwhile.")
    return RedirectResponse(done.address(f"/agents/{name}/memory", "note-removed"), 303)


async def _show(
    parts: Parts, who: Visitor, name: str, query: str, problem: str = ""
) -> HTMLResponse:
    card = parts.find_agent(name)
    crew = await list_crew(parts, who, problem)
    line = next(line for line in crew.lines if line.agent.id == card.id)
    notes = [
        MemoryNote(each, _where(parts, each.session))
        for each in await parts.memory.entries(card.id, query)
    ]
    return to_html(render.memory(crew, line, notes, query), 409 if problem else 200)


def _where(parts: Parts, session: int | None) -> str:
    """Return the path of a session's thread; empty if there is none any more."""
    found = parts.sessions.session(session) if session is not None else None
    return path_of(found.place) if found is not None else ""
