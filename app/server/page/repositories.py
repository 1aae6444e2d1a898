"""Serves the picker of a new thread: where it can work, and whether a choice can be used."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.server.login import Visitor, visitor
from app.server.shapes import CHOICE_CHARACTERS
from app.server.site import RuntimeOf
from app.services.web import events

router = APIRouter(include_in_schema=False)
Who = Annotated[Visitor, Depends(visitor)]
Name = Annotated[str, Query(max_length=CHOICE_CHARACTERS)]
NEW = events.place_key("")
"""A thread that does not exist yet."""


@router.get("/repositories")
async def list_repositories(runtime: RuntimeOf, _who: Who, agent: str) -> JSONResponse:
    """List where an agent can work in a new thread."""
    offered = await runtime.picker.offer(_known(runtime, agent))
    return _json(
        {
            "recent": list(offered.recent),
            "listed": list(offered.listed),
            "problem": offered.problem,
        }
    )


@router.get("/repositories/check")
async def check_repository(runtime: RuntimeOf, _who: Who, agent: str, name: Name) -> JSONResponse:
    """Check a choice before anything is sent; a problem is said next to the picker."""
    try:
        return _json({"name": await runtime.picker.check(NEW, _known(runtime, agent), name)})
    except Conflict as error:
        return _json({"name": "", "problem": str(error)})


def _known(runtime: Runtime, agent: str) -> str:
    if agent not in runtime.agents:
        raise NotFound("agent", agent)
    return agent


def _json(content: object) -> JSONResponse:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})
