"""Gives an agent's process access to the bridge's tools, in the form that it takes.

An agent that is not isolated calls tools over HTTP at the bridge's port; any other one over the
socket of its endpoint, which a relay turns into a server on stdio, or into a command on its PATH
with a SKILL.md for each tool. The socket needs no token: no environment, no file and no command
line holds one. All files are in the folder of the endpoint, never in a repository.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from acp.schema import HttpHeader, HttpMcpServer, McpServerStdio

from app.acp import tool_relay
from app.acp.launch import AgentLaunch, ToolServers
from app.children.environment import visible_prefixes
from app.model.agents import COMMAND, SKILL, SOCKET, Tool, ToolEndpoint

FOLDER: Final = "AGENT_BRIDGE_SKILLS"
"""Names the folder with a SKILL.md for each tool."""
SERVER: Final = "bridge"
"""What agents call the server."""
_INTERPRETER: Final = Path(sys.executable).resolve()
"""The interpreter itself, not the virtual environment that the bridge is installed in."""

BIN: Final = "bin"
SKILLS: Final = "skills"


async def offer(launch: AgentLaunch, endpoint: ToolEndpoint | None) -> AgentLaunch:
    """Let an agent's process use the tools behind an endpoint."""
    if endpoint is None:
        return launch
    relay = await asyncio.to_thread(_furnish, endpoint, with_skills=launch.tool_exposure != "tools")
    confinement = launch.confinement
    if confinement is not None:
        seen = (endpoint.folder, *visible_prefixes((str(_INTERPRETER),), path=""))
        confinement = replace(confinement, visible=(*confinement.visible, *seen))
    tools = None if launch.tool_exposure == "skills" else _servers(endpoint, relay)
    return replace(
        launch,
        confinement=confinement,
        environment=_add_variables(launch, endpoint),
        tools=tools,
    )


def _furnish(endpoint: ToolEndpoint, *, with_skills: bool) -> tuple[str, ...]:
    """Put the relay and the skills into the folder of an endpoint; return the relay's command."""
    program = shutil.copy(tool_relay.__file__, endpoint.folder)
    relay = (str(_INTERPRETER), "-I", "-S", str(program))
    if with_skills:
        write_skills(endpoint.folder, relay, endpoint.tools)
    for path in endpoint.folder.rglob("*"):
        if path.name != SOCKET:
            path.chmod(0o755)  # an agent may have its own user id
    return relay


def _servers(endpoint: ToolEndpoint, relay: tuple[str, ...]) -> ToolServers:
    program, *arguments = relay
    stdio = McpServerStdio(name=SERVER, command=program, args=[*arguments, "serve"], env=[])
    if not endpoint.token:
        return ToolServers(stdio)
    header = HttpHeader(name="Authorization", value=f"Bearer {endpoint.token}")
    return ToolServers(
        stdio, HttpMcpServer(type="http", name=SERVER, url=endpoint.url, headers=[header])
    )


def _add_variables(
    launch: AgentLaunch, endpoint: ToolEndpoint
) -> Callable[[str], Mapping[str, str]]:
    if launch.tool_exposure == "tools":
        return launch.environment

    def environment(marker: str) -> Mapping[str, str]:
        whole = launch.environment(marker)
        path = f"{endpoint.folder / BIN}:{whole.get('PATH', '')}"
        return {**whole, "PATH": path, FOLDER: str(endpoint.folder / SKILLS)}

    return environment


def write_skills(folder: Path, relay: Sequence[str], tools: Iterable[Tool]) -> None:
    """Write the command, which runs the relay, and the file about each tool."""
    words = " ".join(shlex.quote(word) for word in relay)
    _write(folder / BIN / COMMAND, f'#!/bin/sh\nexec {words} call "$@"\n')
    for tool in tools:
        _write(folder / SKILLS / skill_name(tool) / "SKILL.md", _describe(tool))


def skill_name(tool: Tool) -> str:
    """Return the name of a tool as a skill: those take no underscores (agentskills.io)."""
    return tool.name.replace("_", "-")


def _describe(tool: Tool) -> str:
    schema = json.dumps(tool.schema, indent=2, ensure_ascii=False)
    return SKILL.format(
        name=skill_name(tool),
        summary=json.dumps(tool.description, ensure_ascii=False),
        tool=tool.name,
        description=tool.description,
        command=COMMAND,
        schema=schema,
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
