"""Handles what an agent asks during a turn or should have asked; parks a turn that waits.

A turn that waits for people holds no slot, and after a while no process either.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from app.agents.agent import Agent
from app.core.consent.gate import Gate
from app.core.turns.course import Course
from app.core.turns.display import TurnDisplay
from app.core.turns.limits.slots import Slot
from app.core.turns.limits.work_timer import WorkTimer
from app.core.turns.turn_context import TurnContext
from app.model import wording
from app.model.asks import Decided
from app.model.phase import Event
from app.model.types import Session, Turn, TurnRef
from app.model.updates import Ask, AskRequest, ToolUpdate
from app.model.workspaces import Workspace
from app.retry import persist

logger = logging.getLogger(__name__)

QUOTED_CHARACTERS = 200
"""How much of a command a note quotes; the transcript has all of it."""


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
        self._gate = Gate(context.ledger, agent, TurnRef(session.id, turn.id), context.clock)
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
            judged = await self._gate.judge(request, known, workspace.start, workspace.outgoing)
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
        session = self._context.sessions.session(self._session.id) or self._session
        if self._agent.unasked is None or session.mode not in (None, self._agent.mode):
            return False
        done = await self._gate.unasked(tool, workspace.start, *workspace.own)
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
            parked = await persist(context.clock, context.turns.park, self._turn.id, content, asks)
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
