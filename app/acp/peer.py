"""Owns one live agent and the connection to it, until both have ended.

When an agent's stream ends for any reason, its process and everything that it started end too. One
on another machine has a connection instead of a process; what it started is its relay's to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from acp import RequestError, connect_to_agent
from pydantic import ValidationError

from app.acp.audience import Audience
from app.acp.client import BridgeAcpClient
from app.acp.remote import RemoteAgent
from app.acp.transport import AgentTransport
from app.children.proc_table import TICKS_PER_SECOND, ticks_now
from app.children.process import Child, StopReport
from app.children.stop import StopSteps, end_background, stop
from app.errors import (
    AgentDied,
    AgentError,
    AgentLoginNeeded,
    AgentMisbehaved,
    AgentRefused,
    AgentTimedOut,
    StoreUnavailable,
)
from app.model.ports import AgentListener, Counters
from app.model.updates import AskFact, AskOption, AskRequest
from app.tasks import Tasks

logger = logging.getLogger(__name__)

POLITE = StopSteps()
AT_ONCE = StopSteps(close=0.1, terminate=0.5, kill=2.0)
"""For an agent that did not answer in time."""
NOW = StopSteps(close=0.0, terminate=0.0, kill=2.0)
"""For an agent that uses up what others need."""
BROKEN = StopSteps(close=1.0, terminate=0.5, kill=2.0)
"""For an agent whose stream ended: most have exited already, and the others cannot be reached."""
LOG_CHARACTERS = 16_000  # a little more than is kept once secrets are removed from it
LAST_WORDS = 500  # characters; the end of a traceback, and still one line in a thread
LOGIN_NEEDED = -32000  # ACP's meaning of this JSON-RPC code
DISCONNECT_SECONDS = 5.0  # handlers are cancelled, and cancelling takes no longer than a commit

_ALLOW: Final = "allow"
_OPTIONS: Final = (
    AskOption(_ALLOW, "Allow for this session", "allow_once"),
    AskOption("reject", "Reject", "reject_once"),
)


@dataclass(frozen=True, slots=True)
class AgentTimeouts:
    """How many seconds an agent may take for each step; a prompt as a whole has no bound here."""

    initialize: float = 60.0
    """The slowest agent took 5 s on two cores; a cold disk and a busy machine take more."""
    authenticate: float = 60.0
    """One exchange with the agent's provider."""
    new: float = 60.0
    """It may start its own tool servers; the slowest took 1.5 s."""
    load: float = 120.0
    """It replays the whole conversation."""
    configure: float = 20.0
    """It stores a setting."""
    steer: float = 10.0
    """It queues a text: milliseconds, unless it is busy."""
    cancel: float = 5.0
    """Twenty times the slowest measured; a person waits for it."""
    close: float = 2.0
    """It frees what it holds; what it does not free in time ends with its process."""


@dataclass(frozen=True, slots=True)
class AudienceWitness:
    """Reports to the running turn; implements `Witness`."""

    agent: str
    audience: Audience

    async def note(self, words: str) -> None:
        """Put a notice into the transcript."""
        await self.audience.note(words)

    async def ask(self, host: str, port: int) -> bool | None:
        """Let a person decide on a host; None between turns, and without an answer."""
        title = f"Let {self.agent} connect to {host} for this session?"
        request = AskRequest(
            "network",
            title,
            _OPTIONS,
            # Finds an answer that came while the session was parked.
            arguments_hash=f"network:{host}",
            subject=f"{host}:{port}",
            facts=(AskFact("host", host),),
        )
        answer = await self.audience.ask(request)
        return None if answer is None else answer == _ALLOW


class AgentPeer:
    """The agent at the other end of the pipes."""

    def __init__(
        self,
        name: str,
        child: Child | RemoteAgent,
        between: AgentListener,
        *,
        counters: Counters,
        tasks: Tasks,
        forget: Callable[[], Awaitable[None]],
        display_name: str = "",
    ) -> None:
        """Connect to a process, or to what takes its place."""

        def count(reason: str) -> None:
            counters.count("agent_frames_dropped", agent=name, reason=reason)

        self.name = name
        self.audience = Audience(between, count)
        self.transport = AgentTransport(child, self.audience, count)
        # The unstable part is elicitation: without it an agent cannot ask questions.
        self.connection = connect_to_agent(
            BridgeAcpClient(self.audience), self.transport, use_unstable_protocol=True
        )
        if child.link is not None:
            child.link.tell(AudienceWitness(display_name or name, self.audience))
        self._child = child
        self._tasks = tasks
        self._forget = forget
        self._closing: asyncio.Task[StopReport] | None = None
        self._working = 0
        self._resting: asyncio.Task[None] | None = None
        self._prompted = 0
        """When its work began, in clock ticks since boot; 0 before its first prompt."""
        self._wanted = False
        self._reason: AgentError | None = None
        """Why the bridge itself stopped it."""
        tasks.start(self._watch(), name=f"watch {name}")

    @property
    def alive(self) -> bool:
        """Whether it can still be reached."""
        is_over = self.transport.finished.is_set()
        return self._closing is None and self._child.status is None and not is_over

    @property
    def remote_folder(self) -> str:
        """Where it works on another machine; empty if it works on this one."""
        return self._child.folder if isinstance(self._child, RemoteAgent) else ""

    @asynccontextmanager
    async def step(self, name: str, seconds: float | None) -> AsyncIterator[None]:
        """Limit the time of one exchange with the agent and name its errors.

        Raises:
            AgentLoginNeeded: it needs a login first.
            AgentTimedOut, AgentRefused, AgentMisbehaved, AgentDied: the agent's fault.
        """
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise self._with_log(AgentTimedOut(self.name, name, seconds or 0)) from None
        except RequestError as error:
            refusal = AgentLoginNeeded if error.code == LOGIN_NEEDED else AgentRefused
            refused = refusal(self.name, error.code, _explain(error), error.data)
            raise self._with_log(refused) from error
        except ValidationError as error:
            invalid = AgentMisbehaved(self.name, f"its answer to {name} is invalid")
            raise self._with_log(invalid) from error
        except ConnectionError:
            raise self._with_log(await self.end_and_explain()) from None

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Let it use its network; once nothing more is asked of it, it rests.

        Resting means that its network is cut and that what its commands left running ends. If
        that cannot be done, the agent itself is ended. Before its first prompt it is starting,
        which is work too. Work that it declares goes on without a prompt, and is awaited.
        """
        self._working += 1
        if self._child.link is not None:
            self._child.link.resume()
        try:
            yield
        finally:
            self._working -= 1
            if self._prompted and not self._working:
                if self.audience.is_busy:
                    self._rest_later()
                else:
                    await self._rest()

    def _rest_later(self) -> None:
        if self._resting is None or self._resting.done():
            self._resting = self._tasks.start(self._rest_once_done(), name=f"rest {self.name}")

    async def _rest_once_done(self) -> None:
        await self.audience.settled()
        if not self._working:
            await self._rest()

    def note_begin(self, *, seconds_ago: float = 0.0) -> None:
        """Note that its work began: what it starts from then on is a command's."""
        ticks = ticks_now() - int(seconds_ago * TICKS_PER_SECOND)
        self._prompted = max(ticks, self._prompted)

    async def _rest(self) -> None:
        if self._child.link is not None:
            await self._child.link.pause()
        if not self.alive or isinstance(self._child, RemoteAgent):
            return
        swept = await asyncio.to_thread(end_background, self._child, before=self._prompted)
        if swept.killed:
            logger.info("%s: ended what its commands left: %s", self.name, ", ".join(swept.killed))
        if swept.remaining:
            logger.error("%s: what its commands left cannot be ended; ending it", self.name)
            await self.close(NOW)

    def last_words(self) -> str:
        """Return the end of what it wrote to stderr; not checked for secrets."""
        return self._child.last_words()

    def _with_log(self, error: Exception) -> Exception:
        """Give an error of the agent the end of its stderr."""
        if isinstance(error, AgentError):
            error.log = self._child.last_words(LOG_CHARACTERS)
        return error

    async def end_and_explain(self) -> Exception:
        """End what is left of the agent and return why it can no longer be reached."""
        report = await self._close(BROKEN)
        if self._reason is not None:
            return self._reason
        if self.transport.failure is not None:
            return self.transport.failure
        if isinstance(self._child, RemoteAgent) and self._child.failure is not None:
            return self._child.failure
        if self.transport.cause is not None:
            return AgentMisbehaved(self.name, self.transport.cause)
        if report.step not in ("exited", "closed") and not self._wanted:
            return AgentMisbehaved(self.name, "it closed its output but kept running")
        words = " ".join(self._child.last_words(LAST_WORDS).split())
        return AgentDied(self.name, status=report.status, last_words=words)

    async def close(self, steps: StopSteps = POLITE) -> None:
        """End the process and all that it started; also finishes when the caller is cancelled."""
        self._wanted = True
        await self._close(steps)

    def abandon(self, steps: StopSteps = AT_ONCE) -> None:
        """Begin to end it, without waiting."""
        self._wanted = True
        self._begin_to_close(steps)

    def halt(self, reason: AgentError) -> None:
        """Kill it now; pending calls fail with the reason."""
        logger.warning("%s", reason)
        self._reason = reason
        self._begin_to_close(NOW)

    async def _close(self, steps: StopSteps) -> StopReport:
        return await asyncio.shield(self._begin_to_close(steps))

    def _begin_to_close(self, steps: StopSteps) -> asyncio.Task[StopReport]:
        if self._closing is None:
            self._closing = self._tasks.start(self._end(steps), name=f"close {self.name}")
        return self._closing

    async def _end(self, steps: StopSteps) -> StopReport:
        child = self._child
        if isinstance(child, RemoteAgent):
            report = await child.stop(steps)
        else:
            report = await stop(child, steps=steps)
        if report.remaining:
            logger.error("%s: processes that cannot be killed: %s", self.name, report.remaining)
        self.transport.end()
        try:
            async with asyncio.timeout(DISCONNECT_SECONDS):
                await self.connection.close()
        except TimeoutError:
            logger.exception("%s: a message handler does not end", self.name)
        try:
            await self._forget()
        except StoreUnavailable as error:
            # The next start finds the record and no process that matches it.
            logger.warning("%s: could not record its end: %s", self.name, error)
        return report

    async def _watch(self) -> None:
        await self.transport.finished.wait()
        await self._close(BROKEN)
        self.audience.background.clear()


def _explain(error: RequestError) -> str:
    """Format an agent's error as one line; the useful part is often in its data."""
    details = error.data.get("details") if isinstance(error.data, dict) else error.data
    words = str(error)
    if isinstance(details, str) and details not in words:
        words = f"{words}: {details}"
    return " ".join(words.split())[:LAST_WORDS]
