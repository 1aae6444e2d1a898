"""Resolves names and connects to addresses, on behalf of children that can do neither."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_LOOKUPS: Final = 16
"""Threads for lookups: the event loop's are needed for files, and a lookup may hang."""


class Outside(Protocol):
    """The network that the bridge itself is in."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host.

        Raises:
            OSError: it has none, or the lookup failed.
        """
        ...

    async def connect(self, address: str, port: int) -> Streams:
        """Connect to an address.

        Raises:
            OSError: it does not answer.
        """
        ...


class Internet:
    """The network of this machine."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="lookup")

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host, the preferred one first."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, address: str, port: int) -> Streams:
        """Connect to an address."""
        return await asyncio.open_connection(address, port)
