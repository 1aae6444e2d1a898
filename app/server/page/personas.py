"""Serves the files of agents to read and to change, and the prompt of each turn as it was sent."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.agents.files import AgentFile
from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict, FileRefused, NotFound
from app.model.conversations import path_of
from app.server.files_api import change
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.actions import FormRoute
from app.server.page.agents import SHARED_BASE, list_agents, to_html
from app.server.page.view import done, render
from app.server.page.view.personas import Editor, KeptVersion, Prompt
from app.server.site import RuntimeOf

_REFUSED: Final = (FileRefused, Conflict, NotFound)

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@pages.get("/agents/{name}/files/{path:path}")
async def edit(runtime: RuntimeOf, who: Who, name: str, path: str) -> HTMLResponse:
    """Show a file of an agent, to change it."""
    return await _show(runtime, who, name, path)


@pages.get(f"{SHARED_BASE}/{{path:path}}")
async def edit_shared(runtime: RuntimeOf, who: Who, path: str) -> HTMLResponse:
    """Show a file of all agents, to change it."""
    return await _show(runtime, who, None, path)


@pages.get("/turns/{turn}/prompt")
async def read_prompt(runtime: RuntimeOf, who: Who, turn: int) -> HTMLResponse:
    """Show what an agent was told in a turn, exactly as it was sent."""
    found = runtime.stores.turns.turn(turn)
    session = runtime.stores.sessions.session(found.session) if found is not None else None
    if found is None or session is None:
        raise NotFound("turn", turn)
    card = runtime.agents.get(session.key.agent)
    shown = Prompt(
        turn,
        card.display_name if card is not None else runtime.agents.name(session.key.agent),
        path_of(session.place),
        found.prompt,
        found.system,
    )
    return to_html(render.prompt(await list_agents(runtime, who), shown))


@forms.post("/agents/{name}/files/{path:path}")
async def save(request: Request, runtime: RuntimeOf, who: Who, name: str, path: str) -> Response:
    """Change a file of an agent."""
    return await _save(request, runtime, who, name, path)


@forms.post(f"{SHARED_BASE}/{{path:path}}")
async def save_shared(request: Request, runtime: RuntimeOf, who: Who, path: str) -> Response:
    """Change a file of all agents."""
    return await _save(request, runtime, who, None, path)


async def _save(
    request: Request, runtime: Runtime, who: Visitor, name: str | None, path: str
) -> Response:
    form = await request.form(max_files=0)
    wish, text, digest, number = (
        str(form.get(key, "")) for key in ("do", "text", "digest", "version")
    )
    agent = None if name is None else runtime.agents.find(name).id
    files = runtime.files
    try:
        match wish:
            case "delete":
                await change(runtime, agent, path, lambda: files.delete(agent, path))
            case "restore" if number.isdecimal():
                await change(runtime, agent, path, lambda: files.undo(agent, path, int(number)))
            case "undo":
                await change(runtime, agent, path, lambda: files.undo(agent, path))
            case _:
                wish = "save"
                await change(
                    runtime, agent, path, lambda: files.write(agent, path, text, expected=digest)
                )
    except _REFUSED as error:
        typed = text if wish == "save" else None
        return await _show(runtime, who, name, path, problem=error, typed=typed)
    return RedirectResponse(done.address(_address(name, path), f"file-{wish}"), 303)


async def _show(
    runtime: Runtime,
    who: Visitor,
    name: str | None,
    path: str,
    *,
    problem: BridgeError | None = None,
    typed: str | None = None,
) -> HTMLResponse:
    card = None if name is None else runtime.agents.find(name)
    agent = None if card is None else card.id
    refused, file = await asyncio.to_thread(_read, runtime, agent, path)
    versions = await asyncio.to_thread(runtime.files.versions, agent, path)
    text = file.text if file is not None else ""
    words = str(problem or refused or (file.problem if file is not None else ""))
    editor = Editor(
        path=path,
        address=_address(name, path),
        back="/agents" if name is None else f"/agents/{name}",
        owner=card.display_name if card is not None else "",
        text=text if typed is None else typed,
        digest=file.digest if file is not None else "",
        problem=words,
        versions=tuple(KeptVersion(v.number, v.size, v.written_at, v.gone) for v in versions),
        there=file is not None,
    )
    return to_html(render.editor(await list_agents(runtime, who), editor), 422 if problem else 200)


def _read(
    runtime: Runtime, agent: str | None, path: str
) -> tuple[FileRefused | None, AgentFile | None]:
    """Read a file; a name that no file can have has no page."""
    runtime.files.versions(agent, path)
    try:
        return None, runtime.files.read(agent, path)
    except FileRefused as refused:
        return refused, None


def _address(name: str | None, path: str) -> str:
    return f"{SHARED_BASE}/{path}" if name is None else f"/agents/{name}/files/{path}"
