"""Serves what erases on demand, for the bearer of the admin token alone: purges and people."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.features.erasing.model import ErasedOut, NewPurge, PersonOut
from app.features.erasing.service import Erasing
from app.features.part import find_part
from app.server.filters import ServiceName, find_service
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf

ErasingOf = Annotated[Erasing, Depends(find_part(Erasing))]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.post("/purges")
async def purge(erasing: ErasingOf, new: NewPurge) -> ErasedOut:
    """Take a text out of everything that the bridge keeps and has posted; names what it cannot."""
    done = await erasing.purging.purge(new.text.get_secret_value(), discard=new.discard)
    return ErasedOut.of(done)


@router.get("/people")
async def list_people(
    runtime: RuntimeOf, erasing: ErasingOf, q: str = "", service: ServiceName = None
) -> Page[PersonOut]:
    """List the people whose name or id has these words."""
    wanted = find_service(runtime, service)
    found = await erasing.forgetting.find(q)
    return Page(items=[PersonOut.of(each) for each in found if wanted in {None, each.service}])


@router.delete("/people/{service}/{who:path}")
async def forget(erasing: ErasingOf, service: str, who: str) -> ErasedOut:
    """Forget a person: what they said and decided goes, their name becomes a pseudonym."""
    return ErasedOut.of(await erasing.forgetting.forget(service, who))
