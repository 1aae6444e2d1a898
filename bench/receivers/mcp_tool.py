"""A bare server of the official `mcp` package with one tool: the limit for a tool call."""

from __future__ import annotations

import json
import sys
from typing import Any

import uvloop
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from app.server.listener import Listener, bound
from bench.machine import LISTENING, SERVER_CORE, pin
from bench.receivers.asgi import tally


async def call(
    _context: ServerRequestContext[Any], _params: CallToolRequestParams
) -> CallToolResult:
    """List no agents."""
    tally.add()
    return CallToolResult(content=[TextContent(type="text", text=json.dumps({"agents": []}))])


async def main() -> None:
    """Serve without sessions, as the bridge does."""
    manager = StreamableHTTPSessionManager(Server("bare", on_call_tool=call), stateless=True)
    listener = Listener(StreamableHTTPASGIApp(manager), lambda: print(LISTENING, flush=True))
    async with manager.run():
        await listener.serve(sockets=[bound("127.0.0.1", int(sys.argv[1]))])


if __name__ == "__main__":
    pin(SERVER_CORE)
    uvloop.run(main())
