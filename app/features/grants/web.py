"""Serves grants under /api/v1/grants: list what people allowed for good, and take it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from app.model import ask_wording as wording
from app.model.asks import Grant, GrantState, WantedGrants
from app.model.keys import PlaceKey
from app.model.updates import GrantExtent
from app.server.api import Limit, Number
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

router = APIRouter(
    prefix="/api/v1/grants",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)
PlaceFilter = Annotated[str | None, Query(pattern=r"^[^:]+:.+$", max_length=500)]


class GrantOut(BaseModel):
    """What a person lets an agent do in a place without being asked each time."""

    id: int
    agent: str
    session: int
    place: str
    """The service and the name of the place: `slack:C0123:1700000000.1`."""
    kind: str
    """The kind of call; empty if the agent named none."""
    extent: GrantExtent
    subject: str
    """The exact command, the paths, or the call; empty for all edits in the workspace."""
    words: str
    """All that it covers, in words."""
    granted_by: str
    granted_at: float
    expires_at: float
    state: GrantState
    ended_at: float | None
    ended_by: str
    """Who took it back."""
    ask: int | None
    """The ask whose answer it was."""

    @classmethod
    def of(cls, grant: Grant, agent: str) -> GrantOut:
        """Show a grant under the name of its agent."""
        known = {name: getattr(grant, name) for name in cls.model_fields if name != "words"}
        words = wording.granted(grant.kind, grant.extent, grant.subject)
        return cls(**{**known, "agent": agent, "place": str(grant.place), "words": words})


@router.get("")
async def list_grants(
    runtime: RuntimeOf,
    agent: str | None = None,
    place: PlaceFilter = None,
    session: int | None = None,
    state: GrantState | None = None,
    after: int = 0,
    limit: Limit = 50,
) -> Page[GrantOut]:
    """List grants, oldest first; those of a place include what its agents' helpers were granted."""
    wanted = WantedGrants(
        None if agent is None else runtime.agents.find(agent).id,
        None if place is None else PlaceKey(*place.split(":", 1)),
        session,
        state,
    )
    found = await runtime.ledger.grants(wanted, after=after, limit=limit)
    more = found[-1].id if len(found) == limit else None
    return Page(
        items=[GrantOut.of(each, runtime.agents.name(each.agent)) for each in found], next=more
    )


@router.delete("/{grant_id}", status_code=204)
async def take_back(
    runtime: RuntimeOf, grant_id: Number, who: Annotated[Visitor, Depends(visitor)]
) -> None:
    """Take a grant back: the next such call is asked again, also in a turn that runs."""
    await runtime.ledger.take_back(grant_id, who.name)
