"""Handles what an agent sends: updates go to its turn or its session, requests to people.

Pieces of text that arrived together are passed on together. Between turns only the state of the
session is news, and the next turn begins with it: a replayed history and late updates are
dropped and counted. What the network refused an agent is told, and asked, the same way.
Agents use files and terminals in their own workspace; requests for them get "method not found".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn

from acp import CLIENT_METHODS, Client, RequestError
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CancelElicitationResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    ElicitationFormRequestMode,
    ElicitationFormSessionMode,
    ElicitationSessionScope,
    ElicitationUrlRequestMode,
    ElicitationUrlSessionMode,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from app.acp.elicitation import (
    DECLINE,
    DONE,
    MAX_TRIES,
    FormField,
    Unfit,
    Value,
    consent,
    fields_of,
    question,
    value_of,
)
from app.acp.json_values import Json
from app.acp.updates import ask_request, bridge_update, message_words
from app.errors import BridgeError
from app.model.ports import AgentListener
from app.model.steering import MARK_CHARACTERS, find_marks
from app.model.updates import (
    AskRequest,
    BridgeUpdate,
    NoticeUpdate,
    StateUpdate,
    TextUpdate,
    ThoughtUpdate,
    UnknownUpdate,
    UsageUpdate,
)
from app.retry import hold

logger = logging.getLogger(__name__)

FormMode = ElicitationFormSessionMode | ElicitationFormRequestMode
UrlMode = ElicitationUrlSessionMode | ElicitationUrlRequestMode
Elicited = AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse

_JOINED = {"agent_message_chunk": TextUpdate, "agent_thought_chunk": ThoughtUpdate}
_NO_ONE = object()
_KEPT_NOTICES = 20
"""Notices kept for the next turn: an agent may try things between turns for days."""

_DECLINED = DeclineElicitationResponse(action="decline")
_GIVEN_UP = CancelElicitationResponse(action="cancel")
_CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class Audience:
    """Receives the updates and asks of one session."""

    def __init__(self, between: AgentListener, count: Callable[[str], None]) -> None:
        self._between = between
        self._count = count
        self._listener: AgentListener | None = None
        self._joining: object = _NO_ONE
        self._pieces: list[str] = []
        self._asks: set[asyncio.Timeout] = set()
        self._hushed = False
        self._state: dict[str, StateUpdate] = {}
        self._news: dict[str, StateUpdate] = {}
        self._notices: list[NoticeUpdate] = []
        self._replayed = ""
        self._compaction = ""
        self.marks: set[int] = set()
        """The messages whose marks a replayed conversation showed."""
        self.session_id: str | None = None
        """The agent's id of the session; until it is known, every update is taken as ours."""
        self.heard_usage = False
        """Whether the agent reported its usage in this turn."""

    def listen(self, listener: AgentListener) -> tuple[StateUpdate | NoticeUpdate, ...]:
        """Begin a turn; returns what changed about the session since the last one."""
        self._listener = listener
        self._joining = TextUpdate
        self._hushed = False
        self.heard_usage = False
        news: tuple[StateUpdate | NoticeUpdate, ...]
        news = (*self._news.values(), *self._notices)
        self._news.clear()
        self._notices.clear()
        return news

    def leave(self) -> None:
        """End the turn: its listener gets nothing any more."""
        self.hush()
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

    async def ask(self, request: AskRequest) -> str | None:
        """Get a person's answer: an option, free text where it is allowed, or None if cancelled."""
        listener = self._listener
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
        if self.session_id is not None and params.get("sessionId") != self.session_id:
            self._count("other_session")
            return
        update = bridge_update(params["update"])
        if update is None:
            self._find_marks(params["update"])
            return
        if isinstance(update, UnknownUpdate):
            self._count("unknown_kind")
        if isinstance(update, NoticeUpdate):
            await self._note(update)
        elif self._listener is not None:
            await self._tell(self._listener, update)
        elif isinstance(update, StateUpdate):
            await self._keep(update)
        else:
            self._count("between_turns")

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

    async def _keep(self, update: StateUpdate) -> None:
        """Keep news for the next turn; the listener stores a title at once."""
        if update.what != "title" and self._state.get(update.what) != update:
            self._state[update.what] = self._news[update.what] = update
        try:
            await self._between.on_update(update)
        except BridgeError:
            # A title that cannot be stored now is no reason to lose the agent.
            logger.warning("could not store the %s of a session", update.what, exc_info=True)

    async def _flush(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text and self._listener is not None:
            update = ThoughtUpdate(text) if self._joining is ThoughtUpdate else TextUpdate(text)
            await self._listener.on_update(update)


def _refusal(name: str) -> Callable[..., Coroutine[Any, Any, NoReturn]]:
    async def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:  # noqa: ARG001
        raise RequestError.method_not_found(CLIENT_METHODS[name])

    return refuse


class BridgeAcpClient(Client):
    """The bridge as agents see it."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **kwargs: Any,  # noqa: ARG002 - the SDK passes an agent's _meta as keywords
    ) -> RequestPermissionResponse:
        """Let a person decide; without a valid answer it is cancelled."""
        if self._audience.session_id not in (None, session_id):
            return _CANCELLED
        try:
            answer = await self._audience.ask(_request(tool_call, options))
        except (BridgeError, ValueError):
            logger.exception("failed to ask for a permission")
            return _CANCELLED
        if answer is None:
            return _CANCELLED
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=answer)
        )

    async def create_elicitation(
        self,
        message: str,
        mode: FormMode | UrlMode,
        **kwargs: Any,  # noqa: ARG002 - the SDK passes an agent's _meta as keywords
    ) -> Elicited:
        """Let a person fill in a form, field by field, or open an address."""
        call = ""
        if isinstance(mode, ElicitationSessionScope):
            if self._audience.session_id not in (None, mode.session_id):
                return _GIVEN_UP
            call = mode.tool_call_id or ""
        try:
            if isinstance(mode, FormMode):
                return await self._fill_in(message, mode, call)
            if mode.url.scheme not in ("https", "http"):
                return _DECLINED
            return await self._agree(consent(message, url=str(mode.url), call=call))
        except (BridgeError, ValueError):
            logger.exception("failed to ask a question")
            return _GIVEN_UP

    async def _agree(self, request: AskRequest) -> Elicited:
        answer = await self._audience.ask(request)
        if answer == DONE.id:
            return AcceptElicitationResponse(action="accept", content={})
        return _GIVEN_UP if answer is None else _DECLINED

    async def _fill_in(self, message: str, mode: FormMode, call: str) -> Elicited:
        fields = fields_of(mode.requested_schema)
        if fields is None:
            return _DECLINED
        if not fields:
            return await self._agree(consent(message, call=call))
        content: dict[str, Value] = {}
        for field in fields:
            value = await self._field(message, field, call, alone=len(fields) == 1)
            if not isinstance(value, dict):
                return value
            content |= value
        return AcceptElicitationResponse(action="accept", content=content)

    async def _field(
        self, message: str, field: FormField, call: str, *, alone: bool
    ) -> dict[str, Value] | Elicited:
        note = ""
        for _ in range(MAX_TRIES):
            request = question(message, field, call=call, alone=alone, note=note)
            answer = await self._audience.ask(request)
            if answer is None:
                return _GIVEN_UP
            if answer == DECLINE.id and field.required:
                return _DECLINED
            try:
                return value_of(field, answer)
            except Unfit as reason:
                note = str(reason)
        return _GIVEN_UP

    async def session_update(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the transport handles updates."""

    write_text_file = _refusal("fs_write_text_file")
    read_text_file = _refusal("fs_read_text_file")
    create_terminal = _refusal("terminal_create")
    terminal_output = _refusal("terminal_output")
    release_terminal = _refusal("terminal_release")
    wait_for_terminal_exit = _refusal("terminal_wait_for_exit")
    kill_terminal = _refusal("terminal_kill")

    async def complete_elicitation(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the person has said that it is done."""

    async def ext_method(self, method: str, params: dict[str, Any]) -> NoReturn:  # noqa: ARG002
        """Refuse."""
        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Do nothing: the transport drops notifications."""

    def on_connect(self, conn: object) -> None:
        """Do nothing: the session holds the connection."""


def _request(tool_call: ToolCallUpdate, options: list[PermissionOption]) -> AskRequest:
    # By hand: dumping a model fails on deeply nested input, and the agent controls the input.
    call = {
        "toolCallId": tool_call.tool_call_id,
        "title": tool_call.title,
        "kind": tool_call.kind,
        "status": tool_call.status,
        "rawInput": tool_call.raw_input,
        "rawOutput": tool_call.raw_output,
        "_meta": tool_call.field_meta,
    }
    if tool_call.content is not None:
        call["content"] = [
            item.model_dump(mode="json", by_alias=True, exclude={"field_meta"})
            for item in tool_call.content
        ]
    if tool_call.locations is not None:
        call["locations"] = [{"path": item.path, "line": item.line} for item in tool_call.locations]
    offered = [
        {"optionId": option.option_id, "name": option.name, "kind": option.kind}
        for option in options
    ]
    return ask_request(call, offered)
