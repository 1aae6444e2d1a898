"""A relay in this process, and a proxy in front of it that cuts connections when it is told to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from ssl import SSLContext
from threading import Thread
from typing import Any, Self, TypeVar

from aiohttp import web
from pydantic import SecretStr

from app.acp.relay import Relay, RelayedCommand

TOKEN = "a-token-of-the-tests-4711"
T = TypeVar("T")
SECONDS = 30.0
MARK = "BEHIND_A_RELAY"
"""The variable by which the tests find the processes behind a relay."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a relay listens, and what its processes carry."""

    port: int
    mark: str

    @property
    def url(self) -> str:
        """The address for an entry."""
        return f"ws://127.0.0.1:{self.port}"

    def processes(self) -> list[int]:
        """List the processes behind the relay that live, without the code under test."""
        wanted, found = f"{MARK}={self.mark}".encode(), []
        for each in Path("/proc").glob("[0-9]*"):
            try:
                carried = wanted in (each / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(each.name)] if carried else []
        return found


@asynccontextmanager
async def relay(
    argv: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    connections: int = 8,
    hold_seconds: float = 60.0,
    tls: SSLContext | None = None,
) -> AsyncIterator[Address]:
    """Serve a command on a port of its own."""
    mark = os.urandom(8).hex()
    around = {"PATH": os.environ["PATH"], "HOME": str(folder), **(environment or {}), MARK: mark}
    served = Relay(
        RelayedCommand(tuple(argv), around, folder),
        SecretStr(TOKEN),
        connections=connections,
        hold_seconds=hold_seconds,
    )
    runner = web.AppRunner(served.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield Address(runner.addresses[0][1], mark)
    finally:
        await runner.cleanup()


class CuttingProxy:
    """Passes bytes on to a port, until it cuts them off."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.connections = 0
        self.is_open = True

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, *, for_good: bool = False) -> None:
        """Cut every connection; for good, refuse new ones too."""
        self.is_open = not for_good
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, back]
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(_pass_on(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


class Elsewhere:
    """Another machine: a relay behind a cutting proxy, in a thread with its own event loop."""

    def __init__(self, argv: Sequence[str], folder: Path, **more: Any) -> None:
        self._serving = partial(relay, argv, folder, **more)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="elsewhere")
        self._stack = AsyncExitStack()
        self.folder = folder

    def __enter__(self) -> Self:
        self._thread.start()
        self.address = self._run(self._stack.enter_async_context(self._serving()))
        self.proxy = self._run(self._stack.enter_async_context(CuttingProxy(self.address.port)))
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._run(self._stack.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @property
    def entry(self) -> dict[str, Any]:
        """The entry of the agent there."""
        url = f"ws://127.0.0.1:{self.proxy.port}/agent"
        return {"url": url, "env": {"AGENT_TOKEN": TOKEN}, "mode": "ask"}

    def cut(self, *, for_good: bool = False) -> None:
        """Cut all connections; for good, no new one is let in."""

        async def cut() -> None:
            self.proxy.cut(for_good=for_good)

        self._run(cut())

    def mend(self) -> None:
        """Let connections in again."""
        self.proxy.is_open = True

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)
