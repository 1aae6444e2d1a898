"""Connects an agent to a service: how its application is made, and whether its credentials work.

Credentials are tried with the checks of `doctor` before they are stored.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from app.config import AgentConfig, Configuration
from app.errors import Conflict, NotFound
from app.services import registered_services
from app.services.service import CheckContext, Finding, Service, Setup, Severity
from app.store.stores import Stores
from app.vault import Vault

CHECK_SECONDS: Final = 40.0
"""How long a service may take to judge credentials: a few requests, each with its own bound."""


def set_up(configuration: Configuration, service: str, agent: AgentConfig, title: str) -> Setup:
    """Say how to make an agent's application on a service.

    Raises:
        NotFound: there is no such service, or nothing is to be made there.
        ConfigurationError: the service cannot reach the bridge.
    """
    found = _find(service)
    if found.set_up is None:
        raise NotFound("application to make for", service)
    return found.set_up(configuration, agent, title)


async def try_out(
    configuration: Configuration, service: str, agent: str, stores: Stores
) -> list[str]:
    """Try an agent's credentials on a service; returns what could be better.

    Raises:
        NotFound: there is no such service.
        Conflict: they do not work.
    """
    found = _find(service)
    owner = service, agent
    if owner not in configuration.credentials:
        raise Conflict(
            f"{found.label} is not among the services in ENABLED_SERVICES. Add it there."
        )
    own = MappingProxyType({owner: configuration.credentials[owner]})
    vault = Vault(list(configuration.secret_values()))
    context = CheckContext(
        configuration=replace(configuration, credentials=own),
        vault=vault,
        reading=lambda: nullcontext(stores),
    )
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            findings = [finding async for finding in found.checks(context)]
    except TimeoutError:
        raise Conflict(
            f"{found.label} did not answer within {CHECK_SECONDS:g} s. Nothing was saved."
        ) from None
    problem = next((each for each in findings if each.verdict is Severity.PROBLEM), None)
    if problem is not None:
        raise Conflict(vault.redact(f"{found.label} refuses: {_words(problem)}"))
    return [vault.redact(_words(each)) for each in findings if each.verdict is Severity.WARNING]


def _find(name: str) -> Service:
    found = next((each for each in registered_services() if each.name == name), None)
    if found is None:
        raise NotFound("service", name)
    return found


def _words(finding: Finding) -> str:
    return f"{finding.reason}. {finding.remedy}".strip()
