"""Reads what the pages of agents show: all of them, one with its fields, the form for a new one."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi.responses import HTMLResponse

from app.agents.agent import Agent
from app.agents.catalog import find_missing, known_agents
from app.agents.enrolling import explain_fixed, label_origin
from app.agents.files import OWN, SHARED, AgentFile
from app.config.names import is_secret
from app.core.runtime import Runtime
from app.errors import AgentRemoved, ConfigurationError, NotFound
from app.model.conversations import ListFilter, headline
from app.model.types import SessionState
from app.server.files_api import list_with_problems
from app.server.login import Visitor
from app.server.page import queries
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import agent_form, done, render
from app.server.page.view.agent_form import ENV, Around
from app.server.page.view.agents import (
    AgentDetails,
    AgentLine,
    AgentTool,
    Credential,
    Crew,
    NewForm,
    Program,
    ServiceConnection,
)
from app.server.page.view.personas import FileLine
from app.server.site import Site
from app.services import PAGE, label_of, registered_services
from app.services.service import Service, Setup

TITLES: Final = 3
"""Sessions that the danger zone names."""
LATEST: Final = 50
"""Sessions that are looked through for those."""
CHANGES: Final = 500
"""Changes that can be undone: the last of each field, as long as the bridge runs."""
NAME: Final = "name"
SHARED_BASE: Final = "/agent-files"
"""The pages of the files of all agents."""
LOGS_SHOWN: Final = 14
"""Daily logs that the page of an agent lists: two weeks."""


@dataclass(slots=True)
class Recent:
    """What was changed lately, by agent and field."""

    former: OrderedDict[tuple[str, str], Any] = field(default_factory=OrderedDict)
    """What a field was before its last change."""
    notes: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """What a service said about credentials, by agent and service."""

    def keep(self, agent: str, key: str, value: Any) -> None:
        """Keep what a field was."""
        self.former[agent, key] = value
        self.former.move_to_end((agent, key))
        while len(self.former) > CHANGES:
            self.former.popitem(last=False)

    def of(self, agent: str) -> dict[str, Any]:
        """Return what the fields of an agent were."""
        return {key: value for (owner, key), value in self.former.items() if owner == agent}


async def list_crew(runtime: Runtime, who: Visitor, words: str = "") -> Crew:
    """List all agents, with words about what was asked for, if any."""
    counts, records = await runtime.stores.sessions.counts(), runtime.agents.records
    gone = [(each.name, each.removed_at) for each in records if each.removed_at is not None]
    roster, source = queries.roster_of(runtime), runtime.configuration.agents_source
    return Crew(
        lines=tuple(
            AgentLine(
                agent=roster[each.id],
                driver=each.program.title if each.program else "",
                model=each.config.model or "",
                services=tuple(
                    label_of(service) for service in runtime.services_of(each.id) if service != PAGE
                ),
                sessions=counts.get(each.id, 0),
                stored=each.config.source == "stored",
                origin=label_origin(each.config.source, source),
                fixed=explain_fixed(each.config, source),
            )
            for each in runtime.agents.values()
        ),
        files=await _list_files(runtime, None),
        removed=tuple(sorted(gone, key=lambda each: each[1], reverse=True)),
        csrf=who.csrf,
        assets=addresses(),
        words=words,
        told=done.sentence(who.done),
    )


async def show_agent(
    runtime: Runtime,
    site: Site,
    who: Visitor,
    recent: Recent,
    name: str,
    problems: Mapping[str, str] | None = None,
    typed: Mapping[str, Any] | None = None,
) -> HTMLResponse:
    """Show an agent; what is wrong with a form, at its field."""
    try:
        agent = runtime.agents.find(name)
    except (NotFound, AgentRemoved) as error:
        words = agent_form.locate(error)[1]
        status = 404 if isinstance(error, NotFound) else 410
        return to_html(render.crew(await list_crew(runtime, who, words)), status)
    entry, stored = site.changer.show(name)
    crew = await list_crew(runtime, who)
    named = (each for each in known_agents() if each.name == entry.get("driver"))
    program = next(named, agent.program)
    shown = AgentDetails(
        line=next(line for line in crew.lines if line.agent.id == agent.id),
        groups=tuple(
            agent_form.groups(
                {**entry, **(typed or {})},
                Around(
                    drivers=tuple((each.name, each.title) for each in known_agents()),
                    agents=_extensible(runtime, site, agent),
                    command=" ".join(program.command) if program else "",
                    offers=site.offers(agent.id),
                ),
                former=recent.of(agent.id),
                problems=problems,
            )
        ),
        variables=tuple(entry.get(ENV, ())),
        known=tuple(program.env) if program else (),
        connections=tuple(
            _connection(runtime, site, agent, each, stored, recent, problems or {})
            for each in registered_services()
        ),
        titles=await _titles(runtime, agent.id),
        files=await _list_files(runtime, agent.id, name),
        tools=tuple(
            AgentTool(each.name, each.description.partition(". ")[0].rstrip("."), each.capabilities)
            for each in runtime.toolbox.tools(agent.id)
        ),
        problems=problems or {},
    )
    return to_html(render.agent(crew, shown), 422 if problems else 200)


async def show_new(
    runtime: Runtime,
    site: Site,
    who: Visitor,
    driver: str,
    entry: Mapping[str, Any],
    problems: Mapping[str, str],
) -> HTMLResponse:
    """Show the form for a new agent, with what is wrong at its field."""
    missing = {each.title: each.install for each in find_missing(runtime.configuration)}
    programs = tuple(
        Program(
            name=each.name,
            title=each.title,
            install=missing.get(each.title, ""),
            mark="not installed" if each.title in missing else "installed" * each.discover,
            login=each.login,
            keys=tuple(filter(is_secret, each.env)),
            description=each.description,
        )
        for each in known_agents()
    )
    picked = next((each for each in programs if each.name == driver), None)
    same = next(
        (
            each.id
            for each in runtime.agents.values()
            if picked and each.program and each.program.title == picked.title
        ),
        "",
    )
    around = Around(agents=_extensible(runtime, site, None), offers=site.offers(same))
    form = NewForm(
        programs=programs,
        picked=picked,
        groups=tuple(agent_form.groups(entry, around, problems=problems)),
        name=entry.get(NAME, ""),
        problems=problems,
    )
    return to_html(
        render.new_agent(await list_crew(runtime, who), form), 422 if entry and problems else 200
    )


def _connection(
    runtime: Runtime,
    site: Site,
    agent: Agent,
    service: Service,
    stored: Mapping[str, list[str]],
    recent: Recent,
    problems: Mapping[str, str],
) -> ServiceConnection:
    kept = stored.get(service.name, ())
    secret, names = service.credentials.secret_names(), service.credentials.names()
    made, unreachable = Setup("", ()), ""
    if agent.config.source == "stored" and service.set_up is not None:
        try:
            made = site.changer.set_up(agent.name, service.name)
        except ConfigurationError as error:
            unreachable = str(error)
    return ServiceConnection(
        name=service.name,
        label=service.label,
        fields=tuple(
            Credential(
                name=each,
                label=each.replace("_", " ").capitalize(),
                secret=names[each] in secret,
                required=about.is_required(),
                kept=each in kept,
            )
            for each, about in service.credentials.model_fields.items()
        ),
        present=service.name in runtime.services_of(agent.id),
        stored=bool(kept),
        address=made.address,
        steps=made.steps,
        unreachable=unreachable,
        problem=problems.get(f"service:{service.name}", ""),
        notes=recent.notes.get((agent.id, service.name), ()),
    )


async def _list_files(runtime: Runtime, agent: str | None, name: str = "") -> tuple[FileLine, ...]:
    """List the files that there can be, and the last daily logs."""
    found = await asyncio.to_thread(list_with_problems, runtime, agent)
    names, base = (SHARED, SHARED_BASE) if agent is None else (OWN, f"/agents/{name}/files")
    there = {file.path: file for file in found}
    logs = [path for path in there if path not in names][:LOGS_SHOWN]
    missing = AgentFile("", 0, 0.0)
    return tuple(
        FileLine(
            path,
            f"{base}/{path}",
            there[path].size if path in there else None,
            there.get(path, missing).problem,
        )
        for path in (*names, *logs)
    )


async def _titles(runtime: Runtime, agent: str) -> tuple[str, ...]:
    found = await runtime.stores.sessions.recent(ListFilter(agent=agent), limit=LATEST)
    there = [each for each in found if each.state != SessionState.REMOVED]
    return tuple(each.title or headline(each.place.name) for each in there[:TITLES])


def _extensible(runtime: Runtime, site: Site, agent: Agent | None) -> tuple[str, ...]:
    changes = site.changer
    return tuple(
        each.name
        for each in runtime.agents.values()
        if each is not agent and "extends" not in changes.show(each.name)[0]
    )


def to_html(page: str, status: int = 200) -> HTMLResponse:
    """Answer with a page."""
    return HTMLResponse(page, status_code=status, headers=HEADERS)
