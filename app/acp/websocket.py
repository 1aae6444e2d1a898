"""Talks to an agent on another machine by a WebSocket.

Behind a relay a connection that is cut is made again, and nothing is lost or doubled. Any other
agent ends with its connection, as a process that died.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
from typing_extensions import override

from app.acp.dialing import (
    CONNECT_SECONDS,
    UNREACHED,
    Socket,
    explain,
    open_socket,
)
from app.acp.launch import RemoteAddress
from app.acp.numbered import (
    KEPT_BYTES,
    PROTOCOL,
    NumberedLines,
    control,
    read_control,
)
from app.acp.remote import RemoteAgent
from app.acp.transport import FrameTooLong
from app.errors import AgentCutOff, AgentDied, AgentMisbehaved, AgentNotStarted

logger = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS: Final = 3600.0
"""How long a cut connection is tried again, however long a relay says that it waits."""
PAUSES_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Between two tries; the last one again and again."""
_REFUSALS: Final = {
    "full": ("has no room for another conversation", "Raise --connections of its relay."),
    "gone": ("has ended the agent meanwhile", "Send your message again."),
}


class WebSocketAgent(RemoteAgent):
    """One connection by a WebSocket, to a relay or to an agent that serves ACP itself."""

    def __init__(self, address: RemoteAddress, name: str, marker: str, owner: str) -> None:
        """Prepare; `owner` is the session that it works for, if it is one."""
        super().__init__(address, name, marker)
        self._owner = owner
        self._socket: Socket | None = None
        self._connection = ""
        """The relay's name of the process; empty without a relay."""
        self._hold_seconds = 0.0
        """How long the relay waits for a connection that was cut."""
        self._lines = NumberedLines()
        self._queue: deque[bytes] = deque()
        self._has_room = asyncio.Event()
        self._is_ending = False

    @override
    def write(self, data: bytes) -> None:
        """Queue one line; behind a relay it is kept until it is confirmed."""
        self._check_open()
        line = data.removesuffix(b"\n")
        self._queue.append(self._lines.number(line) if self._connection else line)

    @override
    async def drain(self) -> None:
        """Send what is queued, or keep it while a cut connection is made again."""
        async with self._sending:
            while self._queue and self._socket is not None:
                await self._send(self._socket, self._queue.popleft())
        while self._lines.kept_bytes > KEPT_BYTES and self.status is None:
            self._has_room.clear()
            await self._has_room.wait()
        self._check_open()

    @override
    async def take_leave(self) -> None:
        """Let a relay end the process with all that it started."""
        if self._socket is not None and self._connection:
            self._is_ending = True
            await self._socket.send_str(control(end=True))
            await self._ended.wait()

    @override
    async def close(self) -> None:
        """Close the connection."""
        await super().close()
        if self._socket is not None:
            await self._socket.close()

    # Its connection.

    @override
    async def connect(self) -> None:
        """Connect for the first time, and follow what comes."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connected = await self._open()
        except UNREACHED as error:
            raise explain(error, self.name, self._address) from error
        self._tasks.start(self._follow(connected), name="connection")

    async def _open(self) -> Socket:
        """Open the connection; a relay is told which one it continues.

        Raises:
            AgentNotStarted: a relay has no room, or has ended the process.
        """
        made = await open_socket(self._session, self._address)
        try:
            if made.protocol == PROTOCOL:
                await self._greet(made)
        except BaseException:
            await made.close()
            raise
        self._socket = made  # a relay's is set already, before anything else could be sent
        return made

    async def _greet(self, to: Socket) -> None:
        """Say to a relay who connects, and read what it has.

        Raises:
            AgentNotStarted: it has no room, or has ended the process.
        """
        hello = {"connection": self._connection, "received": self._lines.received}
        await to.send_str(control(**hello, owner=self._owner))
        facts = read_control(await to.receive_str())
        if refused := facts.get("refused"):
            problem, remedy = _REFUSALS.get(refused, _REFUSALS["gone"])
            raise AgentNotStarted(self.name, f"{self._address.host} {problem}", remedy)
        if isinstance(ended := facts.get("ended"), dict):
            words = str(ended.get("words", "")).rstrip(".")
            problem = f"{self._address.host} could not start the agent: {words}"
            raise AgentNotStarted(self.name, problem, "Check the command of its relay.")
        self._connection = str(facts["connection"])
        self._hold_seconds = min(float(facts.get("hold", 0)), LONGEST_HOLD_SECONDS)
        self.folder = self._address.folder or str(facts.get("folder", "/"))
        async with self._sending:
            self._queue.clear()
            for frame in self._lines.missing(int(facts.get("received", 0))):
                await to.send_bytes(frame)
            self._socket = to

    async def _follow(self, connected: Socket) -> None:
        """Read until the agent is gone; make a cut connection again."""
        while True:
            try:
                await self._read(connected)
            except (ConnectionError, aiohttp.ClientError) as error:
                logger.info("%s: the connection was cut: %s", self.name, error)
            except ValueError as error:
                self._fail(AgentMisbehaved(self.name, f"its relay cannot be understood: {error}"))
            if self._is_ending:
                self._finish(0)
            if self.status is not None:
                return
            again = await self._resume(connected) if self._connection else None
            if again is None:
                host = self._address.host
                self._fail(
                    self.failure or AgentCutOff(self.name, host, was_held=bool(self._connection))
                )
                return
            connected = again

    async def _resume(self, cut: Socket) -> Socket | None:
        """Make a cut connection again; None if that did not work in time."""
        self._socket = None
        await cut.close()
        pauses = iter(PAUSES_SECONDS)
        try:
            async with asyncio.timeout(self._hold_seconds):
                while True:
                    await asyncio.sleep(next(pauses, PAUSES_SECONDS[-1]))
                    try:
                        made = await self._open()
                    except UNREACHED as error:
                        logger.info("%s: not reached again yet: %s", self.name, error)
                        continue
                    self._has_room.set()
                    logger.info("%s: the connection was resumed", self.name)
                    return made
        except AgentNotStarted as error:
            logger.warning("%s", error)
        except TimeoutError:
            logger.warning("%s: not reached again in %g s", self.name, self._hold_seconds)
        return None

    async def _read(self, connected: Socket) -> None:
        """Pass on what arrives; returns when the connection is cut or the agent has ended."""
        async for message in connected:
            await self._reading.may_go_on.wait()
            if message.type is aiohttp.WSMsgType.ERROR:
                break
            if not self._connection:
                data = message.data
                self._feed(data.encode() if isinstance(data, str) else data)
            elif message.type is aiohttp.WSMsgType.BINARY:
                if (line := self._lines.take(message.data)) is not None:
                    self.stdout.feed(line + b"\n")
                if (confirmation := self._lines.confirm()) is not None:
                    await connected.send_str(confirmation)
            elif self._obey(read_control(message.data)):
                return
        failure = connected.exception()
        if isinstance(failure, aiohttp.WebSocketError):
            self._fail(AgentMisbehaved(self.name, str(FrameTooLong())))

    def _obey(self, facts: Mapping[str, Any]) -> bool:
        """Act on what a relay says; tells whether the agent has ended."""
        if isinstance(ended := facts.get("ended"), dict):
            status = ended.get("status")
            self._words = str(ended.get("words", ""))
            if problem := ended.get("problem"):
                self._fail(AgentMisbehaved(self.name, str(problem)))
            words = " ".join(self._words.split())
            exited = status if isinstance(status, int) else None
            self._fail(AgentDied(self.name, status=exited, last_words=words), exited or 0)
            return True
        self._lines.drop(int(facts.get("received", 0)))
        self._has_room.set()
        return False

    async def _send(self, to: Socket, line: bytes) -> None:
        try:
            await (to.send_bytes(line) if self._connection else to.send_str(line.decode()))
        except ConnectionError:
            if not self._connection:
                raise
            self._socket = None  # kept: it is sent again on the next connection

    @override
    def _finish(self, status: int) -> None:
        super()._finish(status)
        self._has_room.set()
