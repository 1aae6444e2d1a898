"""What decides how one agent's process is started, and the start itself."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from app.acp.offers import Value
from app.children.layout import Confinement
from app.children.process import Child, spawn
from app.children.sandbox import Plain, Sandbox
from app.core.folders import beside
from app.core.types import Session
from app.errors import AgentNotStarted

OUTGOING: Final = "AGENT_BRIDGE_OUTGOING"
"""Names the folder for what people shall get, for whatever an agent runs."""

McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """One agent as the launcher needs it."""

    name: str
    argv: tuple[str, ...]
    home: Path
    environment: Callable[[str], Mapping[str, str]]
    """Makes the whole environment of its process, given the marker that it must hold."""
    sandbox: Sandbox = field(default_factory=Plain)
    confinement: Confinement | None = None
    """What it may see and write; home and workspace are filled in. None: it is not confined."""
    mode: str | None = None
    model: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    auth: str | None = None
    """The id of the method to authenticate with, for agents that want that over ACP."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Sent as `_meta` with new, load and resume."""
    mcp_servers: tuple[McpServer, ...] = ()
    install: str = "Check its command in AGENTS_JSON."
    """What to do when its command is missing."""
    card: Path | None = None
    """Where the card is kept that says what it cannot do although it offers it."""
    trailing_slash: bool = False
    """Whether its folder is named to it with a slash at the end."""
    obeys: tuple[str, ...] = ()
    """Files that it would obey before anybody is asked: a workspace that holds one is refused."""
    sees: Callable[[Path], tuple[Path, ...]] = lambda _workspace: ()
    """Tells what else it must see that works in a workspace."""
    outgoing: Callable[[Session], Path | None] = lambda _session: None
    """Tells where it lays what people shall get."""
    knows: Callable[[Path], Mapping[str, str]] = lambda _workspace: {}
    """Tells which variables it gets in a workspace, beside its own and never in their place."""
    settle_seconds_before_load: float = 0.0
    """How long a conversation must have rested before it is brought back."""


async def start(
    launch: AgentLaunch, workspace: Path, marker: str, outgoing: Path | None = None
) -> Child:
    """Start an agent's process in a workspace; `outgoing` is a further folder of its own.

    Raises:
        AgentNotStarted: its command is missing or cannot be run, or its workspace is not safe.
    """
    environment = {**launch.knows(workspace), **launch.environment(marker)}
    if outgoing is not None:
        environment[OUTGOING] = str(outgoing)
    sees = launch.sees(workspace)  # here: what it looks at belongs to the event loop
    writes = () if outgoing is None else (outgoing,)
    path = environment.get("PATH", "")
    argv = await asyncio.to_thread(prepare, launch, workspace, path, sees, writes)
    return await spawn(argv, name=launch.name, env=environment, cwd=workspace)


def prepare(
    launch: AgentLaunch,
    workspace: Path,
    path: str,
    sees: Sequence[Path] = (),
    writes: Sequence[Path] = (),
) -> list[str]:
    """Look at the disk: is the command there, and what has to be shown to it.

    Raises:
        AgentNotStarted: the command is missing.
    """
    command = launch.argv[0]
    if shutil.which(command, path=path) is None:
        raise AgentNotStarted(launch.name, f"the command {command!r} was not found", launch.install)
    for name in launch.obeys:
        if os.path.lexists(workspace / name):
            raise AgentNotStarted(
                launch.name,
                f"the checkout holds {name}, which it would obey before anybody is asked",
                "Give this work to another agent, or take that out of the checkout.",
            )
    launch.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if launch.confinement is None:
        return list(launch.argv)
    attachments = beside(workspace)
    confinement = replace(
        launch.confinement,
        home=launch.home,
        workspace=workspace,
        visible=(*launch.confinement.visible, attachments, *sees),
        writable=(*launch.confinement.writable, *writes),
    )
    return launch.sandbox.wrap(launch.argv, confinement)
