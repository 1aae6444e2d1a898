"""Serves the registry under /api/v1/agents: show, add, change, rename, remove, set the default."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from app.server.agent_shapes import AgentDetail, AgentOut, ChangedAgent, NewAgent, NewName
from app.server.api import agent_out
from app.server.login import SignedInRoute, Visitor, require_fresh, visitor
from app.server.problems import RESPONSES
from app.server.shapes import Page
from app.server.site import RuntimeOf, SiteOf

Who = Annotated[Visitor, Depends(visitor)]
router = APIRouter(
    prefix="/api/v1/agents",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)


@router.post("", status_code=201)
async def add_agent(runtime: RuntimeOf, site: SiteOf, who: Who, new: NewAgent) -> AgentOut:
    """Add an agent, or give one that was found on PATH an entry; it works at once."""
    require_fresh(who)
    return agent_out(runtime, await site.changer.add(new.name, new.entry, new.credentials))


@router.post("/reload")
async def reload_agents(runtime: RuntimeOf, site: SiteOf) -> Page[AgentOut]:
    """Read the file with the agents of the settings again; a wrong file changes nothing."""
    await site.changer.reload()
    return Page(items=[agent_out(runtime, each) for each in runtime.agents.values()])


@router.get("/{name}")
async def read_agent(runtime: RuntimeOf, site: SiteOf, name: str) -> AgentDetail:
    """Read one agent, with its entry; no secret is ever part of it."""
    agent = runtime.agents.find(name)
    entry, credentials = site.changer.show(name)
    return AgentDetail(
        **agent_out(runtime, agent).model_dump(), entry=entry, credentials=credentials
    )


@router.patch("/{name}")
async def change_agent(
    runtime: RuntimeOf, site: SiteOf, who: Who, name: str, new: ChangedAgent
) -> AgentOut:
    """Change some keys of an agent; this holds from its next turn."""
    require_fresh(who, new.entry)
    return agent_out(runtime, await site.changer.change(name, new.entry, new.credentials))


@router.delete("/{name}", status_code=204)
async def remove_agent(site: SiteOf, name: str) -> None:
    """Remove an agent: its work is stopped, its history stays readable."""
    await site.changer.remove(name)


@router.post("/{name}/default")
async def choose_default(runtime: RuntimeOf, site: SiteOf, name: str) -> AgentOut:
    """Let requests without a name go to this agent."""
    return agent_out(runtime, await site.changer.choose_default(name))


@router.post("/{name}/acknowledge")
async def acknowledge_isolation(runtime: RuntimeOf, site: SiteOf, name: str) -> AgentOut:
    """Note that the change of an agent's isolation was seen."""
    return agent_out(runtime, await site.changer.acknowledge(name))


@router.post("/{name}/rename")
async def rename_agent(runtime: RuntimeOf, site: SiteOf, name: str, new: NewName) -> AgentOut:
    """Give an agent another name; its conversations stay with it."""
    return agent_out(runtime, await site.changer.rename(name, new.to))
