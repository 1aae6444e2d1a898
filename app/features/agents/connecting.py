"""Tries an agent's credentials on a service with the checks of `doctor`, before they are stored."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from app.config import Configuration
from app.errors import Conflict, NotFound
from app.services import registered_services
from app.services.service import CheckContext, Finding, Service, Severity
from app.store.stores import Stores
from app.vault import Vault

CHECK_SECONDS: Final = 40.0
"""How long a service may take to judge credentials: a few requests, each with its own bound."""


async def try_out(
    configuration: Configuration, service: str, agent: str, stores: Stores
) -> list[str]:
    """Try an agent's credentials on a service; returns what could be better.

    Raises:
        NotFound: there is no such service.
        Conflict: they do not work.
    """
    found = find_service(service)
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


def find_service(name: str) -> Service:
    """Return the service of that name.

    Raises:
        NotFound: there is no such service.
    """
    found = next((each for each in registered_services() if each.name == name), None)
    if found is None:
        raise NotFound("service", name)
    return found


def _words(finding: Finding) -> str:
    return f"{finding.reason}. {finding.remedy}".strip()
