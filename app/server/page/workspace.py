"""Serves the page of a workspace: repository, branch, changes, and what was shipped."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse

from app.errors import NotFound
from app.server.login import Visitor, visitor
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import render
from app.server.page.view.views import path_of
from app.server.page.view.workspace import Workspace, lines_of
from app.server.parts import PartsOf

router = APIRouter(include_in_schema=False)


@router.get("/workspace/{session}")
async def read_workspace(
    parts: PartsOf, _who: Annotated[Visitor, Depends(visitor)], session: int
) -> HTMLResponse:
    """Show where a session works and what changed there."""
    found = parts.sessions.session(session)
    if found is None or parts.workspaces is None:
        raise NotFound("session", session)
    shown = Workspace(
        title=found.title or str(found.key),
        agent=found.key.agent,
        thread=path_of(found.place),
        view=parts.workspaces.describe(found),
        lines=lines_of(await parts.workspaces.diff(found)),
        assets=addresses(),
    )
    return HTMLResponse(render.workspace(shown), headers=HEADERS)
