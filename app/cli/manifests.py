"""`manifest`: shows how to set up an agent on a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from app.agents.catalog import known_agents
from app.agents.registry import Registry
from app.cli.invocation import hint
from app.config import AgentConfig, Configuration
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
    entry = registry.find(agent)
    shown(
        ManifestRequest(
            configuration=configuration,
            agent=entry,
            title=registry.display_name(entry.id),
            organization=organization,
            workflows=workflows,
            port=port,
            keeping=_keeping(configuration, service, entry),
            write=lambda text: typer.echo(hint(text)),
            explain=lambda text: typer.echo(hint(text), err=True),
        )
    )


def _keeping(
    configuration: Configuration, service: str, entry: AgentConfig
) -> Callable[[], Callable[[Mapping[str, str]], None]] | None:
    """Let the running bridge store the credentials of an agent that the settings do not have."""
    if entry.source != "stored":
        return None
    from app.cli.agents.changing import set_credentials  # noqa: PLC0415 - only this needs it
    from app.cli.connection import require_running  # noqa: PLC0415 - as above

    def begin() -> Callable[[Mapping[str, str]], None]:
        require_running(configuration)
        return lambda given: set_credentials(configuration, entry.name, service, given)

    return begin
