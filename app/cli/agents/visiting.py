"""Prepares visits to an agent, in its own HOME and isolation, as the bridge would run it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from app import logs
from app.acp.probing.visit import Visits
from app.agents.catalog import AgentProgram, known_agents
from app.agents.isolation import shelter_all
from app.agents.registry import Registry
from app.children.hardening import make_undumpable
from app.cli.client import connected
from app.cli.running import is_running
from app.config import AgentConfig, Configuration, forget_process_secrets
from app.errors import BridgeError
from app.main import bridge_id, launches
from app.metrics import Metrics
from app.vault import Vault


@dataclass(frozen=True, slots=True)
class Visitor:
    """Everything that is needed to visit one agent and to describe it."""

    entry: AgentConfig
    program: AgentProgram | None
    visits: Visits
    vault: Vault


def tell_bridge(configuration: Configuration, name: str) -> None:
    """Have a running bridge check an agent again, since it may work now, or no longer."""

    async def probe() -> None:
        async with connected(configuration) as client:
            if client is not None:
                await client.probe(name)

    # The bridge may be older than the entry, or busy: its next turn finds out all the same.
    if is_running(configuration.data_dir):
        with suppress(BridgeError):
            asyncio.run(probe())


def visitor(configuration: Configuration, name: str, *, on_host_network: bool = False) -> Visitor:
    """Prepare visits to an agent, in its own network unless told otherwise.

    Raises:
        NotFound: there is no such agent.
        ConfigurationError: it cannot be isolated as it must be.
    """
    registry = Registry(configuration, known_agents())
    entry = registry.find(name)
    program = registry.program(entry.id)
    vault = Vault(configuration.secret_values())
    # Errors are shown to the person; log lines would only get between them.
    logs.configure("error", configuration.settings.log_format, vault)
    make_undumpable()
    forget_process_secrets(configuration)
    shelter = shelter_all(configuration)[entry.id]
    if on_host_network:
        shelter = shelter.on_host_network()
    launch = launches(configuration, {entry.id: shelter})[entry.id]
    workspace = configuration.data_dir / "workspaces" / f"visit-{entry.id}"
    visits = Visits(launch, workspace, Metrics(), bridge_id(configuration))
    return Visitor(entry, program, visits, vault)
