"""Describes a service to the settings, and reads what is set for it and each agent's credentials.

Credentials are complete, well-formed and an agent's own, or there are none. Plain names belong to
the default agent, suffixed ones to theirs. No agent ever gets another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from pydantic_settings import InitSettingsSource, SettingsConfigDict
from typing_extensions import override

from app.config.agents import AgentConfig
from app.config.fields import PAGE, Account
from app.config.records import AgentRecord
from app.config.roster import ConfiguredAgents
from app.config.settings import Settings
from app.config.sources import GivenSettings, GivenSource, Sources
from app.errors import ConfigurationError


class IdForm(NamedTuple):
    """The form of an account's id on a service."""

    pattern: str
    """The pattern of the whole id."""
    example: str
    """An example, as a person would write it."""


class ServiceModel(GivenSettings):
    """Settings whose names begin with the name of a service."""

    service: ClassVar[str]

    @classmethod
    @override
    def names(cls) -> dict[str, str]:
        """Return the plain name of the setting for each field."""
        return {field: f"{cls.service}_{field}".upper() for field in cls.model_fields}


class ServiceSettings(ServiceModel):
    """The settings of a service as a whole, for all agents."""

    model_config = SettingsConfigDict(str_strip_whitespace=True)

    repositories_by_area: ClassVar[str | None] = None
    """The field with the repository of each area, if there is one."""
    prompts_by_area: ClassVar[str | None] = None
    """The field with the additional prompt of each area, if there is one."""

    def area_repositories(self) -> Mapping[str, str]:
        """Return the repository of each area, by the area's name."""
        return getattr(self, self.repositories_by_area) if self.repositories_by_area else {}

    def area_prompts(self) -> Mapping[str, str]:
        """Return the additional prompt of each area, by the area's name."""
        return getattr(self, self.prompts_by_area) if self.prompts_by_area else {}


class ServiceCredentials(ServiceModel):
    """What one agent needs to be present on one service."""

    identity: ClassVar[tuple[str, ...]]
    """What no two agents may share."""
    hook_secrets: ClassVar[tuple[str, ...]] = ()
    """What deliveries may be signed with."""

    @classmethod
    def missing(cls, given: Mapping[str, str]) -> str | None:
        """Return a required field that was not given, or None."""
        needed = (field for field, about in cls.model_fields.items() if about.is_required())
        return next((field for field in needed if field not in given), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownService:
    """What the settings need to know about a service."""

    name: str
    """Its name in settings, keys and webhook paths: lowercase letters and digits."""
    label: str
    """The name people see."""
    credentials: type[ServiceCredentials]
    """What an agent needs to be present there."""
    settings: type[ServiceSettings]
    """The settings for all agents there."""
    people: IdForm | None = None
    """How ALLOWED_USERS names a person; None if it cannot."""
    bots: IdForm | None = None
    """How ALLOWED_BOTS names a bot; None if it cannot."""


Credentials = Mapping[tuple[str, str], ServiceCredentials]


def check_names(settings: Settings, services: Sequence[KnownService]) -> None:
    """Refuse settings that name a service, or an account there, which cannot be.

    Raises:
        ConfigurationError: for the first such name.
    """
    there = (*(service.name for service in services), PAGE)
    named = settings.enabled_services
    if named is not None and not named:
        raise ConfigurationError(
            "ENABLED_SERVICES",
            "names no service",
            f"Choose from {', '.join(there)}, or remove it.",
        )
    if set(named or ()) - set(there):
        raise ConfigurationError(
            "ENABLED_SERVICES", "names an unknown service", f"The services are {', '.join(there)}."
        )
    people = {service.name: service.people for service in services}
    bots = {service.name: service.bots for service in services}
    _check_accounts("ALLOWED_USERS", settings.allowed_users, people)
    _check_accounts("ALLOWED_BOTS", settings.allowed_bots, bots)


def _check_accounts(
    name: str, accounts: Iterable[Account], forms: Mapping[str, IdForm | None]
) -> None:
    for number, (service, account) in enumerate(accounts, start=1):
        form = forms.get(service)
        if form is None or not re.fullmatch(form.pattern, account):
            examples = ",".join(f"{each}:{form.example}" for each, form in forms.items() if form)
            raise ConfigurationError(
                name, f"entry {number} is not valid", f"Write a list such as {examples}."
            )


def choose_services(
    settings: Settings,
    credentials: Credentials,
    services: Iterable[KnownService],
    *,
    agents_known: bool,
) -> tuple[str, ...]:
    """Return the services that are to run: those that are named, else those with credentials.

    Raises:
        ConfigurationError: one is named that no agent has credentials for.
    """
    able = {service for service, _ in credentials} | {PAGE}
    named = settings.enabled_services
    wanted = able if named is None else named
    unable = next((name for name in wanted if name not in able), None)
    if unable is not None and agents_known:
        raise ConfigurationError(
            "ENABLED_SERVICES",
            f"names {unable}, but no agent has credentials for it",
            f"Add its {unable.upper()}_ settings, or remove {unable}.",
        )
    there = (*(service.name for service in services), PAGE)
    return tuple(name for name in there if name in wanted and name in able)


def read_credentials(
    sources: Sources,
    roster: ConfiguredAgents,
    services: Sequence[KnownService],
    records: Iterable[AgentRecord] = (),
) -> Credentials:
    """Read every agent's credentials on every service, by service and the agent's id.

    Those of the settings win over those of the store.

    Raises:
        ConfigurationError: some are missing, malformed, or shared by two agents.
    """
    recorded = {record.id: record.credentials for record in records if record.present}
    found: dict[tuple[str, str], ServiceCredentials] = {}
    for agent in roster.agents.values():
        stored = recorded.get(agent.id, {})
        names = [service.name for service in services]
        if any(name not in names for name in stored):
            problem = f"agent {agent.name!r} has credentials for an unknown service"
            raise ConfigurationError("credentials", problem, f"Services are {', '.join(names)}.")
        for service in services:
            kind = service.credentials
            own = f"__{agent.suffix}"
            source = GivenSource(kind, sources, (own, "") if agent.default else (own,))
            given = source()
            credentials = _check(kind, agent, given, source.origin) if given else None
            if credentials is None and service.name in stored:
                credentials = _read_stored(kind, agent, stored[service.name])
            if credentials is not None:
                found[service.name, agent.id] = credentials
    _check_identities(found, {agent.id: agent.name for agent in roster.agents.values()})
    return MappingProxyType(found)


def _read_stored(
    kind: type[ServiceCredentials], agent: AgentConfig, given: Mapping[str, str]
) -> ServiceCredentials:
    if any(field not in kind.model_fields for field in given):
        problem = f"agent {agent.name!r} has an unknown field"
        fields = ", ".join(kind.model_fields)
        raise ConfigurationError(f"{kind.service} credentials", problem, f"Fields are {fields}.")
    return _check(kind, agent, given, {name: f"{kind.service}.{name}" for name in kind.names()})


def _check(
    kind: type[ServiceCredentials],
    agent: AgentConfig,
    given: Mapping[str, str],
    origin: Mapping[str, str],
) -> ServiceCredentials:
    """Check what was given; `origin` names each field for people."""
    lacking = kind.missing(given)
    if lacking is not None:
        raise ConfigurationError(
            origin[lacking],
            f"is missing, but agent {agent.name!r} has other {kind.service} credentials",
            "Add it, or remove the others.",
        )
    return kind.check(InitSettingsSource(kind, dict(given)), origin)


def _check_identities(found: Credentials, names: Mapping[str, str]) -> None:
    owners: dict[tuple[str, object], str] = {}
    for (service, agent), credentials in found.items():
        # An earlier secret counts too: anyone who knows it can sign for both.
        kinds = {field: field for field in credentials.identity}
        kinds |= dict.fromkeys(credentials.hook_secrets, "webhook secret")
        for field, kind in kinds.items():
            value = getattr(credentials, field)
            if value is None:
                continue
            other = owners.setdefault((f"{service} {kind}", value), agent)
            if other != agent:
                raise ConfigurationError(
                    credentials.names()[field],
                    f"is the same for the agents {names[other]!r} and {names[agent]!r}",
                    f"Give each agent its own identity on {service}.",
                )
