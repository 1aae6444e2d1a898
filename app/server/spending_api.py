"""Serves /api/v1/spending: what today has cost so far, and what it may cost."""

from __future__ import annotations

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from app.model.spending import Share
from app.server.login import SignedInRoute, visitor
from app.server.parts import PartsOf
from app.server.problems import RESPONSES
from app.server.shapes import Page

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


class SpendingOut(BaseModel):
    """What a person, a place, an agent or everyone has spent today."""

    share: Share
    name: str
    """Who or what: `slack:U024BE7LH`, `slack:C0123`, an agent's name; empty for the whole day."""
    usd: float
    limit_usd: float | None
    """What it may be; no limit if absent."""


@router.get("/spending")
async def list_spending(parts: PartsOf) -> Page[SpendingOut]:
    """List what today has cost so far, the most first; empty unless a daily budget is set."""
    day = parts.daily.day_of(parts.clock.now())
    found = await parts.spending.list(day) if parts.spending is not None else ()
    return Page(
        items=[
            SpendingOut(
                share=each.share,
                name=parts.name_of(each.name) if each.share == "agent" else each.name,
                usd=round(each.usd, 4),
                limit_usd=parts.daily.usd.get(each.share),
            )
            for each in found
        ]
    )
