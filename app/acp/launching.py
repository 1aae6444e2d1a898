"""Builds each agent's launch settings, and imports the launcher late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.acp.card import card_path
from app.agents.admission import Admission
from app.agents.agent import Agent
from app.agents.availability import explain_command
from app.agents.catalog import known_agents
from app.agents.isolation import Shelter
from app.agents.registry import Registry
from app.children.warden import Warden
from app.clock import Clock
from app.config import Configuration
from app.model.ports import AgentLauncher, AgentListener, Counters, OpenedSession
from app.model.tools import ToolEndpoints
from app.model.types import Session
from app.model.workspaces import Workspace
from app.store.sessions import ProcessStore

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


def launch_of(agent: Agent, configuration: Configuration, admission: Admission) -> AgentLaunch:
    """Return an agent's launch settings: from its entry, else from its known program.

    `admission` decides whether it may start.
    """
    from app.acp.launch import AgentLaunch  # noqa: PLC0415 - see LateLauncher

    config, program, shelter = agent.config, agent.program, agent.shelter
    assert shelter is not None, "agents that are started have a shelter"
    return AgentLaunch(
        name=agent.id,
        argv=config.command,
        display_name=agent.display_name,
        home=shelter.home,
        homes=shelter.homes,
        environment=shelter.environment,
        sandbox=shelter.sandbox,
        confinement=shelter.confinement,
        limits=shelter.limits,
        network=shelter.network,
        # An agent's initial mode is never trusted to ask.
        mode=agent.mode,
        model=config.model,
        options=config.options,
        auth=config.auth,
        meta=program.session_meta if program else {},
        trailing_slash=program.trailing_slash if program else False,
        obeys=program.obeys if program else (),
        install=(
            f"Install it: {program.install}" if program else explain_command(configuration, config)
        ),
        admit=partial(admission.admit, agent.id),
        tool_exposure=agent.tool_exposure,
        card=card_path(configuration.shared_dir, agent.id),
        settle_seconds_before_load=program.quirks.load_after_seconds if program else 0,
    )


def launches(
    configuration: Configuration, shelters: Mapping[str, Shelter]
) -> dict[str, AgentLaunch]:
    """Return the launch settings of agents that run outside a bridge."""
    registry = Registry(configuration, known_agents())
    registry.shelters = dict(shelters)
    admission = Admission(registry, shelters)
    return {
        agent: launch_of(registry.agents[agent], configuration, admission) for agent in shelters
    }


class CurrentLaunches(Mapping[str, "AgentLaunch"]):
    """The launch settings of each agent, as they are whenever one looks."""

    def __init__(self, registry: Registry, admission: Admission) -> None:
        self._registry = registry
        self._admission = admission

    def __getitem__(self, agent: str) -> AgentLaunch:
        registry = self._registry
        return launch_of(registry.agents[agent], registry.configuration, self._admission)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.agents)

    def __len__(self) -> int:
        return len(self._registry.agents)


def build_launcher(
    registry: Registry,
    admission: Admission,
    processes: ProcessStore,
    clock: Clock,
    counters: Counters,
    *,
    bridge: str,
    warden: Warden,
    endpoints: ToolEndpoints,
    timeouts: Mapping[str, float],
) -> AgentLauncher:
    """Build the launcher; `timeouts` are seconds by step, where they differ from the defaults."""
    from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
    from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

    return AcpLauncher(
        CurrentLaunches(registry, admission),
        processes,
        clock,
        counters,
        bridge=bridge,
        warden=warden,
        doors=endpoints,
        timeouts=AgentTimeouts(**timeouts),
    )


async def greet(
    launch: AgentLaunch,
    workspace: Path,
    counters: Counters,
    *,
    bridge: str,
    timeouts: Mapping[str, float],
) -> Greeting:
    """Start an agent once, outside of any conversation, to see whether it answers.

    Raises:
        AgentError: it does not.
    """

    def prepare() -> Callable[[], Awaitable[Greeting]]:
        from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher
        from app.acp.probing.greeting import greet as greet_agent  # noqa: PLC0415
        from app.acp.probing.visit import Visits  # noqa: PLC0415 - see LateLauncher

        visits = Visits(launch, workspace, counters, bridge, AgentTimeouts(**timeouts))
        return partial(greet_agent, visits)

    visit = await asyncio.to_thread(prepare)
    return await visit()
