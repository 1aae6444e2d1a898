"""Serves the pages of agents: all of them, one with its fields, a new one; and their forms.

A form works without a script: it is answered with a redirect, or with the page and what is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.agents.catalog import AgentProgram, known_agents
from app.config.names import is_secret
from app.core.types import SessionState
from app.errors import AgentRemoved, ConfigurationError, Conflict, NotFound
from app.server.login import SignedInRoute, Visitor, visitor
from app.server.page import queries
from app.server.page.actions import FormRoute
from app.server.page.assets import addresses
from app.server.page.routes import HEADERS
from app.server.page.view import agent_form, render
from app.server.page.view.agent_form import ENV, FIELDS, Around
from app.server.page.view.agents import (
    AgentLine,
    Connection,
    Credential,
    Crew,
    NewForm,
    Program,
    Shown,
)
from app.server.page.view.listing import headline
from app.server.parts import AgentCard, AgentChanger, Parts, PartsOf
from app.services import PAGE, label_of, registered_services
from app.services.service import Service, Setup

TITLES: Final = 3
"""Sessions that the danger zone names."""
LATEST: Final = 50
"""Sessions that are looked through for those."""
CHANGES: Final = 500
"""Changes that can be undone: the last of each field, as long as the bridge runs."""
NAME: Final = "name"
_ABOUT_NAMES: Final = ("The name ", "There is an agent ")
"""How the words of errors about a new name begin."""
_NOT_ASKED: Final = ("driver", "visible")
"""Fields that the form for a new agent does not show."""
_KEY: Final = "key:"
_WRONG: Final = (ConfigurationError, Conflict)

pages = APIRouter(include_in_schema=False, route_class=SignedInRoute)
forms = APIRouter(include_in_schema=False, route_class=FormRoute)
Who = Annotated[Visitor, Depends(visitor)]


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


def recent_of(request: Request) -> Recent:
    """Find what was changed lately on the bridge that serves a request."""
    recent: Recent = request.app.state.recent
    return recent


RecentOf = Annotated[Recent, Depends(recent_of)]


# Pages.


@pages.get("/agents")
async def list_agents(parts: PartsOf, who: Who) -> HTMLResponse:
    """Show all agents."""
    return _html(render.crew(await _crew(parts, who)))


@pages.get("/new-agent")
async def begin_agent(parts: PartsOf, who: Who, driver: str = "") -> HTMLResponse:
    """Show the form for a new agent of a driver."""
    return await _new(parts, who, driver, {}, {})


@pages.get("/agents/{name}")
async def read_agent(parts: PartsOf, who: Who, recent: RecentOf, name: str) -> HTMLResponse:
    """Show one agent with its fields."""
    return await _shown(parts, who, recent, name)


# Forms.


@forms.post("/agents")
async def add_agent(request: Request, parts: PartsOf, who: Who) -> Response:
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
        made = await _changes(parts).add(name, entry)
    except _WRONG as error:
        key, words = agent_form.locate(error)
        key = NAME if words.startswith(_ABOUT_NAMES) else key * (key not in _NOT_ASKED)
        entry.pop(ENV, None)
        return await _new(parts, who, driver, {**entry, NAME: name}, {key: words})
    return RedirectResponse(f"/agents/{made.name}", 303)


@forms.post("/agents/{name}/set/{key}")
async def set_field(
    request: Request, parts: PartsOf, who: Who, recent: RecentOf, name: str, key: str
) -> Response:
    """Change one field of an agent."""
    if key not in FIELDS:
        raise NotFound("field", key)
    form, changes = await _read(request), _changes(parts)
    card, before = parts.find_agent(name), changes.show(name)[0].get(key)
    value = None
    try:
        value = agent_form.read(FIELDS[key], form)
        await changes.change(name, {key: agent_form.patch(before, value)})
    except _WRONG as error:
        problems = {key: agent_form.locate(error)[1]}
        return await _shown(parts, who, recent, name, problems, typed={key: value})
    if value != before:
        recent.keep(card.id, key, before)
    return RedirectResponse(f"/agents/{name}#f-{key}", 303)


@forms.post("/agents/{name}/undo/{key}")
async def undo(parts: PartsOf, who: Who, recent: RecentOf, name: str, key: str) -> Response:
    """Make a field what it was before its last change."""
    card, changes = parts.find_agent(name), _changes(parts)
    if (card.id, key) not in recent.former:
        raise Conflict("there is nothing to undo any more")
    then, before = recent.former[card.id, key], changes.show(name)[0].get(key)
    try:
        await changes.change(name, {key: agent_form.patch(before, then)})
    except _WRONG as error:
        return await _shown(parts, who, recent, name, {key: agent_form.locate(error)[1]})
    del recent.former[card.id, key]
    return RedirectResponse(f"/agents/{name}#f-{key}", 303)


@forms.post("/agents/{name}/env")
async def set_variables(
    request: Request, parts: PartsOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Add, replace or remove variables; their values are shown nowhere."""
    form = await _read(request)
    try:
        given = agent_form.read_variables(form)
        if given:
            await _changes(parts).change(name, {ENV: given})
    except _WRONG as error:
        return await _shown(parts, who, recent, name, {ENV: agent_form.locate(error)[1]})
    return RedirectResponse(f"/agents/{name}#f-{ENV}", 303)


@forms.post("/agents/{name}/connect/{service}")
async def connect(
    request: Request, parts: PartsOf, who: Who, recent: RecentOf, name: str, service: str
) -> Response:
    """Try the credentials of an agent on a service, then store them."""
    form = await _read(request)
    card, fields = parts.find_agent(name), _service(service).credentials.model_fields
    given = {key: form[key].strip() for key in fields if form.get(key, "").strip()}
    try:
        warnings = await _changes(parts).connect(name, service, given)
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await _shown(parts, who, recent, name, problems)
    recent.notes[card.id, service] = tuple(warnings)
    return RedirectResponse(f"/agents/{name}#s-{service}", 303)


@forms.post("/agents/{name}/disconnect/{service}")
async def disconnect(
    parts: PartsOf, who: Who, recent: RecentOf, name: str, service: str
) -> Response:
    """Forget the credentials of an agent on a service."""
    card = parts.find_agent(name)
    try:
        await _changes(parts).change(name, {}, {_service(service).name: None})
    except _WRONG as error:
        problems = {f"service:{service}": agent_form.locate(error)[1]}
        return await _shown(parts, who, recent, name, problems)
    recent.notes.pop((card.id, service), None)
    return RedirectResponse(f"/agents/{name}#s-{service}", 303)


@forms.post("/agents/{name}/probe")
async def probe(parts: PartsOf, _who: Who, name: str) -> Response:
    """Check whether an agent can work, by starting it."""
    await parts.probe(parts.find_agent(name).id)
    return RedirectResponse(f"/agents/{name}", 303)


@forms.post("/agents/{name}/rename")
async def rename(
    request: Request, parts: PartsOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Give an agent another name."""
    to = (await _read(request)).get("to", "").strip()
    try:
        made = await _changes(parts).rename(name, to)
    except _WRONG as error:
        return await _shown(parts, who, recent, name, {"rename": agent_form.locate(error)[1]})
    return RedirectResponse(f"/agents/{made.name}", 303)


@forms.post("/agents/{name}/default")
async def choose_default(parts: PartsOf, who: Who, recent: RecentOf, name: str) -> Response:
    """Let requests without a name go to this agent."""
    try:
        await _changes(parts).choose_default(name)
    except _WRONG as error:
        return await _shown(parts, who, recent, name, {"default": agent_form.locate(error)[1]})
    return RedirectResponse(f"/agents/{name}", 303)


@forms.post("/agents/{name}/remove")
async def remove(
    request: Request, parts: PartsOf, who: Who, recent: RecentOf, name: str
) -> Response:
    """Remove an agent, once its name was typed."""
    typed = (await _read(request)).get("typed", "").strip()
    try:
        if typed != name:
            raise Conflict(f"type {name} to remove it. Nothing was removed.")
        await _changes(parts).remove(name)
    except _WRONG as error:
        return await _shown(parts, who, recent, name, {"remove": agent_form.locate(error)[1]})
    return RedirectResponse("/agents", 303)


# Reading.


async def _crew(parts: Parts, who: Visitor, words: str = "") -> Crew:
    counts = await parts.sessions.counts()
    cast = queries.cast_of(parts)
    return Crew(
        lines=tuple(
            AgentLine(
                agent=cast[card.id],
                driver=card.driver,
                model=card.model,
                services=tuple(label_of(each) for each in card.services if each != PAGE),
                sessions=counts.get(card.id, 0),
                stored=card.source == "stored" and parts.changes is not None,
            )
            for card in parts.agents.values()
        ),
        removed=tuple(parts.changes.removed()) if parts.changes is not None else (),
        csrf=who.csrf,
        assets=addresses(),
        words=words,
    )


async def _shown(
    parts: Parts,
    who: Visitor,
    recent: Recent,
    name: str,
    problems: Mapping[str, str] | None = None,
    typed: Mapping[str, Any] | None = None,
) -> HTMLResponse:
    """Show an agent; what is wrong with a form, at its field."""
    try:
        card = parts.find_agent(name)
    except (NotFound, AgentRemoved) as error:
        words = agent_form.locate(error)[1]
        status = 404 if isinstance(error, NotFound) else 410
        return _html(render.crew(await _crew(parts, who, words)), status)
    entry, stored = _changes(parts).show(name)
    crew = await _crew(parts, who)
    program = _program(entry.get("driver", ""), card)
    shown = Shown(
        line=next(line for line in crew.lines if line.agent.id == card.id),
        groups=tuple(
            agent_form.groups(
                {**entry, **(typed or {})},
                Around(
                    drivers=tuple((each.name, each.title) for each in known_agents()),
                    agents=_extensible(parts, card),
                    command=" ".join(program.command) if program else "",
                    offers=parts.offers(card.id),
                ),
                former=recent.of(card.id),
                problems=problems,
            )
        ),
        variables=tuple(entry.get(ENV, ())),
        known=tuple(program.env) if program else (),
        connections=tuple(
            _connection(parts, card, each, stored, recent, problems or {})
            for each in registered_services()
        ),
        titles=await _titles(parts, card.id),
        problems=problems or {},
    )
    return _html(render.agent(crew, shown), 422 if problems else 200)


async def _new(
    parts: Parts,
    who: Visitor,
    driver: str,
    entry: Mapping[str, Any],
    problems: Mapping[str, str],
) -> HTMLResponse:
    missing = {each.title: each.install for each in parts.missing}
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
    same = next((c.id for c in parts.agents.values() if picked and c.driver == picked.title), "")
    around = Around(agents=_extensible(parts, None), offers=parts.offers(same))
    form = NewForm(
        programs=programs,
        picked=picked,
        groups=tuple(agent_form.groups(entry, around, problems=problems)),
        name=entry.get(NAME, ""),
        problems=problems,
    )
    return _html(render.new_agent(await _crew(parts, who), form), 422 if problems else 200)


def _connection(
    parts: Parts,
    card: AgentCard,
    service: Service,
    stored: Mapping[str, list[str]],
    recent: Recent,
    problems: Mapping[str, str],
) -> Connection:
    kept = stored.get(service.name, ())
    secret, names = service.credentials.secret_names(), service.credentials.names()
    made, unreachable = Setup("", ()), ""
    if card.source == "stored" and service.set_up is not None:
        try:
            made = _changes(parts).set_up(card.name, service.name)
        except ConfigurationError as error:
            unreachable = str(error)
    return Connection(
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
        present=service.name in card.services,
        stored=bool(kept),
        address=made.address,
        steps=made.steps,
        unreachable=unreachable,
        problem=problems.get(f"service:{service.name}", ""),
        notes=recent.notes.get((card.id, service.name), ()),
    )


async def _titles(parts: Parts, agent: str) -> tuple[str, ...]:
    found = await parts.sessions.recent(agent=agent, state=None, before=None, limit=LATEST)
    there = [each for each in found if each.state != SessionState.REMOVED]
    return tuple(each.title or headline(each.place.name) for each in there[:TITLES])


def _extensible(parts: Parts, card: AgentCard | None) -> tuple[str, ...]:
    changes = _changes(parts)
    return tuple(
        each.name
        for each in parts.agents.values()
        if each is not card and "extends" not in changes.show(each.name)[0]
    )


def _program(driver: str, card: AgentCard) -> AgentProgram | None:
    return next(
        (each for each in known_agents() if driver == each.name or card.driver == each.title), None
    )


def _service(name: str) -> Service:
    found = next((each for each in registered_services() if each.name == name), None)
    if found is None:
        raise NotFound("service", name)
    return found


def _changes(parts: Parts) -> AgentChanger:
    if parts.changes is None:
        raise Conflict("agents cannot be changed here")
    return parts.changes


async def _read(request: Request) -> dict[str, str]:
    """Read the texts of a form."""
    form = await request.form(max_files=0)
    return {key: value for key, value in form.items() if isinstance(value, str)}


def _html(page: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(page, status_code=status, headers=HEADERS)
