"""Connects one child in its own network to the outside: its proxy and its forwarded ports.

The child's first program binds the ports inside and sends the listening sockets out; so no part of
the bridge runs inside, and nothing inside reaches an address directly.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from app.children.network.access import NetworkAccess, NetworkRules, SessionHosts, Witness
from app.children.network.dialing import Dialer
from app.children.network.proxy import HEAD_BYTES, Proxy, relay
from app.tasks import Tasks

HANDOVER_SECONDS: Final = 20.0
"""It takes 20 ms; a machine with many starting agents may need many times as long."""
_FIRST_PORT: Final = 18118
"""The proxy's port inside; no known program uses it."""
_CONNECTIONS: Final = 128
"""Open connections per child: a package install needs some 50, each two of our handles."""
_CUT_SECONDS: Final = 2.0
"""How long the end of all connections may take; they are cancelled."""
_LOOPBACK: Final = "127.0.0.1"
_NOT_PROXIED: Final = "localhost,127.0.0.1,::1"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class PortHandover:
    """Loopback ports that are bound inside a sandbox, and where their sockets are sent."""

    channel: int
    """A descriptor that the command inherits: a unix socket; the bridge has the other end."""
    ports: tuple[int, ...]


class HandoverFailed(Exception):
    """The child did not hand over its ports."""


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of one agent."""

    rules: NetworkRules
    dialer: Dialer
    forwards: tuple[int, ...] = ()
    """Ports on this machine's loopback that the agent reaches on its own loopback."""

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports to bind inside: the proxy's, then the forwarded ones."""
        return () if self.rules.mode == "none" else (self._proxy_port, *self.forwards)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point programs to the proxy."""
        if self.rules.mode == "none":
            return {}
        proxy = f"http://{_LOOPBACK}:{self._proxy_port}"
        named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy)
        named["NO_PROXY"] = _NOT_PROXIED
        both = named | {name.lower(): value for name, value in named.items()}
        return {**both, "NODE_USE_ENV_PROXY": "1"}

    @property
    def _proxy_port(self) -> int:
        port = _FIRST_PORT
        while port in self.forwards:
            port += 1
        return port


class NetworkLink:
    """The network of one child, from before its start until its end."""

    def __init__(self, plan: NetworkPlan, owner: str, hosts: SessionHosts | None = None) -> None:
        self._plan = plan
        self._tasks = Tasks(f"network of {owner}")
        self._access = NetworkAccess(plan.rules, hosts or SessionHosts(), self._tasks)
        self._mine, self._theirs = socket.socketpair()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._is_open = True

    @property
    def handover(self) -> PortHandover | None:
        """Instructions for the first program inside; None if there is nothing to bind."""
        ports = self._plan.ports
        return PortHandover(self._theirs.fileno(), ports) if ports else None

    def tell(self, witness: Witness) -> None:
        """Report refusals to this witness, and ask it, from now on."""
        self._access.witness = witness

    async def serve(self) -> None:
        """Take over the ports from the child that was just started, and serve them.

        Raises:
            HandoverFailed: they did not arrive.
        """
        self._theirs.close()
        sockets = await self._receive() if self._plan.ports else []
        self._mine.close()
        proxy = Proxy(self._access, self._plan.dialer)
        hosts: list[Serve] = [proxy.serve, *map(self._forward, self._plan.forwards)]
        for listening, host in zip(sockets, hosts, strict=False):
            listening.setblocking(False)
            server = await asyncio.start_server(
                self._limit_connections(host), sock=listening, limit=HEAD_BYTES
            )
            self._servers.append(server)

    def resume(self) -> None:
        """Accept connections again."""
        self._is_open = True

    async def pause(self) -> None:
        """Refuse every connection from now on, and end those that are open."""
        self._is_open = False
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=_CUT_SECONDS)

    async def close(self) -> None:
        """End every connection."""
        self._theirs.close()
        self._mine.close()
        for server in self._servers:
            server.close()
        await self._tasks.close()

    async def _receive(self) -> list[socket.socket]:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._mine.setblocking(False)
        loop.add_reader(self._mine, arrived.set)
        try:
            async with asyncio.timeout(HANDOVER_SECONDS):
                await arrived.wait()
        except TimeoutError:
            raise HandoverFailed(f"no answer within {HANDOVER_SECONDS:g} s") from None
        finally:
            loop.remove_reader(self._mine)
        wanted = len(self._plan.ports)
        try:
            _, descriptors, _, _ = socket.recv_fds(self._mine, 64, wanted)
        except OSError as error:
            raise HandoverFailed(error.strerror) from error
        received = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(received) != wanted:
            for each in received:
                each.close()
            raise HandoverFailed("its first program did not run")
        return received

    def _limit_connections(
        self, host: Serve
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        """Serve each connection in a task of this link, up to a limit."""

        def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not self._is_open or len(self._connections) >= _CONNECTIONS:
                writer.close()
                return
            task = self._tasks.start(host(reader, writer), name="connection")
            self._connections.add(task)

            def forget(_task: object) -> None:
                self._connections.discard(task)
                writer.close()  # a task that is cancelled before it begins closes nothing

            task.add_done_callback(forget)

        return receive

    def _forward(self, port: int) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for address in (_LOOPBACK, "::1"):
                with suppress(OSError):
                    far = await self._plan.dialer.outside.connect(address, port)
                    await relay((reader, writer), far)
                    return
            writer.close()

        return serve
