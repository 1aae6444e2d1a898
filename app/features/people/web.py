"""Serves people and tokens under /api/v1: who signs in, their roles, and what their scripts use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.features.part import find_part
from app.features.people.model import (
    MadeToken,
    MeOut,
    NewToken,
    TokenOut,
    UserChanges,
    UserOut,
)
from app.features.people.service import People
from app.server.api import Number
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page

PeopleOf = Annotated[People, Depends(find_part(People))]
Who = Annotated[Visitor, Depends(visitor)]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/me")
async def read_me(who: Who) -> MeOut:
    """Tell who sends this request, and what they may do with it."""
    user = None if who.person is None else UserOut.of(who.person)
    return MeOut(name=who.name, role=who.role, user=user)


@router.get("/users")
async def list_users(people: PeopleOf) -> Page[UserOut]:
    """List everyone who signed in or was named."""
    return Page(items=[UserOut.of(each) for each in await people.all()])


@router.patch("/users/{number}")
async def change_user(people: PeopleOf, who: Who, number: Number, changes: UserChanges) -> UserOut:
    """Give someone another role, keep them out, or let them in again."""
    if changes.role is not None:
        await people.give_role(who, number, changes.role)
    if changes.disabled is not None:
        await people.disable(who, number, disabled=changes.disabled)
    return UserOut.of(people.find(number))


@router.get("/tokens")
async def list_tokens(people: PeopleOf, who: Who) -> Page[TokenOut]:
    """List your tokens; an admin sees those of all."""
    return Page(items=list(await people.tokens(who)))


@router.post("/tokens", status_code=201)
async def make_token(people: PeopleOf, who: Who, new: NewToken) -> MadeToken:
    """Make a token; its secret is in this answer and nowhere else."""
    return await people.make_token(who, new)


@router.delete("/tokens/{number}", status_code=204)
async def revoke_token(people: PeopleOf, who: Who, number: Number) -> None:
    """End a token at once."""
    await people.revoke(who, number)
