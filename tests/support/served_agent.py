"""An agent that serves ACP over HTTP and WebSocket itself, with the SDK's own server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any, Self

import uvicorn
from acp import PROTOCOL_VERSION, update_agent_message_text
from acp.http.asgi import create_asgi_app
from acp.schema import (
    AgentCapabilities,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)

TOKEN = "a-token-of-the-served-agent"
SECONDS = 30.0


class ServedAgent:
    """Says what it is told to say, asks, waits until it is cancelled, or sends a lot."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cancelled = asyncio.Event()

    def on_connect(self, connection: Any) -> None:
        self._connection = connection

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        can = AgentCapabilities(load_session=True)
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_capabilities=can)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id="one")

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        return LoadSessionResponse()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        """Obey the last line."""
        verb, _, rest = prompt[0].text.splitlines()[-1].partition(" ")
        match verb:
            case "big":
                rest = "x" * int(rest)
            case "wait":
                await self._say(session_id, "waiting")
                await self._cancelled.wait()
                return PromptResponse(stop_reason="cancelled")
            case "ask":
                rest = await self._ask(session_id)
        await self._say(session_id, rest)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()

    async def _say(self, session_id: str, words: str) -> None:
        update = update_agent_message_text(words)
        await self._connection.session_update(session_id=session_id, update=update)

    async def _ask(self, session_id: str) -> str:
        options = [PermissionOption(option_id="allow", name="Allow", kind="allow_once")]
        call = ToolCallUpdate(tool_call_id="1", title="Open the door", kind="execute")
        answer = await self._connection.request_permission(
            session_id=session_id, tool_call=call, options=options
        )
        return f"answered: {answer.outcome.outcome}"


class Served:
    """The server, in a thread with its own event loop."""

    def __init__(self) -> None:
        app = _guard(create_asgi_app(ServedAgent))  # type: ignore[arg-type]  # as much as is used
        config = uvicorn.Config(
            app, host="127.0.0.1", port=0, log_level="error", lifespan="off", ws="none"
        )
        self.server = uvicorn.Server(config)
        self._thread = Thread(target=self.server.run, name="served agent")
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        while not self.server.started:
            self._thread.join(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def cut(self) -> None:
        """End the server and every connection."""
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(SECONDS)

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of the agent there."""
        return {"url": f"http://127.0.0.1:{self.port}/acp", "env": {"AGENT_TOKEN": TOKEN}}


Asgi = Callable[[Any, Any, Any], Awaitable[None]]


def _guard(app: Asgi) -> Asgi:
    """Let in who has the token: the SDK's server knows none."""

    async def check(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(b"authorization")
        if given == f"Bearer {TOKEN}".encode():
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return check
