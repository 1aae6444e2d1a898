"""Listens on the port, with uvicorn; says when it does, and leaves when it is told."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from app.errors import ConfigurationError

REQUEST_GRACE_SECONDS = 3
"""What requests may still take after the last one was let in: webhooks need milliseconds."""
BACKLOG = 2048
"""Connections that may wait in a burst."""


class Listener(uvicorn.Server):
    """uvicorn without signal handling of its own: who stops the bridge decides the order."""

    def __init__(self, application: Any, on_listening: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=REQUEST_GRACE_SECONDS,
            )
        )
        self._on_listening = on_listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, then say so."""
        await super().startup(sockets)
        self._on_listening()

    def leave(self) -> None:
        """Stop listening; the second time at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def bound(host: str, port: int) -> socket.socket:
    """Bind the port.

    Raises:
        ConfigurationError: it cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            "PORT",
            f"{host}:{port} cannot be listened on: {error.strerror or error}",
            "Stop whoever uses it, or choose another PORT.",
        ) from error
