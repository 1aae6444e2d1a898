"""Tools with which an agent asks other agents: who there is, ask one, and read what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from app.core.delegation.delegations import Delegations
from app.core.delegation.types import Delegation
from app.core.roster import Roster
from app.core.tools.tool import Arguments, Caller, Result, Tool

TASK_CHARACTERS: Final = 32_000
"""The longest message to an agent: some ten pages."""

_TO: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "The agent's name, as agents_list gives it.",
}
_TEXT: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": TASK_CHARACTERS,
    "description": (
        "What it should do. It sees nothing of your conversation: write all that it needs to know."
    ),
}
_SESSION: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 40,
    "default": "latest-or-create",
    "description": (
        "latest: go on with the last conversation that you had with it here. create: begin a new "
        "one. latest-or-create: go on if there is one. Or the session that an earlier call gave."
    ),
}


class AgentTools:
    """The tools with which agents ask each other."""

    def __init__(self, delegations: Delegations, roster: Roster) -> None:
        self._delegations = delegations
        self._roster = roster

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return (
            Tool(
                "agents_list",
                "List the other agents here that you can ask: name, what each is for, and whether "
                "it can work now.",
                {},
                ("agents.read",),
                self._list,
            ),
            Tool(
                "agents_message",
                "Ask another agent to do something, and get its answer. It works in a "
                "conversation of its own, with its own tools and rights, for the same person as "
                "you do. People see that you asked, and what it does.",
                {
                    "to": _TO,
                    "text": _TEXT,
                    "session": _SESSION,
                },
                ("agents.ask",),
                self._message,
            ),
        )

    async def _list(self, caller: Caller, _arguments: Arguments) -> Result:
        found = self._delegations.colleagues(caller.agent)
        return {
            "agents": [
                {
                    "name": each.name,
                    "title": each.title,
                    "description": each.description,
                    "state": self._roster.availability(each.id).state,
                }
                for each in found
            ]
        }

    async def _message(self, caller: Caller, arguments: Arguments) -> Result:
        to = arguments["to"]
        agent = self._delegations.find(caller.agent, to)
        going_on = self._delegations.resolve(
            caller.session, agent, arguments.get("session", "latest-or-create")
        )
        made = await self._delegations.ask(
            caller.session, caller.turn, to, arguments["text"], going_on=going_on
        )
        return self._describe(made)

    def _describe(self, made: Delegation) -> dict[str, Any]:
        agent = self._roster.find(made.agent)
        return {
            "id": str(made.id),
            "agent": made.agent if agent is None else agent.name,
            "session": str(made.session),
            "state": made.state.value,
        }
