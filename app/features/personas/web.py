"""Serves the files of agents, in the API and as pages, and the prompt of each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.agents.checks import FILES, check_files
from app.agents.files import IDENTITY, AgentFile, Version
from app.agents.registry import label_again
from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict, FileRefused, NotFound
from app.features.personas.model import FileDetail, FileOut, NewText, WantedVersion
from app.model.conversations import path_of
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.actions import FormRoute
from app.server.page.agents import SHARED_BASE, list_agents, to_html
from app.server.page.view import done, render
from app.server.page.view.agents import label_file
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf
from app.signals import Topic

T = TypeVar("T")
_REFUSED: Final = (FileRefused, Conflict, NotFound)
EDITOR_TEMPLATE: Final = Path(__file__).with_name("editor.html")
PROMPT_TEMPLATE: Final = Path(__file__).with_name("prompt.html")
HINT = "---\nname: Ada\nemoji: \N{OWL}\ncolour: teal\n---\nYou review code."
"""An example of an identity, shown where there is none."""
FilePath = Annotated[str, PathParameter(description="Such as SOUL.md or memory/2026-01-31.md")]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/agents/{name}/files")
async def list_files(runtime: RuntimeOf, name: str) -> Page[FileOut]:
    """List the files of an agent."""
    return await _list_all(runtime, runtime.agents.find(name).id)


@router.get("/files")
async def list_shared_files(runtime: RuntimeOf) -> Page[FileOut]:
    """List the files for all agents."""
    return await _list_all(runtime, None)


@router.get("/agents/{name}/files/{path:path}")
async def read_file(runtime: RuntimeOf, name: str, path: FilePath) -> FileDetail:
    """Read a file of an agent, and what it was before."""
    return await _read_detail(runtime, runtime.agents.find(name).id, path)


@router.get("/files/{path:path}")
async def read_shared_file(runtime: RuntimeOf, path: FilePath) -> FileDetail:
    """Read a file for all agents, and what it was before."""
    return await _read_detail(runtime, None, path)


@router.put("/agents/{name}/files/{path:path}")
async def write_file(runtime: RuntimeOf, name: str, path: FilePath, new: NewText) -> FileDetail:
    """Write a file of an agent; running sessions are told at their next turn."""
    return await _write_text(runtime, runtime.agents.find(name).id, path, new)


@router.put("/files/{path:path}")
async def write_shared_file(runtime: RuntimeOf, path: FilePath, new: NewText) -> FileDetail:
    """Write a file for all agents; running sessions are told at their next turn."""
    return await _write_text(runtime, None, path, new)


@router.delete("/agents/{name}/files/{path:path}", status_code=204)
async def delete_file(runtime: RuntimeOf, name: str, path: FilePath) -> None:
    """Delete a file of an agent; this can be undone."""
    agent = runtime.agents.find(name).id
    await change(runtime, agent, path, lambda: runtime.files.delete(agent, path))


@router.delete("/files/{path:path}", status_code=204)
async def delete_shared_file(runtime: RuntimeOf, path: FilePath) -> None:
    """Delete a file for all agents; this can be undone."""
    await change(runtime, None, path, lambda: runtime.files.delete(None, path))


@router.post("/agents/{name}/files/{path:path}/undo")
async def undo_file(
    runtime: RuntimeOf, name: str, path: FilePath, wanted: WantedVersion
) -> FileDetail:
    """Undo the last change of an agent's file, or bring an earlier version back."""
    return await _undo_change(runtime, runtime.agents.find(name).id, path, wanted)


@router.post("/files/{path:path}/undo")
async def undo_shared_file(runtime: RuntimeOf, path: FilePath, wanted: WantedVersion) -> FileDetail:
    """Undo the last change of a file for all agents, or bring an earlier version back."""
    return await _undo_change(runtime, None, path, wanted)


async def _list_all(runtime: Runtime, agent: str | None) -> Page[FileOut]:
    found = await asyncio.to_thread(runtime.files.read_all, agent)
    return Page(items=[FileOut.model_validate(file) for file in found])


async def _read_detail(runtime: Runtime, agent: str | None, path: str) -> FileDetail:
    file = await asyncio.to_thread(runtime.files.read, agent, path)
    if file is None:
        raise NotFound("file", path)
    return await _detail(runtime, agent, path, file)


async def _write_text(runtime: Runtime, agent: str | None, path: str, new: NewText) -> FileDetail:
    file = await change(
        runtime,
        agent,
        path,
        lambda: runtime.files.write(agent, path, new.text, expected=new.expected),
    )
    return await _detail(runtime, agent, path, file)


async def _undo_change(
    runtime: Runtime, agent: str | None, path: str, wanted: WantedVersion
) -> FileDetail:
    file = await change(
        runtime, agent, path, lambda: runtime.files.undo(agent, path, wanted.version)
    )
    return await _detail(runtime, agent, path, file)


async def _detail(
    runtime: Runtime, agent: str | None, path: str, file: AgentFile | None
) -> FileDetail:
    versions = await asyncio.to_thread(runtime.files.versions, agent, path)
    return FileDetail.of(path, file, versions)


async def change(runtime: Runtime, agent: str | None, path: str, work: Callable[[], T]) -> T:
    """Change a file in a thread; then people see the agent as its identity says."""
    result = await asyncio.to_thread(work)
    if agent is not None and path == IDENTITY:
        await relabel(runtime, agent)
    return result


async def relabel(runtime: Runtime, agent: str) -> None:
    """Show an agent as its identity file now says."""
    await label_again(runtime.agents, runtime.files)
    runtime.availability.forget(agent, FILES)
    runtime.availability.note(agent, *check_files(runtime.files, agent))
    runtime.signals.send(Topic.LABELS)


pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@dataclass(frozen=True, slots=True)
class Editor:
    """A file that is being changed."""

    path: str
    address: str
    back: str
    """The page it belongs to."""
    owner: str
    """What people call its agent; empty for a file of all agents."""
    text: str
    digest: str
    problem: str = ""
    versions: Sequence[Version] = ()
    there: bool = True

    @property
    def label(self) -> str:
        """What it is for."""
        return label_file(self.path)

    @property
    def hint(self) -> str:
        """What could be in it."""
        return HINT if self.path == IDENTITY else ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent was told in a turn."""

    turn: int
    agent: str
    back: str
    text: str
    system: str = ""


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
    return to_html(
        render.with_agents(PROMPT_TEMPLATE, await list_agents(runtime, who), shown=shown, on="")
    )


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
        versions=versions,
        there=file is not None,
    )
    listed = await list_agents(runtime, who)
    shown = render.with_agents(EDITOR_TEMPLATE, listed, editor=editor, on=editor.back)
    return to_html(shown, 422 if problem else 200)


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
