"""Serves the files of agents: those of one under its name, those of all under /api/v1/files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends
from fastapi import Path as PathParameter

from app.agents.availability import FILES, check_files
from app.agents.enrolling import label_again
from app.agents.files import IDENTITY, AgentFile
from app.core.runtime import Runtime
from app.errors import NotFound
from app.server.agent_shapes import FileDetail, FileOut, NewText, WantedVersion
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf
from app.signals import Topic

T = TypeVar("T")
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
    return await _list(runtime, runtime.agents.find(name).id)


@router.get("/files")
async def list_shared_files(runtime: RuntimeOf) -> Page[FileOut]:
    """List the files for all agents."""
    return await _list(runtime, None)


@router.get("/agents/{name}/files/{path:path}")
async def read_file(runtime: RuntimeOf, name: str, path: FilePath) -> FileDetail:
    """Read a file of an agent, and what it was before."""
    return await _read(runtime, runtime.agents.find(name).id, path)


@router.get("/files/{path:path}")
async def read_shared_file(runtime: RuntimeOf, path: FilePath) -> FileDetail:
    """Read a file for all agents, and what it was before."""
    return await _read(runtime, None, path)


@router.put("/agents/{name}/files/{path:path}")
async def write_file(runtime: RuntimeOf, name: str, path: FilePath, new: NewText) -> FileDetail:
    """Write a file of an agent; running sessions are told at their next turn."""
    return await _write(runtime, runtime.agents.find(name).id, path, new)


@router.put("/files/{path:path}")
async def write_shared_file(runtime: RuntimeOf, path: FilePath, new: NewText) -> FileDetail:
    """Write a file for all agents; running sessions are told at their next turn."""
    return await _write(runtime, None, path, new)


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
    return await _undo(runtime, runtime.agents.find(name).id, path, wanted)


@router.post("/files/{path:path}/undo")
async def undo_shared_file(runtime: RuntimeOf, path: FilePath, wanted: WantedVersion) -> FileDetail:
    """Undo the last change of a file for all agents, or bring an earlier version back."""
    return await _undo(runtime, None, path, wanted)


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


def list_with_problems(runtime: Runtime, agent: str | None) -> list[AgentFile]:
    """List the files, each with what is wrong with it; blocks."""
    files = runtime.files
    return [files.read(agent, each.path) or each for each in files.list_files(agent)]


async def _list(runtime: Runtime, agent: str | None) -> Page[FileOut]:
    found = await asyncio.to_thread(list_with_problems, runtime, agent)
    return Page(items=[FileOut.of(file) for file in found])


async def _read(runtime: Runtime, agent: str | None, path: str) -> FileDetail:
    file = await asyncio.to_thread(runtime.files.read, agent, path)
    if file is None:
        raise NotFound("file", path)
    return await _show(runtime, agent, path, file)


async def _write(runtime: Runtime, agent: str | None, path: str, new: NewText) -> FileDetail:
    file = await change(
        runtime,
        agent,
        path,
        lambda: runtime.files.write(agent, path, new.text, expected=new.expected),
    )
    return await _show(runtime, agent, path, file)


async def _undo(
    runtime: Runtime, agent: str | None, path: str, wanted: WantedVersion
) -> FileDetail:
    file = await change(
        runtime, agent, path, lambda: runtime.files.undo(agent, path, wanted.version)
    )
    return await _show(runtime, agent, path, file)


async def _show(
    runtime: Runtime, agent: str | None, path: str, file: AgentFile | None
) -> FileDetail:
    versions = await asyncio.to_thread(runtime.files.versions, agent, path)
    return FileDetail.of(path, file, versions)
