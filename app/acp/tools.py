"""Gives an agent's process access to the bridge's tools, in the form that it takes.

An agent that reaches the bridge's port calls tools over HTTP; any other one over the socket of its
door, which a relay turns into a server on stdio.
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
from app.children.prefixes import visible_prefixes
from app.core.tools.door import ToolDoor

TOKEN: Final = "AGENT_BRIDGE_TOOLS"  # noqa: S105 - the name of a variable
"""Names the token to the relay; no word in it makes agents keep it from what they run."""
SERVER: Final = "bridge"
"""What agents call the server."""
_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the virtual environment that the bridge is installed in."""


async def offer(launch: AgentLaunch, door: ToolDoor | None) -> AgentLaunch:
    """Let an agent's process use the tools behind a door."""
    if door is None:
        return launch
    program = Path(await asyncio.to_thread(shutil.copyfile, tool_relay.__file__, _relay_in(door)))
    stdio = McpServerStdio(
        name=SERVER,
        command=str(_INTERPRETER),
        args=["-I", "-S", str(program), "serve"],
        env=[EnvVariable(name=TOKEN, value=door.token)],
    )
    confinement = launch.confinement
    if confinement is not None:
        seen = (door.folder, *visible_prefixes((str(_INTERPRETER),), path=""))
        confinement = replace(confinement, visible=(*confinement.visible, *seen))
    return replace(
        launch,
        confinement=confinement,
        environment=_with_token(launch.environment, door),
        tools=ToolServers(stdio, _over_http(launch, door)),
    )


def _relay_in(door: ToolDoor) -> Path:
    return door.folder / Path(tool_relay.__file__).name


def _over_http(launch: AgentLaunch, door: ToolDoor) -> HttpMcpServer | None:
    if launch.network is not None or not door.url:
        return None
    header = HttpHeader(name="Authorization", value=f"Bearer {door.token}")
    return HttpMcpServer(type="http", name=SERVER, url=door.url, headers=[header])


def _with_token(
    environment: Callable[[str], Mapping[str, str]], door: ToolDoor
) -> Callable[[str], Mapping[str, str]]:
    return lambda marker: {**environment(marker), TOKEN: door.token}
