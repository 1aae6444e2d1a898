"""Talks to an agent that serves ACP over Streamable HTTP.

Each message is a POST; what the agent says comes on event streams, one for the connection and one
for each conversation. A stream that ends is a connection that was cut: nothing on it has a number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import aiohttp
import orjson
from acp.http.protocol import (
    CONNECTION_ID_HEADER,
    CONTENT_TYPE_JSON,
    CONTENT_TYPE_SSE,
    SESSION_ID_HEADER,
    method_requires_session_header,
    session_id_from_message,
)
from typing_extensions import override

from app.acp.dialing import CONNECT_SECONDS, UNREACHED, explain, request_options
from app.acp.handshake import WAYS_BACK
from app.acp.json_values import mapping
from app.acp.launch import RemoteAddress
from app.acp.remote import RemoteAgent
from app.acp.transport import MAX_FRAME_BYTES, FrameTooLong, Framing
from app.errors import AgentCutOff, AgentMisbehaved

_NOT_SERVED: Final = {"code": -32002, "message": "the conversation is not served any more"}
_STREAM_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
"""A stream lasts as long as its connection."""


class Events:
    """Reads an event stream: returns the data of each event, on one line."""

    def __init__(self) -> None:
        self._framing = Framing()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, block: bytes) -> Iterator[bytes]:
        """Take a block and yield the data of the events that it completes.

        Raises:
            FrameTooLong: one of them is too long.
        """
        for line in self._framing.feed(block):
            name, _, value = line.rstrip(b"\r").partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._size += len(value)
            if self._size > MAX_FRAME_BYTES:
                raise FrameTooLong
            if not line.strip() and self._data:
                yield b" ".join(self._data)
                self._data, self._size = [], 0


class HttpAgent(RemoteAgent):
    """One connection over HTTP."""

    def __init__(self, address: RemoteAddress, name: str, marker: str) -> None:
        super().__init__(address, name, marker)
        self._queue: deque[bytes] = deque()
        self._connection = ""
        self._streams: set[str] = set()
        self._restoring: dict[str, str] = {}
        """Requests to restore a conversation, each with its id; it has no stream before that."""

    @override
    async def connect(self) -> None:
        """Do nothing: the first message shows whether it can be reached."""

    @override
    def write(self, data: bytes) -> None:
        """Queue one message."""
        self._check_open()
        self._queue.append(data)

    @override
    async def drain(self) -> None:
        """Post what is queued, one after another."""
        async with self._sending:
            while self._queue:
                try:
                    await self._post(self._queue.popleft())
                except UNREACHED as error:
                    self._fail(explain(error, self.name, self._address))
        self._check_open()

    @override
    async def take_leave(self) -> None:
        """Delete the connection."""
        if not self._connection:
            return
        headers = {CONNECTION_ID_HEADER: self._connection}
        options = request_options(self._address, headers)
        try:
            async with self._session.delete(self._address.url, **options):
                pass
        except UNREACHED as error:
            raise ConnectionError(str(error)) from error

    async def _post(self, line: bytes) -> None:
        message = orjson.loads(line)
        method, session = message.get("method"), session_id_from_message(message)
        headers = {"Content-Type": CONTENT_TYPE_JSON}
        if self._connection:
            headers[CONNECTION_ID_HEADER] = self._connection
        if session and method_requires_session_header(method):
            headers[SESSION_ID_HEADER] = session
        if session and method in WAYS_BACK.values():
            self._restoring[str(message["id"])] = session
        options = request_options(self._address, headers)
        async with self._session.post(self._address.url, data=line, **options) as answer:
            answer.raise_for_status()
            body = await answer.content.read(MAX_FRAME_BYTES + 1)
            if len(body) > MAX_FRAME_BYTES:
                self._fail(AgentMisbehaved(self.name, str(FrameTooLong())))
                return
            if method == "initialize":
                self._connection = answer.headers.get(CONNECTION_ID_HEADER, "")
        if not self._connection:
            problem = f"what runs at {self._address.host} does not speak ACP over HTTP"
            self._fail(AgentMisbehaved(self.name, problem))
        elif method == "initialize":
            await self._listen("")
        if body.strip():
            self._feed(body)

    async def _listen(self, session: str) -> bool:
        """Open the stream of the connection or of a conversation; False if there is none."""
        if session in self._streams:
            return True
        self._streams.add(session)
        headers = {"Accept": CONTENT_TYPE_SSE, CONNECTION_ID_HEADER: self._connection}
        if session:
            headers[SESSION_ID_HEADER] = session
        options = request_options(self._address, headers) | {"timeout": _STREAM_TIMEOUT}
        stream = await self._session.get(self._address.url, **options)
        if not stream.ok:
            stream.close()
            self._streams.discard(session)
            return False
        self._tasks.start(self._read(stream), name=f"stream {session[:6]}")
        return True

    async def _read(self, stream: aiohttp.ClientResponse) -> None:
        events = Events()
        try:
            async for block in stream.content.iter_any():
                await self._reading.may_go_on.wait()
                for data in events.feed(block):
                    await self._take(data)
        except FrameTooLong as error:
            self._fail(AgentMisbehaved(self.name, str(error)))
        except UNREACHED:
            pass
        finally:
            stream.close()
        self._fail(AgentCutOff(self.name, self._address.host, was_held=False))

    async def _take(self, data: bytes) -> None:
        """Pass a message on; a conversation that it names gets its stream first."""
        try:
            message = dict(mapping(orjson.loads(data)))
        except orjson.JSONDecodeError:
            message = {}
        restored = self._restoring.pop(str(message.get("id")), None)
        session = restored or session_id_from_message(message)
        if session and "error" not in message and not await self._listen(session) and restored:
            answer = {"jsonrpc": "2.0", "id": message.get("id"), "error": _NOT_SERVED}
            data = orjson.dumps(answer)
        self._feed(data)
