"""Reads each agent's credentials on each service: complete, well-formed and its own, or none.

Plain names belong to the default agent, suffixed ones to theirs. No agent ever gets another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, SecretStr, ValidationError

from app.config.agents import AgentConfig
from app.config.fields import matching, strong
from app.config.problems import first_problem, refusal
from app.config.records import AgentRecord
from app.config.roster import Roster
from app.config.services import KnownService, ServiceCredentials
from app.config.sources import Sources
from app.errors import ConfigurationError

PEM = r"\s*-----BEGIN [A-Z ]*PRIVATE KEY-----\s.+\s-----END [A-Z ]*PRIVATE KEY-----\s*"
SHORTEST_WEBHOOK_SECRET = 16
"""Anyone who guesses it can send events that every agent trusts."""


def _refuse_whitespace(secret: SecretStr) -> SecretStr:
    if secret.get_secret_value() != secret.get_secret_value().strip():
        raise refusal("begins or ends with whitespace", "Copy it again without the space.")
    return secret


Token = matching(r"\S+", "contains whitespace", "Copy it again without the space.")
WebhookSecret = Annotated[
    SecretStr, AfterValidator(_refuse_whitespace), strong(SHORTEST_WEBHOOK_SECRET)
]

Credentials = Mapping[tuple[str, str], ServiceCredentials]


def read_credentials(
    sources: Sources,
    roster: Roster,
    services: Iterable[KnownService],
    records: Iterable[AgentRecord] = (),
) -> Credentials:
    """Read every agent's credentials on every service, by service and the agent's id.

    Those of the settings win over those of the store.

    Raises:
        ConfigurationError: some are missing, malformed, or shared by two agents.
    """
    services = tuple(services)
    recorded = {record.id: record.credentials for record in records if record.present}
    found: dict[tuple[str, str], ServiceCredentials] = {}
    for agent in roster.agents.values():
        stored = recorded.get(agent.id, {})
        _check_services(agent, stored, services)
        for service in services:
            kind = service.credentials
            credentials = _read_settings(kind, agent, sources)
            if credentials is None and service.name in stored:
                credentials = _read_stored(kind, agent, stored[service.name])
            if credentials is not None:
                found[service.name, agent.id] = credentials
    _check_identities(found, {agent.id: agent.name for agent in roster.agents.values()})
    return MappingProxyType(found)


def _check_services(
    agent: AgentConfig, stored: Mapping[str, object], services: Iterable[KnownService]
) -> None:
    names = [service.name for service in services]
    if any(name not in names for name in stored):
        problem = f"agent {agent.name!r} has credentials for an unknown service"
        raise ConfigurationError("credentials", problem, f"Services are {', '.join(names)}.")


def _read_stored(
    kind: type[ServiceCredentials], agent: AgentConfig, given: Mapping[str, str]
) -> ServiceCredentials:
    unknown = any(field not in kind.model_fields for field in given)
    if unknown:
        problem = f"agent {agent.name!r} has an unknown field"
        fields = ", ".join(kind.model_fields)
        raise ConfigurationError(f"{kind.service} credentials", problem, f"Fields are {fields}.")
    return _check(kind, agent, given, {name: f"{kind.service}.{name}" for name in kind.names()})


def _read_settings(
    kind: type[ServiceCredentials], agent: AgentConfig, sources: Sources
) -> ServiceCredentials | None:
    given: dict[str, str] = {}
    origin: dict[str, str] = {}
    secret = kind.secret_names()
    for field, plain in kind.names().items():
        own = f"{plain}__{agent.suffix}"
        origin[field] = agent.setting(plain)
        for name in (own, plain) if agent.default else (own,):
            value = (sources.secret if plain in secret else sources.text)(name)
            if value is not None:
                given[field], origin[field] = value, name
                break
    return _check(kind, agent, given, origin) if given else None


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
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    raise ConfigurationError(origin[str(where[0])], problem, remedy)


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


def key_parts(secret: str) -> Iterator[str]:
    """Yield the parts of a secret to hide: for a private key, each line of its body."""
    if not re.fullmatch(PEM, secret, re.DOTALL):
        yield secret
        return
    yield from (line for line in secret.splitlines() if line and not line.startswith("-----"))
