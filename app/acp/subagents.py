"""Keeps the sub-agents that an agent announces, and says which of its traffic is theirs.

Each is an ACP session of its own below the agent's. Only one that was announced is heard: any other
session id is not part of the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from app.acp.json_values import Json, label, mapping, objects, string
from app.acp.updates import bridge_update, message_words
from app.model.subagents import Subagent, SubagentState, SubagentUpdate, apply, line_of, path_of
from app.model.updates import (
    AskRequest,
    BridgeUpdate,
    FileUpdate,
    NoticeUpdate,
    PlanUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UnknownUpdate,
    UsageUpdate,
)

KNOWN = 1_000
"""Sub-agents of one process that are known; the most that were seen in one turn is some dozen."""
KEY_CHARACTERS = 500
"""A session id that is longer is none."""
TITLE_CHARACTERS = 200
WORDS_CHARACTERS = 8_000
"""What is kept of a task or an answer; the rest is in its own transcript."""
ANNOUNCES = ("subagent_update", "session_message")
"""Kinds of updates that tell about a sub-agent, in the session that is above it."""

_SIDES: tuple[tuple[str, Literal["task", "answer"]], ...] = (
    ("recipientSessionId", "task"),
    ("senderSessionId", "answer"),
)
_ENDS: dict[str | None, SubagentState] = {
    None: "done",
    "end_turn": "done",
    "cancelled": "stopped",
}


class Subagents:
    """The sub-agents of one session, by the agent's ids of theirs."""

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count
        self._known: dict[str, Subagent] = {}
        self._calm = asyncio.Event()
        self._calm.set()

    def __contains__(self, session_id: object) -> bool:
        return isinstance(session_id, str) and session_id in self._known

    @property
    def running(self) -> tuple[Subagent, ...]:
        """Those that are at work, or wait for people."""
        return tuple(each for each in self._known.values() if not each.is_over)

    async def wait_until_calm(self) -> None:
        """Wait until none is running."""
        await self._calm.wait()

    def clear(self) -> None:
        """Forget all of them: they are of an earlier process."""
        self._known.clear()
        self._calm.set()

    def find(self, key: str) -> Subagent | None:
        """Return one of them."""
        return self._known.get(key)

    def is_within(self, session_id: str, key: str) -> bool:
        """Tell whether a session is a sub-agent's, or that of one below it."""
        return any(each.key == key for each in line_of(session_id, self._known))

    def hear(self, parent: str, update: Json) -> SubagentUpdate | None:
        """Take what is told about a sub-agent in the session above it; None if it is nothing new.

        `parent` is the sub-agent whose session it was told in; empty for the agent itself.
        """
        is_message = update.get("sessionUpdate") == "session_message"
        told = self._message(parent, update) if is_message else _announced(parent, update)
        return None if told is None else self._take(told)

    def translate(self, key: str, raw: Json) -> BridgeUpdate | None:
        """Convert what a sub-agent itself does: it belongs below that one."""
        update = bridge_update(raw)
        match update:
            case TextUpdate(text) | ThoughtUpdate(text):
                return ThoughtUpdate(text, key)
            case FileUpdate():
                return ThoughtUpdate(update.words, key)
            case ToolUpdate():
                return self._below(key, update)
            case PlanUpdate():
                steps = "\n".join(f"[{step.status}] {step.text}" for step in update.steps)
                plan = ToolUpdate("plan", "Plan", "think", "completed", output=steps)
                return self._below(key, plan)
            case UsageUpdate(cost=float() as cost):
                return self._take(SubagentUpdate(key, cost=cost, currency=update.currency))
            case NoticeUpdate():
                return ThoughtUpdate(f"\n{update.text}\n", key)
            case StateUpdate(what="title", value=title) if title:
                return self._take(SubagentUpdate(key, title=str(title)[:TITLE_CHARACTERS]))
            case UnknownUpdate():
                return update
        return None

    def address(self, key: str, request: AskRequest) -> AskRequest:
        """Say which sub-agent asks."""
        tool = request.tool and self._below(key, request.tool)
        call = f"{key}:{request.call}" if request.call else ""
        return replace(request, call=call, tool=tool, subagent=path_of(key, self._known))

    def _below(self, key: str, tool: ToolUpdate) -> ToolUpdate:
        # Each session numbers its own calls. What an agent says of parents is from outside of it.
        return replace(tool, call=f"{key}:{tool.call}", parent=key)

    def _message(self, parent: str, update: Json) -> SubagentUpdate | None:
        """Read what a sub-agent was told by the session above it, or answers to it."""
        below = [
            (key, what)
            for side, what in _SIDES
            if (key := string(update.get(side))) and self._is_below(parent, key)
        ]
        words = "".join(map(message_words, objects(update.get("content"))))[:WORDS_CHARACTERS]
        if not below or not words:
            return None
        key, what = below[0]
        return (
            SubagentUpdate(key, task=words) if what == "task" else SubagentUpdate(key, answer=words)
        )

    def _is_below(self, parent: str, key: str) -> bool:
        known = self._known.get(key)
        return known is not None and known.parent == parent

    def _take(self, update: SubagentUpdate) -> SubagentUpdate | None:
        known = self._known.get(update.key)
        if known is None and len(self._known) >= KNOWN:
            self._count("too_many_subagents")
            return None
        after = self._known[update.key] = apply(known, update)
        if self.running:
            self._calm.clear()
        else:
            self._calm.set()
        return None if after == known else update


def _announced(parent: str, update: Json) -> SubagentUpdate | None:
    key = string(update.get("sessionId"))
    if not key or len(key) > KEY_CHARACTERS or key == parent:
        return None
    title, task = label(update.get("title")), label(update.get("description"))
    able = mapping(update.get("capabilities")).get("cancel") is not None
    return SubagentUpdate(
        key,
        parent,
        title=title[:TITLE_CHARACTERS] if title else None,
        task=task[:WORDS_CHARACTERS] if task else None,
        state=_state(mapping(update.get("state"))),
        can_stop=able if "capabilities" in update else None,
    )


def _state(state: Json) -> SubagentState | None:
    match state.get("state"):
        case "running":
            return "working"
        case "requires_action":
            return "waiting"
        case "idle":
            reason = state.get("stopReason")
            return _ENDS.get(reason if isinstance(reason, str) else None, "failed")
        case _:
            return None
