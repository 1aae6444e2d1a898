"""Puts what people say into a running turn, where its agent takes words.

They go one after another, in order. What the agent hands back or cannot take is queued, and what it
may or may not have is looked for in its conversation before it is told again.
"""

from __future__ import annotations

import asyncio
import logging

from app.core.turns.agents import LiveAgent
from app.core.turns.display import TurnDisplay
from app.core.turns.prompt import compose_steered
from app.core.turns.turn_context import TurnContext
from app.errors import AgentError
from app.model.types import Attachment, Message, Session, Turn
from app.retry import persist

logger = logging.getLogger(__name__)


class TurnSteering:
    """The words that go into one turn."""

    def __init__(
        self, context: TurnContext, session: Session, turn: Turn, display: TurnDisplay
    ) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._display = display
        self._wake = asyncio.Event()
        self._wake.set()  # words may have come while the prompt was committed

    def look(self) -> None:
        """Look for words that were said meanwhile."""
        self._wake.set()

    async def follow(self, live: LiveAgent) -> None:
        """Send words to the agent as they are said, until the turn ends."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for message in await self._context.stores.turns.untaken(self._turn.id):
                if message.number not in self._display.unsure:
                    await self._send(live, message)

    async def _send(self, live: LiveAgent, message: Message) -> None:
        context, turns, number = self._context, self._context.stores.turns, message.number
        files = await context.attachments.fetched(self._session, message.files)
        paths = await context.workspaces.bring(self._session, files) if files else ()
        if files:
            await persist(context.clock, context.stores.sessions.reads_others, self._session.id)
        attached = [
            Attachment(path, file.media_type) for path, file in zip(paths, files, strict=True)
        ]
        self._display.unsure.add(number)
        try:
            shown = live.workspace.show(paths)
            is_taken = live.agent.steerable and await live.agent.steer(
                compose_steered(self._turn.surface, message, shown), files=attached
            )
        except AgentError as error:
            logger.warning("message %d: it is not known whether it arrived: %s", number, error)
            return
        if is_taken:
            await persist(context.clock, turns.taken, self._turn.id, number)
            self._display.mark(message.message_id)
        else:
            context.outbox.send(
                *await persist(context.clock, turns.hand_back, self._turn.id, number)
            )
            if self._turn.is_own:
                live.agent.make_way()  # a prompt joins what the agent does by itself
        self._display.unsure.discard(number)
        context.feed.notify(self._session.id)
