"""Serves the page of schedules: all of them, and the form that makes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from app.errors import BridgeError
from app.model.keys import PlaceKey
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page.actions import FormRoute
from app.server.page.agent_pages import list_crew, to_html
from app.server.page.view import done, render
from app.server.page.view.schedules import ScheduleForm, ScheduleLine
from app.server.parts import Parts, PartsOf
from app.server.schedule_shapes import NewSchedule
from app.server.schedules_api import make
from app.server.titles import path_of, title_of

PATH: Final = "/schedules"

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


@pages.get(PATH)
async def show(parts: PartsOf, who: Who, thread: str = "", agent: str = "") -> HTMLResponse:
    """Show all schedules, and the form for a new one."""
    return await _page(parts, who, {"thread": thread, "agent": agent})


@forms.post(PATH)
async def add(request: Request, parts: PartsOf, who: Who) -> Response:
    """Make a schedule."""
    async with request.form() as form:
        given = {name: str(value).strip() for name, value in form.items() if name != "csrf"}
    try:
        new = NewSchedule.model_validate({name: value for name, value in given.items() if value})
        made = await make(parts, new, (who.name, who.name))
    except ValidationError:
        return await _page(parts, who, given, "Fill in when, and what to do.")
    except BridgeError as error:
        return await _page(parts, who, given, f"Not scheduled: {error}.")
    return RedirectResponse(done.address(PATH, "schedule-added", f"s-{made.id}"), 303)


@forms.post(f"{PATH}/{{number}}/{{change}}")
async def change(
    parts: PartsOf, who: Who, number: int, change: Literal["pause", "resume", "remove", "run"]
) -> Response:
    """Pause, resume, run or remove a schedule."""
    try:
        if change == "run":
            await parts.schedules.run(parts.schedules.find(number))
        else:
            await parts.schedules.change(number, change, by=who.name)
    except BridgeError as error:
        return await _page(parts, who, {}, wrong=f"Schedule {number} is as it was: {error}.")
    anchor = "" if change == "remove" else f"s-{number}"
    return RedirectResponse(done.address(PATH, f"schedule-{change}", anchor), 303)


async def _page(
    parts: Parts, who: Visitor, given: Mapping[str, str], problem: str = "", *, wrong: str = ""
) -> HTMLResponse:
    crew = await list_crew(parts, who, wrong)
    names = {line.agent.id: line.agent.title for line in crew.lines}
    lines = [
        ScheduleLine(
            each,
            names.get(each.key.agent, each.key.agent),
            path_of(each.place),
            await _title(parts, each.place),
        )
        for each in parts.schedules.all()
    ]
    form = ScheduleForm(dict(given), parts.schedules.zone, problem)
    return to_html(render.schedules(crew, lines, form), status=400 if problem or wrong else 200)


async def _title(parts: Parts, place: PlaceKey) -> str:
    thread = await parts.threads.thread(place)
    return str(place) if thread is None else title_of(thread)
