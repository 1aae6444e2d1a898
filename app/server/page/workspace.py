"""Serves the changes of a workspace, file by file as a reader gets to them.

The parts of one page must fit together although an agent goes on working: a page names the digest
of the changes it shows, and gets its later parts from those.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from app.agents.catalog import settings_owner
from app.core.runtime import Runtime
from app.model.types import Session
from app.server.elsewhere import fetch_elsewhere
from app.server.login import Visitor, visitor
from app.server.page.browse import list_scratch, workspace_of
from app.server.page.routes import HEADERS
from app.server.page.view import render
from app.server.page.view.workspace import Changes, piece, read
from app.server.site import RuntimeOf

KEPT: Final = 8
"""Changes that are kept for pages that are being read, each at most some megabytes."""

router = APIRouter(include_in_schema=False, dependencies=[Depends(fetch_elsewhere)])
_kept: OrderedDict[str, Changes] = OrderedDict()
Who = Annotated[Visitor, Depends(visitor)]


@router.get("/workspace/{session}")
async def read_workspace(runtime: RuntimeOf, _who: Who, session: int) -> HTMLResponse:
    """Show what changed where a session works; without a repository, its files."""
    found, shown = workspace_of(runtime, session)
    if shown.view.kind == "empty":
        folder = await list_scratch(runtime, found)
        return HTMLResponse(render.files(shown, folder), headers=HEADERS)
    made = await _changes(runtime, found)
    page = await asyncio.to_thread(render.changes, shown, made)
    return HTMLResponse(page, headers=HEADERS)


@router.get("/workspace/{session}/change")
async def read_change(
    runtime: RuntimeOf,
    _who: Who,
    session: int,
    of: str,
    file: Annotated[int, Query(ge=0)],
    after: Annotated[int, Query(ge=0)] = 0,
) -> HTMLResponse:
    """Show the lines of one changed file, of the changes that a page has the digest of."""
    found, shown = workspace_of(runtime, session)
    made = _kept.get(of) or await _changes(runtime, found)
    if made.digest != of or file >= len(made.files):
        return HTMLResponse(render.change_gone(shown), headers=HEADERS)

    def rendered() -> str:
        return render.change_lines(shown, of, file, piece(made.files[file], after))

    return HTMLResponse(await asyncio.to_thread(rendered), headers=HEADERS)


async def _changes(runtime: Runtime, session: Session) -> Changes:
    """Read the changes of a session, and keep them for the later parts of a page."""
    assert runtime.workspaces is not None
    found = await runtime.workspaces.changes(session)
    made = await asyncio.to_thread(read, found, settings_owner)
    _kept[made.digest] = made
    _kept.move_to_end(made.digest)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return made
