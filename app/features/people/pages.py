"""Serves the pages /me and /people: who one is, tokens, and the roles of everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Form
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from app.core.runtime import Runtime
from app.errors import BridgeError
from app.features.part import find_part
from app.features.people.model import DAYS, MOST_DAYS, MadeToken, NewToken
from app.features.people.service import People
from app.model.people import GIVEN, Role
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.login_pages import clean_name
from app.server.page.actions import FormRoute
from app.server.page.agents import list_agents, to_html
from app.server.page.view import done, render
from app.server.site import RuntimeOf

ME: Final = "/me"
PEOPLE: Final = "/people"
_ME_PAGE: Final = Path(__file__).with_name("me.html")
_PEOPLE_PAGE: Final = Path(__file__).with_name("people.html")

PeopleOf = Annotated[People, Depends(find_part(People))]
Who = Annotated[Visitor, Depends(visitor)]
Line = Annotated[str, Form(max_length=200)]

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)


@pages.get(ME)
async def show_me(runtime: RuntimeOf, people: PeopleOf, who: Who) -> HTMLResponse:
    """Show who one is, and one's tokens."""
    return await _me(runtime, people, who)


@forms.post(ME)
async def name_me(runtime: RuntimeOf, people: PeopleOf, who: Who, name: Line = "") -> Response:
    """Give the operator's log-in a name."""
    try:
        await people.name_operator(who, clean_name(name))
    except BridgeError as error:
        return await _me(runtime, people, who, f"Not saved: {error}.")
    return RedirectResponse(done.address(ME, "named"), 303)


@forms.post("/tokens")
async def make_token(
    runtime: RuntimeOf,
    people: PeopleOf,
    who: Who,
    name: Line = "",
    role: Line = "",
    days: Annotated[int, Form()] = DAYS,
) -> Response:
    """Make a token, and show it this once."""
    try:
        made = await people.make_token(
            who, NewToken(name=name, role=Role(role) if role else None, days=days)
        )
    except (ValidationError, ValueError):
        words = f"Not made: say what it is for, and give it 1 to {MOST_DAYS} days."
        return await _me(runtime, people, who, words)
    except BridgeError as error:
        return await _me(runtime, people, who, f"Not made: {error}.")
    return await _me(runtime, people, who, made=made)


@forms.post("/tokens/{number}/revoke")
async def revoke_token(runtime: RuntimeOf, people: PeopleOf, who: Who, number: int) -> Response:
    """End a token."""
    try:
        await people.revoke(who, number)
    except BridgeError as error:
        return await _me(runtime, people, who, f"Not revoked: {error}.")
    return RedirectResponse(done.address(ME, "token-revoked"), 303)


@pages.get(PEOPLE)
async def show_people(runtime: RuntimeOf, people: PeopleOf, who: Who) -> HTMLResponse:
    """Show everyone, with their roles."""
    return await _people(runtime, people, who)


@forms.post(f"{PEOPLE}/{{number}}/role")
async def give_role(
    runtime: RuntimeOf, people: PeopleOf, who: Who, number: int, role: Annotated[Role, Form()]
) -> Response:
    """Give someone another role."""
    try:
        await people.give_role(who, number, role)
    except BridgeError as error:
        return await _people(runtime, people, who, f"Their role is as it was: {error}.")
    return RedirectResponse(done.address(PEOPLE, "role-given", f"u-{number}"), 303)


@forms.post(f"{PEOPLE}/{{number}}/{{change}}")
async def change_person(
    runtime: RuntimeOf,
    people: PeopleOf,
    who: Who,
    number: int,
    change: Literal["disable", "enable", "sign-out"],
) -> Response:
    """Keep someone out, let them in again, or end their log-ins."""
    try:
        if change == "sign-out":
            await people.sign_out(who, number)
        else:
            await people.disable(who, number, disabled=change == "disable")
    except BridgeError as error:
        return await _people(runtime, people, who, f"Nothing changed: {error}.")
    return RedirectResponse(done.address(PEOPLE, f"person-{change}", f"u-{number}"), 303)


async def _me(
    runtime: Runtime,
    people: People,
    who: Visitor,
    problem: str = "",
    *,
    made: MadeToken | None = None,
) -> HTMLResponse:
    listed = await list_agents(runtime, who, problem)
    tokens = [each for each in await people.tokens(who) if each.state == "active"]
    roles = [role for role in GIVEN if who.role.covers(role)]
    page = render.with_agents(
        _ME_PAGE, listed, who=who, tokens=tokens, made=made, roles=roles, days=DAYS, on=ME
    )
    return to_html(page, status=400 if problem else 200)


async def _people(
    runtime: Runtime, people: People, who: Visitor, problem: str = ""
) -> HTMLResponse:
    listed = await list_agents(runtime, who, problem)
    everyone = await people.all()
    page = render.with_agents(
        _PEOPLE_PAGE, listed, who=who, people=everyone, roles=GIVEN, on=PEOPLE
    )
    return to_html(page, status=400 if problem else 200)
