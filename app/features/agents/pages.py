"""Reads what the pages of agents show: one with its fields, the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fastapi.responses import HTMLResponse

from app.agents.agent import Agent
from app.agents.catalog import find_missing, known_agents
from app.config.names import is_secret
from app.errors import AgentRemoved, ConfigurationError, NotFound
from app.features.agents import form as agent_form
from app.features.agents.fields import Group
from app.features.agents.form import ENV, Around
from app.features.agents.service import Agents
from app.model.conversations import ListFilter, headline
from app.model.types import SessionState
from app.server.login import Visitor
from app.server.page.agents import list_agents, list_files, to_html
from app.server.page.view import render
from app.server.page.view.agents import AgentLine, FileLine
from app.services import registered_services
from app.services.service import Service, Setup

AGENT_TEMPLATE = Path(__file__).with_name("agent.html")
FORM_TEMPLATE = Path(__file__).with_name("new_agent.html")
TITLES: Final = 3
"""Sessions that the danger zone names."""
LATEST: Final = 50
"""Sessions that are looked through for those."""
NAME: Final = "name"


@dataclass(frozen=True, slots=True)
class Credential:
    """A field of an agent's credentials on a service."""

    name: str
    label: str
    secret: bool
    required: bool
    kept: bool = False
    """Whether it has a value, which is not shown."""

    @property
    def long(self) -> bool:
        """Whether it has several lines, as keys in PEM have."""
        return self.secret and self.name.endswith("key")


@dataclass(frozen=True, slots=True)
class ServiceConnection:
    """An agent on a service, or on none."""

    name: str
    label: str
    fields: tuple[Credential, ...]
    present: bool = False
    """Whether the agent is there."""
    stored: bool = False
    """Whether its credentials can be changed here; else they are in the settings."""
    address: str = ""
    """Where its application is made."""
    steps: tuple[str, ...] = ()
    problem: str = ""
    unreachable: str = ""
    """Why no application can be made now."""
    notes: tuple[str, ...] = ()
    """What could be better there."""


@dataclass(frozen=True, slots=True)
class AgentDetails:
    """One agent with everything that can be changed."""

    line: AgentLine
    groups: tuple[Group, ...]
    variables: tuple[str, ...]
    """The names of its variables."""
    known: tuple[str, ...]
    """The variables that its program takes."""
    connections: tuple[ServiceConnection, ...]
    titles: tuple[str, ...]
    """The titles of its last sessions."""
    files: tuple[FileLine, ...]
    """Who it is and what it remembers."""
    tools: tuple[AgentTool, ...] = ()
    """The bridge's tools that it may use."""
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool of the bridge that an agent may use."""

    name: str
    words: str
    """What it is for, in one sentence."""
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A known agent program that a new agent can be."""

    name: str
    title: str
    install: str = ""
    """The command that installs it, if it is not here."""
    mark: str = ""
    """Whether it is here, as far as is known."""
    login: str = ""
    keys: tuple[str, ...] = ()
    """The secret variables it takes."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class NewForm:
    """The form for a new agent."""

    programs: tuple[Program, ...]
    picked: Program | None
    """None for a command that is not known."""
    groups: tuple[Group, ...]
    name: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)


async def show_agent(
    agents: Agents,
    who: Visitor,
    name: str,
    problems: Mapping[str, str] | None = None,
    typed: Mapping[str, Any] | None = None,
) -> HTMLResponse:
    """Show an agent; what is wrong with a form, at its field."""
    runtime = agents.runtime
    try:
        agent = runtime.agents.find(name)
    except (NotFound, AgentRemoved) as error:
        words = agent_form.locate(error)[1]
        status = 404 if isinstance(error, NotFound) else 410
        return to_html(render.agent_list(await list_agents(runtime, who, words)), status)
    entry, stored = agents.changes.show(name)
    listed = await list_agents(runtime, who)
    named = (each for each in known_agents() if each.name == entry.get("driver"))
    program = next(named, agent.program)
    shown = AgentDetails(
        line=next(line for line in listed.lines if line.agent.id == agent.id),
        groups=tuple(
            agent_form.groups(
                {**entry, **(typed or {})},
                Around(
                    drivers=tuple((each.name, each.title) for each in known_agents()),
                    agents=_extensible(agents, agent),
                    command=" ".join(program.command) if program else "",
                    offers=agents.checkups.offers(agent.id),
                ),
                former=agents.recent.of(agent.id),
                problems=problems,
            )
        ),
        variables=tuple(entry.get(ENV, ())),
        known=tuple(program.env) if program else (),
        connections=tuple(
            _connection(agents, agent, each, stored, problems or {})
            for each in registered_services()
        ),
        titles=await _titles(agents, agent.id),
        files=await list_files(runtime, agent.id, name),
        tools=tuple(
            AgentTool(each.name, each.description.partition(". ")[0].rstrip("."), each.capabilities)
            for each in runtime.toolbox.tools(agent.id)
        ),
        problems=problems or {},
    )
    return to_html(
        render.with_agents(AGENT_TEMPLATE, listed, shown=shown, on=shown.line.path),
        422 if problems else 200,
    )


async def show_new(
    agents: Agents,
    who: Visitor,
    driver: str,
    entry: Mapping[str, Any],
    problems: Mapping[str, str],
) -> HTMLResponse:
    """Show the form for a new agent, with what is wrong at its field."""
    missing = {each.title: each.install for each in find_missing(agents.runtime.configuration)}
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
            for each in agents.runtime.agents.values()
            if picked and each.program and each.program.title == picked.title
        ),
        "",
    )
    around = Around(agents=_extensible(agents, None), offers=agents.checkups.offers(same))
    form = NewForm(
        programs=programs,
        picked=picked,
        groups=tuple(agent_form.groups(entry, around, problems=problems)),
        name=entry.get(NAME, ""),
        problems=problems,
    )
    listed = await list_agents(agents.runtime, who)
    return to_html(
        render.with_agents(FORM_TEMPLATE, listed, form=form, on="/new-agent"),
        422 if entry and problems else 200,
    )


def _connection(
    agents: Agents,
    agent: Agent,
    service: Service,
    stored: Mapping[str, list[str]],
    problems: Mapping[str, str],
) -> ServiceConnection:
    kept = stored.get(service.name, ())
    secret, names = service.credentials.secret_names(), service.credentials.names()
    made, unreachable = Setup("", ()), ""
    if agent.config.source == "stored" and service.set_up is not None:
        try:
            made = service.set_up(agents.runtime.configuration, agent.config, agent.title)
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
        present=service.name in agents.runtime.services_of(agent.id),
        stored=bool(kept),
        address=made.address,
        steps=made.steps,
        unreachable=unreachable,
        problem=problems.get(f"service:{service.name}", ""),
        notes=agents.recent.notes.get((agent.id, service.name), ()),
    )


async def _titles(agents: Agents, agent: str) -> tuple[str, ...]:
    found = await agents.runtime.stores.sessions.recent(ListFilter(agent=agent), limit=LATEST)
    there = [each for each in found if each.state != SessionState.REMOVED]
    return tuple(each.title or headline(each.place.name) for each in there[:TITLES])


def _extensible(agents: Agents, agent: Agent | None) -> tuple[str, ...]:
    return tuple(
        each.name
        for each in agents.runtime.agents.values()
        if each is not agent and "extends" not in agents.changes.show(each.name)[0]
    )
