"""Follows the sub-agents of one turn: stores what changes, and shows a line for each in its post.

They may outlive the turn that started them, but never the process of their agent.
"""

from __future__ import annotations

from app.core.turns.display import TurnDisplay
from app.core.turns.turn_context import TurnContext
from app.model.posts import DelegatedLine
from app.model.subagents import Subagent, SubagentState, SubagentUpdate, line_of
from app.model.types import Session, Turn
from app.model.wording import SUBAGENT_LOST
from app.retry import persist

TASK_CHARACTERS = 200
ANSWER_CHARACTERS = 500
"""What a post shows of a task and of an answer; the page has both."""


class TurnSubagents:
    """The sub-agents of one turn."""

    def __init__(
        self, context: TurnContext, session: Session, turn: Turn, display: TurnDisplay
    ) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._display = display
        self._known: dict[str, Subagent] = {}

    async def recall(self) -> None:
        """Show those that the turn started before it was cut off."""
        for each in await self._context.stores.subagents.of_turn(self._turn.id):
            self._known[each.key] = each
        self._show()

    async def take(self, update: SubagentUpdate) -> None:
        """Store what changed about one, and show it."""
        context = self._context
        change = context.stores.subagents.change
        stored = await persist(context.clock, change, self._session.id, self._turn.id, update)
        self._known[stored.key] = stored
        self._display.router.subagents.add(stored.key)
        self._show()
        context.feed.notify(self._session.id)
        self._display.progress()

    async def settle(self, *, is_stopped: bool) -> None:
        """End those of the session that are still running: their process is gone."""
        context = self._context
        state: SubagentState = "stopped" if is_stopped else "lost"
        if await persist(context.clock, context.stores.subagents.settle, self._session.id, state):
            await self.recall()
            context.feed.notify(self._session.id)

    def _show(self) -> None:
        mine = (each for each in self._known.values() if each.turn == self._turn.id)
        self._display.subagents = tuple(self._line(each) for each in mine)

    def _line(self, each: Subagent) -> DelegatedLine:
        is_lost = each.state == "lost"
        return DelegatedLine(
            agent=each.name,
            task=each.task[:TASK_CHARACTERS],
            state="failed" if each.state == "lost" else each.state,
            id=-each.id,  # others in the post are delegations, which have numbers of their own
            depth=len(line_of(each.key, self._known)),
            words=SUBAGENT_LOST if is_lost else each.answer[:ANSWER_CHARACTERS],
            seconds=each.ended_at - each.began_at if each.ended_at is not None else 0.0,
            is_subagent=True,
        )
