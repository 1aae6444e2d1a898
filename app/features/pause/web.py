"""Serves pauses and drain under /api/v1."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.core.runtime import Runtime
from app.errors import Conflict
from app.features.part import find_part
from app.features.pause.service import Draining, Pauses
from app.features.pause.store import Reason, Suspension, describe_pause
from app.server.login import SignedInRoute, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf
from app.store.commits.admission import AGENT, ALL, PLACE

_PLACE = r"[a-z][a-z0-9]*:.+"


class PauseScope(BaseModel):
    """What to pause or resume: everything, one agent, or one place."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    everything: bool = Field(default=False, alias="all")
    agent: str | None = None
    """The name of an agent."""
    place: str | None = Field(default=None, pattern=_PLACE, max_length=500)
    """A place such as `slack:C0123:1700.1`, or what holds places, such as `slack:C0123`."""

    @model_validator(mode="after")
    def _check_one(self) -> PauseScope:
        if sum((self.everything, self.agent is not None, self.place is not None)) != 1:
            raise ValueError("give exactly one of all, agent and place")
        return self


class PauseOut(BaseModel):
    """One thing that is paused."""

    kind: Literal["all", "agent", "place"]
    name: str
    """The name of the agent, or the place; empty for everything."""
    since: float
    reason: Reason
    words: str
    """The same as a sentence."""


class DrainOut(BaseModel):
    """How far a bridge that takes no new work is."""

    draining: bool
    turns: int
    """Turns that still run."""
    posts: int
    """Posts that have not arrived yet."""


Pausing = Annotated[Pauses, Depends(find_part(Pauses))]

router = APIRouter(
    prefix="/api/v1",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.get("/pauses")
async def list_pauses(runtime: RuntimeOf, pauses: Pausing) -> Page[PauseOut]:
    """List what is paused."""
    return Page(items=[_pause_out(runtime, each) for each in pauses.paused()])


@router.post("/pauses")
async def pause(runtime: RuntimeOf, pauses: Pausing, scope: PauseScope) -> Page[PauseOut]:
    """Pause everything, an agent or a place; running turns end, messages are kept."""
    await pauses.pause(_written(runtime, scope))
    return await list_pauses(runtime, pauses)


@router.post("/pauses/resume")
async def resume(runtime: RuntimeOf, pauses: Pausing, scope: PauseScope) -> Page[PauseOut]:
    """Let everything, an agent or a place go on; what waits begins at once."""
    if not await pauses.resume(_written(runtime, scope)):
        raise Conflict("that is not paused. `agent-bridge pauses` lists what is")
    return await list_pauses(runtime, pauses)


@router.get("/drain")
async def read_drain(pauses: Pausing) -> DrainOut:
    """Tell whether the bridge is being drained, and what still has to end."""
    return _drain_out(await pauses.drain())


@router.post("/drain")
async def drain(pauses: Pausing) -> DrainOut:
    """Begin no further turns; `/readyz` says no. What is queued runs after the next start."""
    return _drain_out(await pauses.drain(begin=True))


@router.delete("/drain")
async def end_drain(pauses: Pausing) -> DrainOut:
    """Begin turns again."""
    return _drain_out(await pauses.drain(begin=False))


def _written(runtime: Runtime, scope: PauseScope) -> str:
    if scope.agent is not None:
        return f"{AGENT}{runtime.agents.find(scope.agent).id}"
    return ALL if scope.place is None else f"{PLACE}{scope.place}"


def _pause_out(runtime: Runtime, paused: Suspension) -> PauseOut:
    kind, name = paused.split()
    name = runtime.agents.name(name) if kind == "agent" else name
    return PauseOut(
        kind=kind,
        name=name,
        since=paused.since,
        reason=paused.reason,
        words=describe_pause(paused, runtime.agents.name),
    )


def _drain_out(found: Draining) -> DrainOut:
    return DrainOut(draining=found.draining, turns=found.turns, posts=found.posts)
