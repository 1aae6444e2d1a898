"""Lets a turn wait: for people who answer, for a limit to be over, for other agents.

A turn that waits holds no slot, and after a while no process either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Literal

from app.agents.agent import Agent
from app.clock import Clock
from app.core.consent.gate import PermissionGate
from app.core.repositories.folders import Hold
from app.core.turns.display import TurnDisplay
from app.core.turns.limits import Slot, WorkTimer
from app.core.turns.turn_context import TurnContext
from app.model import wording
from app.model.asks import Decided
from app.model.phase import CLOSED, MEASURED, STAGES, Event, Phase, advance
from app.model.ports import Counters
from app.model.types import Session, Turn, TurnRef
from app.model.updates import Ask, AskRequest, ToolUpdate
from app.model.workspaces import Workspace
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

QUOTED_CHARACTERS = 200
"""How much of a command a note quotes; the transcript has all of it."""
Outcome = Literal["ended", "late", "over"]
"""What came first: what was waited for, the bound, or the end of the turn that waits."""


class Course:
    """How far one turn has come."""

    def __init__(self, turn: int, clock: Clock, counters: Counters) -> None:
        self._turn = turn
        self.phase = Phase.PREPARING
        self._clock = clock
        self._counters = counters
        self._since = clock.monotonic()
        self._task = asyncio.current_task()
        self._not_parking = asyncio.Event()
        self._not_parking.set()

    @property
    def is_closed(self) -> bool:
        """Whether nothing the agent says or asks counts any more."""
        return self.phase in CLOSED

    def take(self, event: Event) -> bool:
        """Apply an event; returns whether it changed the phase."""
        before, self.phase = self.phase, advance(self.phase, event)
        if self.phase is Phase.PARKING:
            self._not_parking.clear()
        else:
            self._not_parking.set()
        if self.phase is before:
            return False
        now = self._clock.monotonic()
        if before in MEASURED:
            seconds, wall = now - self._since, self._clock.now()
            self._counters.observe("turn_phase_seconds", seconds, phase=before)
            self._counters.trace(STAGES[before], self._turn, wall - seconds, wall)
        self._since = now
        return True

    async def is_over(self) -> bool:
        """Tell whether nothing counts any more, once it is decided whether the turn is parked."""
        await self._not_parking.wait()
        return self.is_closed

    def cancel(self) -> None:
        """Cancel the task that runs the turn."""
        if self._task is not None:
            self._task.cancel()

    def recover(self) -> bool:
        """Take back a cancellation that came from the turn itself; returns whether it did."""
        if self.phase not in {Phase.PARKED, Phase.STOPPING} or self._task is None:
            return False
        self._task.uncancel()
        return True


class TurnAsks:
    """Handles what the agent of one turn asks, and what it should have asked."""

    def __init__(
        self,
        context: TurnContext,
        session: Session,
        turn: Turn,
        *,
        agent: Agent,
        slot: Slot,
        course: Course,
        display: TurnDisplay,
    ) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._agent = agent
        self._slot = slot
        self._course = course
        self._display = display
        self._router = display.router
        self._gate = PermissionGate(
            context.ledger, agent, TurnRef(session.id, turn.id), context.clock
        )
        self._in_order = asyncio.Lock()
        """Judging takes a moment, and asks must be shown in the order they came."""
        self._answerable = True
        self._unasked_told = False
        self.timer = WorkTimer(context.clock)

    def stop_waiting(self) -> None:
        """Stop waiting for answers: none can arrive before the next start."""
        self._answerable = False
        if self.timer.is_asking:
            self._defer()

    async def answer(self, request: AskRequest, workspace: Workspace) -> str | None:
        """Let the rules decide, or else a person; the turn holds no slot meanwhile."""
        async with self._in_order:
            known = self._router.tool(request.call)
            judged = await self._gate.judge(request, known, workspace.ruled, workspace.outgoing)
            if self._course.is_closed:
                return None
            if judged.decided is not None:
                await self._record(request, judged.decided)
                return judged.answer
            if request.tool is not None:
                # Some agents announce no call before they ask, and people must see what it is.
                await self._router.take(replace(request.tool, status=None))
            await self._router.flush()
        if not self._answerable:
            self._defer()
            return None
        with self.timer.asking():
            async with self._slot.lend():
                answer, decided = await self._gate.ask(judged.request)
        if self._course.is_closed:
            return None
        await self._record(request, decided)
        return answer

    async def put(self, request: AskRequest, *, patience: float) -> Ask | None:
        """Ask people a tool's question and wait a while; None if nothing counts any more."""
        async with self._in_order:
            if self._course.is_closed:
                return None
            await self._router.flush()
        if not self._answerable:
            self._defer()
            return None
        ref, seconds = TurnRef(self._session.id, self._turn.id), self._agent.ask_seconds
        with self.timer.asking():
            async with self._slot.lend():
                ledger = self._context.ledger
                return await ledger.put(request, ref, seconds=seconds, patience=patience)

    async def check(self, call: str, workspace: Workspace) -> bool:
        """Tell people of a call that was made without asking; returns whether it ends the turn."""
        tool = self._router.tool(call)
        if tool is None or self._router.is_decided(call):
            return False
        if tool.status == "failed" and tool.kind != "execute":
            return False  # it changed nothing
        session = self._context.stores.sessions.session(self._session.id) or self._session
        if self._agent.unasked is None or session.mode not in (None, self._agent.mode):
            return False
        done = await self._gate.unasked(tool, workspace.ruled, *workspace.own)
        if not done:
            return False
        words = wording.RAN_UNASKED.format(what=_quote(self._context.vault.redact(done)))
        logger.warning("turn %d: %s", self._turn.id, words)
        if not self._unasked_told:
            # Once: the record of each further call says that it was not asked for.
            self._unasked_told = True
            await self._display.tell(words)
            self._display.add(words)
        return self._agent.unasked == "stop" and self._course.take(Event.UNASKED)

    async def park_when_idle(self, seconds: float) -> None:
        """Park the turn when it has only waited for people for so long."""
        while True:
            await self.timer.wait_until_idle(seconds)
            if not self._course.take(Event.PARK) or await self._park():
                return
            self.timer.stir()

    async def _park(self) -> bool:
        """Let the turn wait without a process, unless a person answers just now."""
        context = self._context
        parked = False
        try:
            await self._router.flush(final=True)
            content = self._display.content("waiting", note=wording.PARKED)
            asks = context.ledger.waiting(self._turn.id)
            parked = await persist(
                context.clock, context.stores.turns.park, self._turn.id, content, asks
            )
        finally:
            changed = self._course.take(Event.PARKED if parked else Event.ANSWERED)
        if parked:
            logger.info("turn %d is parked until someone answers", self._turn.id)
            self._display.wait(content)
            if changed:
                self._course.cancel()
        return parked

    def _defer(self) -> None:
        if self._course.take(Event.DEFER):
            self._course.cancel()

    async def _record(self, request: AskRequest, decided: Decided) -> None:
        """Record who or what decided on a call."""
        if request.call:
            await self._router.decide(request.tool or ToolUpdate(request.call), decided)


def _quote(text: str) -> str:
    """Quote a command or a path in one line, as code."""
    line = " ".join(text.split())
    line = line if len(line) <= QUOTED_CHARACTERS else f"{line[:QUOTED_CHARACTERS]}…"
    fence = "`"
    while fence in line:
        fence += "`"
    return f"{fence}{line}{fence}" if fence == "`" else f"{fence} {line} {fence}"


class TurnWaits:
    """The waits of one turn for work that others do for it."""

    def __init__(self, clock: Clock, slot: Slot, timer: WorkTimer, tasks: Tasks) -> None:
        self._clock = clock
        self._slot = slot
        self._timer = timer
        self._tasks = tasks
        self._over = asyncio.Event()
        self.hold = Hold()
        """The folder that the turn works in."""

    def close(self) -> None:
        """End every wait: the turn has no agent that waits any more."""
        self._over.set()

    async def wait(self, ended: Coroutine[Any, Any, None], seconds: float) -> Outcome:
        """Wait for the end of work that others do, at most this long.

        The turn goes on at the bound even if its slot is not free by then: it takes the slot as
        soon as it is.
        """
        waiting = self._tasks.start(ended, name="work of others")
        bound = self._tasks.start(self._clock.sleep(seconds), name="patience")
        over = self._tasks.start(self._over.wait(), name="end of the turn")
        self._slot.lay_down()
        self.hold.leave()
        try:
            with self._timer.waiting():
                await asyncio.wait({waiting, bound, over}, return_when=asyncio.FIRST_COMPLETED)
                if not self._over.is_set():
                    back = self._tasks.start(self._go_on(), name="slot")
                    await asyncio.wait({back, bound, over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self._over.is_set():
                self._tasks.start(self._go_on(), name="slot")
            raise
        finally:
            for each in (waiting, bound, over):
                each.cancel()
            await asyncio.wait({waiting, bound, over})
        if waiting.done() and not waiting.cancelled():
            waiting.result()
            return "ended"
        return "over" if self._over.is_set() else "late"

    async def _go_on(self) -> None:
        """Take back what the turn needs; the folder first, which others hold without a slot."""
        await self.hold.take()
        await self._slot.pick_up()
