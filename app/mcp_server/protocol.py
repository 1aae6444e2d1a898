"""Translates between MCP and the toolbox: lists an agent's tools, and calls them.

Imported late: the official package takes a second to load.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as McpTool

from app.core.tools import wording
from app.core.tools.toolbox import Toolbox
from app.errors import BridgeError
from app.model.agents import SESSION, Arguments, Tool, ToolRefused
from app.retry import hold
from app.tasks import Tasks
from app.vault import Vault

logger = logging.getLogger(__name__)

BODY_BYTES: Final = 1024 * 1024
"""The longest request: several times what the largest tool takes."""
REASON_CHARACTERS: Final = 300
"""So much of what is wrong with arguments: it may quote them whole."""
PROGRESS_SECONDS: Final = 5.0
"""Half of the shortest time that a known client waits without a sign of progress."""
AT_ONCE: Final = {"anthropic/alwaysLoad": True}
"""Shows a tool to the model from the beginning; some clients let it search for tools first."""


class ToolProtocol:
    """The MCP server of one bridge."""

    def __init__(self, toolbox: Toolbox, vault: Vault) -> None:
        self._toolbox = toolbox
        self._vault = vault
        self._validators: dict[str, Draft202012Validator] = {}
        server = Server(
            "agent-bridge",
            instructions=wording.INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self.manager = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=BODY_BYTES
        )

    async def _list(
        self, context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        tools = self._toolbox.tools_in(_session_of(context))
        return ListToolsResult(tools=[_describe(tool) for tool in tools])

    async def _call(
        self, context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        try:
            async with _show_progress(context):
                session, given = _session_of(context), params.arguments or {}
                call = self._toolbox.call(session, params.name, given, check=self._check)
                result = await hold(call)
        except BridgeError as error:
            return _answer(self._vault.redact(str(error)), is_error=True)
        except Exception:
            logger.exception("the tool %s failed", params.name[:100])
            return _answer(wording.FAILED, is_error=True)
        return _answer(json.dumps(self._vault.redact_json(result), ensure_ascii=False))

    def _check(self, tool: Tool, arguments: Arguments) -> Arguments:
        """Check arguments against the schema of a tool, and fill in what has a default.

        Raises:
            ToolRefused: they do not match; the message says where.
        """
        error: ValidationError | None = best_match(self._validator(tool).iter_errors(arguments))
        if error is not None:
            where = ".".join(str(step) for step in error.absolute_path) or "the arguments"
            reason = error.message[:REASON_CHARACTERS]
            raise ToolRefused(
                wording.BAD_ARGUMENTS.format(name=tool.name, where=where, reason=reason)
            )
        defaults = {
            name: each["default"] for name, each in tool.parameters.items() if "default" in each
        }
        return {**defaults, **arguments}

    def _validator(self, tool: Tool) -> Draft202012Validator:
        """Return what checks a tool's arguments; to make it takes longer than to use it."""
        if tool.name not in self._validators:
            self._validators[tool.name] = Draft202012Validator(tool.schema)
        return self._validators[tool.name]


@asynccontextmanager
async def _show_progress(context: ServerRequestContext[Any]) -> AsyncIterator[None]:
    """Report progress while a call runs, if its client wants that: many then wait longer."""
    token = (context.meta or {}).get("progress_token")
    if token is None:
        yield
        return

    async def report() -> None:
        for number in count(1):
            await asyncio.sleep(PROGRESS_SECONDS)
            await context.session.send_progress_notification(
                token, number, related_request_id=str(context.request_id)
            )

    tasks = Tasks("tool call")
    tasks.start(report(), name="progress")
    try:
        yield
    finally:
        await tasks.close()


def _describe(tool: Tool) -> McpTool:
    return McpTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(
            read_only_hint=all(each.endswith(".read") for each in tool.capabilities),
            destructive_hint=False,
            open_world_hint=False,
        ),
        _meta=AT_ONCE,
    )


def _session_of(context: ServerRequestContext[Any]) -> int:
    assert context.request is not None
    session: int = context.request.scope[SESSION]
    return session


def _answer(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
