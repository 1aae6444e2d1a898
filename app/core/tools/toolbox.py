"""Holds all tools, and lets each agent use those that it may.

Every call is checked here before anything is done, however the agent made it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from typing_extensions import override

from app.agents.agent import Agent
from app.core.hooks import Hook
from app.core.tools import wording
from app.model.agents import WAITS_SECONDS, Arguments, Caller, Result, Tool, ToolRefused
from app.model.keys import SessionKey
from app.model.ports import Counters
from app.model.types import TurnState
from app.store.sessions import SessionStore
from app.store.turns import TurnStore

logger = logging.getLogger(__name__)


class Toolbox(Hook):
    """The tools of the bridge."""

    def __init__(
        self,
        tools: Iterable[Tool],
        agents: Mapping[str, Agent],
        sessions: SessionStore,
        turns: TurnStore,
        counters: Counters,
        *,
        running: Callable[[int], int | None],
    ) -> None:
        """Hold tools; `running` returns the turn that a session runs."""
        self._tools = {tool.name: tool for tool in tools}
        self._agents = agents
        self._sessions = sessions
        self._turns = turns
        self._counters = counters
        self._running = running

    def add(self, tools: Iterable[Tool]) -> None:
        """Offer these too from now on."""
        self._tools |= {tool.name: tool for tool in tools}

    def tools(self, agent: str) -> Sequence[Tool]:
        """List the tools that an agent may use."""
        return [tool for tool in self._tools.values() if not tool.off and self._allows(agent, tool)]

    @override
    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        """Tell an agent of the tools that it gets as a command."""
        agent = self._agents.get(surface.agent)
        if agent is None or agent.tool_exposure == "tools":
            return {}
        found = {each.name: each.description for each in self.tools(surface.agent)}
        return {"tools": wording.list_skills(found)}

    def tools_in(self, session_id: int) -> Sequence[Tool]:
        """List the tools that the agent of a session may use."""
        session = self._sessions.session(session_id)
        return () if session is None else self.tools(session.key.agent)

    async def call(
        self,
        session_id: int,
        name: str,
        arguments: Arguments,
        *,
        check: Callable[[Tool, Arguments], Arguments] = lambda _tool, given: given,
    ) -> Result:
        """Let the agent of a session use a tool, in the turn that it is working on.

        `check` compares the arguments with the schema, and returns them complete.

        Raises:
            BridgeError: it may not, or the tool cannot do it; the message is for the agent.
        """
        session = self._sessions.session(session_id)
        tool = self._tools.get(name)
        if session is None or tool is None or not self._allows(session.key.agent, tool):
            raise ToolRefused(wording.NO_TOOL.format(name=name))
        if tool.off:
            raise ToolRefused(tool.off)
        if len(json.dumps(arguments, ensure_ascii=False).encode()) > tool.max_bytes:
            raise ToolRefused(wording.TOO_LARGE.format(name=name, limit=tool.max_bytes))
        turn_id = self._running(session_id)
        turn = None if turn_id is None else self._turns.turn(turn_id)
        if turn is None or turn.stopped or turn.state is not TurnState.PROMPTED:
            raise ToolRefused(wording.NO_TURN)
        arguments = check(tool, arguments)
        self._counters.count("tool_calls", agent=session.key.agent, tool=name)
        if tool.brings_words and not session.read_others:
            await self._sessions.reads_others(session_id)
        agent = self._agents.get(session.key.agent)
        waits = agent.tool_seconds if agent else WAITS_SECONDS
        return await tool.run(Caller(session, turn, waits), arguments)

    def _allows(self, agent: str, tool: Tool) -> bool:
        found = self._agents.get(agent)
        return found is not None and found.scope.allows_tool(tool.name, tool.capabilities)
