"""Hands the progress of turns to the member that sends posts: the last content wins.

The content goes through the store, because it is longer than a signal may be.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from app.core.base import Base
from app.errors import StoreUnavailable
from app.model.keys import SessionKey
from app.model.posts import PostContent
from app.signals import Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

Progress = Callable[[], PostContent]


class ProgressRelay:
    """The progress of the turns that run here, on its way to the leader."""

    def __init__(self, base: Base, clean: Callable[[PostContent], Awaitable[PostContent]]) -> None:
        """Hand over; `clean` redacts a content."""
        self._base = base
        self._posts = base.stores.posts
        self._clean = clean
        self._latest: dict[int, Progress] = {}
        self._busy: set[int] = set()
        self._tasks = Tasks("progress")

    async def close(self) -> None:
        """Hand over nothing more."""
        await self._tasks.close()

    def show(self, post_id: int, target: SessionKey, content: Progress) -> None:
        """Show the progress of a turn, no more often than its platform takes it."""
        adapter = self._base.adapters.get(target.adapter)
        if adapter is None:
            return
        self._latest[post_id] = content
        if post_id not in self._busy:
            self._busy.add(post_id)
            self._tasks.start(self._hand_over(post_id, adapter.pace), name=f"post {post_id}")

    async def _hand_over(self, post_id: int, pace: float) -> None:
        try:
            while (latest := self._latest.pop(post_id, None)) is not None:
                try:
                    is_open = await self._posts.show(post_id, await self._clean(latest()))
                except StoreUnavailable as error:
                    logger.info("dropped progress of post %d: %s", post_id, error)
                    is_open = False
                if is_open:
                    self._base.signals.send(Topic.PROGRESS, post=post_id)
                await self._base.clock.sleep(pace)
        finally:
            self._busy.discard(post_id)
