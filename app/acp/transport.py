"""Exchanges JSON-RPC frames with one agent over the pipes of its process: one JSON text per line.

Updates are handled here, in order, before anything that came after them is passed on, so that an
answer never overtakes what happened before it. Input costs bounded memory and never more than one
block of the event loop's time; invalid input is dropped and counted. No decoded text has a
character that a database or an encoding refuses.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

import orjson
from acp import RequestError

from app.acp.json_values import mapping
from app.errors import BridgeError

logger = logging.getLogger(__name__)

Message = dict[str, Any]

MAX_FRAME_BYTES = 8 * 1024 * 1024  # the longest honest frame is a tool's output or an image

_NUL, _REPLACED = rb"\u0000", rb"\ufffd"
_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(rb"%s(?!%s)|(?<!%s)%s" % (_HIGH, _LOW, _HIGH, _LOW))
# What serialisers write for numbers that JSON does not have, or that no double holds.
_NUMBER = re.compile(
    rb"(?<=[:,\[])\s*-?(?:NaN|Infinity|\d{300,}|\d+(?:\.\d+)?[eE]\+?\d{3,})(?=\s*[,\]}])"
)

BLOCK_BYTES = 128 * 1024  # two fills of a pipe, a millisecond or two of work
BATCH_FRAMES = 1000  # after this many other tasks get their turn, however short the frames are
MAX_OPEN_REQUESTS = 64  # an agent waits for a handful of answers at once, not for dozens
MAX_OPEN_BYTES = 2 * MAX_FRAME_BYTES  # memory that those requests may hold together
MAX_REFUSALS = 10_000  # an agent that keeps asking after so many refusals is out of control
WRITE_SECONDS = 30.0  # an agent that is busy still reads its input from time to time

CANCEL_REQUEST = "$/cancel_request"
ASKING = frozenset({"session/request_permission", "elicitation/create"})
"""Requests that wait for people, which an agent may take back."""
REQUEST_ID = "agent_bridge_request"
"""The key in `_meta` under which the handler of such a request finds its id."""

TOO_MANY = {"code": -32000, "message": "too many open requests"}


class FrameTooLong(BridgeError):
    """A frame, or the beginning of one, exceeds the limit."""

    def __init__(self) -> None:
        super().__init__(f"a message of more than {MAX_FRAME_BYTES // 2**20} MiB")


class Framing:
    """Takes bytes as they come and returns frames as soon as they are complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, block: bytes) -> list[bytes]:
        """Take a block and return the frames that it completes.

        Raises:
            FrameTooLong: one of them, or the one that has begun, is too long.
        """
        lines = block.split(b"\n")
        tail = lines.pop()
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += tail
        if len(self._rest) > MAX_FRAME_BYTES or (lines and len(lines[0]) > MAX_FRAME_BYTES):
            raise FrameTooLong
        return lines

    def finish(self) -> list[bytes]:
        """Return what came after the last line break, at the end of the stream."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest] if rest else []


def decode(frame: bytes) -> Any:
    """Read a frame; refused characters become U+FFFD, and numbers that are none become null.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
    """
    if _NUL in frame:
        frame = _replace(frame, lambda text: text.replace(_NUL, _REPLACED))
    try:
        return orjson.loads(frame)
    except orjson.JSONDecodeError:
        repaired = _replace(frame, lambda text: _HALF.sub(rb"\\ufffd", text))
        return orjson.loads(_NUMBER.sub(b"null", repaired))


def _replace(frame: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Change escapes; a backslash that is itself escaped begins none, and is hidden meanwhile."""
    if b"\0" in frame:
        return frame  # not JSON
    return change(frame.replace(rb"\\", b"\0")).replace(b"\0", rb"\\")


def plain_answer(message: Message) -> Message:
    """Leave details out of an error: the SDK puts the agent's whole input into them."""
    error = message.get("error")
    if not isinstance(error, dict):
        return message
    return {**message, "error": {"code": error.get("code"), "message": error.get("message")}}


def plain_error(error: object) -> Message:
    """Give an agent's error the shape that the SDK expects."""
    facts: Message = error if isinstance(error, dict) else {"message": error}
    code, message = facts.get("code"), facts.get("message")
    return {
        "code": code if type(code) is int else -32603,
        "message": message if isinstance(message, str) else "an error without a message",
        "data": facts.get("data"),
    }


def _with_id(message: Message, identifier: int | str) -> Message:
    """Tell the handler of a request its id, which the SDK keeps to itself."""
    params = mapping(message.get("params"))
    known = {**mapping(params.get("_meta")), REQUEST_ID: identifier}
    return {**message, "params": {**params, "_meta": known}}


class ByteReader(Protocol):
    """Where the agent's output arrives."""

    async def read(self, n: int, /) -> bytes:
        """Return what is available, up to n bytes; empty at the end."""


class Pipes(Protocol):
    """The agent's process as the transport uses it."""

    @property
    def stdout(self) -> ByteReader:
        """The agent's output."""

    def write(self, data: bytes, /) -> None:
        """Queue bytes for the agent's input."""

    async def drain(self) -> None:
        """Wait until the agent has taken most of what was written."""

    def discard_output(self) -> None:
        """Stop reading and discard further output."""


class Hearer(Protocol):
    """A listener for updates; each method returns an awaitable or None."""

    def take(self, params: Any) -> Awaitable[None] | None:
        """Take the parameters of one `session/update`."""

    def notify(self, method: str, params: object) -> bool:
        """Take any other notification; False if it says nothing."""
        ...

    def settle(self) -> Awaitable[None] | None:
        """Pass on what was queued, because something else comes next."""

    def answer(self, method: str, params: object) -> Message | None:
        """Answer a request that needs no person; None if it is another one."""

    def withdraw(self, identifier: object) -> None:
        """Take back a request of the agent that is not answered yet."""


class AgentTransport:
    """The object under the SDK's connection: `send`, `receive`, `close`."""

    def __init__(self, pipes: Pipes, hearer: Hearer, count: Callable[[str], None]) -> None:
        self._pipes = pipes
        self._hearer = hearer
        self._count = count
        self._framing = Framing()
        self._frames: Iterator[bytes] = iter(())
        self._batches: list[list[bytes]] = []
        self._at_end = False
        self._returned = False
        self._sent: set[int | str] = set()
        self._own: dict[str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._open: dict[int | str, int] = {}
        self._refused = 0
        self.finished = asyncio.Event()
        """Set when the stream has ended."""
        self.cause: str | None = None
        """The rule that the agent broke, if that ended the stream; None for a plain end."""
        self.failure: Exception | None = None
        """What the hearer raised, if that ended the stream."""

    # Called by the SDK.

    async def send(self, message: Message) -> None:
        """Write one message; an answer to an agent that has gone is dropped.

        Raises:
            ConnectionError: the agent cannot be told anything any more.
        """
        answer = "method" not in message
        if answer:
            self._open.pop(message["id"], None)
            message = plain_answer(message)
        elif "id" in message:
            self._sent.add(message["id"])
        try:
            await self._write(message)
        except ConnectionError:
            if not answer:
                raise
            self._count("unheard_answer")

    async def receive(self) -> Message | None:
        """Return the next request or answer of the agent; None at the end of the stream."""
        if self._returned:
            # The receiver of the last message must act before later updates are handled.
            self._returned = False
            await asyncio.sleep(0)
        try:
            while not self.finished.is_set():
                message = await self._handle(self._frames)
                if message is not None:
                    self._returned = True
                    return message
                await self._refill()
        except Exception as error:
            logger.exception("could not handle an update")
            self.failure = error
            self.end()
        return None

    async def close(self) -> None:
        """End the stream on our side."""
        self.end()

    # Called by a session.

    async def request(self, method: str, params: Message) -> Any:
        """Send a request that the SDK has no method for, or would change.

        Raises:
            RequestError: the agent answered with an error.
            ConnectionError: the stream ended.
        """
        identifier = f"bridge-{next(self._numbers)}"
        future = asyncio.get_running_loop().create_future()
        self._own[identifier] = future
        try:
            await self.send(
                {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
            )
            return await future
        finally:
            del self._own[identifier]

    def end(self, cause: str | None = None) -> None:
        """End the stream now, for this reason."""
        if self.finished.is_set():
            return
        self.cause = cause
        self.finished.set()
        self._framing = Framing()
        self._frames = iter(())
        self._batches.clear()
        self._pipes.discard_output()
        for future in self._own.values():
            if not future.done():
                future.set_exception(ConnectionError("the agent's stream ended"))

    # In.

    async def _handle(self, frames: Iterator[bytes]) -> Message | None:
        """Handle frames up to the first one that the SDK has to see."""
        take = self._hearer.take
        for frame in frames:
            try:
                message = decode(frame)
            except orjson.JSONDecodeError:
                if frame and not frame.isspace():
                    self._count("not_json")
                continue
            if type(message) is not dict:
                self._count("not_an_object")
            elif message.get("method") == "session/update":
                waiting = take(message.get("params"))
                if waiting is not None:
                    await waiting
            elif (wanted := await self._sort(message, len(frame))) is not None:
                return wanted
        await self._settle()
        return None

    async def _refill(self) -> None:
        await asyncio.sleep(0)  # a full pipe never suspends; other tasks must get their turn
        if not self._batches:
            await self._read()
        self._frames = iter(self._batches.pop(0) if self._batches else ())

    async def _read(self) -> None:
        if self._at_end:
            self.end()
            return
        block = await self._pipes.stdout.read(BLOCK_BYTES)
        self._at_end = not block
        try:
            frames = self._framing.feed(block) if block else self._framing.finish()
        except FrameTooLong as error:
            self.end(str(error))
            return
        self._batches = [
            frames[start : start + BATCH_FRAMES] for start in range(0, len(frames), BATCH_FRAMES)
        ]

    async def _sort(self, message: Message, size: int) -> Message | None:
        """Return what the SDK has to see; drop, refuse or take everything else."""
        identifier, method = message.get("id"), message.get("method")
        if type(identifier) is not int and type(identifier) is not str:
            await self._take_notification(message)
            return None
        if method is None:
            return await self._answer(message, identifier)
        if not isinstance(method, str) or identifier in self._open:
            self._count("senseless_request")
            return None
        if (answer := self._hearer.answer(method, message.get("params"))) is not None:
            await self.send({"jsonrpc": "2.0", "id": identifier, "result": answer})
            return None
        if len(self._open) >= MAX_OPEN_REQUESTS or sum(self._open.values(), size) > MAX_OPEN_BYTES:
            await self._refuse(identifier)
            return None
        self._open[identifier] = size
        await self._settle()
        return _with_id(message, identifier) if method in ASKING else message

    async def _take_notification(self, message: Message) -> None:
        """Let an agent take back a request, or say something of its work; count all else."""
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            self._count("no_id")
            return
        if method == CANCEL_REQUEST:
            identifier = mapping(params).get("requestId")
            if isinstance(identifier, int | str) and identifier in self._open:
                self._hearer.withdraw(identifier)
                return
        await self._settle()
        if not self._hearer.notify(method, params):
            self._count("notification")

    async def _answer(self, message: Message, identifier: int | str) -> Message | None:
        if identifier not in self._sent:
            self._count("unknown_id")
            return None
        self._sent.discard(identifier)
        error = None if "result" in message else plain_error(message.get("error"))
        await self._settle()
        future = self._own.get(identifier) if isinstance(identifier, str) else None
        if future is None:
            return message if error is None else {**message, "error": error}
        if future.done():
            return None
        if error is None:
            future.set_result(message["result"])
        else:
            future.set_exception(RequestError(**error))
        await asyncio.sleep(0)
        return None

    async def _refuse(self, identifier: int | str) -> None:
        self._count("refused_request")
        self._refused += 1
        if self._refused > MAX_REFUSALS:
            self.end("a flood of requests")
            return
        await self.send({"jsonrpc": "2.0", "id": identifier, "error": TOO_MANY})

    async def _settle(self) -> None:
        waiting = self._hearer.settle()
        if waiting is not None:
            await waiting

    # Out.

    async def _write(self, message: Message) -> None:
        if self.finished.is_set():
            raise ConnectionError("the agent's stream ended")
        data = orjson.dumps(message, default=str) + b"\n"
        try:
            self._pipes.write(data)
            async with asyncio.timeout(WRITE_SECONDS):
                await self._pipes.drain()
        except TimeoutError:
            self.end(f"it did not read its input for {WRITE_SECONDS:g} s")
            raise ConnectionError("the agent does not read its input") from None
