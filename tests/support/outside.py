"""An internet on loopback: public names and addresses that lead to servers of a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.children.network.dialing import Streams

PUBLIC = "93.184.215.14"
"""An address that the proxy takes for one on the internet; nothing is ever sent to it."""


@dataclass
class Staged:
    """Resolves and connects as it was told, and never leaves this machine."""

    names: Mapping[str, Sequence[str]]
    routes: Mapping[str, int] = field(default_factory=dict)
    """Where a public address leads: to a port on loopback."""
    resolved: list[str] = field(default_factory=list)

    async def resolve(self, host: str) -> Sequence[str]:
        self.resolved.append(host)
        if host in self.names:
            return self.names[host]
        if host == "localhost":
            return ["::1", "127.0.0.1"]
        # Addresses in every spelling that a resolver knows, and no name: no look-up leaves here.
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        return [str(entry[4][0]) for entry in found]

    async def connect(self, address: str, port: int) -> Streams:
        if address in self.routes:
            return await asyncio.open_connection("127.0.0.1", self.routes[address])
        assert address.startswith("127.") or address == "::1", f"{address} is not of this test"
        return await asyncio.open_connection(address, port)
