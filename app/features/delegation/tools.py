"""Tools with which an agent asks other agents: who there is, ask one, and read what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from app.features.delegation import wording
from app.features.delegation.service import Delegations
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.delegation import Delegation
from app.model.types import OPEN_TURN_STATES, TurnState

TASK_CHARACTERS: Final = 32_000
"""The longest message to an agent: some ten pages."""

NAME_CHARACTERS: Final = 80
BRANCH_CHARACTERS: Final = 200
"""As long as the bridge takes names of branches."""
FOLDER_CHARACTERS: Final = 500
SYNC_SECONDS: Final = 300
"""How long a call waits for an answer, unless it says otherwise."""
MOST_SECONDS: Final = 3600
ANSWER_SECONDS: Final = 5.0
"""How long before its program gives up an agent is told that it has to wait longer."""
LISTED: Final = 50
"""How many a list shows: the last ones."""
CALLS_LISTED: Final = 20
"""How many tool calls an answer names: the last ones."""
CALL_CHARACTERS: Final = 100
LATEST_OR_CREATE: Final = "latest-or-create"

_STATES: Final[dict[TurnState, str]] = {
    TurnState.QUEUED: "queued",
    TurnState.PARKED: "waiting",
    TurnState.DONE: "done",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "stopped",
}
_ID: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 20,
    "description": "The id that agents_message or agents_spawn gave.",
}
_TO: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": "The agent's name, as agents_list gives it.",
}
_TO_SPAWN: Final = (
    "The agent's name, as agents_list gives it; your own name begins another session of yours."
)
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
    "default": LATEST_OR_CREATE,
    "description": (
        "latest: go on with the last conversation that you had with it here. create: begin a new "
        "one. latest-or-create: go on if there is one. Or the session that an earlier call gave."
    ),
}


class AgentTools:
    """The tools with which agents ask each other."""

    def __init__(self, delegations: Delegations) -> None:
        self._delegations = delegations
        self._roster = delegations.runtime.roster

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        off = self._delegations.rights.off
        return [replace(each, off=off) for each in self._describe_tools()]

    def _describe_tools(self) -> Sequence[Tool]:
        return (
            Tool(
                "agents_list",
                "List the other agents here that you can ask: name, what each is for, whether it "
                "can work (state), and what it does now (activity): idle, busy, or waiting for "
                "people or a provider. A busy one works on your task too, or queues it.",
                {},
                ("agents.read",),
                self._list,
            ),
            Tool(
                "agents_message",
                "Ask another agent to do something, and get its answer. It works in a "
                "separate conversation, with its own tools and rights, for the same person as "
                "you do. People see that you asked, and what it does.",
                {
                    "to": _TO,
                    "text": _TEXT,
                    "session": _SESSION,
                    "mode": {
                        "type": "string",
                        "enum": ["sync", "async"],
                        "default": "sync",
                        "description": (
                            "sync: wait for the answer. async: get an id at once, and the answer "
                            "later with agents_result."
                        ),
                    },
                    "timeout": _seconds(
                        SYNC_SECONDS, "How long to wait; the work goes on after that."
                    ),
                },
                ("agents.ask",),
                self._message,
                brings_words=True,
            ),
            Tool(
                "agents_spawn",
                "Give another agent, or another session of yourself, a task to work on next to "
                "you, and get an id at once. Use it for work that takes long, or for several tasks "
                "at the same time.",
                {
                    "agent": {**_TO, "description": _TO_SPAWN},
                    "task": _TEXT,
                    "workspace": {
                        "type": "string",
                        "enum": ["new-branch", "same-branch", "read-only"],
                        "default": "new-branch",
                        "description": (
                            "What it works on. new-branch: another branch. same-branch: your "
                            "branch, with what you have pushed. read-only: your branch for "
                            "reading."
                        ),
                    },
                    "branch": {
                        "type": "string",
                        "maxLength": BRANCH_CHARACTERS,
                        "default": "",
                        "description": (
                            "A branch of your repository that exists, in place of yours: it works "
                            "on it (same-branch), starts a branch from it (new-branch), or reads "
                            "it (read-only)."
                        ),
                    },
                    "folder": {
                        "type": "string",
                        "maxLength": FOLDER_CHARACTERS,
                        "default": "",
                        "description": (
                            "A folder of your repository or your folder in which it works, such as "
                            "packages/api; it must exist."
                        ),
                    },
                    "name": {
                        "type": "string",
                        "maxLength": NAME_CHARACTERS,
                        "default": "",
                        "description": "A short name of the task, for people.",
                    },
                },
                ("agents.spawn",),
                self._spawn,
            ),
            Tool(
                "agents_status",
                "List what you asked other agents to do here, with id and state.",
                {},
                ("agents.read",),
                self._status,
            ),
            Tool(
                "agents_result",
                "Get the answer to something that you asked for, by its id.",
                {
                    "id": _ID,
                    "timeout": _seconds(0, "How long to wait for the answer if it is not there."),
                },
                ("agents.read",),
                self._result,
                brings_words=True,
            ),
            Tool(
                "agents_stop",
                "Stop something that you asked another agent to do, by its id.",
                {"id": _ID},
                ("agents.stop",),
                self._stop,
            ),
        )

    async def _list(self, caller: Caller, _arguments: Arguments) -> Result:
        found = self._delegations.rights.colleagues(caller.agent, caller.turn.id)
        activities = await self._delegations.activities()
        return {
            "you": self._roster.name(caller.agent),
            "agents": [
                {
                    "name": each.name,
                    "title": each.title,
                    "description": each.description,
                    "state": self._roster.availability(each.id).state,
                    "activity": activities.get(each.id, "idle"),
                }
                for each in found
            ],
        }

    async def _message(self, caller: Caller, arguments: Arguments) -> Result:
        agent = self._delegations.rights.find(caller.agent, caller.turn, arguments["to"])
        wanted = arguments.get("session", LATEST_OR_CREATE)
        made = await self._delegations.ask(
            caller.session,
            caller.turn,
            agent,
            arguments["text"],
            going_on=self._delegations.resolve(caller.session, agent, wanted),
        )
        if arguments.get("mode", "sync") == "async":
            return self._describe(made)
        return await self._wait(caller, made, arguments.get("timeout", SYNC_SECONDS))

    async def _spawn(self, caller: Caller, arguments: Arguments) -> Result:
        made = await self._delegations.ask(
            caller.session,
            caller.turn,
            self._delegations.rights.find(
                caller.agent, caller.turn, arguments["agent"], itself=True
            ),
            arguments["task"],
            kind="spawn",
            name=arguments.get("name", ""),
            workspace=arguments.get("workspace", "new-branch"),
            branch=arguments.get("branch", ""),
            folder=arguments.get("folder", ""),
        )
        return self._describe(made)

    async def _status(self, caller: Caller, _arguments: Arguments) -> Result:
        begun = [
            each
            for each in self._delegations.begun_in(caller.session.place)
            if each.caller_session == caller.session.id
        ]
        return {"asked": [self._describe(each) for each in begun[-LISTED:]]}

    async def _result(self, caller: Caller, arguments: Arguments) -> Result:
        found = self._own(caller, arguments["id"])
        return await self._wait(caller, found, arguments.get("timeout", 0))

    async def _stop(self, caller: Caller, arguments: Arguments) -> Result:
        found = self._own(caller, arguments["id"])
        await self._delegations.cancel([found.id])
        return self._describe(self._delegations.read(found.id))

    def _own(self, caller: Caller, number: str) -> Delegation:
        """Find what a session asked for.

        Raises:
            ToolRefused: it did not.
        """
        for each in self._delegations.begun_in(caller.session.place):
            if str(each.id) == number and each.caller_session == caller.session.id:
                return each
        raise ToolRefused(wording.NOT_ASKED.format(id=number))

    async def _wait(self, caller: Caller, asked: Delegation, seconds: float) -> Result:
        """Wait for an answer, at most this long, and return what there is."""
        seconds = min(seconds, caller.waits_seconds - ANSWER_SECONDS)
        if asked.state in OPEN_TURN_STATES and seconds > 0:
            asked = await self._delegations.wait(asked, seconds=seconds)
        found = self._describe(asked)
        if asked.state in OPEN_TURN_STATES:
            return {**found, "note": wording.GOES_ON}
        answer = await self._delegations.take_answer(asked)
        return {
            **found,
            "answer": answer.text,
            **({"problem": answer.problem} if answer.problem else {}),
            "usage": {"seconds": round(answer.seconds, 1), "usd": round(answer.cost, 4)},
            "tool_calls": {
                "count": len(answer.calls),
                "last": [
                    {"kind": each.kind, "title": each.title[:CALL_CHARACTERS]}
                    for each in answer.calls[-CALLS_LISTED:]
                ],
            },
        }

    def _describe(self, made: Delegation) -> dict[str, Any]:
        return {
            "id": str(made.id),
            "agent": self._roster.name(made.agent),
            "session": str(made.session),
            "session_name": made.title,
            "created": made.created,
            "state": _STATES.get(made.state, "working"),
            **({"name": made.name} if made.name else {}),
        }


def _seconds(default: int, words: str) -> dict[str, Any]:
    """Describe a parameter for a bounded wait."""
    return {
        "type": "number",
        "minimum": 0,
        "maximum": MOST_SECONDS,
        "default": default,
        "description": f"{words} In seconds.",
    }


def list_tools(delegations: Delegations) -> Sequence[Tool]:
    """List the tools with which agents ask each other."""
    return AgentTools(delegations).tools()
