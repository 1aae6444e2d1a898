"""Named, owned background tasks: the only place that starts one.

The owner of tasks closes them; a task that fails is logged with its name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from app.retry import hold, is_watched

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""How long a task that was cancelled may take to end: longer than a locked store, or a process."""


class Tasks:
    """The background tasks of one owner."""

    def __init__(self, owner: str, *, is_held: bool = True) -> None:
        """Own tasks; unless they are those that look for the store, they wait while it is away."""
        self._owner = owner
        self._is_held = is_held
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        """Run a coroutine in the background until it ends or the owner closes."""
        is_held = self._is_held and is_watched()
        task = asyncio.create_task(hold(work) if is_held else work, name=f"{self._owner}: {name}")
        if is_held:
            task.add_done_callback(lambda _: work.close())  # it may never have begun
        self._running.add(task)
        task.add_done_callback(self._on_end)
        return task

    def start_once(self, work: Callable[[], Coroutine[Any, Any, Any]], *, name: str) -> None:
        """Run something in the background, unless the last run of this name still goes on."""
        whole = f"{self._owner}: {name}"
        if not any(task.get_name() == whole for task in self._running):
            self.start(work(), name=name)

    async def settle(self, seconds: float) -> None:
        """Give the tasks some time to end by themselves."""
        if seconds > 0 and self._running:
            await asyncio.wait(self._running, timeout=seconds)

    async def close(self, *, grace: float = 0.0) -> None:
        """Give the tasks a moment to end by themselves, then cancel them and wait."""
        await self.settle(grace)
        while self._running:
            for task in self._running:
                task.cancel()
            # Once more after a while: one may have begun to write its end to a store that is away.
            await asyncio.wait(self._running, timeout=CLOSE_SECONDS)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("task %r failed", task.get_name(), exc_info=task.exception())
