"""Builds each agent's launch settings, and imports the launcher late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from app.acp.card import card_path
from app.agents.admission import Admission
from app.agents.availability import explain_command
from app.agents.catalog import known_agents
from app.agents.isolation import Shelter
from app.agents.registry import PerAgent, Registry
from app.children.warden import Warden
from app.config import Configuration
from app.main.resources import Resources, bridge_id
from app.main.together import exposure_of
from app.model.ports import AgentLauncher, AgentListener, OpenedSession
from app.model.tools import ToolEndpoints
from app.model.types import Session
from app.model.workspaces import Workspace

if TYPE_CHECKING:
    from app.acp.launch import AgentLaunch
    from app.acp.probing.greeting import Greeting


class LateLauncher:
    """A launcher whose import waits until the port listens: ACP's models take 0.9 s."""

    def __init__(self, make: Callable[[], AgentLauncher]) -> None:
        self._make = make
        self._launcher: AgentLauncher | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> AgentLauncher:
        """Import the launcher, in a thread."""
        async with self._lock:
            if self._launcher is None:
                self._launcher = await asyncio.to_thread(self._make)
            return self._launcher

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: AgentListener,
        *,
        system: str = "",
    ) -> OpenedSession:
        """Start the agent's process and its session."""
        launcher = await self.prepare()
        return await launcher.open(session, workspace, listener, system=system)

    async def close(self) -> None:
        """Stop every process that is still starting or stopping."""
        if self._launcher is not None:
            await self._launcher.close()


def launch_of(
    configuration: Configuration, agent: str, shelter: Shelter, admission: Admission
) -> AgentLaunch:
    """Return an agent's launch settings: from its entry, else from its known program.

    `admission` decides whether it may start.
    """
    from app.acp.launch import AgentLaunch  # noqa: PLC0415 - see LateLauncher

    registry = Registry(configuration, known_agents())
    entry, program = registry.get(agent), registry.program(agent)
    return AgentLaunch(
        name=agent,
        argv=entry.command,
        display_name=registry.display_name(agent),
        home=shelter.home,
        homes=shelter.homes,
        environment=shelter.environment,
        sandbox=shelter.sandbox,
        confinement=shelter.confinement,
        limits=shelter.limits,
        network=shelter.network,
        # An agent's initial mode is never trusted to ask.
        mode=entry.mode or (program.ask_mode if program else None),
        model=entry.model,
        options=entry.options,
        auth=entry.auth,
        meta=program.session_meta if program else {},
        trailing_slash=program.trailing_slash if program else False,
        obeys=program.obeys if program else (),
        install=(
            f"Install it: {program.install}" if program else explain_command(configuration, entry)
        ),
        admit=partial(admission.admit, agent),
        tool_exposure=exposure_of(configuration, agent),
        card=card_path(configuration.shared_dir, agent),
        settle_seconds_before_load=program.quirks.load_after_seconds if program else 0,
    )


def launches(
    configuration: Configuration, shelters: Mapping[str, Shelter]
) -> dict[str, AgentLaunch]:
    """Return the launch settings of agents that run outside a bridge."""
    admission = Admission(Registry(configuration, known_agents()), shelters)
    return {
        agent: launch_of(configuration, agent, shelter, admission)
        for agent, shelter in shelters.items()
    }


def acp_launcher(
    base: Resources, warden: Warden, doors: ToolEndpoints, timeouts: Mapping[str, float]
) -> AgentLauncher:
    """Build the launcher; `timeouts` are seconds by step, where they differ from the defaults."""
    from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
    from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

    return AcpLauncher(
        PerAgent(
            base.registry,
            lambda current, agent: launch_of(current, agent, base.shelters[agent], base.admission),
        ),
        base.stores.processes,
        base.clock,
        base.metrics,
        bridge=bridge_id(base.configuration),
        warden=warden,
        doors=doors,
        timeouts=AgentTimeouts(**timeouts),
    )


async def greet(base: Resources, agent: str, timeouts: Mapping[str, float]) -> Greeting:
    """Start an agent once, outside of any conversation, to see whether it answers.

    Raises:
        AgentError: it does not.
    """
    visit = await asyncio.to_thread(_prepare_visit, base, agent, timeouts)
    return await visit()


def _prepare_visit(
    base: Resources, agent: str, timeouts: Mapping[str, float]
) -> Callable[[], Awaitable[Greeting]]:
    from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher
    from app.acp.probing.greeting import greet as greet_agent  # noqa: PLC0415 - see LateLauncher
    from app.acp.probing.visit import Visits  # noqa: PLC0415 - see LateLauncher

    visits = Visits(
        launch_of(base.configuration, agent, base.shelters[agent], base.admission),
        base.configuration.data_dir / "workspaces" / f"check-{agent}",
        base.metrics,
        bridge_id(base.configuration),
        AgentTimeouts(**timeouts),
    )
    return partial(greet_agent, visits)
