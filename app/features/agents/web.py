"""Serves the registry under /api/v1/agents, and the pages of agents with their forms.

A form works without a script: it is answered with a redirect, or with the page and what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import ConfigurationError, Conflict, LoginTooOld, NotFound
from app.features.agents import form as agent_form
from app.features.agents.connecting import find_service
from app.features.agents.fields import FIELDS
from app.features.agents.form import ENV
from app.features.agents.pages import NAME, show_agent, show_new
from app.features.agents.service import Agents
from app.features.agents.shapes import AgentDetail, ChangedAgent, NewAgent, NewName
from app.features.part import find_part
from app.server.agent_shapes import AgentOut
from app.server.api import agent_out
from app.server.login import SignedInRoute, Visitor, require_fresh, visitor
from app.server.page.actions import FormRoute
from app.server.page.agents import list_agents, to_html
from app.server.page.view import done, render
from app.server.problems import RESPONSES
from app.server.shapes import Page

_ABOUT_NAMES: Final = ("The name ", "There is an agent ")
"""How the words of errors about a new name begin."""
_NOT_ASKED: Final = ("driver", "visible")
"""Fields that the form for a new agent does not show."""
_KEY: Final = "key:"
_WRONG: Final = (ConfigurationError, Conflict)

router = APIRouter(
    prefix="/api/v1/agents",
    route_class=SignedInRoute,
    dependencies=[Depends(visitor)],
    responses=RESPONSES,
)
pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]
AgentsOf = Annotated[Agents, Depends(find_part(Agents))]


@router.post("", status_code=201)
async def add_agent(agents: AgentsOf, who: Who, new: NewAgent) -> AgentOut:
    """Add an agent, or give one that was found on PATH an entry; it works at once."""
    require_fresh(who)
    return agent_out(agents.runtime, await agents.changes.add(new.name, new.entry, new.credentials))


@router.post("/reload")
async def reload_agents(agents: AgentsOf) -> Page[AgentOut]:
    """Read the file with the agents of the settings again; a wrong file changes nothing."""
    await agents.changes.reload()
    return Page(items=[agent_out(agents.runtime, each) for each in agents.runtime.agents.values()])


@router.get("/{name}")
async def read_agent(agents: AgentsOf, name: str) -> AgentDetail:
    """Read one agent, with its entry; no secret is ever part of it."""
    agent = agents.runtime.agents.find(name)
    entry, credentials = agents.changes.show(name)
    return AgentDetail(
        **agent_out(agents.runtime, agent).model_dump(), entry=entry, credentials=credentials
    )


@router.patch("/{name}")
async def change_agent(agents: AgentsOf, who: Who, name: str, new: ChangedAgent) -> AgentOut:
    """Change some keys of an agent; this holds from its next turn."""
    require_fresh(who, new.entry)
    return agent_out(agents.runtime, await agents.changes.change(name, new.entry, new.credentials))


@router.delete("/{name}", status_code=204)
async def remove_agent(agents: AgentsOf, name: str) -> None:
    """Remove an agent: its work is stopped, its history stays readable."""
    await agents.changes.remove(name)


@router.post("/{name}/default")
async def choose_default(agents: AgentsOf, name: str) -> AgentOut:
    """Let requests without a name go to this agent."""
    return agent_out(agents.runtime, await agents.changes.choose_default(name))


@router.post("/{name}/acknowledge")
async def acknowledge_isolation(agents: AgentsOf, name: str) -> AgentOut:
    """Note that the change of an agent's isolation was seen."""
    return agent_out(agents.runtime, await agents.changes.acknowledge(name))


@router.post("/{name}/rename")
async def rename_agent(agents: AgentsOf, name: str, new: NewName) -> AgentOut:
    """Give an agent another name; its conversations stay with it."""
    return agent_out(agents.runtime, await agents.changes.rename(name, new.to))


@router.post("/{name}/probe")
async def probe_agent(agents: AgentsOf, name: str) -> AgentOut:
    """Start an agent to check whether it can work; it is not prompted."""
    agent = agents.runtime.agents.find(name)
    await agents.checkups.probe(agent.id)
    return agent_out(agents.runtime, agent)


@pages.get("/agents")
async def read_agents(agents: AgentsOf, who: Who) -> HTMLResponse:
    """Show all agents."""
    return to_html(render.agent_list(await list_agents(agents.runtime, who)))


@pages.get("/new-agent")
async def begin_agent(agents: AgentsOf, who: Who, driver: str = "") -> HTMLResponse:
    """Show the form for a new agent of a driver; an old log-in learns at once what it needs."""
    problems = {}
    try:
        require_fresh(who)
    except LoginTooOld as error:
        problems = {"": agent_form.locate(error)[1]}
    return await show_new(agents, who, driver, {}, problems)


@pages.get("/agents/{name}")
async def read_agent_page(agents: AgentsOf, who: Who, name: str) -> HTMLResponse:
    """Show one agent with its fields."""
    return await show_agent(agents, who, name)


@forms.post("/agents")
async def submit_agent(request: Request, agents: AgentsOf, who: Who) -> Response:
    """Add an agent."""
    form = await _read(request)
    driver, name = form.get("driver", ""), form.get(NAME, "").strip()
    entry: dict[str, Any] = {}
    try:
        for key, each in FIELDS.items():
            if key in form and (value := agent_form.read(each, form)) is not None:
                entry[key] = value
        given = {
            key.removeprefix(_KEY): value.strip()
            for key, value in form.items()
            if key.startswith(_KEY) and value.strip()
        }
        if variables := given | agent_form.pairs(form.get(ENV, "")):
            entry[ENV] = variables
        require_fresh(who)
        made = await agents.changes.add(name, entry)
    except _WRONG as error:
        key, words = agent_form.locate(error)
        key = NAME if words.startswith(_ABOUT_NAMES) else key * (key not in _NOT_ASKED)
        entry.pop(ENV, None)
        return await show_new(agents, who, driver, {**entry, NAME: name}, {key: words})
    return RedirectResponse(done.address(f"/agents/{made.name}", "agent-added"), 303)


@forms.post("/agents/{name}/set/{key}")
async def set_field(
    request: Request,
    agents: AgentsOf,
    who: Who,
    name: str,
    key: str,
) -> Response:
    """Change one field of an agent."""
    if key not in FIELDS:
        raise NotFound("field", key)
    form, changes = await _read(request), agents.changes
    agent, before = agents.runtime.agents.find(name), changes.show(name)[0].get(key)
    value = None
    try:
        value = agent_form.read(FIELDS[key], form)
        require_fresh(who, [key])
        await changes.change(name, {key: agent_form.patch(before, value)})
    except _WRONG as error:
        problems = {key: agent_form.locate(error)[1]}
        return await show_agent(agents, who, name, problems, typed={key: value})
    if value != before:
        agents.recent.keep(agent.id, key, before)
    return RedirectResponse(done.address(f"/agents/{name}", f"{done.FIELD}{key}", f"f-{key}"), 303)


@forms.post("/agents/{name}/undo/{key}")
async def undo(agents: AgentsOf, who: Who, name: str, key: str) -> Response:
    """Make a field what it was before its last change."""
    agent, changes = agents.runtime.agents.find(name), agents.changes
    if (agent.id, key) not in agents.recent.former:
        raise Conflict("there is nothing to undo any more")
    then, before = agents.recent.former[agent.id, key], changes.show(name)[0].get(key)
    try:
        require_fresh(who, [key])
        await changes.change(name, {key: agent_form.patch(before, then)})
    except _WRONG as error:
        return await show_agent(agents, who, name, {key: agent_form.locate(error)[1]})
    del agents.recent.former[agent.id, key]
    return RedirectResponse(done.address(f"/agents/{name}", "undone", f"f-{key}"), 303)


@forms.post("/agents/{name}/env")
async def set_variables(request: Request, agents: AgentsOf, who: Who, name: str) -> Response:
    """Add, replace or remove variables; their values are shown nowhere."""
    form = await _read(request)
    try:
        given = agent_form.read_variables(form)
        require_fresh(who, [ENV])
        await agents.changes.change(name, {ENV: given})
    except _WRONG as error:
        return await show_agent(agents, who, name, {ENV: agent_form.locate(error)[1]})
    return RedirectResponse(done.address(f"/agents/{name}", "env", f"f-{ENV}"), 303)


@forms.post("/agents/{name}/connect/{service}")
async def connect(
    request: Request,
    agents: AgentsOf,
    who: Who,
    name: str,
    service: str,
) -> Response:
    """Try the credentials of an agent on a service, then store them."""
    form = await _read(request)
    agent, fields = agents.runtime.agents.find(name), find_service(service).credentials.model_fields
    given = {key: form[key].strip() for key in fields if form.get(key, "").strip()}
    try:
        warnings = await agents.changes.connect(name, service, given)
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await show_agent(agents, who, name, problems)
    agents.recent.notes[agent.id, service] = tuple(warnings)
    return RedirectResponse(done.address(f"/agents/{name}", "connected", f"s-{service}"), 303)


@forms.post("/agents/{name}/disconnect/{service}")
async def disconnect(agents: AgentsOf, who: Who, name: str, service: str) -> Response:
    """Forget the credentials of an agent on a service."""
    agent = agents.runtime.agents.find(name)
    try:
        await agents.changes.change(name, {}, {find_service(service).name: None})
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await show_agent(agents, who, name, problems)
    agents.recent.notes.pop((agent.id, service), None)
    return RedirectResponse(done.address(f"/agents/{name}", "disconnected", f"s-{service}"), 303)


@forms.post("/agents/{name}/isolate")
async def isolate(agents: AgentsOf, who: Who, name: str) -> Response:
    """Isolate an agent that was found on PATH."""
    agent = agents.runtime.agents.find(name)
    try:
        await agents.changes.isolate(name)
    except _WRONG as error:
        problems = {f"isolate-{agent.id}": agent_form.locate(error)[1]}
        return await show_agent(agents, who, name, problems)
    return RedirectResponse(done.address(f"/agents/{name}", "agent-isolated"), 303)


@forms.post("/agents/{name}/acknowledge")
async def acknowledge(agents: AgentsOf, _who: Who, name: str) -> Response:
    """Note that the change of an agent's isolation was seen."""
    await agents.changes.acknowledge(name)
    return RedirectResponse(done.address(f"/agents/{name}", "isolation-seen"), 303)


@forms.post("/agents/{name}/probe")
async def probe(agents: AgentsOf, _who: Who, name: str) -> Response:
    """Check whether an agent can work, by starting it."""
    await agents.checkups.probe(agents.runtime.agents.find(name).id)
    return RedirectResponse(done.address(f"/agents/{name}", "agent-checked"), 303)


@forms.post("/agents/{name}/rename")
async def rename(request: Request, agents: AgentsOf, who: Who, name: str) -> Response:
    """Give an agent another name."""
    to = (await _read(request)).get("to", "").strip()
    try:
        made = await agents.changes.rename(name, to)
    except _WRONG as error:
        return await show_agent(agents, who, name, {"rename": agent_form.locate(error)[1]})
    return RedirectResponse(done.address(f"/agents/{made.name}", "agent-renamed"), 303)


@forms.post("/agents/{name}/default")
async def make_default(agents: AgentsOf, who: Who, name: str) -> Response:
    """Let requests without a name go to this agent."""
    try:
        await agents.changes.choose_default(name)
    except _WRONG as error:
        return await show_agent(agents, who, name, {"default": agent_form.locate(error)[1]})
    return RedirectResponse(done.address(f"/agents/{name}", "agent-default"), 303)


@forms.post("/agents/{name}/remove")
async def remove(request: Request, agents: AgentsOf, who: Who, name: str) -> Response:
    """Remove an agent, once its name was typed."""
    typed = (await _read(request)).get("typed", "").strip()
    try:
        if typed != name:
            raise Conflict(f"type {name} to remove it. Nothing was removed.")
        await agents.changes.remove(name)
    except _WRONG as error:
        return await show_agent(agents, who, name, {"remove": agent_form.locate(error)[1]})
    return RedirectResponse(done.address("/agents", "agent-removed"), 303)


async def _read(request: Request) -> dict[str, str]:
    """Read the texts of a form."""
    form = await request.form(max_files=0)
    return {key: value for key, value in form.items() if isinstance(value, str)}
