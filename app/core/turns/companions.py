"""Shows a turn on other services of its agent too: that it began, and how it ended.

The work stays where it began: another service only gets one line at its end, and replies there
reach the same session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from app.core.turns.turn_context import TurnContext
from app.errors import PostError, ServiceRefused
from app.model.inbound import Begun
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import Session, Turn, TurnState
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

OPEN_SECONDS: Final = 10.0
"""How long the start of an agent waits until another service shows its work."""
_ENDS: Final[Mapping[TurnState, str]] = {
    TurnState.DONE: "Done",
    TurnState.FAILED: "Failed",
    TurnState.CANCELLED: "Stopped",
}


class Companions:
    """The conversations on other services about one turn."""

    def __init__(self, context: TurnContext, session: Session, turn: Turn) -> None:
        self._context = context
        self._session = session
        self._turn = turn
        self._link = context.page(session.place)
        self._tasks = Tasks(f"companions of turn {turn.id}")
        self._keys: list[SessionKey] = []

    async def open(self) -> None:
        """Show the turn wherever its agent's services want that; an interruption leaves none."""
        if self._link and self._others():
            await asyncio.shield(self._tasks.start(self._open(), name="open"))

    async def end(self, state: TurnState) -> list[NewPost]:
        """Return what closes the conversations."""
        await self._tasks.settle(OPEN_SECONDS)
        await self._tasks.close()
        words = PostContent(kind="notice", note=f"{_ENDS[state]}: {self._link}")
        return [
            NewPost(f"companion:{self._turn.id}:{key}", key, words, self._session.id, self._turn.id)
            for key in self._keys
        ]

    def _others(self) -> list[str]:
        own = self._turn.surface
        adapters = self._context.adapters.items()
        return [
            name for name, adapter in adapters if adapter.agent == own.agent and name != own.adapter
        ]

    async def _open(self) -> None:
        messages = self._context.turns.messages(self._turn.id)
        begun = Begun(tuple(each.text for each in messages), self._link)
        for name in self._others():
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    key = await self._context.adapters[name].accompany(begun)
            except (PostError, ServiceRefused, TimeoutError) as error:
                logger.info("%s does not show turn %d: %s", name, self._turn.id, error)
                continue
            if key is not None and await self._link_to(key):
                self._keys.append(key)

    async def _link_to(self, key: SessionKey) -> bool:
        """Let replies there reach the session; False if they reach another one."""
        place, context = PlaceKey(key.service, key.external), self._context
        return await persist(context.clock, context.sessions.link, self._session.id, key, place)
