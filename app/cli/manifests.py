"""`manifest`: shows how to set up an agent on a service."""

from __future__ import annotations

import typer

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.cli.invocation import hint
from app.config import Configuration
from app.errors import NotFound
from app.services import registered_services
from app.services.service import ManifestRequest


def show(
    configuration: Configuration,
    service: str,
    agent: str,
    organization: str | None,
    *,
    workflows: bool = False,
    port: int | None = None,
) -> None:
    """Let a service show how to set up an agent on it.

    Raises:
        NotFound: there is no such service or agent, or nothing is to be done there.
    """
    shown = {each.name: each.manifest for each in registered_services()}.get(service)
    if shown is None:
        raise NotFound("service with a manifest called", service)
    registry = Registry(configuration, known_agents())
    shown(
        ManifestRequest(
            configuration=configuration,
            agent=(entry := registry.find(agent)),
            title=registry.display_name(entry.id),
            organization=organization,
            workflows=workflows,
            port=port,
            write=lambda text: typer.echo(hint(text)),
            explain=lambda text: typer.echo(hint(text), err=True),
        )
    )
