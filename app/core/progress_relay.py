"""Hands the progress of turns to the member that sends posts: the last content wins.

The content goes through the store, because it is longer than a signal may be.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from app.clock import Clock
from app.core.adapters import Adapter
from app.errors import StoreUnavailable
from app.model.keys import SessionKey
from app.model.posts import PostContent
from app.signals import Signals, Topic
from app.store.posts import PostStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

Progress = Callable[[], PostContent]


class ProgressRelay:
    """The progress of the turns that run here, on its way to the leader."""

    def __init__(
        self,
        posts: PostStore,
        adapters: Mapping[str, Adapter],
        clock: Clock,
        clean: Callable[[PostContent], Awaitable[PostContent]],
        signals: Signals,
    ) -> None:
        """Hand over; `clean` redacts a content."""
        self._posts = posts
        self._adapters = adapters
        self._clock = clock
        self._clean = clean
        self._signals = signals
        self._latest: dict[int, Progress] = {}
        self._busy: set[int] = set()
        self._tasks = Tasks("progress")

    async def close(self) -> None:
        """Hand over nothing more."""
        await self._tasks.close()

    def show(self, post_id: int, target: SessionKey, content: Progress) -> None:
        """Show the progress of a turn, no more often than its platform takes it."""
        adapter = self._adapters.get(target.adapter)
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
                    self._signals.send(Topic.PROGRESS, post=post_id)
                await self._clock.sleep(pace)
        finally:
            self._busy.discard(post_id)
