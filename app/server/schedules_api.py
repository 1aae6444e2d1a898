"""Serves schedules under /api/v1/schedules: list, make, pause, resume, run, remove."""

from __future__ import annotations

import asyncio
from typing import Literal
from uuid import uuid4

from fastapi import APIRouter, Depends

from app.core.schedules.book import origin_of
from app.core.schedules.command import write
from app.errors import Conflict, StoreUnavailable
from app.model.schedules import Schedule, ScheduleState
from app.server.api import OPERATOR, SETTLE_SECONDS, Number
from app.server.filters import AgentName, ServiceName, read_filter
from app.server.login import SignedInRoute, visitor
from app.server.parts import Parts, PartsOf
from app.server.problems import RESPONSES
from app.server.schedule_shapes import NewSchedule, ScheduleOut
from app.server.shapes import Page
from app.services.web import events

router = APIRouter(
    prefix="/api/v1/schedules",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("")
async def list_schedules(
    parts: PartsOf,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: ScheduleState | None = None,
    place: str | None = None,
) -> Page[ScheduleOut]:
    """List schedules, in the order in which they were made."""
    only = read_filter(parts, agent=agent, service=service, state=state)
    found = [
        each
        for each in parts.schedules.all()
        if only.agent in {None, each.key.agent}
        and only.service in {None, each.place.service}
        and only.state in {None, each.state}
        and place in {None, each.place.name}
    ]
    return Page(items=[_shown(parts, each) for each in found])


@router.post("", status_code=201)
async def add_schedule(parts: PartsOf, new: NewSchedule) -> ScheduleOut:
    """Make a schedule on the page, on behalf of the operator; its thread is told."""
    return _shown(parts, await make(parts, new, OPERATOR))


@router.get("/{schedule_id}")
async def read_schedule(parts: PartsOf, schedule_id: Number) -> ScheduleOut:
    """Read one schedule."""
    return _shown(parts, parts.schedules.find(schedule_id))


@router.delete("/{schedule_id}", status_code=204)
async def remove_schedule(parts: PartsOf, schedule_id: Number) -> None:
    """End a schedule; its place is told."""
    await parts.schedules.change(schedule_id, "remove", by=OPERATOR[1])


@router.post("/{schedule_id}/run", status_code=202)
async def run_schedule(parts: PartsOf, schedule_id: Number) -> ScheduleOut:
    """Run a schedule now; its due times stay as they are."""
    found = parts.schedules.find(schedule_id)
    await parts.schedules.run(found)
    return _shown(parts, found)


@router.post("/{schedule_id}/{change}")
async def change_schedule(
    parts: PartsOf, schedule_id: Number, change: Literal["pause", "resume"]
) -> ScheduleOut:
    """Pause a schedule, or let it go on; its place is told."""
    await parts.schedules.change(schedule_id, change, by=OPERATOR[1])
    return _shown(parts, parts.schedules.find(schedule_id))


async def make(parts: Parts, new: NewSchedule, by: tuple[str, str]) -> Schedule:
    """Make a schedule with the command that people use, in a thread of the page.

    Raises:
        Conflict: it makes no sense, is too often, or there are too many.
        BridgeError: there is no such agent, or it could not be stored.
    """
    agent = parts.find_agent(new.agent).id
    zone = new.zone or parts.schedules.zone
    parts.schedules.check(new.expression, zone)
    thread, name = new.thread or uuid4().hex[:12], uuid4().hex
    text = write(new.expression, zone, new.words)
    said = events.Said(
        thread=thread,
        text=text,
        spoken=text,
        speaker_id=by[0],
        speaker_name=by[1],
        mentions=(agent,),
        title=new.words.splitlines()[0][:80],
    )
    delivery = events.delivery(said, agent, now=parts.clock.now(), name=name)
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            await parts.intake.settle(delivery)
    except TimeoutError:
        raise StoreUnavailable("the schedule is stored and will be made later") from None
    made = parts.schedules.made_by(origin_of(events.place_key(thread), name, agent))
    if made is None:
        raise Conflict("no schedule was made; its thread says why")
    return made


def _shown(parts: Parts, schedule: Schedule) -> ScheduleOut:
    return ScheduleOut.of(schedule, parts.name_of(schedule.key.agent))
