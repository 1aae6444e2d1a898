"""The first words with an agent: who we are, what it can do, and which conversation it is.

What the agent replays of an old conversation is heard by nobody: everybody has seen it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from acp import PROTOCOL_VERSION
from acp.schema import AgentCapabilities, InitializeResponse, ResumeSessionResponse
from pydantic import ValidationError

from app.acp.launch import AgentLaunch
from app.acp.offers import Answer, Offers
from app.acp.peer import AgentPeer, AgentTimeouts
from app.errors import AgentError, AgentMisbehaved, AgentRefused

logger = logging.getLogger(__name__)

Restored = Literal["resumed", "loaded"]
WayBack = Callable[[str], Awaitable[Answer]]

# Said in full: the SDK leaves out what is false, and an agent may take silence for a yes.
CAPABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}


class NotRestored(AgentError):
    """The agent broke down over an old conversation."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The conversation that a handshake led to."""

    session_id: str
    offers: Offers
    how: Literal["new", "resumed", "loaded", "lost"]


class Handshake:
    """The beginning of one conversation in one workspace."""

    def __init__(
        self, peer: AgentPeer, launch: AgentLaunch, workspace: Path, timeouts: AgentTimeouts
    ) -> None:
        self._peer = peer
        self._launch = launch
        self._cwd = f"{workspace.absolute()}{'/' if launch.trailing_slash else ''}"
        self._timeouts = timeouts

    async def begin(self, known: str | None) -> Begun:
        """Introduce the bridge and begin a conversation, the known one if there is one.

        Raises:
            NotRestored: it broke down over the known one; another process may do better.
            AgentError: it did not answer, or not as it should.
        """
        capabilities = await self._introduce()
        if self._launch.auth is not None:
            async with self._peer.step("authenticate", self._timeouts.authenticate):
                await self._peer.connection.authenticate(method_id=self._launch.auth)
        if known is None:
            return await self._new("new")
        restored = await self._restore(known, capabilities)
        return restored or await self._new("lost")

    async def _introduce(self) -> AgentCapabilities:
        words = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": CAPABILITIES,
            "clientInfo": {
                "name": "agent-bridge",
                "title": "Agent Bridge",
                "version": _own_version(),
            },
        }
        async with self._peer.step("initialize", self._timeouts.initialize):
            answer = InitializeResponse.model_validate(
                await self._peer.transport.request("initialize", words)
            )
        if answer.protocol_version != PROTOCOL_VERSION:
            raise AgentMisbehaved(
                self._peer.name,
                f"it speaks version {answer.protocol_version} of it, not {PROTOCOL_VERSION}",
            )
        return answer.agent_capabilities or AgentCapabilities()

    async def _restore(self, known: str, capabilities: AgentCapabilities) -> Begun | None:
        self._peer.audience.session_id = known
        for how, step, ask in self._ways_back(capabilities):
            try:
                async with self._peer.step(step, self._timeouts.load):
                    answer = await ask(known)
            except AgentRefused as refusal:
                logger.warning("a conversation was not %s: %s", how, refusal)
            except AgentError as error:
                raise NotRestored(str(error)) from error
            else:
                return Begun(known, Offers.of(answer, restored=True), how)
        self._peer.audience.session_id = None
        return None

    def _ways_back(
        self, capabilities: AgentCapabilities
    ) -> Iterator[tuple[Restored, str, WayBack]]:
        sessions = capabilities.session_capabilities
        if sessions is not None and sessions.resume is not None:
            yield "resumed", "session/resume", self._resume
        if capabilities.load_session:
            yield "loaded", "session/load", self._load

    async def _resume(self, known: str) -> Answer:
        try:
            return await self._peer.connection.resume_session(
                session_id=known,
                cwd=self._cwd,
                mcp_servers=list(self._launch.mcp_servers),
                **self._launch.meta,
            )
        except ValidationError:
            return ResumeSessionResponse()  # it did so, but has nothing to say about it

    async def _load(self, known: str) -> Answer:
        return await self._peer.connection.load_session(
            session_id=known,
            cwd=self._cwd,
            mcp_servers=list(self._launch.mcp_servers),
            **self._launch.meta,
        )

    async def _new(self, how: Literal["new", "lost"]) -> Begun:
        async with self._peer.step("session/new", self._timeouts.new):
            answer = await self._peer.connection.new_session(
                cwd=self._cwd,
                mcp_servers=list(self._launch.mcp_servers),
                **self._launch.meta,
            )
        self._peer.audience.session_id = answer.session_id
        return Begun(answer.session_id, Offers.of(answer), how)


@cache
def _own_version() -> str:
    try:
        return version("agent-bridge")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"
