"""Serves schedules: under /api/v1/schedules, and the page with all of them and a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict
from app.features.part import find_part
from app.features.schedules import wording
from app.features.schedules.model import Schedule, ScheduleIn, ScheduleOut, ScheduleState, write
from app.features.schedules.service import Schedules, origin_of
from app.model.conversations import path_of, title_of
from app.model.keys import PlaceKey
from app.server.api import Number
from app.server.filters import AgentName, ServiceName, read_filter
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.actions import FormRoute
from app.server.page.agents import list_agents, to_html
from app.server.page.view import done, render
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf, settle
from app.services.web import events

TEMPLATE = Path(__file__).with_name("schedules.html")


Book = Annotated[Schedules, Depends(find_part(Schedules))]
Who = Annotated[Visitor, Depends(visitor)]

router = APIRouter(
    prefix="/api/v1/schedules",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("")
async def list_schedules(
    runtime: RuntimeOf,
    book: Book,
    *,
    agent: AgentName = None,
    service: ServiceName = None,
    state: ScheduleState | None = None,
    place: str | None = None,
) -> Page[ScheduleOut]:
    """List schedules, in the order in which they were made."""
    only = read_filter(runtime, agent=agent, service=service, state=state)
    found = [
        each
        for each in book.all()
        if only.agent in {None, each.key.agent}
        and only.service in {None, each.place.service}
        and only.state in {None, each.state}
        and place in {None, each.place.name}
    ]
    return Page(items=[_shown(runtime, each) for each in found])


@router.post("", status_code=201)
async def add_schedule(runtime: RuntimeOf, book: Book, who: Who, new: ScheduleIn) -> ScheduleOut:
    """Make a schedule on the page, on behalf of who asks; its thread is told."""
    return _shown(runtime, await make(runtime, book, new, who))


@router.get("/{schedule_id}")
async def read_schedule(runtime: RuntimeOf, book: Book, schedule_id: Number) -> ScheduleOut:
    """Read one schedule."""
    return _shown(runtime, book.find(schedule_id))


@router.delete("/{schedule_id}", status_code=204)
async def remove_schedule(book: Book, who: Who, schedule_id: Number) -> None:
    """End a schedule; its place is told."""
    await book.change(schedule_id, "remove", by=who.name)


@router.post("/{schedule_id}/run", status_code=202)
async def run_schedule(runtime: RuntimeOf, book: Book, schedule_id: Number) -> ScheduleOut:
    """Run a schedule now; its due times stay as they are."""
    found = book.find(schedule_id)
    await book.run(found)
    return _shown(runtime, found)


@router.post("/{schedule_id}/{change}")
async def change_schedule(
    runtime: RuntimeOf,
    book: Book,
    who: Who,
    schedule_id: Number,
    change: Literal["pause", "resume"],
) -> ScheduleOut:
    """Pause a schedule, or let it go on; its place is told."""
    await book.change(schedule_id, change, by=who.name)
    return _shown(runtime, book.find(schedule_id))


async def make(runtime: Runtime, book: Schedules, new: ScheduleIn, who: Visitor) -> Schedule:
    """Make a schedule with the command that people use, in a thread of the page.

    Raises:
        Conflict: it makes no sense, is too often, or there are too many.
        BridgeError: there is no such agent, or it could not be stored.
    """
    agent = runtime.agents.find(new.agent).id
    zone = new.zone or book.zone
    book.check(new.expression, zone)
    thread, name = new.thread or uuid4().hex[:12], uuid4().hex
    text = write(new.expression, zone, new.words)
    said = events.PageMessage(
        thread=thread,
        text=text,
        spoken=text,
        speaker_id=who.id,
        speaker_name=who.name,
        mentions=(agent,),
        title=new.words.splitlines()[0][:80],
    )
    delivery = events.delivery(said, agent, now=runtime.clock.now(), name=name)
    await settle(runtime, delivery, later="the schedule is stored and will be made later")
    made = book.made_by(origin_of(events.place_key(thread), name, agent))
    if made is None:
        raise Conflict("no schedule was made; its thread says why")
    return made


def _shown(runtime: Runtime, schedule: Schedule) -> ScheduleOut:
    return ScheduleOut(
        id=schedule.id,
        agent=runtime.agents.name(schedule.key.agent),
        key=str(schedule.key),
        service=schedule.place.service,
        place=schedule.place.name,
        expression=schedule.expression,
        zone=schedule.zone,
        words=schedule.words,
        creator=schedule.creator.name,
        state=schedule.state,
        next=schedule.due_at if schedule.state == "active" else None,
        status=wording.state(schedule),
        failures=schedule.failures,
        created_at=schedule.created_at,
    )


PATH: Final = "/schedules"

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)


@pages.get(PATH)
async def show(
    runtime: RuntimeOf, book: Book, who: Who, thread: str = "", agent: str = ""
) -> HTMLResponse:
    """Show all schedules, and the form for a new one."""
    return await _page(runtime, book, who, {"thread": thread, "agent": agent})


@forms.post(PATH)
async def add(request: Request, runtime: RuntimeOf, book: Book, who: Who) -> Response:
    """Make a schedule."""
    async with request.form() as form:
        given = {name: str(value).strip() for name, value in form.items() if name != "csrf"}
    try:
        new = ScheduleIn.model_validate({name: value for name, value in given.items() if value})
        made = await make(runtime, book, new, who)
    except ValidationError:
        return await _page(runtime, book, who, given, "Fill in when, and what to do.")
    except BridgeError as error:
        return await _page(runtime, book, who, given, f"Not scheduled: {error}.")
    return RedirectResponse(done.address(PATH, "schedule-added", f"s-{made.id}"), 303)


@forms.post(f"{PATH}/{{number}}/{{change}}")
async def change(
    runtime: RuntimeOf,
    book: Book,
    who: Who,
    number: int,
    change: Literal["pause", "resume", "remove", "run"],
) -> Response:
    """Pause, resume, run or remove a schedule."""
    try:
        if change == "run":
            await book.run(book.find(number))
        else:
            await book.change(number, change, by=who.name)
    except BridgeError as error:
        return await _page(
            runtime, book, who, {}, wrong=f"Schedule {number} is as it was: {error}."
        )
    anchor = "" if change == "remove" else f"s-{number}"
    return RedirectResponse(done.address(PATH, f"schedule-{change}", anchor), 303)


async def _page(
    runtime: Runtime,
    book: Schedules,
    who: Visitor,
    given: Mapping[str, str],
    problem: str = "",
    *,
    wrong: str = "",
) -> HTMLResponse:
    listed = await list_agents(runtime, who, wrong)
    names = {line.agent.id: line.agent.title for line in listed.lines}
    lines = [
        ScheduleLine(
            each,
            names.get(each.key.agent, each.key.agent),
            path_of(each.place),
            await _title(runtime, each.place),
        )
        for each in book.all()
    ]
    form = ScheduleForm(dict(given), book.zone, problem)
    return to_html(
        render.with_agents(TEMPLATE, listed, lines=lines, form=form, on=PATH),
        status=400 if problem or wrong else 200,
    )


async def _title(runtime: Runtime, place: PlaceKey) -> str:
    thread = await runtime.stores.conversations.thread(place)
    return str(place) if thread is None else title_of(thread)


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """One schedule, with its agent's name for people, and the path and title of its place."""

    schedule: Schedule
    agent: str
    path: str
    title: str

    @property
    def status(self) -> str:
        """When it runs next, or why it does not."""
        return wording.state(self.schedule)


@dataclass(frozen=True, slots=True)
class ScheduleForm:
    """The form for a new schedule: what was filled in, and what is wrong with it."""

    given: Mapping[str, str]
    zone: str
    """The bridge's own time zone."""
    problem: str = ""
