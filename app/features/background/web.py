"""Serves what agents have running between turns under /api/v1, and ends it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from app.errors import NotFound
from app.features.background.service import BackgroundWork
from app.features.part import find_part
from app.server.api import Number
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

router = APIRouter(route_class=SignedInRoute, dependencies=[Depends(visitor)], responses=RESPONSES)
Works = Annotated[BackgroundWork, Depends(find_part(BackgroundWork))]


class WorkOut(BaseModel):
    """Something that an agent has running between its turns."""

    session: int
    agent: str
    kind: str
    """`command`, `child`, `timer`, `goal` or `agent`."""
    about: str
    """What it is, as the agent says."""
    turn: int | None
    """The turn that began it."""
    began_at: float


@router.get("/api/v1/work")
async def list_work(runtime: RuntimeOf, works: Works) -> Page[WorkOut]:
    """List what agents have running in the background, the oldest first."""
    found = await works.all()
    sessions = {each.session: runtime.stores.sessions.session(each.session) for each in found}
    return Page(
        items=[
            WorkOut(
                session=each.session,
                agent=runtime.agents.name(known.key.agent),
                kind=each.work.kind,
                about=each.work.about,
                turn=each.work.turn,
                began_at=each.work.began_at,
            )
            for each in found
            if (known := sessions[each.session]) is not None
        ],
        next=None,
    )


@router.delete("/api/v1/sessions/{session_id}/work", status_code=204)
async def end_work(works: Works, session_id: Number) -> None:
    """End what a session has running in the background."""
    if not await works.end(session_id):
        raise NotFound("work in the background of session", str(session_id))


@router.post("/work/{session_id}/stop")
async def stop_work(works: Works, session_id: int) -> Response:
    """End what a session has running in the background, from the page."""
    await works.end(session_id)
    return Response(status_code=204)
