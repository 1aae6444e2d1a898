"""Defines what takes the place of a process for an agent on another machine: a connection to it.

Its output, input and end are those of a process, so that everything above works with both.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final, cast

from app.acp.dialing import new_session
from app.acp.launch import RemoteAddress
from app.children.process import Output, StopReport
from app.children.stop import StopSteps
from app.errors import AgentError
from app.tasks import Tasks

logger = logging.getLogger(__name__)


class RemoteAgent(ABC):
    """One agent that is reached over a network."""

    link: Final = None
    """It is in no network of ours."""
    group, started = 0, ""
    """It has no process here."""

    def __init__(self, address: RemoteAddress, name: str, marker: str) -> None:
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
        self._words = ""
        self._session = new_session()
        self._sending = asyncio.Lock()
        self._reading = _Pausing()
        self._ended = asyncio.Event()
        self._tasks = Tasks(f"remote {name}")
        self.stdout.attach(cast("asyncio.ReadTransport", self._reading))

    @abstractmethod
    async def connect(self) -> None:
        """Connect, and follow what comes.

        Raises:
            AgentNotStarted: it cannot be reached, or does not let the bridge in.
        """

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Queue one line.

        Raises:
            BrokenPipeError: there is no connection any more.
        """

    @abstractmethod
    async def drain(self) -> None:
        """Send what is queued.

        Raises:
            ConnectionError: there is no connection any more.
        """

    @abstractmethod
    async def take_leave(self) -> None:
        """Tell the other end that nothing more comes, and wait until it has ended the agent."""

    def discard_output(self) -> None:
        """Stop reading and discard further output."""
        self.stdout.discard()

    def last_words(self, limit: int = 2000) -> str:
        """Return the end of its stderr, as far as that is known here."""
        return self._words[-limit:]

    async def stop(self, steps: StopSteps) -> StopReport:
        """End the agent, and the connection to it."""
        was_over = self.status is not None
        try:
            async with asyncio.timeout(steps.close + steps.terminate + 2 * steps.kill):
                if not was_over:
                    await self.take_leave()
        except (TimeoutError, ConnectionError) as error:
            logger.warning("%s: its end was not confirmed: %s", self.name, error)
        await self.close()
        return StopReport("exited" if was_over else "closed", self.status)

    async def close(self) -> None:
        """Close the connection."""
        await self._tasks.close()
        self._finish(0)
        await self._session.close()

    def _feed(self, message: bytes) -> None:
        """Pass one message on as a line; a line break in JSON is white space."""
        self.stdout.feed(message.replace(b"\n", b" ") + b"\n")

    def _check_open(self) -> None:
        if self.status is not None:
            raise BrokenPipeError("the connection has ended")

    def _fail(self, failure: AgentError, status: int = 0) -> None:
        self.failure = self.failure or failure
        self._finish(status)

    def _finish(self, status: int) -> None:
        if self.status is None:
            self.status = status
        self.stdout.end()
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
