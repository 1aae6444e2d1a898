"""Handles what an agent asks its client for: permissions and answers, which people give.

Agents use files and terminals in their own workspace; requests for them get "method not found".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import partial
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

from app.acp.audience import Audience, OpenRequest
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
from app.acp.transport import REQUEST_ID
from app.acp.updates import ask_request
from app.errors import BridgeError
from app.model.updates import AskRequest

logger = logging.getLogger(__name__)

FormMode = ElicitationFormSessionMode | ElicitationFormRequestMode
UrlMode = ElicitationUrlSessionMode | ElicitationUrlRequestMode
Elicited = AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse

_DECLINED = DeclineElicitationResponse(action="decline")
_GIVEN_UP = CancelElicitationResponse(action="cancel")
_CANCELLED = RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


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
        **kwargs: Any,
    ) -> RequestPermissionResponse:
        """Let a person decide; without a valid answer it is cancelled."""
        if not self._audience.is_ours(session_id):
            return _CANCELLED
        try:
            # The SDK passes `_meta` as keywords.
            with self._audience.request(kwargs.get(REQUEST_ID), session_id) as opened:
                answer = await self._audience.ask(_request(tool_call, options), opened)
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
        **kwargs: Any,
    ) -> Elicited:
        """Let a person fill in a form, field by field, or open an address."""
        call, session_id = "", self._audience.session_id or ""
        if isinstance(mode, ElicitationSessionScope):
            if not self._audience.is_ours(mode.session_id):
                return _GIVEN_UP
            call, session_id = mode.tool_call_id or "", mode.session_id
        try:
            with self._audience.request(kwargs.get(REQUEST_ID), session_id) as opened:
                if isinstance(mode, FormMode):
                    return await self._fill_in(message, mode, call, opened)
                if mode.url.scheme not in ("https", "http"):
                    return _DECLINED
                return await self._agree(consent(message, url=str(mode.url), call=call), opened)
        except (BridgeError, ValueError):
            logger.exception("failed to ask a question")
            return _GIVEN_UP

    async def _agree(self, request: AskRequest, opened: OpenRequest) -> Elicited:
        answer = await self._audience.ask(request, opened)
        if answer == DONE.id:
            return AcceptElicitationResponse(action="accept", content={})
        return _GIVEN_UP if answer is None else _DECLINED

    async def _fill_in(
        self, message: str, mode: FormMode, call: str, opened: OpenRequest
    ) -> Elicited:
        fields = fields_of(mode.requested_schema)
        if fields is None:
            return _DECLINED
        if not fields:
            return await self._agree(consent(message, call=call), opened)
        content: dict[str, Value] = {}
        for field in fields:
            ask = partial(question, message, field, call=call, alone=len(fields) == 1)
            value = await self._field(field, ask, opened)
            if not isinstance(value, dict):
                return value
            content |= value
        return AcceptElicitationResponse(action="accept", content=content)

    async def _field(
        self, field: FormField, ask: Callable[..., AskRequest], opened: OpenRequest
    ) -> dict[str, Value] | Elicited:
        note = ""
        for _ in range(MAX_TRIES):
            answer = await self._audience.ask(ask(note=note), opened)
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
