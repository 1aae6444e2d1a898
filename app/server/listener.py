"""Listens on the ports with uvicorn, and bounds the connections that wait for their peer.

Anyone who reaches the port can open connections and send nothing. They run out of time, and when
there are too many, the one that waited longest is closed: a real request follows its connection at
once. The other handles of the process stay free for agents, files and the database.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from typing_extensions import override
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from app.errors import ConfigurationError
from app.server.front import Application, Receive, Scope, Send

logger = logging.getLogger(__name__)

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take: twice as long as uvicorn keeps a connection alive."""
STALL_SECONDS: Final = 60.0
"""How long a peer may read nothing of an answer; a browser that slept longer connects again."""
CONNECTIONS: Final = 1024
"""Connections at once: far more than people, platforms and agents use."""
TELL_SECONDS: Final = 60.0
"""How often a flood is logged."""
_KEY: Final = "connection"


class Connections:
    """The open connections of a server, as an application in front of the one it serves."""

    def __init__(self, application: Application) -> None:
        self._application = application
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # The other half of the handles is kept back for the bridge itself.
        unlimited = handles == resource.RLIM_INFINITY
        self.most = CONNECTIONS if unlimited else min(CONNECTIONS, handles // 2)
        """How many may be open at once."""
        self._open: set[HttpConnection] = set()
        self._waiting: dict[HttpConnection, asyncio.TimerHandle] = {}
        """Those that wait for their peer, the longest first, with the end of their time."""
        self._told_at = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; meanwhile its connection does not wait."""
        connection: HttpConnection = scope["state"][_KEY]
        connection.begin()
        try:
            await self._application(scope, receive, send)
        finally:
            connection.end()

    def add(self, connection: HttpConnection, peer: str) -> None:
        """Count a new connection; if there are too many, close the one that waited longest."""
        self._open.add(connection)
        self.wait(connection, HEAD_SECONDS)
        if len(self._open) > self.most:
            self._drop(next(iter(self._waiting)))
            self._tell(peer)

    def wait(self, connection: HttpConnection, seconds: float) -> None:
        """Give the peer of a connection this much time."""
        if connection in self._open:
            self.proceed(connection)
            timer = asyncio.get_running_loop().call_later(seconds, self._drop, connection)
            self._waiting[connection] = timer

    def proceed(self, connection: HttpConnection) -> None:
        """Stop the clock of a connection."""
        if timer := self._waiting.pop(connection, None):
            timer.cancel()

    def remove(self, connection: HttpConnection) -> None:
        """Forget a connection that is closed."""
        self.proceed(connection)
        self._open.discard(connection)

    def _drop(self, connection: HttpConnection) -> None:
        self.remove(connection)
        # Not `close`, which waits until the peer has read everything.
        connection.transport.abort()

    def _tell(self, peer: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._told_at >= TELL_SECONDS:
            self._told_at = now
            logger.warning(
                "more than %d connections are open, the latest from %s; those that send nothing "
                "are closed first. Keep strangers out with a reverse proxy or a firewall.",
                self.most,
                peer,
            )


class HttpConnection(HttpToolsProtocol):
    """One connection that tells when it waits for its peer."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, _KEY: self}, _loop)
        assert isinstance(config.app, Connections)
        self._all = config.app
        self._requests = 0
        self._is_stalled = False

    def begin(self) -> None:
        """Work on a request."""
        self._requests += 1
        self._set_clock()

    def end(self) -> None:
        """Be done with a request."""
        self._requests -= 1
        self._set_clock()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a head; the socket of this machine's commands is its owner's alone."""
        super().connection_made(transport)
        if transport.get_extra_info("socket").family != socket.AF_UNIX:
            self._all.add(self, str(transport.get_extra_info("peername")[0]))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Be gone."""
        self._all.remove(self)
        super().connection_lost(exc)

    @override
    def pause_writing(self) -> None:
        """Wait until the peer reads."""
        super().pause_writing()
        self._is_stalled = True
        self._set_clock()

    @override
    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self._is_stalled = False
        self._set_clock()

    def _set_clock(self) -> None:
        if self._is_stalled:
            self._all.wait(self, STALL_SECONDS)
        elif not self._requests:
            self._all.wait(self, HEAD_SECONDS)
        else:
            self._all.proceed(self)


REQUEST_GRACE_SECONDS = 3
"""How long open requests may take at shutdown: webhooks need milliseconds."""
BACKLOG = 65535
"""Connections that may wait in a burst: as many as the kernel lets wait (`net.core.somaxconn`).

The kernel drops connections when the queue is full; their clients try again after a second or more.
"""


class Listener(uvicorn.Server):
    """uvicorn without its own signal handling: the bridge decides the order of shutdown."""

    def __init__(
        self,
        application: Any,
        on_listening: Callable[[], None],
        *,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        """Listen for an application; only `trusted_proxies` are believed whom they speak for."""
        super().__init__(
            uvicorn.Config(
                Connections(application),
                http=HttpConnection,
                ws="none",
                lifespan="off",
                backlog=BACKLOG,
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                # Any program on this machine could claim to be a proxy, so none is one by itself.
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                timeout_graceful_shutdown=REQUEST_GRACE_SECONDS,
            )
        )
        self._on_listening = on_listening
        self._leaving = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then report it."""
        await super().startup(sockets)
        self._on_listening()

    async def main_loop(self) -> None:
        """Wait until told to stop; uvicorn itself looks ten times a second."""
        await self.on_tick(0)
        await self._leaving.wait()

    def leave(self) -> None:
        """Stop listening; the second time at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._leaving.set()


def bound(host: str, port: int, *, setting: str = "PORT") -> socket.socket:
    """Bind a port; `setting` is what names it.

    Raises:
        ConfigurationError: it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            setting,
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            f"Stop the program that uses it, or choose another {setting}.",
        ) from error
