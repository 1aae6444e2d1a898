"""Serves the dice under /api/v1/dice."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.errors import NotFound
from app.features.part import find_part
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from dice_feature.service import Dice

router = APIRouter(
    prefix="/api/v1/dice",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/{dice}")
async def roll(part: Annotated[Dice, Depends(find_part(Dice))], dice: str) -> dict[str, int]:
    """Roll dice."""
    total = part.roll(dice)
    if total is None:
        raise NotFound("dice", dice)
    return {"total": total}
