"""Starts agents: the process, its tools, the handshake, and the conversation, new or restored.

The mode that an agent starts in is never trusted: the configured one is set after every start, or
the agent is ended. A start that fails or is cancelled leaves no process behind.

An agent that is not isolated calls tools over HTTP at the bridge's port; any other one over the
socket of its endpoint, which a relay turns into a server on stdio, or into a command on its PATH
with a SKILL.md for each tool. The socket needs no token: no environment, no file and no command
line holds one. All files are in the folder of the endpoint, never in a repository.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from acp.schema import HttpHeader, HttpMcpServer, McpServerStdio

from app.acp import tool_relay
from app.acp.handshake import Handshake, NotRestored
from app.acp.launch import AgentLaunch, ToolServers, open_home
from app.acp.peer import AT_ONCE, POLITE, AgentPeer, AgentTimeouts
from app.acp.reach import reach
from app.acp.remote import RemoteAgent
from app.acp.session import AcpSession
from app.children.environment import visible_prefixes
from app.children.network.access import SessionHosts
from app.children.proc_table import new_marker
from app.children.process import Child
from app.children.warden import Ward, Warden
from app.clock import Clock
from app.errors import NotFound
from app.logs import bind
from app.model.agents import COMMAND, SKILL, SOCKET, Tool, ToolEndpoint, ToolEndpoints
from app.model.ports import Counters, OpenedSession, SessionListener
from app.model.types import ProcessRecord, Session
from app.model.workspaces import Workspace, folder_name
from app.retry import persist
from app.store.sessions import ProcessStore
from app.tasks import Tasks

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


logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0  # the longest polite end of a process, all steps together


class AcpLauncher:
    """Starts agents; implements the core's port `AgentLauncher`."""

    def __init__(
        self,
        agents: Mapping[str, AgentLaunch],
        processes: ProcessStore,
        clock: Clock,
        counters: Counters,
        *,
        bridge: str,
        warden: Warden | None = None,
        endpoints: ToolEndpoints | None = None,
        timeouts: AgentTimeouts | None = None,
    ) -> None:
        self._agents = agents
        self._processes = processes
        self._clock = clock
        self._counters = counters
        self._bridge = bridge
        self._warden = warden
        self._endpoints = endpoints
        self._timeouts = timeouts or AgentTimeouts()
        self._tasks = Tasks("acp")
        self._peers: dict[str, AgentPeer] = {}
        self._wards: dict[str, Ward] = {}
        self._hosts: dict[int, SessionHosts] = {}
        """The hosts that each session tried; lost when the bridge ends."""

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: SessionListener,
        *,
        system: str = "",
        replay: bool = False,
    ) -> OpenedSession:
        """Start the agent's process and its conversation, an earlier one if there was one.

        With `replay`, the agent is to repeat the earlier one, if it can.

        Raises:
            NotFound: there is no such agent.
            AgentError: it could not be started or did not answer.
        """
        launch = self._agents.get(session.key.agent)
        if launch is None:
            raise NotFound("agent", session.key.agent)
        # Tasks inherit this: every line that is logged for the agent from now on names it.
        with bind(agent=launch.name, session=str(session.key)):
            # The conversation must be settled on the agent's disk before it is read again.
            rested = self._clock.now() - session.updated_at
            missing = launch.settle_seconds_before_load - rested
            if session.acp_session_id is not None and missing > 0:
                await self._clock.sleep(missing)
            try:
                return await self._start_session(
                    launch, session, workspace, listener, system, replay=replay
                )
            except NotRestored as failure:
                logger.warning("starting without the old conversation: %s", failure)
            blank = replace(session, acp_session_id=None)
            opened = await self._start_session(launch, blank, workspace, listener, system)
            return replace(opened, how="lost")

    async def close(self) -> None:
        """End every process that still runs."""
        for peer in self._peers.values():
            peer.abandon(POLITE)
        await self._tasks.close(grace=CLOSE_SECONDS)

    async def _start_session(
        self,
        launch: AgentLaunch,
        session: Session,
        workspace: Workspace,
        listener: SessionListener,
        system: str,
        *,
        replay: bool = False,
    ) -> OpenedSession:
        marker = new_marker(self._bridge)
        launch = await open_home(launch, session)
        hosts = self._hosts.setdefault(session.id, SessionHosts())
        endpoint = None
        if self._endpoints is not None and launch.remote is None:
            endpoint = await self._endpoints.open(session, with_token=launch.uses_port)
        try:
            launch = await offer(launch, endpoint)
            child = await reach(launch, workspace, marker, hosts, session=session.id)
        except BaseException:
            await self._shut(endpoint)
            raise
        recording = self._record(child, session)
        peer = AgentPeer(
            launch.name,
            child,
            listener,
            counters=self._counters,
            tasks=self._tasks,
            forget=lambda: self._forget(launch, session, child, recording, endpoint),
            display_name=launch.display_name,
        )
        self._peers[child.marker] = peer
        self._admit(launch, workspace.folder, peer, child)
        try:
            handshake = Handshake(peer, launch, workspace.start, self._timeouts, system)
            begun = await handshake.begin(session.acp_session_id, replay=replay)
            conversation = AcpSession(peer, begun, self._timeouts)
            await conversation.configure(mode=None, model=session.model or launch.model)
            await conversation.choose(launch.options)
            # Last, so that no other choice changes it again.
            await conversation.configure(mode=session.mode or launch.mode, model=None)
            await recording
        except BaseException:
            await peer.close(AT_ONCE)
            raise
        peer.audience.attend(listener)
        marks = frozenset(peer.audience.marks) if begun.how == "loaded" else None
        return OpenedSession(
            conversation, begun.how, begun.instructed, marks, elsewhere=peer.remote_folder
        )

    def _admit(
        self, launch: AgentLaunch, workspace: Path, peer: AgentPeer, child: Child | RemoteAgent
    ) -> None:
        """Watch the resources of an agent for as long as its process lives."""
        if self._warden is None or launch.limits is None or isinstance(child, RemoteAgent):
            return
        ward = Ward(
            launch.display_name or launch.name,
            child.pid,
            launch.limits,
            (workspace, launch.home),
            peer.halt,
        )
        self._warden.admit(ward)
        self._wards[child.marker] = ward

    def _record(self, child: Child | RemoteAgent, session: Session) -> asyncio.Task[None]:
        """Start to record the process.

        During the handshake, not before it: that costs no time, and what a crash leaves behind
        meanwhile is found by its marker.
        """
        record = ProcessRecord(
            session.key.agent, session.id, child.group, child.started, child.marker
        )
        return self._tasks.start(
            persist(self._clock, self._processes.started, record), name=f"record {child.name}"
        )

    async def _forget(
        self,
        launch: AgentLaunch,
        session: Session,
        child: Child | RemoteAgent,
        recording: asyncio.Task[None],
        endpoint: ToolEndpoint | None,
    ) -> None:
        await self._shut(endpoint)
        self._peers.pop(child.marker, None)
        if self._warden is not None and (ward := self._wards.pop(child.marker, None)) is not None:
            self._warden.dismiss(ward)
        if launch.homes is not None:
            await asyncio.to_thread(launch.homes.close, folder_name(session))
        recording.cancel()
        await asyncio.wait([recording])
        await self._processes.ended(child.marker)

    async def _shut(self, endpoint: ToolEndpoint | None) -> None:
        if self._endpoints is not None and endpoint is not None:
            await self._endpoints.shut(endpoint)
