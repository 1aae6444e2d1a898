"""Serves /api/v1/why, and the page with the search for a message and the level of service."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from app.features.outcomes import wording
from app.features.outcomes.level import Times, sum_up
from app.features.outcomes.model import WhyOut
from app.features.outcomes.service import Outcomes
from app.features.part import find_part
from app.model.gap_wording import gap_words
from app.model.text import duration
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.agents import list_agents, to_html
from app.server.page.view import render
from app.server.problems import RESPONSES
from app.server.site import RuntimeOf

TEMPLATE = Path(__file__).with_name("outcomes.html")
PATH: Final = "/outcomes"
DAYS: Final = 7
"""How many days the page sums up: what people remember."""
MOST: Final = 3000
"""Messages that the page sums up at most: about a second of reading."""
LINK_CHARACTERS: Final = 2_000

Book = Annotated[Outcomes, Depends(find_part(Outcomes))]
Who = Annotated[Visitor, Depends(visitor)]


router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)
pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)


@router.get("/why")
async def why(
    book: Book, message: Annotated[str, Query(min_length=1, max_length=LINK_CHARACTERS)]
) -> WhyOut:
    """Tell what became of a message, by the link that its platform copies, or by an id."""
    return WhyOut.model_validate(asdict(await book.explain(message)))


@pages.get(PATH)
async def show(
    runtime: RuntimeOf,
    book: Book,
    who: Who,
    message: Annotated[str, Query(max_length=LINK_CHARACTERS)] = "",
) -> HTMLResponse:
    """Show what became of a message that was searched, and how good the service is."""
    now, zone = runtime.clock.now(), ZoneInfo(runtime.zone)
    found = await book.explain(message) if message.strip() else None
    recent = await book.store.since(now - DAYS * 86_400, limit=MOST)
    days = sum_up(recent, lambda at: f"{datetime.fromtimestamp(at, zone):%Y-%m-%d}")
    listed = await list_agents(runtime, who, "")
    return to_html(
        render.with_agents(
            TEMPLATE,
            listed,
            on=PATH,
            message=message,
            found=found,
            clock=book.clock_time,
            days=days,
            names=wording.OUTCOMES,
            waiting=[(each, duration(now - each.received_at)) for each in await book.waiting()],
            times=_write_times,
            gaps=[
                gap_words(each, book.clock_time)
                for each in await runtime.stores.gaps.since(now - DAYS * 86_400)
            ],
            troubles={name: words for name, words in runtime.troubles().items() if words},
        )
    )


def _write_times(found: Times | None) -> str:
    return "" if found is None else f"{_seconds(found.p50)} / {_seconds(found.p95)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)
