"""Runs turns in this process: the turn table plus one task per busy session.

Turns of a session run strictly one after another. There is no polling and no server: the code that
commits a turn submits its session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from app import logs
from app.core.turns.limits import Slots
from app.core.turns.own import open_own_turn
from app.core.turns.runner import TurnRun
from app.core.turns.turn_context import TurnContext
from app.core.turns.waits import Outcome
from app.model import wording
from app.model.background import Woken
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.model.posts import PostContent, Verbosity
from app.model.types import Turn, TurnState
from app.model.updates import Ask, AskRequest
from app.retry import hold, persist
from app.signals import Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

INTERRUPT_SECONDS = 3.0
"""How long a shutdown waits to requeue a turn: a locked store takes two seconds."""


class EmbeddedTurnEngine:
    """Runs turns in this process."""

    def __init__(self, context: TurnContext, *, max_turns: int) -> None:
        """Run at most `max_turns` at once; fewer of agents that have a limit of their own."""
        self._context = context
        self._slots = Slots(max_turns, agents=context.agents)
        self._tasks = Tasks("turns")
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._running: dict[int, TurnRun] = {}
        self._draining = False
        self._holding = False
        self._open = False
        self._left: list[int] = []
        self._signals = signals = context.signals
        signals.on(Topic.STOP, lambda facts: self._stop_soon(facts["session"]))
        signals.on(Topic.HURRY, lambda facts: self._hurry(facts["session"]))
        signals.on(Topic.SHOW, lambda facts: self._show(PlaceKey(*facts["place"]), facts["much"]))
        signals.on_sweep(self._stop_soon)
        context.live.on_woken = self._open_own_turn

    @property
    def slots(self) -> tuple[int, int]:
        """How many slots are taken, and how many there are."""
        return self._slots.used, self._slots.count

    @property
    def working(self) -> int:
        """How many turns run."""
        return len(self._running)

    @property
    def is_holding(self) -> bool:
        """Whether no further turns begin."""
        return self._holding

    def hold(self) -> None:
        """Begin no further turns but those that agents ask for; those that ask people are parked.

        What is queued meanwhile runs after `release`, or at the next start.
        """
        self._holding = True
        for run in self._running.values():
            run.park_soon()

    async def release(self) -> None:
        """Begin turns again."""
        self._holding = False
        for ref in await self._context.stores.turns.queued():
            self.submit(ref.session)

    async def start(self) -> None:
        """Recover the turns that the last run left; from now on submitted turns run."""
        left = await persist(self._context.clock, self._context.stores.turns.recover)
        self._open = True
        self._left = [ref.session for ref in left]

    def resume(self) -> None:
        """Run the turns that the last run left."""
        for session_id in self._left:
            self.submit(session_id)

    def submit(self, session_id: int) -> None:
        """Run the queued turns of a session."""
        if self._open and session_id not in self._busy and not self._draining:
            self._busy[session_id] = self._tasks.start(
                self._serve(session_id), name=f"session {session_id}"
            )
        else:
            self._hurry(session_id)

    def _open_own_turn(self, session_id: int, woken: Woken) -> None:
        """Open a turn for what an agent began by itself."""
        if self._open and not self._draining:
            opening = open_own_turn(self._context, session_id, woken, self.submit)
            self._tasks.start(opening, name=f"own turn of session {session_id}")

    def _hurry(self, session_id: int) -> None:
        if (run := self._running.get(session_id)) is not None:
            run.hurry()

    async def cancel(self, session_id: int) -> None:
        """Stop a session's running turn, if it has one, and those that were stopped with it."""
        self._signals.send(Topic.STOP, session=session_id)
        await self._stop(session_id)

    def _stop_soon(self, session_id: int = 0) -> None:
        if self._running:
            self._tasks.start(self._stop(session_id), name="stop")

    async def _stop(self, session_id: int) -> None:
        """End the running turns that were stopped."""
        own_first = sorted(self._running, key=lambda each: each != session_id)
        async with asyncio.TaskGroup() as group:
            for each in own_first:
                group.create_task(hold(self._running[each].stop()))

    async def wait(
        self,
        session_id: int,
        ended: Callable[[], Coroutine[Any, Any, None]],
        *,
        seconds: float,
    ) -> Outcome:
        """Let a session's running turn wait for work of others, at most this long."""
        run = self._running.get(session_id)
        return "over" if run is None else await run.waits.wait(ended(), seconds)

    def running(self, session_id: int) -> int | None:
        """Return the turn that a session runs, if it runs one."""
        run = self._running.get(session_id)
        return None if run is None else run.turn_id

    async def ask(self, session_id: int, request: AskRequest, *, patience: float) -> Ask | None:
        """Let the running turn of a session ask people; it waits as for any ask, but not longer.

        Returns the question as it is then, None if no turn runs.

        Raises:
            Conflict: too many questions are open.
        """
        run = self._running.get(session_id)
        return None if run is None else await run.ask(request, patience=patience)

    async def ended(self, session_id: int) -> None:
        """Wait until no turn of a session runs."""
        if (task := self._busy.get(session_id)) is not None:
            await asyncio.wait([task])

    def refresh(self, session_id: int, turn_id: int | None) -> None:
        """Show how far the work is that others do for a turn, if it runs."""
        run = self._running.get(session_id)
        if run is not None and run.turn_id == turn_id:
            run.refresh()

    def show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        """Change how much detail the running turns of a place show."""
        self._signals.send(Topic.SHOW, place=[place.service, place.name], much=verbosity)
        self._show(place, verbosity)

    def _show(self, place: PlaceKey, verbosity: Verbosity) -> None:
        for run in self._running.values():
            run.show(place, verbosity)

    async def _run(self, turn: Turn) -> None:
        """Run one turn to its end."""
        context = self._context
        async with self._slots.one(turn.surface.agent) as slot:
            if not self._may_begin(turn) or not await self._begin(turn):
                return
            # Read only now: much may have changed while this waited for the slot.
            found = context.stores.turns.turn(turn.id)
            session = context.stores.sessions.session(turn.session)
            if found is None or session is None:
                return
            turn = found
            now = context.clock.now()
            context.metrics.observe("queue_seconds", max(now - turn.created_at, 0))
            context.metrics.trace("queue", turn.id, turn.created_at, now)
            context.feed.notify(session.id)
            run = self._running[session.id] = TurnRun(context, session, turn, slot)
            if self._holding:
                run.park_soon()
            try:
                with logs.bind(agent=session.key.agent, session=str(session.key)):
                    await run.run()
            except asyncio.CancelledError:
                with suppress(TimeoutError):
                    async with asyncio.timeout(INTERRUPT_SECONDS):
                        await run.interrupt()
                raise
            finally:
                del self._running[session.id]

    async def _begin(self, turn: Turn) -> bool:
        """Start a queued turn; False if it is no longer queued."""
        return await persist(self._context.clock, self._context.stores.turns.starting, turn.id)

    def _may_begin(self, turn: Turn) -> bool:
        is_asked_for = turn.surface.service == SERVICE
        return not self._draining and (not self._holding or is_asked_for)

    async def _run_safely(self, turn: Turn) -> None:
        """Run one turn; if it cannot even be run, it fails where people see it."""
        try:
            await self._run(turn)
        except Exception as error:
            logger.exception("turn %d failed", turn.id)
            words = wording.BROKE.format(cause=type(error).__name__)
            content = PostContent(kind="turn", state="failed", note=words)
            posts = await persist(
                self._context.clock,
                self._context.stores.turns.finish,
                turn.id,
                TurnState.FAILED,
                content,
                (),
                words,
            )
            self._context.outbox.send(*posts or ())

    async def drain(self, *, grace: float) -> None:
        """Let running turns finish within the grace time; requeue the rest for the next start."""
        self._draining = True
        for run in self._running.values():
            run.stop_waiting_for_answers()
        await self._tasks.settle(grace)
        for run in self._running.values():
            run.leave()
        await self._tasks.close()

    async def _serve(self, session_id: int) -> None:
        try:
            while not self._draining:
                turn = self._context.stores.turns.next_turn(session_id)
                if turn is None or not self._may_begin(turn):
                    return
                # A separate task, so that stopping the turn does not stop the session.
                await self._tasks.start(self._run_safely(turn), name=f"turn {turn.id}")
                self._context.feed.notify(session_id)
        finally:
            del self._busy[session_id]
