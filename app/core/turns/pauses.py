"""Pauses a turn until a person lets it go on, or until its provider's limit is over."""

from __future__ import annotations

from app.agents.agent import Agent
from app.core.delegation.deputies import find_presence
from app.core.turns.display import TurnDisplay
from app.core.turns.limits.obstacles import Obstacle, pause
from app.core.turns.turn_context import TurnContext
from app.model.asks import with_colleagues
from app.model.types import Turn
from app.model.updates import AskRequest
from app.retry import persist


class TurnPauses:
    """Pauses one turn."""

    def __init__(
        self, context: TurnContext, turn: Turn, agent: Agent, display: TurnDisplay
    ) -> None:
        self._context = context
        self._turn = turn
        self._agent = agent
        self._display = display

    async def wait_for(self, found: Obstacle) -> bool:
        """Pause until the agent's provider lets it work; False if the turn was stopped."""
        now = self._context.clock.now()
        resume_at = found.until if self._agent.resume else None
        agent = self._turn.surface.agent
        name = self._context.name_of(agent)
        request = pause(agent, found, now, resumes=resume_at is not None, name=name)
        names = {each: self._context.name_of(each) for each in self._colleagues()}
        request = with_colleagues(request, names)
        return await self.ask(request, until=found.until or now, resume_at=resume_at)

    async def ask(
        self,
        request: AskRequest,
        *,
        until: float,
        resume_at: float | None = None,
        note: str = "",
    ) -> bool:
        """Pause until a person says go on, and ask for that; False if the turn was stopped."""
        context = self._context
        await self._display.router.close()
        content = self._display.content("waiting", note=note or request.title)
        posts = await persist(
            context.clock,
            context.turns.pause,
            self._turn.id,
            content,
            context.ledger.present(request),
            deadline=until + self._agent.ask_seconds,
            resume_at=resume_at,
        )
        if posts is None:
            return False
        self._display.wait(content)
        context.outbox.send(*posts)
        context.ledger.watch()
        return True

    def _colleagues(self) -> list[str]:
        """List the agents that could take this turn over: present here and not told of it yet."""
        context, surface = self._context, self._turn.surface
        told = context.turns.hearers(self._turn.id)
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
