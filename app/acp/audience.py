"""Passes what an agent sends to its turn, or wakes a turn of the agent's own for it.

Pieces of text that arrived together are passed on together. What an agent begins while no turn
runs is kept until a turn takes it; what is late for a call belongs to the turn that began the call.
The state of the session is kept as news for the next turn. Nothing is dropped without a trace:
what no one can be shown is counted, and named where the session is described. Traffic of the
session's sub-agents is told apart by its session id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.acp.background import Background
from app.acp.json_values import Json, mapping
from app.acp.own_work import OwnWork, is_words
from app.acp.pulled_words import PULL, PulledWords
from app.acp.subagents import ANNOUNCES, Subagents
from app.acp.transport import MAX_OPEN_REQUESTS
from app.acp.updates import bridge_update, message_words, thread_status
from app.errors import BridgeError
from app.model.background import Woken
from app.model.ports import AgentListener, SessionListener
from app.model.steering import MARK_CHARACTERS, find_marks
from app.model.subagents import SubagentUpdate
from app.model.updates import (
    AskRequest,
    BridgeUpdate,
    NoticeUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
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
KNOWN_CALLS: Final = 2000
"""Calls of which it is known which turn began them."""


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
        self._session: SessionListener | None = None
        self._listener: AgentListener | None = None
        self._turn = 0
        self._joining: object = _NO_ONE
        self._pieces: list[str] = []
        self._asks: set[asyncio.Timeout] = set()
        self._requests: list[OpenRequest] = []
        self._withdrawn: deque[object] = deque(maxlen=MAX_OPEN_REQUESTS)
        """Requests that were taken back before they were handled."""
        self._replays = False
        self._hushed = False
        self._deaf = False
        self._catching_up = False
        self._is_woken = False
        self._listening = asyncio.Event()
        self._calls: OrderedDict[str, int] = OrderedDict()
        self._state: dict[str, StateUpdate] = {}
        self._news: dict[str, StateUpdate] = {}
        self._notices: list[NoticeUpdate] = []
        self._replayed = ""
        self._compaction = ""
        self.own_work = OwnWork()
        """What it does without a prompt."""
        self.background = Background(self._tell_work)
        """What goes on between turns."""
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

    # Turns.

    def attend(self, session: SessionListener) -> None:
        """Hear what the agent begins by itself, from now on: its conversation is open."""
        self._session = session

    def listen(
        self, listener: AgentListener, turn: int = 0
    ) -> tuple[StateUpdate | NoticeUpdate, ...]:
        """Begin a turn; returns what changed about the session since the last one.

        What the agent began by itself follows with `catch_up`.
        """
        self._listener = listener
        self._turn = self.background.turn = turn
        self._hushed = self._deaf = self._is_woken = False
        self.heard_usage = self.has_failed = False
        self.own_work.begin()
        self._catching_up = self.own_work.is_kept
        self._joining = _NO_ONE if self._catching_up else TextUpdate
        self._listening.set()
        news: tuple[StateUpdate | NoticeUpdate, ...]
        news = (*self._news.values(), *self._notices)
        self._news.clear()
        self._notices.clear()
        return news

    async def catch_up(self) -> None:
        """Pass on what was kept, before anything that comes now."""
        while self.own_work.is_kept and self._listener is not None:
            for update in self.own_work.take():
                await self._deliver(self._listener, update)
        self._catching_up = False
        self._joining = TextUpdate

    def leave(self, *, deaf: bool = False) -> None:
        """End the turn: its listener gets nothing any more.

        With `deaf`, what the agent does until its next turn opens none.
        """
        self.hush()
        self.pulled.hand_back()
        self._listener = None
        self._listening.clear()
        self._joining = _NO_ONE
        self._pieces.clear()
        self._catching_up = False
        self._hushed = False
        if deaf:
            self.background.drop_calls(self._turn)
            self.ignore()

    def ignore(self) -> None:
        """Open no turn for what the agent does until it is prompted."""
        self._deaf = True
        for update in self.own_work.take():
            self._drop(update)
        self._is_woken = False
        self._listening.set()  # asks that wait for a turn get none

    def hush(self) -> None:
        """Cancel the open asks of the turn, and those that still come."""
        self._hushed = True
        now = asyncio.get_running_loop().time()
        for scope in self._asks:
            if not scope.expired():
                scope.reschedule(now)

    @property
    def is_busy(self) -> bool:
        """Whether work is left that needs the process: declared, or that of sub-agents."""
        return self.background.is_busy or bool(self.subagents.running)

    async def settled(self) -> None:
        """Wait until no work is left."""
        while self.is_busy:
            await self.background.settled()
            await self.subagents.wait_until_calm()

    @property
    def woken(self) -> Woken | None:
        """What woke the agent, if it began something that no turn has taken."""
        return self.background.woken() if self._is_woken else None

    # What the agent sends.
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

    def notify(self, method: str, params: object) -> bool:
        """Take a notification that is no update; False if it says nothing here."""
        is_ours = mapping(params).get("sessionId") in (None, self.session_id)
        if not is_ours or not self.background.hear(
            method, params, in_turn=self._listener is not None
        ):
            return False
        if self.background.says_idle(method, params):
            self.own_work.sign_off()
        return True

    def settle(self) -> Awaitable[None] | None:
        """Pass the joined text on."""
        return self._flush() if self._pieces else None

    async def ask(self, request: AskRequest, opened: OpenRequest | None = None) -> str | None:
        """Get a person's answer: an option, free text where it is allowed, or None if cancelled."""
        if self._listener is None and self._session is not None and not self._deaf:
            self._wake()
            await self._listening.wait()
        listener = self._listener
        if opened is not None:
            request = replace(request, withdrawal=opened.withdrawal)
            if opened.session_id in self.subagents:
                request = self.subagents.address(opened.session_id, request)
        if listener is None or self._hushed:
            self._count("late_ask")
            self._name("ask")
            return None
        try:
            async with asyncio.timeout(None) as scope:
                self._asks.add(scope)
                self.own_work.ask(1)
                answer = await hold(listener.on_ask(request))
        except TimeoutError:
            if not scope.expired():
                raise
            return None
        finally:
            self._asks.discard(scope)
            self.own_work.ask(-1)
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
            await self._pass_on(self._listener, notice)

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
        if not subagent and self._session is not None and self._hear_work(mapping(raw)):
            self.own_work.sign_off()
        update = self._translate(subagent, raw)
        if update is None:
            if not subagent:
                self._find_marks(raw)
            return
        await self._route(update, is_new=mapping(raw).get("sessionUpdate") == "tool_call")

    async def _route(self, update: BridgeUpdate, *, is_new: bool) -> None:
        """Pass an update on to whom it belongs; `is_new` says that it announces a call."""
        if isinstance(update, UnknownUpdate):
            self._count("unknown_kind")
            self._name(f"update {update.kind}" if update.kind else "update")
        if isinstance(update, NoticeUpdate):
            await self._note(update)
        elif (turn := self._begun_by(update, is_new=is_new)) is not None:
            await self._tell_late(turn, update)
        elif self._listener is not None:
            await self._pass_on(self._listener, update)
        elif isinstance(update, StateUpdate | SubagentUpdate):
            if not self._is_old(update):
                await self._keep_state(update)
        else:
            self._keep(update)

    def _hear_work(self, update: Json) -> bool | None:
        return self.background.hear_update(update, in_turn=self._listener is not None)

    async def _pass_on(self, listener: AgentListener, update: BridgeUpdate) -> None:
        if self._catching_up:
            self.own_work.keep(update)
        else:
            await self._tell(listener, update)

    def _is_old(self, update: BridgeUpdate) -> bool:
        """Tell whether an update is about a sub-agent of an earlier process."""
        return self._replays and isinstance(update, SubagentUpdate)

    def _translate(self, subagent: str, raw: Any) -> BridgeUpdate | None:
        if mapping(raw).get("sessionUpdate") in ANNOUNCES:
            return self.subagents.hear(subagent, raw)
        return self.subagents.translate(subagent, raw) if subagent else bridge_update(raw)

    async def _tell(self, listener: AgentListener, update: BridgeUpdate) -> None:
        if is_words(update):
            if type(update) is not self._joining:
                await self._flush()
                self._joining = type(update)
            self._pieces.append(update.text)
        else:
            await self._flush()
            await self._deliver(listener, update)

    async def _deliver(self, listener: AgentListener, update: BridgeUpdate) -> None:
        self.own_work.follow(update)
        if isinstance(update, ToolUpdate):
            self._remember(update.call)
        elif isinstance(update, SubagentUpdate):
            self._remember(update.key)
        self.heard_usage |= isinstance(update, UsageUpdate)
        if isinstance(update, StateUpdate):
            self._state[update.what] = update
        await listener.on_update(update)

    def _remember(self, call: str) -> None:
        """Remember which turn began a call or a sub-agent."""
        self._calls[call] = self._turn
        if len(self._calls) > KNOWN_CALLS:
            self._calls.popitem(last=False)

    # Between turns.

    def _begun_by(self, update: BridgeUpdate, *, is_new: bool) -> int | None:
        """Return the earlier turn that an update of a call, or of its sub-agent, belongs to."""
        if not isinstance(update, (ToolUpdate, ThoughtUpdate)) or self._session is None:
            return None
        call = update.call if isinstance(update, ToolUpdate) and not is_new else ""
        turn = self._calls.get(call) or self._calls.get(update.parent or "")
        return turn if turn and (self._listener is None or turn != self._turn) else None

    async def _tell_late(self, turn: int, update: BridgeUpdate) -> None:
        if isinstance(update, ToolUpdate):
            self._calls[update.call] = turn
        try:
            assert self._session is not None
            await self._session.on_late(turn, update)
        except BridgeError:
            logger.warning("could not store a late update", exc_info=True)
            self._name("late update")

    def _keep(self, update: BridgeUpdate) -> None:
        """Keep what the agent does by itself until a turn takes it."""
        if self._session is None or self._deaf or not self.own_work.keep(update):
            self._drop(update)
        else:
            self._wake()

    def _drop(self, update: BridgeUpdate) -> None:
        self._count("between_turns")
        if not isinstance(update, (UsageUpdate, UnknownUpdate)):
            self._name(type(update).__name__.removesuffix("Update").lower())

    def _wake(self) -> None:
        if not self._is_woken and self._session is not None:
            self._is_woken = True
            self._session.on_woken(self.background.woken())
            self.background.fire_timer()

    def _name(self, what: str) -> None:
        """Name something that no one can be shown."""
        if self._session is not None:
            self._session.on_unshown(what)

    def _tell_work(self) -> None:
        if self._session is not None:
            self._session.on_work(self.background.work)

    def _find_marks(self, update: Json) -> None:
        """Note the marks in what a replay says that people said; one may come in two pieces."""
        if update.get("sessionUpdate") == "user_message_chunk":
            words = message_words(update.get("content"))
            self._replayed = self._replayed[-MARK_CHARACTERS:] + words
            self.marks |= find_marks(self._replayed)

    async def _keep_state(self, update: StateUpdate | SubagentUpdate) -> None:
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
            self.own_work.stir()
            update = ThoughtUpdate(text) if self._joining is ThoughtUpdate else TextUpdate(text)
            await self._listener.on_update(update)
