"""Opens the turns that agents begin by themselves, within their limits.

What an agent does without being asked holds a slot, is shown, asks and costs as any turn does. An
agent that begins more of them than it may is told to stop, and people are told once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from app.core.turns.agents import LiveAgent
from app.core.turns.turn_context import TurnContext
from app.errors import AgentDied
from app.model.background import Woken
from app.model.ports import AgentListener
from app.model.types import Session, Turn
from app.model.updates import PromptEnd
from app.retry import persist

logger = logging.getLogger(__name__)

Talk = Callable[[], Awaitable[PromptEnd]]
"""Has an agent work, and follows it to the end."""


async def open_own_turn(
    context: TurnContext, session_id: int, woken: Woken, submit: Callable[[int], None]
) -> None:
    """Open a turn for what an agent began, unless another one comes for it."""
    begin = context.stores.turns.begin_own
    woken = Woken(woken.by, context.vault.redact(woken.about), woken.turn)
    own = await persist(context.clock, begin, session_id, woken, context.own_turns)
    context.outbox.send(*own.posts)
    context.feed.notify(session_id)
    if own.answer == "limit":
        logger.warning("session %d: its agent began as many turns as it may", session_id)
        await context.live.silence(session_id)
    elif own.answer == "begun":
        submit(session_id)


async def join_agent(
    context: TurnContext, session: Session, turn: Turn, listener: AgentListener
) -> tuple[LiveAgent, Talk | None]:
    """Take the agent that began a turn, and commit that it is followed, unless it was stopped.

    Raises:
        AgentDied: its process is gone, and with it what it began.
    """
    live = await context.live.borrow(session.id)
    if live is None:
        raise AgentDied(session.key.agent, status=None)
    wants_words = context.agent(session.key.agent).config.while_busy == "steer"
    committed = await persist(
        context.clock,
        context.stores.turns.follow,
        turn.id,
        steerable=wants_words and live.agent.steerable,
    )
    return live, partial(live.agent.follow, listener, turn=turn.id) if committed else None
