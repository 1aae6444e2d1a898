"""How each agent is started, and the launcher that is imported late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from app.acp.card import card_path
from app.agents.catalog import known_agents
from app.agents.isolation import Shelter
from app.agents.registry import Registry
from app.config import (
    Configuration,
)
from app.core.ports import AgentLauncher, AgentListener, OpenedSession
from app.core.repo_provider import RepoProvider
from app.core.types import Session
from app.main.foundation import Foundation, bridge_id

if TYPE_CHECKING:
    from app.acp.launch import AgentLaunch

CHECK_COMMAND = "Check its command in AGENTS_JSON."


class LateLauncher:
    """A launcher whose import waits until the port listens: ACP's models take 0.9 s."""

    def __init__(self, make: Callable[[], AgentLauncher]) -> None:
        self._make = make
        self._launcher: AgentLauncher | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> AgentLauncher:
        """Import what is needed, in a thread."""
        async with self._lock:
            if self._launcher is None:
                self._launcher = await asyncio.to_thread(self._make)
            return self._launcher

    async def open(
        self, session: Session, workspace: Path, listener: AgentListener
    ) -> OpenedSession:
        """Start the agent's process and its conversation."""
        return await (await self.prepare()).open(session, workspace, listener)

    async def close(self) -> None:
        """End every process that is still being started or ended."""
        if self._launcher is not None:
            await self._launcher.close()


def launches(
    configuration: Configuration,
    shelters: Mapping[str, Shelter],
    *,
    sees: Callable[[Path], tuple[Path, ...]] = lambda _workspace: (),
    outgoing: Callable[[Session], Path | None] = lambda _session: None,
    knows: Callable[[Path], Mapping[str, str]] = lambda _workspace: {},
) -> dict[str, AgentLaunch]:
    """Say of each agent how it is started: as its entry says, else as is known of its program.

    `sees` tells what else an agent must see that works in a workspace, `outgoing` where the agent
    of a session lays what people shall get, `knows` which variables it gets in a workspace.
    """
    from app.acp.launch import AgentLaunch  # noqa: PLC0415 - see LateLauncher

    registry = Registry(configuration, known_agents())
    found: dict[str, AgentLaunch] = {}
    for name, shelter in shelters.items():
        entry, program = registry.get(name), registry.program(name)
        found[name] = AgentLaunch(
            name=name,
            argv=entry.command,
            home=shelter.home,
            environment=shelter.environment,
            sandbox=shelter.sandbox,
            confinement=shelter.confinement,
            # The mode in which an agent wakes up is never trusted to ask.
            mode=entry.mode or (program.ask_mode if program else None),
            model=entry.model,
            options=entry.options,
            auth=entry.auth,
            meta=program.session_meta if program else {},
            trailing_slash=program.trailing_slash if program else False,
            obeys=program.obeys if program else (),
            sees=sees,
            outgoing=outgoing,
            knows=knows,
            install=f"Install it: {program.install}" if program else CHECK_COMMAND,
            card=card_path(configuration.data_dir, name),
            settle_seconds_before_load=program.quirks.load_after_seconds if program else 0,
        )
    return found


def acp_launcher(
    base: Foundation, workspaces: RepoProvider, timeouts: Mapping[str, float]
) -> AgentLauncher:
    """Make what starts agents; `timeouts` are seconds by step, where they differ from the usual."""
    from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
    from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

    return AcpLauncher(
        launches(
            base.configuration,
            base.shelters,
            sees=workspaces.visible,
            outgoing=workspaces.outgoing,
            knows=workspaces.variables,
        ),
        base.stores.processes,
        base.clock,
        base.metrics,
        bridge=bridge_id(base.configuration),
        timeouts=AgentTimeouts(**timeouts),
    )
