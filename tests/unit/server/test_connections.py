"""Connections that wait for their peer: they run out of time, and those that work do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.server import listener as connections
from app.server.listener import Listener, bound
from app.server.local_socket import bind_local, socket_path

pytestmark = pytest.mark.anyio

SECONDS = 5.0
BRIEF_SECONDS = 0.05
REQUEST = b"GET / HTTP/1.1\r\nHost: any\r\n\r\n"
LARGE = 64 * 1024 * 1024
"""More than the kernel holds for a peer that does not read."""


class Scene:
    """An application that answers when it may, and one that answers at length."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.called = asyncio.Event()
        self.ended = asyncio.Event()

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        self.called.set()
        await self.may_answer.wait()
        body = bytes(LARGE if scope["path"] == "/large" else 2)
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for start in range(0, len(body), 2**20):
            piece = {"body": body[start : start + 2**20], "more_body": start + 2**20 < len(body)}
            await send({"type": "http.response.body", **piece})
        self.ended.set()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[Scene]:
    """Listen on a port and on the socket of a folder."""
    port = bound("127.0.0.1", 0)
    scene = Scene(port.getsockname()[1])
    ready = asyncio.Event()
    listener = Listener(scene.application, ready.set)
    serving = asyncio.create_task(listener.serve(sockets=[port, bind_local(folder)]))
    async with asyncio.timeout(SECONDS):
        await ready.wait()
    yield scene
    scene.may_answer.set()
    listener.leave()
    async with asyncio.timeout(SECONDS):
        await serving


async def read_all(reader: asyncio.StreamReader) -> bytes:
    """Read until the bridge closes the connection, however it does."""
    async with asyncio.timeout(SECONDS):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: any\r\nX-A:"])
async def test_a_head_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", BRIEF_SECONDS)
    async with serve(tmp_path) as scene:
        reader, writer = await scene.open()
        writer.write(sent)

        assert await read_all(reader) == b""
        writer.close()


async def test_the_second_head_of_a_connection_has_no_more_time_than_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", BRIEF_SECONDS)
    async with serve(tmp_path) as scene:
        reader, writer = await scene.open()
        writer.write(REQUEST + b"GET / HTT")

        assert (await read_all(reader)).count(b"HTTP/1.1 200") == 1
        writer.close()


async def test_a_request_that_takes_long_keeps_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", BRIEF_SECONDS)
    async with serve(tmp_path) as scene:
        scene.may_answer.clear()
        reader, writer = await scene.open()
        writer.write(REQUEST)
        await scene.called.wait()
        silent, other = await scene.open()
        assert await read_all(silent) == b""  # so the time of a head has passed

        scene.may_answer.set()

        assert (await read_all(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
        other.close()


async def test_a_peer_that_reads_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", BRIEF_SECONDS)
    async with serve(tmp_path) as scene:
        with socket.create_connection(("127.0.0.1", scene.port), SECONDS) as peer:
            peer.sendall(REQUEST.replace(b"/ ", b"/large ", 1))
            async with asyncio.timeout(SECONDS):
                await scene.ended.wait()


async def test_the_longest_silent_connection_is_closed_for_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 3)
    async with serve(tmp_path) as scene:
        scene.may_answer.clear()
        working, first = await scene.open()
        first.write(REQUEST)
        await scene.called.wait()
        silent = [await scene.open() for _ in range(2)]

        late, last = await scene.open()
        last.write(REQUEST)

        assert await read_all(silent[0][0]) == b""
        scene.may_answer.set()
        assert (await late.readline(), await working.readline()) == (b"HTTP/1.1 200 OK\r\n",) * 2
        for writer in (first, last, *(each for _, each in silent)):
            writer.close()


async def test_commands_of_this_machine_get_in_however_many_connections_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS", 1)
    async with serve(tmp_path) as scene:
        scene.may_answer.clear()
        _, busy = await scene.open()
        busy.write(REQUEST)
        await scene.called.wait()
        scene.may_answer.set()
        with socket_path(tmp_path) as path:
            reader, writer = await asyncio.open_unix_connection(path)
        writer.write(REQUEST)

        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        busy.close()
        writer.close()
