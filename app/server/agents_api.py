"""Serves the registry under /api/v1/agents: show, add, change, rename, remove, set the default."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.config import AgentConfig
from app.server.agent_shapes import AgentDetail, AgentOut, ChangedAgent, NewAgent, NewName
from app.server.api import agent_out
from app.server.login import SignedInRoute, Visitor, require_fresh, visitor
from app.server.parts import Parts, PartsOf
from app.server.problems import RESPONSES
from app.server.shapes import Page

Who = Annotated[Visitor, Depends(visitor)]
router = APIRouter(
    prefix="/api/v1/agents",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.post("", status_code=201)
async def add_agent(parts: PartsOf, who: Who, new: NewAgent) -> AgentOut:
    """Add an agent, or give one that was found on PATH an entry; it works at once."""
    require_fresh(who)
    return _shown(parts, await parts.changer.add(new.name, new.entry, new.credentials))


@router.post("/reload")
async def reload_agents(parts: PartsOf) -> Page[AgentOut]:
    """Read the file with the agents of the settings again; a wrong file changes nothing."""
    await parts.changer.reload()
    return Page(items=[agent_out(parts, card) for card in parts.agents.values()])


@router.get("/{name}")
async def read_agent(parts: PartsOf, name: str) -> AgentDetail:
    """Read one agent, with its entry; no secret is ever part of it."""
    card = parts.find_agent(name)
    entry, credentials = parts.changer.show(name)
    return AgentDetail(**agent_out(parts, card).model_dump(), entry=entry, credentials=credentials)


@router.patch("/{name}")
async def change_agent(parts: PartsOf, who: Who, name: str, new: ChangedAgent) -> AgentOut:
    """Change some keys of an agent; this holds from its next turn."""
    require_fresh(who, new.entry)
    return _shown(parts, await parts.changer.change(name, new.entry, new.credentials))


@router.delete("/{name}", status_code=204)
async def remove_agent(parts: PartsOf, name: str) -> None:
    """Remove an agent: its work is stopped, its history stays readable."""
    await parts.changer.remove(name)


@router.post("/{name}/default")
async def choose_default(parts: PartsOf, name: str) -> AgentOut:
    """Let requests without a name go to this agent."""
    return _shown(parts, await parts.changer.choose_default(name))


@router.post("/{name}/acknowledge")
async def acknowledge_isolation(parts: PartsOf, name: str) -> AgentOut:
    """Note that the change of an agent's isolation was seen."""
    return _shown(parts, await parts.changer.acknowledge(name))


@router.post("/{name}/rename")
async def rename_agent(parts: PartsOf, name: str, new: NewName) -> AgentOut:
    """Give an agent another name; its conversations stay with it."""
    return _shown(parts, await parts.changer.rename(name, new.to))


def _shown(parts: Parts, entry: AgentConfig) -> AgentOut:
    return agent_out(parts, parts.agents[entry.id])
