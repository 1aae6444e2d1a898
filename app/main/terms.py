"""Translates settings for the parts: agents' terms, limits, access, repositories, addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import SecretStr

import app
from app.agents.bounds import Bounds
from app.agents.catalog import AgentProgram, known_agents
from app.agents.isolation import Shelter
from app.agents.network import read_hosts
from app.agents.registry import Registry
from app.children.sandbox import Plain
from app.config import AgentConfig, Configuration
from app.config.fields import PAGE, is_loopback
from app.core.consent.terms import Terms
from app.core.intake.access import Access
from app.core.repositories.directory import Directory, SetFor
from app.core.turns.limits.daily import DailyLimits
from app.errors import ConfigurationError
from app.main.together import exposure_of
from app.mcp_server.doors import PATH as TOOLS_PATH
from app.model.keys import PlaceKey
from app.model.policy import PRESETS, Policy, Rule
from app.model.spending import Share
from app.model.tools import COMMAND
from app.model.workspaces import Author, Target
from app.server.local_socket import SOCKET_HOST
from app.server.login_links import private_host
from app.server.titles import path_of
from app.services import find_area, find_repository
from app.timetable import machine_zone

_LOCAL_HOSTS: Final = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::")  # noqa: S104 - read, not bound
"""Listen addresses that a browser on this machine reaches by any name in `.localhost`."""


def directory_of(configuration: Configuration) -> Directory:
    """Build the directory of each place's repository.

    Raises:
        ConfigurationError: a folder is set that agents must not work in.
    """
    files = filter(None, (configuration.database_file, configuration.dotenv))
    area_settings = {
        service: settings.names()[settings.repositories_by_area]
        for service, settings in configuration.service_settings.items()
        if settings.repositories_by_area is not None
    }
    directory = Directory(
        git_url=configuration.git_url,
        home=configuration.home,
        data_dir=configuration.data_dir,
        default=configuration.default_repository,
        areas={
            PlaceKey(service, name): repository
            for service, settings in configuration.service_settings.items()
            for name, repository in settings.area_repositories().items()
        },
        area_settings=area_settings,
        area_of=find_area,
        own_repository=find_repository,
        own=(
            configuration.shared_dir,
            *configuration.secret_files,
            *files,
            Path(app.__file__).parent,
        ),
    )
    named = [("GITHUB_REPO", configuration.default_repository)]
    named += [(area_settings[area.service], text) for area, text in directory.areas.items()]
    for setting, text in named:
        folder = directory.read(text)
        if isinstance(folder, Path) and (objection := directory.objection(folder)):
            raise ConfigurationError(
                setting, "names a folder that agents must not work in", objection
            )
    return directory


def zone_of(configuration: Configuration) -> str:
    """Return the time zone of schedules that name none."""
    return configuration.time_zone or machine_zone(configuration.surroundings)


def daily_limits_of(configuration: Configuration) -> DailyLimits:
    """Return what a day may cost."""
    limits = configuration.limits
    set_to: dict[Share, float | None] = {
        "person": limits.budget_person_usd,
        "place": limits.budget_place_usd,
        "agent": limits.budget_agent_usd,
        "day": limits.budget_day_usd,
    }
    usd = {share: value for share, value in set_to.items() if value is not None}
    return DailyLimits(usd, ZoneInfo(zone_of(configuration)))


def variables_of(
    configuration: Configuration, directory: Directory, now: Callable[[str, str], str]
) -> Mapping[Target, Mapping[str, str]]:
    """Return the additional variables for work in each repository or folder."""
    entries = {
        directory.read(name): {
            variable: value.get_secret_value() for variable, value in terms.variables.items()
        }
        for name, terms in configuration.repositories.items()
    }
    return SetFor(entries, directory, now)


def fetched_as(
    how: Literal["shallow", "partial"],
    configuration: Configuration,
    directory: Directory,
    now: Callable[[str, str], str],
) -> Collection[Target]:
    """Return the repositories that are fetched in this way."""
    entries = {
        directory.read(name): terms.clone
        for name, terms in configuration.repositories.items()
        if terms.clone == how
    }
    return SetFor(entries, directory, now)


def author_of(configuration: Configuration, agent: str) -> Author:
    """Return the author of an agent's commits where no platform gives it an identity."""
    name = configuration.agents[agent].name
    return Author(display_name(configuration, agent), f"{name}@noreply.agent-bridge.invalid")


def ship_of(configuration: Configuration, agent: str) -> Literal["pr", "push", "none"]:
    """Return what happens to an agent's changes."""
    return configuration.agents[agent].ship


def idle_seconds(configuration: Configuration, agent: str) -> float:
    """Return how long an agent may idle before it is parked."""
    own = configuration.agents[agent].idle_minutes
    return 60.0 * (configuration.limits.idle_minutes if own is None else own)


def max_processes(configuration: Configuration, agent: str) -> int | None:
    """Return how many processes an agent may have, if it has a limit of its own."""
    return configuration.agents[agent].limits.max_processes


def max_turns(configuration: Configuration, agent: str) -> int | None:
    """Return how many turns of an agent may run at once, if it has a limit of its own."""
    return configuration.agents[agent].limits.max_turns


def display_name(configuration: Configuration, agent: str) -> str:
    """Return what people call an agent."""
    return Registry(configuration, known_agents()).display_name(agent)


def terms_of(configuration: Configuration, agent: str) -> Terms:
    """Return an agent's terms: its own, else the bridge's."""
    entry, shared = configuration.agents[agent], configuration.limits
    own = entry.limits
    program = next((each for each in known_agents() if each.name == entry.driver), None)
    return Terms(
        display_name=display_name(configuration, agent),
        visible=entry.visible,
        policy=Policy((*_rules_of(entry), *_tool_rules(configuration, agent))),
        turn_seconds=60.0 * (own.turn_minutes or shared.turn_minutes),
        idle_seconds=idle_seconds(configuration, agent),
        ask_seconds=3600.0 * (own.ask_hours or shared.ask_hours),
        memory=entry.memory,
        voice=entry.delegation_voice,
        unasked=_unasked(configuration, entry, program),
        mode=entry.mode or (program.ask_mode if program else None),
        confines_commands=program.quirks.confines_commands if program else False,
        budget_usd=own.budget_usd or shared.budget_usd,
        resume=own.resume,
    )


def bounds_of(configuration: Configuration, agent: str, shelter: Shelter) -> Bounds:
    """Return how far an agent can go, in the shelter that it has."""
    entry = configuration.agents[agent]
    return Bounds(
        isolated=not isinstance(shelter.sandbox, Plain),
        network="host" if shelter.network is None else shelter.network.rules.mode,
        hosts=tuple(read_hosts(entry)),
        # Without the rule for the bridge's tools, which every agent may call in its own form.
        policy=Policy(tuple(_rules_of(entry))),
        asks=terms_of(configuration, agent).unasked is not None,
    )


def _rules_of(entry: AgentConfig) -> Sequence[Rule]:
    if isinstance(entry.permissions, str):
        return PRESETS[entry.permissions].rules
    return [
        Rule(rule.decision, rule.kind, rule.title, rule.path, rule.command)
        for rule in entry.permissions
    ]


def _tool_rules(configuration: Configuration, agent: str) -> Sequence[Rule]:
    """Allow the command of the bridge's tools, last: the bridge itself checks each call."""
    if exposure_of(configuration, agent) == "tools":
        return ()
    return [Rule("allow", kind=("execute",), command=(COMMAND, f"{COMMAND} *"))]


def _unasked(
    configuration: Configuration, entry: AgentConfig, program: AgentProgram | None
) -> Literal["stop", "tell"] | None:
    """Return what happens when an agent does not ask; None if the operator chose such a mode."""
    if entry.unasked is not None:
        return entry.unasked
    if entry.mode not in (None, program.ask_mode if program else None):
        return None
    reached = any(
        agent == entry.id for service, agent in configuration.credentials if service != PAGE
    )
    return "stop" if reached else "tell"


def access_of(configuration: Configuration) -> Access:
    """Return whom the operator allows or refuses."""
    return Access(
        users=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_users),
        only_users=configuration.allowed_users_only,
        bots=frozenset(f"{who.service}:{who.id}" for who in configuration.allowed_bots),
    )


def page_of(configuration: Configuration) -> Callable[[PlaceKey], str]:
    """Return a place's page address; empty if only this machine could open it."""
    base = configuration.base_url
    if is_loopback(urlsplit(base).hostname or ""):
        return lambda _place: ""
    return lambda place: f"{base}{path_of(place)}"


def file_link_of(configuration: Configuration) -> Callable[[str], str]:
    """Return a stored file's address; empty if only this machine could open it."""
    base = configuration.base_url
    if is_loopback(urlsplit(base).hostname or ""):
        return lambda _url: ""
    return lambda url: f"{base}/uploads/{quote(url)}"


def place_prompts(configuration: Configuration) -> Callable[[PlaceKey], str]:
    """Return the operator's additional prompt for each place."""

    def added(place: PlaceKey) -> str:
        settings = configuration.service_settings.get(place.service)
        name = (find_area(place) or place).name
        return settings.area_prompts().get(name, "") if settings is not None else ""

    return added


def page_url_of(configuration: Configuration, secret_key: SecretStr) -> str:
    """Return the address at which people open the page."""
    if not plain_url_of(configuration):
        return configuration.base_url
    return f"http://{private_host(secret_key)}:{configuration.port}"


def plain_url_of(configuration: Configuration) -> str:
    """Return the page's address for browsers that do not resolve its own name; else empty."""
    if configuration.has_base_url or configuration.host not in _LOCAL_HOSTS:
        return ""
    host = "[::1]" if configuration.host == "::1" else "127.0.0.1"
    return f"http://{host}:{configuration.port}"


def tools_url_of(configuration: Configuration) -> str:
    """Return the address at which agents on this machine call the bridge's tools."""
    host = configuration.host
    if host in _LOCAL_HOSTS:
        host = "[::1]" if host == "::1" else "127.0.0.1"
    return f"http://{host}:{configuration.port}{TOOLS_PATH}"


def hosts_of(configuration: Configuration, page_url: str) -> set[str]:
    """List the Host headers that mean this bridge."""
    port = configuration.port
    own = {"127.0.0.1", "localhost", "[::1]", configuration.host}
    reached = {urlsplit(url).netloc for url in (configuration.base_url, page_url)}
    return {f"{host}:{port}" for host in own} | reached | {SOCKET_HOST}
