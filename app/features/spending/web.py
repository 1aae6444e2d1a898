"""Serves /api/v1/spending: what today has cost so far, and what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from app.core.runtime import Runtime
from app.core.turns.limits import DailyLimits
from app.features.part import Part, find_part
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf
from app.store.spending import Share, Spending


class SpendingOut(BaseModel):
    """What a person, a place, an agent or everyone has spent today."""

    share: Share
    name: str
    """Who or what: `slack:U024BE7LH`, `slack:C0123`, an agent's name; empty for the whole day."""
    usd: float
    limit_usd: float | None
    """What it may be; no limit if absent."""


class DailySpending(Part):
    """What the days of one bridge cost."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.limits = DailyLimits.of(runtime.configuration)

    async def list_today(self) -> Sequence[Spending]:
        """List what today has cost so far, the most first."""
        today = self.limits.day_of(self.runtime.clock.now())
        return await self.runtime.stores.spending.list(today)


router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/spending")
async def list_spending(
    runtime: RuntimeOf, daily: Annotated[DailySpending, Depends(find_part(DailySpending))]
) -> Page[SpendingOut]:
    """List what today has cost so far, the most first; empty unless a daily budget is set."""
    return Page(
        items=[
            SpendingOut(
                share=each.share,
                name=runtime.agents.name(each.name) if each.share == "agent" else each.name,
                usd=round(each.usd, 4),
                limit_usd=daily.limits.usd.get(each.share),
            )
            for each in await daily.list_today()
        ]
    )
