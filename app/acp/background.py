"""Tracks what an agent still does between its turns, by what it says of it.

Three signs are read: a list of tasks with the agent's state (messages of Claude's SDK), a heartbeat
that names what holds the process (qwen), and tool calls that are left open together with the state
of the thread (codex). An agent that gives none of them has no work between turns: what its commands
left running ends with its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from app.acp.json_values import Json, count, label, mapping, objects, string
from app.model.background import ABOUT_CHARACTERS, Woken, Work, WorkKind

SDK_MESSAGE: Final = "_claude/sdkMessage"
HEARTBEAT: Final = "qwen/notify/channel/active-work"
SDK_MESSAGES: Final = [
    {"type": "system", "subtype": "session_state_changed"},
    {"type": "system", "subtype": "background_tasks_changed"},
]
"""The messages of Claude's SDK that are asked for, in the `_meta` of new, load and resume."""
HEARTBEAT_WISH: Final = {
    "qwen.daemon.activeWorkHeartbeat": {
        "v": 1,
        "intervalMs": 5000,
        "categories": ["agent", "notification", "shell", "session", "workflow"],
    }
}
"""What `initialize` asks for in its `_meta`."""
SETTLE_SECONDS: Final = 2.0
"""How long an agent without work counts as working: the end of a task wakes it 60 ms later."""
WOKEN_SECONDS: Final = 30.0
"""How long after the end of some work what an agent begins is about that."""
MOST: Final = 100
"""How much work of one kind is told apart."""
TIMER: Final = "ScheduleWakeup"
TIMER_SECONDS: Final = 24 * 3600
"""For how long a timer that an agent sets counts as work: it may name any number."""
TIMER_GRACE_SECONDS: Final = 60.0
"""A timer was seen to fire some seconds late."""

_TASKS: Final[Mapping[str, WorkKind]] = {"local_bash": "command", "local_agent": "child"}
_HOLDS: Final[Mapping[str, WorkKind]] = {"shell": "command", "agent": "child"}
_OPEN: Final = frozenset({"pending", "in_progress"})


class Background:
    """The work of one agent between its turns."""

    def __init__(
        self, on_change: Callable[[], None], *, now: Callable[[], float] = time.time
    ) -> None:
        """Begin with nothing; `on_change` is called whenever what goes on has changed."""
        self._on_change = on_change
        self._now = now
        self._found: dict[str, dict[str, Work]] = {}
        self._busy: dict[str, bool] = {}
        self._ended: tuple[Work, float] | None = None
        self._calls: dict[str, Work] = {}
        self._quiet_since = 0.0
        self._stirred = asyncio.Event()
        self.turn: int | None = None
        """The turn that runs, or ran last."""

    @property
    def work(self) -> tuple[Work, ...]:
        """What goes on now, by all signs together."""
        found = {key: each for group in self._found.values() for key, each in group.items()}
        if "thread" in self._busy:
            found |= self._calls
        return tuple(found.values())

    @property
    def is_busy(self) -> bool:
        """Whether work is left, or its end may just be waking the agent.

        What the agent did not declare is no work.
        """
        if self.work or any(self._busy.values()):
            return True
        return self._now() < self._quiet_since + SETTLE_SECONDS

    async def settled(self) -> None:
        """Wait until no work is left, and has not been for a moment."""
        while self.is_busy:
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_SECONDS):
                    await self._stirred.wait()

    def woken(self) -> Woken:
        """Say what most likely woke the agent just now."""
        if self._ended is not None and self._now() - self._ended[1] < WOKEN_SECONDS:
            done, _ = self._ended
            return Woken(done.kind, done.about, done.turn)
        if self._busy.get("thread"):
            return Woken("goal", "", self.turn)
        return Woken(turn=self.turn)

    def set(self, sign: str, work: Mapping[str, tuple[WorkKind, str]]) -> None:
        """Replace all that one sign says goes on: kind and description by id."""
        before = self._found.get(sign, {})
        now = self._now()
        after = {
            key: before.get(key) or Work(key, kind, about[:ABOUT_CHARACTERS], self.turn, now)
            for key, (kind, about) in list(work.items())[:MOST]
        }
        for key in before.keys() - after.keys():
            self._end(before[key])
        self._found[sign] = after
        if before.keys() != after.keys():
            self._changed()

    def drop_calls(self, turn: int) -> None:
        """Stop counting the open calls of a turn that was stopped: what they run ends with it."""
        self._calls = {key: each for key, each in self._calls.items() if each.turn != turn}

    def clear(self) -> None:
        """Note that the process has ended, and with it all that went on."""
        had_work = bool(self.work)
        self._found.clear()
        self._calls.clear()
        self._busy.clear()
        if had_work:
            self._changed()

    def hear(self, method: str, params: object, *, in_turn: bool) -> bool:
        """Take a notification of the agent; False if it is not about work."""
        facts = mapping(params)
        match method:
            case _ if method == SDK_MESSAGE:
                self._hear_sdk(mapping(facts.get("message")), in_turn=in_turn)
            case _ if method == HEARTBEAT:
                self.set("holds", dict(map(_hold, objects(facts.get("holds")))))
            case _:
                return False
        return True

    def hear_update(self, update: Json, *, in_turn: bool) -> bool | None:
        """Take a session update; returns whether the agent rests, None if it does not say so."""
        match update.get("sessionUpdate"):
            case "session_info_update":
                status = mapping(mapping(mapping(update.get("_meta")).get("codex")))
                kind = mapping(status.get("threadStatus")).get("type")
                if isinstance(kind, str):
                    self._set_busy("thread", is_busy=kind == "active" and not in_turn)
                    return kind != "active"
            case "tool_call" | "tool_call_update":
                self._hear_call(update)
        return None

    def says_idle(self, method: str, params: object) -> bool:
        """Tell whether a notification says that the agent has ended what it did."""
        message = mapping(mapping(params).get("message"))
        return method == SDK_MESSAGE and message.get("state") == "idle"

    def _hear_sdk(self, message: Json, *, in_turn: bool) -> None:
        match message.get("subtype"):
            case "background_tasks_changed":
                tasks = objects(message.get("tasks"))
                self.set("tasks", dict(filter(None, map(_task, tasks))))
            case "session_state_changed":
                is_busy = message.get("state") != "idle" and not in_turn
                self._set_busy("state", is_busy=is_busy)

    def _hear_call(self, update: Json) -> None:
        call = label(str(update.get("toolCallId") or ""))
        if not call:
            return
        if string(update.get("status", "pending")) not in _OPEN:
            if (done := self._calls.pop(call, None)) is not None and "thread" in self._busy:
                self._ended = done, self._now()  # the end of a call wakes no agent
                self._changed()
        elif call not in self._calls and update.get("sessionUpdate") == "tool_call":
            if len(self._calls) >= MOST:
                del self._calls[next(iter(self._calls))]
            about = (label(update.get("title")) or "")[:ABOUT_CHARACTERS]
            self._calls[call] = Work(call, "command", about, self.turn, self._now())
        self._hear_timer(update)

    def _hear_timer(self, update: Json) -> None:
        """Take a timer that the agent sets for itself: nothing else tells of it."""
        tool = mapping(mapping(update.get("_meta")).get("claudeCode")).get("toolName")
        seconds = count(mapping(update.get("rawInput")).get("delaySeconds"))
        if tool == TIMER and seconds:
            reason = string(mapping(update.get("rawInput")).get("reason")) or ""
            self.set("timer", {"timer": ("timer", reason)})
            loop = asyncio.get_running_loop()
            until = min(seconds, TIMER_SECONDS) + TIMER_GRACE_SECONDS
            loop.call_later(until, self.set, "timer", {})

    def fire_timer(self) -> None:
        """Note that the agent began something while a timer was set: that was the timer."""
        if self._found.get("timer"):
            self.set("timer", {})

    def _set_busy(self, sign: str, *, is_busy: bool) -> None:
        """Note whether the agent works without a prompt; in a turn it works anyway."""
        if self._busy.get(sign) != is_busy:
            self._busy[sign] = is_busy
            self._changed()

    def _end(self, work: Work) -> None:
        self._ended = work, self._now()
        self._quiet_since = self._now()

    def _changed(self) -> None:
        self._stirred.set()
        self._on_change()


def _task(task: Json) -> tuple[str, tuple[WorkKind, str]] | None:
    name = label(task.get("task_id"))
    if not name:
        return None
    kind = _TASKS.get(str(task.get("task_type")), "agent")
    return name, (kind, label(task.get("description")) or "")


def _hold(hold: Json) -> tuple[str, tuple[WorkKind, str]]:
    category = label(hold.get("category")) or ""
    name = label(hold.get("id")) or category
    kind = _HOLDS.get(category, "agent")
    return name, (kind, label(hold.get("description")) or category)
