"""Serves the commands that the message box of a thread offers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.server.login import Visitor, visitor
from app.server.page import queries
from app.server.page.view import menu
from app.server.site import RuntimeOf

router = APIRouter(include_in_schema=False)


@router.get("/commands/t/{service}/{name:path}")
async def read_commands(
    runtime: RuntimeOf, _who: Annotated[Visitor, Depends(visitor)], service: str, name: str
) -> list[menu.Item]:
    """List the commands of a thread."""
    cast = queries.cast_of(runtime)
    return menu.items(
        [
            (cast[session.key.agent], await runtime.stores.transcript.offered(session.id))
            for session in runtime.stores.sessions.in_place(queries.place_key(service, name))
        ]
    )
