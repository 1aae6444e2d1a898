"""Opens an endpoint to the bridge's tools for each agent process: a socket in a folder, or a token.

The socket serves the tools and nothing else, for its own process. Only the sandbox of its agent
shows it, so it needs no token. A process that is not isolated gets a token for the bridge's port,
which is redacted everywhere, never stored, and worth nothing once its process has ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from app.core.tools.toolbox import Toolbox
from app.descent import discard
from app.logs import bind
from app.model.agents import SESSION, SOCKET, ToolEndpoint
from app.model.types import Session
from app.tasks import Tasks
from app.vault import Vault

if TYPE_CHECKING:
    from app.mcp_server.protocol import ToolProtocol

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

PATH: Final = "/mcp"
CALLS: Final = 16
"""Requests at a time of one process: agents call a handful of tools in parallel."""
GUESTS: Final = 32
"""Connections at a time on one socket: each takes a handle of the bridge."""
PREPARE_SECONDS: Final = 30.0
"""How long a call waits for a bridge that is still importing; it takes about a second."""
_BACKLOG: Final = 8
_HOLDER: Final = "agent_bridge.holder"
"""The key under which a request that came over a socket carries whose socket that is."""
_BEARER: Final = b"bearer "
_STOP_SECONDS: Final = 5.0
"""How long the end of all calls may take; they are cancelled."""


@dataclass(slots=True)
class _Holder:
    """The process that may use an endpoint."""

    session: Session
    calls: int = 0


class McpEndpoints:
    """The endpoints of one bridge."""

    def __init__(self, folder: Path, toolbox: Toolbox, vault: Vault) -> None:
        """Prepare to open endpoints in a folder that is shown to agents in parts."""
        self._folder = folder
        self._toolbox = toolbox
        self._vault = vault
        self._tasks = Tasks("tools")
        # Every token begins with it: the rest alone opens nothing, and a vault in which a secret
        # came with each process would get slower with each.
        self._secret = secrets.token_urlsafe(32)
        vault.register(self._secret)
        self._holders: dict[str, _Holder] = {}
        """By token, for requests that come to the bridge's port."""
        self._listening: dict[Path, _Listening] = {}
        self._ready = asyncio.Event()
        self._ending = asyncio.Event()
        self._protocol: ToolProtocol | None = None
        self._config: uvicorn.Config | None = None
        self.url = ""
        """Where agents that reach the bridge's port call tools; empty: it has none."""

    async def start(self) -> None:
        """Remove the endpoints of the last run, and begin to serve calls."""
        await asyncio.to_thread(discard, self._folder)
        self._tasks.start(self._serve(), name="MCP")

    async def close(self) -> None:
        """End every call and close every endpoint."""
        self._ending.set()
        await self._tasks.settle(_STOP_SECONDS)
        for listening in self._listening.values():
            listening.close()
        await self._tasks.close()

    async def open(self, session: Session, *, with_token: bool) -> ToolEndpoint | None:
        """Open an endpoint for a new process of a session; None if its agent can use no tool.

        With a token it can also call tools at the bridge's port; its socket needs none.
        """
        tools = self._toolbox.tools(session.key.agent)
        if not tools:
            return None
        folder = self._folder / secrets.token_hex(8)
        try:
            listener = await asyncio.to_thread(_listen, folder)
        except OSError as error:
            logger.warning("no tools for this agent: %s; check the disk of DATA_DIR", error)
            return None
        holder = _Holder(session)
        self._listening[folder] = listening = _Listening(self._configure(), holder)
        await listening.start(listener)
        if not with_token or not self.url:
            return ToolEndpoint(folder, "", "", tuple(tools))
        token = f"{self._secret}.{secrets.token_urlsafe(16)}"
        self._holders[token] = holder
        return ToolEndpoint(folder, token, self.url, tuple(tools))

    async def shut(self, endpoint: ToolEndpoint) -> None:
        """Close the endpoint of a process that has ended."""
        self._holders.pop(endpoint.token, None)
        if (listening := self._listening.pop(endpoint.folder, None)) is not None:
            listening.close()
        await asyncio.to_thread(discard, endpoint.folder)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        holder = scope.get("state", {}).get(_HOLDER) or self._holders.get(_token(scope))
        if holder is None:
            await _refuse(send, 401, "unknown or expired token", (b"www-authenticate", b"Bearer"))
        elif scope["method"] != "POST":
            await _refuse(send, 405, "send requests with POST", (b"allow", b"POST"))
        elif holder.calls >= CALLS:
            await _refuse(send, 429, f"at most {CALLS} calls at a time; wait for one to end")
        else:
            holder.calls += 1
            try:
                with bind(agent=holder.session.key.agent, session=str(holder.session.key)):
                    await self._handle({**scope, SESSION: holder.session.id}, receive, send)
            finally:
                holder.calls -= 1

    def in_front_of(self, application: Application) -> Application:
        """Return an application that serves the path of the tools, and passes on the rest."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            is_tools = scope["type"] == "http" and scope["path"] == PATH
            await (self if is_tools else application)(scope, receive, send)

        return serve

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                await self._ready.wait()
        except TimeoutError:
            await _refuse(send, 503, "the bridge is still starting; try again in a moment")
            return
        assert self._protocol is not None
        await self._protocol.manager.handle_request(scope, receive, send)

    async def _serve(self) -> None:
        self._protocol = await asyncio.to_thread(_make_protocol, self._toolbox, self._vault)
        async with self._protocol.manager.run():
            self._ready.set()
            await self._ending.wait()

    def _configure(self) -> uvicorn.Config:
        """Make the settings that all sockets share."""
        if self._config is None:
            self._config = uvicorn.Config(
                self,
                http=H11Protocol,  # it bounds the size of headers
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
            )
            self._config.load()
        return self._config


class _Listening:
    """The socket of one endpoint, and its connections."""

    def __init__(self, config: uvicorn.Config, holder: _Holder) -> None:
        self._config = config
        self._holder = holder
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Serve connections."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._receive, sock=listener)

    def close(self) -> None:
        """Stop listening, and end what is under way: its callers see that they are gone."""
        if self._server is not None:
            self._server.close()
        for guest in list(self._state.connections):
            guest.transport.abort()

    def _receive(self) -> H11Protocol:
        return _Guest(
            config=self._config, server_state=self._state, app_state={_HOLDER: self._holder}
        )


class _Guest(H11Protocol):
    """One connection; one too many is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own annotation
        if len(self.connections) >= GUESTS:
            transport.abort()
            self.connections = set()  # it was never one of them
        super().connection_made(transport)


def _make_protocol(toolbox: Toolbox, vault: Vault) -> ToolProtocol:
    from app.mcp_server.protocol import ToolProtocol  # noqa: PLC0415 - it takes a second

    return ToolProtocol(toolbox, vault)


def _listen(folder: Path) -> socket.socket:
    """Make the folder of an endpoint, with a socket that its agent may use as any user."""
    folder.mkdir(mode=0o700, parents=True)
    folder.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    handle = os.open(folder, os.O_RDONLY)
    try:
        # The path of a socket has room for 100 bytes, that of a folder for thousands.
        short = Path(f"/proc/self/fd/{handle}")
        listener.bind(str((short if short.exists() else folder) / SOCKET))
    finally:
        os.close(handle)
    (folder / SOCKET).chmod(0o666)
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def _token(scope: Scope) -> str:
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return ""
    return bytes(given[0][len(_BEARER) :]).decode("latin-1").strip()


async def _refuse(send: Send, status: int, words: str, *headers: tuple[bytes, bytes]) -> None:
    body = f'{{"title": "{words}", "status": {status}}}'.encode()
    head = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
