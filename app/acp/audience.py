"""Passes what an agent sends to its turn, or keeps it for the next one.

Pieces of text that arrived together are passed on together. Between turns only the state of the
session is news, and the next turn begins with it: a replayed history and late updates are
dropped and counted. Traffic of the session's sub-agents is told apart by its session id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from app.acp.json_values import Json, mapping
from app.acp.pulled_words import PULL, PulledWords
from app.acp.subagents import ANNOUNCES, Subagents
from app.acp.transport import MAX_OPEN_REQUESTS
from app.acp.updates import bridge_update, message_words, thread_status
from app.errors import BridgeError
from app.model.ports import AgentListener
from app.model.steering import MARK_CHARACTERS, find_marks
from app.model.subagents import SubagentUpdate
from app.model.updates import (
    AskRequest,
    BridgeUpdate,
    NoticeUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    UnknownUpdate,
    UsageUpdate,
    Withdrawal,
)
from app.retry import hold

logger = logging.getLogger(__name__)

_JOINED = {"agent_message_chunk": TextUpdate, "agent_thought_chunk": ThoughtUpdate}
_NO_ONE = object()
_KEPT_NOTICES = 20
"""Notices kept for the next turn: an agent may try things between turns for days."""


@dataclass(frozen=True, eq=False, slots=True)
class OpenRequest:
    """A request of the agent that waits for people."""

    id: object
    """Its JSON-RPC id."""
    session_id: str
    withdrawal: Withdrawal = field(default_factory=Withdrawal)


class Audience:
    """Receives the updates and asks of one session and of its sub-agents."""

    def __init__(self, between: AgentListener, count: Callable[[str], None]) -> None:
        self._between = between
        self._count = count
        self._listener: AgentListener | None = None
        self._joining: object = _NO_ONE
        self._pieces: list[str] = []
        self._asks: set[asyncio.Timeout] = set()
        self._requests: list[OpenRequest] = []
        self._withdrawn: deque[object] = deque(maxlen=MAX_OPEN_REQUESTS)
        """Requests that were taken back before they were handled."""
        self._replays = False
        self._hushed = False
        self._state: dict[str, StateUpdate] = {}
        self._news: dict[str, StateUpdate] = {}
        self._notices: list[NoticeUpdate] = []
        self._replayed = ""
        self._compaction = ""
        self.subagents = Subagents(count)
        """The sub-agents of the session."""
        self.pulled = PulledWords()
        """Words for a running turn, if the agent asks for them."""
        self.marks: set[int] = set()
        """The messages whose marks a replayed conversation showed."""
        self.session_id: str | None = None
        """The agent's id of the session; until it is known, every update is taken as ours."""
        self.heard_usage = False
        """Whether the agent reported its usage in this turn."""
        self.has_failed = False
        """Whether the agent reported that its model failed in this turn."""

    def listen(self, listener: AgentListener) -> tuple[StateUpdate | NoticeUpdate, ...]:
        """Begin a turn; returns what changed about the session since the last one."""
        self._listener = listener
        self._joining = TextUpdate
        self._hushed = False
        self.heard_usage = self.has_failed = False
        news: tuple[StateUpdate | NoticeUpdate, ...]
        news = (*self._news.values(), *self._notices)
        self._news.clear()
        self._notices.clear()
        return news

    def leave(self) -> None:
        """End the turn: its listener gets nothing any more."""
        self.hush()
        self.pulled.hand_back()
        self._listener = None
        self._joining = _NO_ONE
        self._pieces.clear()

    def hush(self) -> None:
        """Cancel the open asks of the turn, and those that still come."""
        self._hushed = True
        now = asyncio.get_running_loop().time()
        for scope in self._asks:
            if not scope.expired():
                scope.reschedule(now)

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Hear what an agent repeats of a conversation: none of its sub-agents runs any more."""
        self._replays = True
        try:
            yield
        finally:
            self._replays = False
            self.subagents.clear()

    def is_ours(self, session_id: str) -> bool:
        """Tell whether a session is this one, or that of one of its sub-agents."""
        return self.session_id in (None, session_id) or session_id in self.subagents

    @contextmanager
    def request(self, identifier: object, session_id: str) -> Iterator[OpenRequest]:
        """Hold a request of the agent for as long as people are asked about it."""
        opened = OpenRequest(identifier, session_id)
        if identifier in self._withdrawn:
            self._withdrawn.remove(identifier)
            opened.withdrawal.make()
        self._requests.append(opened)
        try:
            yield opened
        finally:
            self._requests.remove(opened)

    def answer(self, method: str, params: object) -> dict[str, Any] | None:
        """Answer a request that needs no person; None if it is another one."""
        if method != PULL or mapping(params).get("sessionId") != self.session_id:
            return None
        return {"messages": self.pulled.take(), "hasQueuedPrompt": False}

    def withdraw(self, identifier: object) -> None:
        """Take back a request that the agent no longer wants answered."""
        opened = [each for each in self._requests if each.id == identifier]
        for each in opened:
            each.withdrawal.make()
        if not opened:
            self._withdrawn.append(identifier)

    def withdraw_asks_of(self, subagent: str) -> None:
        """Take back what a sub-agent, or one below it, asks."""
        for each in self._requests:
            if self.subagents.is_within(each.session_id, subagent):
                each.withdrawal.make()

    def take(self, params: Any) -> Awaitable[None] | None:
        """Take one update; the usual piece of text is only queued and passed on later."""
        try:
            update = params["update"]
            content = update["content"]
            text = content["text"]
            if (
                _JOINED.get(update["sessionUpdate"]) is self._joining
                and content["type"] == "text"
                and type(text) is str
                and "_meta" not in update
                and params["sessionId"] == self.session_id
            ):
                self._pieces.append(text)
                return None
        except (KeyError, TypeError):
            pass
        return self._hear(params)

    def settle(self) -> Awaitable[None] | None:
        """Pass the joined text on."""
        return self._flush() if self._pieces else None

    async def ask(self, request: AskRequest, opened: OpenRequest | None = None) -> str | None:
        """Get a person's answer: an option, free text where it is allowed, or None if cancelled."""
        listener = self._listener
        if opened is not None:
            request = replace(request, withdrawal=opened.withdrawal)
            if opened.session_id in self.subagents:
                request = self.subagents.address(opened.session_id, request)
        if listener is None or self._hushed:
            self._count("late_ask")
            return None
        try:
            async with asyncio.timeout(None) as scope:
                self._asks.add(scope)
                answer = await hold(listener.on_ask(request))
        except TimeoutError:
            if not scope.expired():
                raise
            return None
        finally:
            self._asks.discard(scope)
        if request.free_text or any(option.id == answer for option in request.options):
            return answer
        return None

    async def note(self, words: str) -> None:
        """Put a notice into the transcript: into this turn, or else into the next one."""
        await self._note(NoticeUpdate(words))

    async def _note(self, notice: NoticeUpdate) -> None:
        if notice.compaction and notice.compaction == self._compaction:
            return  # some agents tell it twice
        self._compaction = notice.compaction or self._compaction
        if self._listener is None:
            self._notices = [*self._notices, notice][-_KEPT_NOTICES:]
        else:
            await self._tell(self._listener, notice)

    async def _hear(self, params: Any) -> None:
        if not isinstance(params, dict) or "update" not in params:
            self._count("senseless_update")
            return
        session_id, raw = params.get("sessionId"), params["update"]
        subagent = "" if self.session_id in (None, session_id) else str(session_id)
        if subagent and subagent not in self.subagents:
            self._count("other_session")
            return
        if not subagent and (status := thread_status(raw)):
            self.has_failed = status == "systemError"
        update = self._translate(subagent, raw)
        if update is None:
            if not subagent:
                self._find_marks(raw)
            return
        if isinstance(update, UnknownUpdate):
            self._count("unknown_kind")
        if isinstance(update, NoticeUpdate):
            await self._note(update)
        elif self._listener is not None:
            await self._tell(self._listener, update)
        elif isinstance(update, StateUpdate | SubagentUpdate) and not self._is_old(update):
            await self._keep(update)
        else:
            self._count("between_turns")

    def _is_old(self, update: BridgeUpdate) -> bool:
        """Tell whether an update is about a sub-agent of an earlier process."""
        return self._replays and isinstance(update, SubagentUpdate)

    def _translate(self, subagent: str, raw: Any) -> BridgeUpdate | None:
        if mapping(raw).get("sessionUpdate") in ANNOUNCES:
            return self.subagents.hear(subagent, raw)
        return self.subagents.translate(subagent, raw) if subagent else bridge_update(raw)

    async def _tell(self, listener: AgentListener, update: BridgeUpdate) -> None:
        is_inner = isinstance(update, ThoughtUpdate) and update.parent is not None
        if isinstance(update, (TextUpdate, ThoughtUpdate)) and not is_inner:
            if type(update) is not self._joining:
                await self._flush()
                self._joining = type(update)
            self._pieces.append(update.text)
        else:
            await self._flush()
            self.heard_usage |= isinstance(update, UsageUpdate)
            if isinstance(update, StateUpdate):
                self._state[update.what] = update
            await listener.on_update(update)

    def _find_marks(self, update: Json) -> None:
        """Note the marks in what a replay says that people said; one may come in two pieces."""
        if update.get("sessionUpdate") == "user_message_chunk":
            words = message_words(update.get("content"))
            self._replayed = self._replayed[-MARK_CHARACTERS:] + words
            self.marks |= find_marks(self._replayed)

    async def _keep(self, update: StateUpdate | SubagentUpdate) -> None:
        """Keep news for the next turn; the listener stores a title or a sub-agent at once."""
        if isinstance(update, StateUpdate) and (
            update.what != "title" and self._state.get(update.what) != update
        ):
            self._state[update.what] = self._news[update.what] = update
        try:
            await self._between.on_update(update)
        except BridgeError:
            # A title that cannot be stored now is no reason to lose the agent.
            logger.warning("could not store what is new about a session", exc_info=True)

    async def _flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text and self._listener is not None:
            update = ThoughtUpdate(text) if self._joining is ThoughtUpdate else TextUpdate(text)
            await self._listener.on_update(update)
