"""Shows that an agent is at work: Slack's own status with its Stop button, set again in time.

A status is decoration: whatever Slack says to it, no answer waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from app.core.keys import SessionKey
from app.core.ports import Clock
from app.core.tasks import Tasks
from app.errors import PostError
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 60.0
"""How often a status is set again: it disappears after two minutes."""
LACKING: Final = {"unknown_method", "missing_scope", "not_allowed_token_type", "access_denied"}


class Status:
    """The statuses of one agent's threads."""

    def __init__(self, api: SlackApi, clock: Clock, agent: str) -> None:
        self._api = api
        self._clock = clock
        self._tasks = Tasks(f"slack status of {agent}")
        self._busy: dict[SessionKey, asyncio.Task[None]] = {}
        self._sessions = True

    def begin(self, key: SessionKey, asker: str) -> None:
        """Show that the agent works in a thread, from now on until it ends."""
        if key not in self._busy:
            self._busy[key] = self._tasks.start(self._hold(key, asker), name=str(key))

    def end(self, key: SessionKey) -> None:
        """Show that it does not work any more."""
        task = self._busy.pop(key, None)
        if task is not None:
            task.cancel()
            self._tasks.start(self._set(key, "active"), name=str(key))

    async def close(self) -> None:
        """Leave everything as it is shown."""
        await self._tasks.close()

    async def _hold(self, key: SessionKey, asker: str) -> None:
        while True:
            await self._set(key, "processing", asker)
            await self._clock.sleep(AGAIN_SECONDS)

    async def _set(self, key: SessionKey, status: str, asker: str = "") -> None:
        channel, thread = channel_and_thread(key.external)
        try:
            if self._sessions:
                try:
                    await self._api.call(
                        "agents.sessions.setStatus",
                        channel_id=channel,
                        thread_ts=thread,
                        status=status,
                        initiator_user_id=asker or None,
                    )
                except SlackRefused as error:
                    self._sessions = error.error not in LACKING
            if not self._sessions:
                words = "is working…" if status == "processing" else ""
                await self._api.call(
                    "assistant.threads.setStatus",
                    channel_id=channel,
                    thread_ts=thread,
                    status=words,
                )
        except PostError as error:
            logger.debug("%s", error)
