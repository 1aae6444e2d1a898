"""A company's HTTP proxy on loopback: it wants a password, and signs what it passes on itself.

As the real ones do, it answers `CONNECT`, ends TLS with a certificate of its own authority, and
passes plain bytes on. Only it knows where a host is.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.support.certificates import certified

PERSON = "bridge"
PASSWORD = "password-of-the-company-proxy"
SECONDS = 60.0


@dataclass
class CompanyProxy:
    """The only way from a bridge to one host, which is a port on loopback."""

    folder: Path
    host: str
    leads_to: int
    asked: list[tuple[str, int]] = field(default_factory=list)
    """The destination of each request, and the status that answered it."""

    def __post_init__(self) -> None:
        self.context, self.authority = certified(self.folder, self.host)
        self._listens = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listens.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(SECONDS)
        self._loop.close()

    @property
    def url(self) -> str:
        """How a setting names it."""
        return f"http://{PERSON}:{PASSWORD}@127.0.0.1:{self._port}"

    async def _run(self) -> None:
        self._ended = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._listens.set()
        async with server:
            await self._ended.wait()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not await self._answer(reader, writer):
                pass
            await writer.start_tls(self.context)
            await self._pass_on(reader, writer)
        await _end(writer)
        self._open.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tells whether the way is open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = head.split()[1]
        status = self._judge(target, head)
        self.asked.append((target, status))
        more = {407: 'Proxy-Authenticate: Basic realm="company"\r\nContent-Length: 0\r\n'}
        writer.write(f"HTTP/1.1 {status} Answer\r\n{more.get(status, '')}\r\n".encode())
        return status == 200

    def _judge(self, target: str, head: str) -> int:
        right = base64.b64encode(f"{PERSON}:{PASSWORD}".encode()).decode()
        if f"\r\nproxy-authorization: basic {right}".lower() not in head.lower():
            return 407
        return 200 if target == f"{self.host}:443" else 502

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.leads_to)
        ways = [
            asyncio.create_task(_copy(reader, far_writer)),
            asyncio.create_task(_copy(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await _end(far_writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends."""
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


async def _end(writer: asyncio.StreamWriter) -> None:
    """End a connection without a farewell, and wait until its socket is closed."""
    writer.transport.abort()
    with suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 5)
