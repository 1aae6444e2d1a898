"""Listens on the port with uvicorn; reports when it is ready and stops when told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from app.errors import ConfigurationError
from app.server.connections import Connection, Connections

REQUEST_GRACE_SECONDS = 3
"""How long open requests may take at shutdown: webhooks need milliseconds."""
BACKLOG = 65535
"""Connections that may wait in a burst: as many as the kernel lets wait (`net.core.somaxconn`).

The kernel loses whoever comes when the queue is full; they try again a second later at the soonest.
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
                http=Connection,
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
