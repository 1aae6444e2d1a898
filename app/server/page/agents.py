"""Serves the pages of agents: all of them, one with its fields, a new one; and their forms.

A form works without a script: it is answered with a redirect, or with the page and what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.errors import ConfigurationError, Conflict, LoginTooOld, NotFound
from app.server.login import SignedInRoute, Visitor, require_fresh, visitor
from app.server.page.actions import FormRoute
from app.server.page.agent_pages import NAME, Recent, list_crew, show_agent, show_new, to_html
from app.server.page.view import agent_form, done, render
from app.server.page.view.agent_fields import FIELDS
from app.server.page.view.agent_form import ENV
from app.server.site import RuntimeOf, SiteOf
from app.services import registered_services
from app.services.service import Service

_ABOUT_NAMES: Final = ("The name ", "There is an agent ")
"""How the words of errors about a new name begin."""
_NOT_ASKED: Final = ("driver", "visible")
"""Fields that the form for a new agent does not show."""
_KEY: Final = "key:"
_WRONG: Final = (ConfigurationError, Conflict)

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


def recent_of(request: Request) -> Recent:
    """Find what was changed lately on the bridge that serves a request."""
    recent: Recent = request.app.state.recent
    return recent


RecentOf = Annotated[Recent, Depends(recent_of)]


# Pages.


@pages.get("/agents")
async def list_agents(runtime: RuntimeOf, who: Who) -> HTMLResponse:
    """Show all agents."""
    return to_html(render.crew(await list_crew(runtime, who)))


@pages.get("/new-agent")
async def begin_agent(runtime: RuntimeOf, site: SiteOf, who: Who, driver: str = "") -> HTMLResponse:
    """Show the form for a new agent of a driver; an old log-in learns at once what it needs."""
    problems = {}
    try:
        require_fresh(who)
    except LoginTooOld as error:
        problems = {"": agent_form.locate(error)[1]}
    return await show_new(runtime, site, who, driver, {}, problems)


@pages.get("/agents/{name}")
async def read_agent(
    runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> HTMLResponse:
    """Show one agent with its fields."""
    return await show_agent(runtime, site, who, recent, name)


# Forms.


@forms.post("/agents")
async def add_agent(request: Request, runtime: RuntimeOf, site: SiteOf, who: Who) -> Response:
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
        made = await site.changer.add(name, entry)
    except _WRONG as error:
        key, words = agent_form.locate(error)
        key = NAME if words.startswith(_ABOUT_NAMES) else key * (key not in _NOT_ASKED)
        entry.pop(ENV, None)
        return await show_new(runtime, site, who, driver, {**entry, NAME: name}, {key: words})
    return RedirectResponse(done.address(f"/agents/{made.name}", "agent-added"), 303)


@forms.post("/agents/{name}/set/{key}")
async def set_field(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    who: Who,
    recent: RecentOf,
    name: str,
    key: str,
) -> Response:
    """Change one field of an agent."""
    if key not in FIELDS:
        raise NotFound("field", key)
    form, changes = await _read(request), site.changer
    agent, before = runtime.agents.find(name), changes.show(name)[0].get(key)
    value = None
    try:
        value = agent_form.read(FIELDS[key], form)
        require_fresh(who, [key])
        await changes.change(name, {key: agent_form.patch(before, value)})
    except _WRONG as error:
        problems = {key: agent_form.locate(error)[1]}
        return await show_agent(runtime, site, who, recent, name, problems, typed={key: value})
    if value != before:
        recent.keep(agent.id, key, before)
    return RedirectResponse(done.address(f"/agents/{name}", f"{done.FIELD}{key}", f"f-{key}"), 303)


@forms.post("/agents/{name}/undo/{key}")
async def undo(
    runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str, key: str
) -> Response:
    """Make a field what it was before its last change."""
    agent, changes = runtime.agents.find(name), site.changer
    if (agent.id, key) not in recent.former:
        raise Conflict("there is nothing to undo any more")
    then, before = recent.former[agent.id, key], changes.show(name)[0].get(key)
    try:
        require_fresh(who, [key])
        await changes.change(name, {key: agent_form.patch(before, then)})
    except _WRONG as error:
        return await show_agent(
            runtime, site, who, recent, name, {key: agent_form.locate(error)[1]}
        )
    del recent.former[agent.id, key]
    return RedirectResponse(done.address(f"/agents/{name}", "undone", f"f-{key}"), 303)


@forms.post("/agents/{name}/env")
async def set_variables(
    request: Request, runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Add, replace or remove variables; their values are shown nowhere."""
    form = await _read(request)
    try:
        given = agent_form.read_variables(form)
        require_fresh(who, [ENV])
        await site.changer.change(name, {ENV: given})
    except _WRONG as error:
        return await show_agent(
            runtime, site, who, recent, name, {ENV: agent_form.locate(error)[1]}
        )
    return RedirectResponse(done.address(f"/agents/{name}", "env", f"f-{ENV}"), 303)


@forms.post("/agents/{name}/connect/{service}")
async def connect(
    request: Request,
    runtime: RuntimeOf,
    site: SiteOf,
    who: Who,
    recent: RecentOf,
    name: str,
    service: str,
) -> Response:
    """Try the credentials of an agent on a service, then store them."""
    form = await _read(request)
    agent, fields = runtime.agents.find(name), _service(service).credentials.model_fields
    given = {key: form[key].strip() for key in fields if form.get(key, "").strip()}
    try:
        warnings = await site.changer.connect(name, service, given)
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await show_agent(runtime, site, who, recent, name, problems)
    recent.notes[agent.id, service] = tuple(warnings)
    return RedirectResponse(done.address(f"/agents/{name}", "connected", f"s-{service}"), 303)


@forms.post("/agents/{name}/disconnect/{service}")
async def disconnect(
    runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str, service: str
) -> Response:
    """Forget the credentials of an agent on a service."""
    agent = runtime.agents.find(name)
    try:
        await site.changer.change(name, {}, {_service(service).name: None})
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await show_agent(runtime, site, who, recent, name, problems)
    recent.notes.pop((agent.id, service), None)
    return RedirectResponse(done.address(f"/agents/{name}", "disconnected", f"s-{service}"), 303)


@forms.post("/agents/{name}/isolate")
async def isolate(
    runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Isolate an agent that was found on PATH."""
    agent = runtime.agents.find(name)
    try:
        await site.changer.isolate(name)
    except _WRONG as error:
        problems = {f"isolate-{agent.id}": agent_form.locate(error)[1]}
        return await show_agent(runtime, site, who, recent, name, problems)
    return RedirectResponse(done.address(f"/agents/{name}", "agent-isolated"), 303)


@forms.post("/agents/{name}/acknowledge")
async def acknowledge(site: SiteOf, name: str) -> Response:
    """Note that the change of an agent's isolation was seen."""
    await site.changer.acknowledge(name)
    return RedirectResponse(done.address(f"/agents/{name}", "isolation-seen"), 303)


@forms.post("/agents/{name}/probe")
async def probe(runtime: RuntimeOf, site: SiteOf, _who: Who, name: str) -> Response:
    """Check whether an agent can work, by starting it."""
    await site.probe(runtime.agents.find(name).id)
    return RedirectResponse(done.address(f"/agents/{name}", "agent-checked"), 303)


@forms.post("/agents/{name}/rename")
async def rename(
    request: Request, runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Give an agent another name."""
    to = (await _read(request)).get("to", "").strip()
    try:
        made = await site.changer.rename(name, to)
    except _WRONG as error:
        return await show_agent(
            runtime, site, who, recent, name, {"rename": agent_form.locate(error)[1]}
        )
    return RedirectResponse(done.address(f"/agents/{made.name}", "agent-renamed"), 303)


@forms.post("/agents/{name}/default")
async def choose_default(
    runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Let requests without a name go to this agent."""
    try:
        await site.changer.choose_default(name)
    except _WRONG as error:
        return await show_agent(
            runtime, site, who, recent, name, {"default": agent_form.locate(error)[1]}
        )
    return RedirectResponse(done.address(f"/agents/{name}", "agent-default"), 303)


@forms.post("/agents/{name}/remove")
async def remove(
    request: Request, runtime: RuntimeOf, site: SiteOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Remove an agent, once its name was typed."""
    typed = (await _read(request)).get("typed", "").strip()
    try:
        if typed != name:
            raise Conflict(f"type {name} to remove it. Nothing was removed.")
        await site.changer.remove(name)
    except _WRONG as error:
        return await show_agent(
            runtime, site, who, recent, name, {"remove": agent_form.locate(error)[1]}
        )
    return RedirectResponse(done.address("/agents", "agent-removed"), 303)


def _service(name: str) -> Service:
    found = next((each for each in registered_services() if each.name == name), None)
    if found is None:
        raise NotFound("service", name)
    return found


async def _read(request: Request) -> dict[str, str]:
    """Read the texts of a form."""
    form = await request.form(max_files=0)
    return {key: value for key, value in form.items() if isinstance(value, str)}
