"""Ends a turn: done, failed, stopped, or paused until a person or its provider lets it go on.

How it ends depends on its phase alone: a turn that was stopped ends as stopped whatever came last.
"""

from __future__ import annotations

import logging

from app.core.adapters import find_presence
from app.core.turns.display import TurnDisplay
from app.core.turns.failure import (
    Failure,
    Obstacle,
    failure_of,
    obstacle,
    pause,
    spoken_obstacle,
)
from app.core.turns.limits import Budget, complete
from app.core.turns.turn_context import TurnContext
from app.core.turns.waits import Course
from app.errors import AgentError, AgentRefused, BridgeError, RepositoryError
from app.model import remedies, wording
from app.model.asks import with_colleagues
from app.model.phase import Phase
from app.model.steering import Steered
from app.model.types import Session, Turn, TurnState
from app.model.updates import AskRequest, PromptEnd
from app.model.workspaces import Shipped
from app.retry import persist

logger = logging.getLogger(__name__)

MODEL_FAILED = -32603  # JSON-RPC's "internal error": what other agents answer with

TOLD_TO_END = frozenset({Phase.STOPPING, Phase.OVERDUE})


class TurnEnding:
    """Ends one turn."""

    def __init__(
        self,
        context: TurnContext,
        session: Session,
        turn: Turn,
        *,
        course: Course,
        display: TurnDisplay,
        budget: Budget,
    ) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._course = course
        self._display = display
        self._budget = budget
        self._agent = context.agent(session.key.agent)
        self._name = context.name_of(session.key.agent)

    async def finish(self, end: PromptEnd | None, shipped: Shipped) -> None:
        """End a turn whose prompt has ended, and whose work was delivered."""
        if self._course.phase is Phase.STOPPING or end is None:
            await self.stop()
        elif self._course.phase is Phase.OVERDUE:
            await self._fail("", Failure("overdue"))
        elif self._course.phase is Phase.UNASKED:
            # The next turn begins with a new process, and with settings that ask.
            await self._context.live.end(self._session.id)
            await self._fail(wording.STOPPED_UNASKED.format(agent=self._name), Failure("unasked"))
        elif self._budget.has_ended(end):
            await self.pause(self._budget.pause(resumes=self._agent.resume))
        elif found := spoken_obstacle(self._display.router.words, self._context.clock.now()):
            await self._wait_for(found)
        elif end.failed:
            words = self._display.router.words or remedies.MODEL_FAILED
            refused = AgentRefused(self._name, MODEL_FAILED, words, {"errorKind": "system_error"})
            await self.handle(refused, started=True)
        else:
            await self._succeed(end, shipped)

    async def handle(self, error: Exception, *, started: bool) -> None:
        """Fail the turn, or pause it if its provider's limit or a log-in is in the way.

        `started` says whether its agent could be started.
        """
        is_told = self._course.phase in TOLD_TO_END
        if isinstance(error, AgentRefused) and not is_told:
            now = self._context.clock.now()
            if found := obstacle(error.code, error.message, error.data, now):
                await self._wait_for(found)
                return
        if isinstance(error, AgentError):
            agent = self._session.key.agent
            words = wording.failure(error, self._name, agent)
            if not is_told:
                self._context.availability.failed(agent, words, started=started)
        elif isinstance(error, RepositoryError):
            words = str(error)
        else:
            logger.error("turn %d failed", self._turn.id, exc_info=error)
            await self._context.live.end(self._session.id)
            known = str(error) if isinstance(error, BridgeError) else type(error).__name__
            words = wording.BROKE.format(cause=known)
        await self._fail(words, failure_of(error))

    async def pause(self, request: AskRequest, *, note: str = "") -> None:
        """Pause until a person says go on, and ask for that; a turn that was stopped ends."""
        context = self._context
        await self._display.router.close()
        content = self._display.content("waiting", note=note or request.title)
        posts = await persist(
            context.clock,
            context.stores.turns.pause,
            self._turn.id,
            content,
            context.ledger.present(request),
            deadline=(request.until or context.clock.now()) + self._agent.ask_seconds,
            resume_at=request.until if self._agent.resume else None,
        )
        if posts is None:
            await self.stop()
            return
        self._display.wait(content)
        context.outbox.send(*posts)
        context.ledger.watch()

    async def stop(self) -> None:
        """End a turn that was stopped, once nothing of it runs any more."""
        turns, session = self._context.stores.turns, self._session.id
        # A stop holds what is queued; what is free to run took the place of this turn.
        is_replaced = turns.next_turn(session) is not None
        if not is_replaced:
            await self._context.live.end(session, stopped=True)
        facts: dict[str, bool | int]
        words, held = wording.STOPPED, turns.waiting(session)
        facts = {"held": held}
        if is_replaced:
            words, held, facts = wording.INTERRUPTED, 0, {"interrupted": True}
        elif held:
            words = wording.on_hold(held)
        taken = [each for each in turns.messages(self._turn.id) if each.steered is Steered.TAKEN]
        if commands := self._display.router.running_commands:
            words = f"{words} {wording.ended(commands)}"
        if taken:
            words = f"{words} {wording.unread(len(taken))}"
            facts["unread"] = len(taken)
        await self._display.end(TurnState.CANCELLED, "stopped", words, on_hold=held, facts=facts)

    async def _succeed(self, end: PromptEnd, shipped: Shipped) -> None:
        context, session, router = self._context, self._session, self._display.router
        if end.usage is not None:
            model = session.model or context.live.choices(session).model
            has_cost = bool(router.outcome().cost)
            usage = complete(end.usage, has_cost=has_cost, model=model, estimate=context.estimate)
            if usage is not None:
                await router.take(usage)
        odd = wording.ODD_ENDS.get(end.stop_reason, "").format(agent=self._name)
        note = context.vault.redact(" ".join(filter(None, (odd, shipped.note))))
        context.availability.worked(session.key.agent)
        await self._display.end(TurnState.DONE, "done", note, pushed=shipped.pushed)

    async def _fail(self, words: str, failure: Failure) -> None:
        if self._course.phase is Phase.STOPPING:
            await self.stop()
            return
        if self._course.phase is Phase.OVERDUE:
            minutes = self._agent.turn_seconds / 60
            words = wording.TOOK_TOO_LONG.format(minutes=minutes)
            failure = Failure("overdue", log=failure.log)
        redact = self._context.vault.redact
        facts = {"failure": failure.data(redact)}
        await self._display.end(TurnState.FAILED, "failed", redact(words), facts=facts)

    async def _wait_for(self, found: Obstacle) -> None:
        """Pause until the agent's provider lets it work, or another agent takes the turn over."""
        context, agent = self._context, self._session.key.agent
        if found.kind == "login":
            context.availability.logged_out(agent)
        else:
            context.availability.limited(agent, found.until)
        resumes = self._agent.resume and found.until is not None
        request = pause(agent, found, context.clock.now(), resumes=resumes, name=self._name)
        names = {each: context.name_of(each) for each in self._colleagues()}
        await self.pause(with_colleagues(request, names))

    def _colleagues(self) -> list[str]:
        """List the agents that could take this turn over: present here and not told of it yet."""
        context, surface = self._context, self._turn.surface
        told = context.stores.turns.hearers(self._turn.id)
        here = {
            agent: find_presence(context.adapters, agent, surface.service)
            for agent, found in context.agents.items()
            if found.visible
        }
        return [
            agent
            for agent, adapter in here.items()
            if adapter is not None and adapter.is_shared(surface) and agent not in told
        ]
