"""Initializes an agent and opens its conversation: new, resumed or loaded.

When a conversation is loaded, its replayed history is dropped: people have seen it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from acp import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    HttpMcpServer,
    InitializeResponse,
    McpCapabilities,
    McpServerStdio,
    PromptCapabilities,
    SessionCapabilities,
    SseMcpServer,
)

from app.acp.background import HEARTBEAT_WISH, SDK_MESSAGES
from app.acp.card import Card, read_card
from app.acp.json_values import Json, label, mapping, string
from app.acp.launch import AgentLaunch
from app.acp.offers import Offers
from app.acp.peer import AgentPeer, AgentTimeouts
from app.errors import (
    AgentError,
    AgentLoginNeeded,
    AgentMisbehaved,
    AgentNotStarted,
    AgentRefused,
)

if TYPE_CHECKING:
    from app.acp.launch import McpServer

logger = logging.getLogger(__name__)

Restored = Literal["resumed", "loaded"]
WAYS_BACK: dict[Restored, str] = {"resumed": "session/resume", "loaded": "session/load"}

# Sent in full: the SDK leaves out what is false, and an agent may read a missing value as yes.
CAPABILITIES = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}, "url": {}},
    # Else notices come as the agent's words, and a compaction as a tool call.
    "session": {"notices": {}, "compaction": {}},
    # Else a sub-agent is a tool call, and some agents do not show what it does and asks.
    "subagents": {},
}


def _own_version() -> str:
    try:
        return version("agent-bridge")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"


CLIENT = {"name": "agent-bridge", "title": "Agent Bridge", "version": _own_version()}


class NotRestored(AgentError):
    """The agent failed while it restored an old conversation."""


@dataclass(frozen=True, slots=True)
class OpenedConversation:
    """The conversation that a handshake opened."""

    session_id: str
    offers: Offers
    how: Literal["new", "resumed", "loaded", "lost"]
    capabilities: AgentCapabilities
    instructed: bool = False
    """Whether the agent took the system prompt."""
    steerable: bool = False
    """Whether it takes words into a running turn."""


class Handshake:
    """Opens one conversation in one workspace."""

    def __init__(
        self,
        peer: AgentPeer,
        launch: AgentLaunch,
        workspace: Path,
        timeouts: AgentTimeouts,
        system: str = "",
    ) -> None:
        """Prepare; `system` is for an agent that takes a system prompt."""
        self._peer = peer
        self._launch = launch
        folder = peer.remote_folder or str(workspace.absolute())
        self.folder = f"{folder}{'/' if launch.trailing_slash and folder != '/' else ''}"
        """Where the conversation is, as the agent is told."""
        self._timeouts = timeouts
        self._capabilities = AgentCapabilities()
        self._system = system
        self._instructs = False
        self._steerable = False

    async def begin(self, known: str | None, *, replay: bool = False) -> OpenedConversation:
        """Initialize the agent and open a conversation, the known one if there is one.

        With `replay`, the agent is to repeat what was said in it, if it can.

        Raises:
            NotRestored: it failed while it restored the known one; a new process may do better.
            AgentError: it did not answer, or not as it should.
        """
        await self.introduce()
        await self.authenticate()
        if known is None:
            return await self.new()
        restored = await self._restore(known, replay=replay)
        return restored or await self.new("lost")

    async def introduce(self) -> InitializeResponse:
        """Exchange names, versions and capabilities with the agent.

        Raises:
            AgentError: it did not answer, or speaks another version.
        """
        words = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": CAPABILITIES,
            "clientInfo": CLIENT,
            "_meta": HEARTBEAT_WISH,
        }
        async with self._peer.step("initialize", self._timeouts.initialize):
            raw = await self._peer.transport.request("initialize", words)
            # First: the answer of another version has another form.
            spoken = mapping(raw).get("protocolVersion", PROTOCOL_VERSION)
            if spoken != PROTOCOL_VERSION:
                raise AgentNotStarted(
                    self._peer.name,
                    f"it speaks version {label(str(spoken))} of the Agent Client Protocol, and the"
                    f" bridge speaks version {PROTOCOL_VERSION}",
                    f"Install a version of the agent, or of its ACP adapter, that speaks version"
                    f" {PROTOCOL_VERSION}.",
                )
            answer = InitializeResponse.model_validate(raw)
        offered = answer.agent_capabilities or AgentCapabilities()
        self._capabilities = drop_failed(offered, await self._card(answer))
        self._instructs = bool(self._system) and takes_system_prompt(raw)
        self._steerable = takes_steering(raw)
        return answer

    async def authenticate(self) -> None:
        """Log in by the configured method, if there is one.

        Raises:
            AgentError: it refused the login.
        """
        if self._launch.auth is not None:
            async with self._peer.step("authenticate", self._timeouts.authenticate):
                await self._peer.connection.authenticate(method_id=self._launch.auth)

    async def _card(self, answer: InitializeResponse) -> Card | None:
        """Read the card of the same agent and version."""
        path = self._launch.card
        card = None if path is None else await asyncio.to_thread(read_card, path)
        version = answer.agent_info.version if answer.agent_info is not None else ""
        return card if card is not None and card.is_about(self._launch.argv, version) else None

    async def new(self, how: Literal["new", "lost"] = "new") -> OpenedConversation:
        """Begin a conversation.

        Raises:
            AgentLoginNeeded: it needs a login first.
            AgentError: it did not answer, or not as it should.
        """
        words: dict[str, Any] = {}
        if self._instructs:
            # Only here: agents keep it with the conversation, and ignore another one later.
            content = [{"type": "text", "text": self._system}]
            words["systemPrompt"] = {"mode": "append", "content": content}
        async with self._peer.step("session/new", self._timeouts.new):
            answer = await self._ask("session/new", **words)
        session_id = string(answer.get("sessionId"))
        if session_id is None:
            raise AgentMisbehaved(self._peer.name, "its answer to session/new is invalid")
        self._peer.audience.session_id = session_id
        return OpenedConversation(
            session_id,
            Offers.of(answer),
            how,
            self._capabilities,
            self._instructs,
            self._steerable,
        )

    def ways_back(self) -> Iterator[Restored]:
        """List the ways to restore a conversation, the best first."""
        sessions = self._capabilities.session_capabilities
        if sessions is not None and sessions.resume is not None:
            yield "resumed"
        if self._capabilities.load_session:
            yield "loaded"

    async def bring_back(self, way: Restored, known: str) -> OpenedConversation:
        """Restore a conversation in one of the ways that are offered.

        Raises:
            AgentRefused: not in this way.
            AgentError: it did not answer, or not as it should.
        """
        self._peer.audience.session_id = known
        method = WAYS_BACK[way]
        with self._peer.audience.replay():
            async with self._peer.step(method, self._timeouts.load):
                answer = await self._ask(method, sessionId=known)
        return OpenedConversation(
            known,
            Offers.of(answer, restored=True),
            way,
            self._capabilities,
            steerable=self._steerable,
        )

    async def _restore(self, known: str, *, replay: bool) -> OpenedConversation | None:
        ways = list(self.ways_back())
        if replay:
            ways.reverse()  # only a loaded conversation is replayed
        for way in ways:
            try:
                return await self.bring_back(way, known)
            except AgentLoginNeeded:
                raise
            except AgentRefused as refusal:
                logger.warning("the conversation could not be %s: %s", way, refusal)
            except AgentError as error:
                raise NotRestored(str(error)) from error
        self._peer.audience.session_id = None
        return None

    async def _ask(self, method: str, **params: Any) -> Json:
        """Send a raw request to open a conversation: the SDK drops fields that it does not know."""
        words: dict[str, Any] = {**params, "cwd": self.folder, "mcpServers": self._servers()}
        meta = dict(self._launch.meta)
        # Agents that do not know it ignore it; it holds until the process ends.
        meta["claudeCode"] = {
            **mapping(meta.get("claudeCode")),
            "emitRawSDKMessages": SDK_MESSAGES,
        }
        words["_meta"] = meta
        return mapping(await self._peer.transport.request(method, words))

    def _servers(self) -> list[Json]:
        """List the tool servers that the agent can reach."""
        offered = self._capabilities.mcp_capabilities or McpCapabilities()
        known: dict[type, bool | None] = {
            McpServerStdio: True,
            HttpMcpServer: offered.http,
            SseMcpServer: offered.sse,
        }
        usable: list[McpServer] = []
        for server in self._launch.mcp_servers:
            if known.get(type(server)):
                usable.append(server)
            else:
                logger.warning(
                    "it does not support the transport of the tool server %s", server.name
                )
        if (tools := self._launch.tools) is not None:
            usable.append(tools.http if tools.http and offered.http else tools.stdio)
        return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in usable]


def takes_system_prompt(answer: object) -> bool:
    """Tell from an agent's raw greeting, of which the SDK drops this part."""
    offered = mapping(mapping(answer).get("agentCapabilities"))
    return mapping(offered.get("sessionCapabilities")).get("systemPrompt") is not None


def takes_steering(answer: object) -> bool:
    """Tell from an agent's raw greeting whether words can go into its running turns."""
    return mapping(mapping(mapping(answer).get("_meta")).get("steering")).get("supported") is True


def drop_failed(capabilities: AgentCapabilities, card: Card | None) -> AgentCapabilities:
    """Remove capabilities that an agent offers but that failed in a probe."""
    if card is None:
        return capabilities
    sessions = capabilities.session_capabilities or SessionCapabilities()
    prompts = capabilities.prompt_capabilities or PromptCapabilities()
    lost = {name: None for name in ("resume", "list", "close") if card.failed(name)}
    return capabilities.model_copy(
        update={
            "load_session": capabilities.load_session and not card.failed("load"),
            "session_capabilities": sessions.model_copy(update=lost),
            "prompt_capabilities": prompts.model_copy(
                update={"image": prompts.image and not card.failed("image")}
            ),
        }
    )
