"""Connects to an agent on another machine by a WebSocket, which takes the place of a process.

Behind a relay a connection that is cut is made again, and nothing is lost or doubled. Any other
agent ends with its connection, as a process that died.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, cast

import aiohttp

from app.acp.dialing import (
    CONNECT_SECONDS,
    UNREACHED,
    Socket,
    explain,
    new_session,
    open_socket,
)
from app.acp.launch import AgentLaunch, RemoteAddress, start
from app.acp.numbered import (
    KEPT_BYTES,
    PROTOCOL,
    NumberedLines,
    control,
    read_control,
)
from app.acp.transport import FrameTooLong
from app.children.network.access import SessionHosts
from app.children.process import Child, Output, StopReport
from app.children.stop import StopSteps
from app.errors import AgentCutOff, AgentDied, AgentError, AgentMisbehaved, AgentNotStarted
from app.model.workspaces import Workspace
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LONGEST_HOLD_SECONDS: Final = 3600.0
"""How long a cut connection is tried again, however long a relay says that it waits."""
PAUSES_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Between two tries; the last one again and again."""
_REFUSALS: Final = {
    "full": ("has no room for another conversation", "Raise --connections of its relay."),
    "gone": ("has ended the agent meanwhile", "Send your message again."),
}


async def reach(
    launch: AgentLaunch,
    workspace: Workspace,
    marker: str,
    hosts: SessionHosts | None = None,
    *,
    owner: str = "",
) -> Child | RemoteAgent:
    """Start an agent's process here, or connect to the machine that it runs on.

    `owner` is the session that it works for, if it is one: two never share a process.

    Raises:
        AgentNotStarted: it cannot be started or reached, or does not let the bridge in.
    """
    if launch.remote is None:
        return await start(launch, workspace, marker, hosts)
    agent = RemoteAgent(launch.remote, launch.name, marker, owner)
    try:
        await agent.connect()
    except BaseException:
        await agent.close()
        raise
    return agent


class RemoteAgent:
    """One connection; its output, input and end are those of a process."""

    link: Final = None
    """It is in no network of ours."""
    group, started = 0, ""
    """It has no process here."""

    def __init__(self, address: RemoteAddress, name: str, marker: str, owner: str) -> None:
        self.name = name
        self.marker = marker
        self.folder = address.folder or "/"
        """Where it works, as it calls that."""
        self.stdout = Output()
        self.status: int | None = None
        """The exit status of its process; 0 if it is only the connection that ended."""
        self.failure: AgentError | None = None
        """Why it can no longer be reached, if the bridge did not end it."""
        self._address = address
        self._owner = owner
        self._words = ""
        self._session = new_session()
        self._socket: Socket | None = None
        self._connection = ""
        """The relay's name of the process; empty without a relay."""
        self._hold_seconds = 0.0
        """How long the relay waits for a connection that was cut."""
        self._lines = NumberedLines()
        self._queue: deque[bytes] = deque()
        self._sending = asyncio.Lock()
        self._has_room = asyncio.Event()
        self._reading = _Pausing()
        self._is_ending = False
        self._ended = asyncio.Event()
        self._tasks = Tasks(f"remote {name}")
        self.stdout.attach(cast("asyncio.ReadTransport", self._reading))

    # As a process.

    def write(self, data: bytes) -> None:
        """Queue one line.

        Raises:
            BrokenPipeError: there is no connection any more.
        """
        if self.status is not None:
            raise BrokenPipeError("the connection has ended")
        line = data.removesuffix(b"\n")
        self._queue.append(self._lines.number(line) if self._connection else line)

    async def drain(self) -> None:
        """Send what is queued, or keep it while a cut connection is made again.

        Raises:
            ConnectionError: there is no connection any more.
        """
        async with self._sending:
            while self._queue and self._socket is not None:
                await self._send(self._socket, self._queue.popleft())
        while self._lines.kept_bytes > KEPT_BYTES and self.status is None:
            self._has_room.clear()
            await self._has_room.wait()
        if self.status is not None:
            raise BrokenPipeError("the connection has ended")

    def discard_output(self) -> None:
        """Stop reading and discard further output."""
        self.stdout.discard()

    def last_words(self, limit: int = 2000) -> str:
        """Return the end of its stderr, as far as its relay told it."""
        return self._words[-limit:]

    async def stop(self, steps: StopSteps) -> StopReport:
        """End the connection and, behind a relay, the process with all that it started."""
        step = "closed" if self.status is None else "exited"
        bound = steps.close + steps.terminate + 2 * steps.kill
        try:
            async with asyncio.timeout(bound):
                if self.status is None and self._socket is not None and self._connection:
                    self._is_ending = True
                    await self._socket.send_str(control(end=True))
                    await self._ended.wait()
        except (TimeoutError, ConnectionError, RuntimeError) as error:
            logger.warning("%s: its end was not confirmed: %s", self.name, error)
        await self.close()
        return StopReport("closed" if step == "closed" else "exited", self.status)

    async def close(self) -> None:
        """Close the connection."""
        await self._tasks.close()
        self._finish(0)
        if self._socket is not None:
            await self._socket.close()
        await self._session.close()

    # Its connection.

    async def connect(self) -> None:
        """Connect for the first time, and follow what comes.

        Raises:
            AgentNotStarted: it cannot be reached, or does not let the bridge in.
        """
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
                self._take(message.data)
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

    def _take(self, data: str | bytes) -> None:
        """Take one message of an agent that serves ACP itself."""
        text = data.encode() if isinstance(data, str) else data
        # A line break in JSON is white space, and to us the end of a message.
        self.stdout.feed(text.replace(b"\n", b" ") + b"\n")

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

    def _fail(self, failure: AgentError, status: int = 0) -> None:
        self.failure = self.failure or failure
        self._finish(status)

    def _finish(self, status: int) -> None:
        if self.status is None:
            self.status = status
        self.stdout.end()
        self._has_room.set()
        self._ended.set()


class _Pausing:
    """Lets a full buffer pause the reader."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    def pause_reading(self) -> None:
        """Read no further message."""
        self.may_go_on.clear()

    def resume_reading(self) -> None:
        """Go on."""
        self.may_go_on.set()

    def is_closing(self) -> bool:
        """Never: the connection closes by itself."""
        return False
