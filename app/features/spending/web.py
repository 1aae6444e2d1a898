"""Serves /api/v1/spending: what the last days have cost, and what a day may cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from app.core.runtime import Runtime
from app.core.turns.limits import DailyLimits
from app.features.part import Part, find_part
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf
from app.store.spending import Share, Spending

MOST_DAYS: Final = 400
"""Days that are listed at once: a year, if they are kept for so long."""


class SpendingOut(BaseModel):
    """What a person, a place, a repository, an agent or everyone has spent on a day."""

    day: str
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

    async def list(self, days: int) -> Sequence[Spending]:
        """List what today and the days before it have cost, so many days together."""
        today = date.fromisoformat(self.limits.day_of(self.runtime.clock.now()))
        since = today - timedelta(days=days - 1)
        return await self.runtime.stores.spending.list(since.isoformat())


router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/spending")
async def list_spending(
    runtime: RuntimeOf,
    daily: Annotated[DailySpending, Depends(find_part(DailySpending))],
    days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = 1,
) -> Page[SpendingOut]:
    """List what today has cost so far, or the last `days`: the last day first, then the most."""
    return Page(
        items=[
            SpendingOut(
                day=each.day,
                share=each.share,
                name=runtime.agents.name(each.name) if each.share == "agent" else each.name,
                usd=round(each.usd, 4),
                limit_usd=daily.limits.usd.get(each.share),
            )
            for each in await daily.list(days)
        ]
    )
