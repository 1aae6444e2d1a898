"""Gives an agent's process access to the bridge's tools, in the form that it takes.

An agent that reaches the bridge's port calls tools over HTTP; any other one over the socket of its
door, which a relay turns into a server on stdio, or into a command.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio

from app.acp import tool_relay
from app.acp.launch import AgentLaunch, ToolServers
from app.acp.skills import BIN, SKILLS, write_skills
from app.children.prefixes import visible_prefixes
from app.core.tools.door import SOCKET, ToolDoor

TOKEN: Final = "AGENT_BRIDGE_TOOLS"  # noqa: S105 - the name of a variable
"""Names the token to the relay; no word in it makes agents keep it from what they run."""
FOLDER: Final = "AGENT_BRIDGE_SKILLS"
"""Names the folder with a SKILL.md for each tool."""
SERVER: Final = "bridge"
"""What agents call the server."""
_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the virtual environment that the bridge is installed in."""


async def offer(launch: AgentLaunch, door: ToolDoor | None) -> AgentLaunch:
    """Let an agent's process use the tools behind a door."""
    if door is None:
        return launch
    relay = await asyncio.to_thread(_furnish, door, with_skills=launch.tool_exposure != "tools")
    confinement = launch.confinement
    if confinement is not None:
        seen = (door.folder, *visible_prefixes((str(_INTERPRETER),), path=""))
        confinement = replace(confinement, visible=(*confinement.visible, *seen))
    tools = None if launch.tool_exposure == "skills" else _servers(launch, door, relay)
    return replace(
        launch,
        confinement=confinement,
        environment=_add_variables(launch, door),
        tools=tools,
    )


def _furnish(door: ToolDoor, *, with_skills: bool) -> tuple[str, ...]:
    """Put the relay and the skills into the folder of a door; return the relay's command."""
    program = shutil.copy(tool_relay.__file__, door.folder)
    relay = (str(_INTERPRETER), "-I", "-S", str(program))
    if with_skills:
        write_skills(door.folder, relay, door.tools)
    for path in door.folder.rglob("*"):
        if path.name != SOCKET:
            path.chmod(0o755)  # an agent may have its own user id
    return relay


def _servers(launch: AgentLaunch, door: ToolDoor, relay: tuple[str, ...]) -> ToolServers:
    program, *arguments = relay
    stdio = McpServerStdio(
        name=SERVER,
        command=program,
        args=[*arguments, "serve"],
        env=[EnvVariable(name=TOKEN, value=door.token)],
    )
    if launch.network is not None or not door.url:
        return ToolServers(stdio)
    header = HttpHeader(name="Authorization", value=f"Bearer {door.token}")
    return ToolServers(
        stdio, HttpMcpServer(type="http", name=SERVER, url=door.url, headers=[header])
    )


def _add_variables(launch: AgentLaunch, door: ToolDoor) -> Callable[[str], Mapping[str, str]]:
    def environment(marker: str) -> Mapping[str, str]:
        whole = {**launch.environment(marker), TOKEN: door.token}
        if launch.tool_exposure == "tools":
            return whole
        path = f"{door.folder / BIN}:{whole.get('PATH', '')}"
        return {**whole, "PATH": path, FOLDER: str(door.folder / SKILLS)}

    return environment
