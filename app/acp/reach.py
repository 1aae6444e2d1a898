"""Brings agents to life: as a process here, or by a connection to the machine that they run on."""

from __future__ import annotations

from app.acp.launch import AgentLaunch, start
from app.acp.remote import RemoteAgent
from app.acp.streamable import HttpAgent
from app.acp.websocket import WebSocketAgent
from app.children.network.access import SessionHosts
from app.children.process import Child
from app.model.workspaces import Workspace


async def reach(
    launch: AgentLaunch,
    workspace: Workspace,
    marker: str,
    hosts: SessionHosts | None = None,
    *,
    session: int = 0,
) -> Child | RemoteAgent:
    """Start an agent's process here, or connect to the machine that it runs on.

    `session` is the one that it works for, if it is one: on another machine, too, it has one
    process at a time.

    Raises:
        AgentNotStarted: it cannot be started or reached, or does not let the bridge in.
    """
    if launch.remote is None:
        return await start(launch, workspace, marker, hosts)
    await launch.admit()
    agent: RemoteAgent
    if launch.remote.url.startswith("ws"):
        owner = f"{launch.remote.installation}.{session}" if session else ""
        agent = WebSocketAgent(launch.remote, launch.name, marker, owner)
    else:
        agent = HttpAgent(launch.remote, launch.name, marker)
    try:
        await agent.connect()
    except BaseException:
        await agent.close()
        raise
    return agent
