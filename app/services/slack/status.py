"""Shows that an agent is working: Slack's own status with its Stop button, renewed in time.

A status is decoration: if Slack refuses or delays it, no answer waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Literal

from app.core.keys import SessionKey
from app.core.ports import Clock
from app.core.tasks import Tasks
from app.errors import PostDelayed, PostError
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread, is_person

logger = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 60.0
"""How often a status is renewed: it disappears after two minutes."""
LACKING: Final = {"unknown_method", "missing_scope", "not_allowed_token_type", "access_denied"}


@dataclass(slots=True)
class _Shown:
    """The status one thread should show, and the timer until it is set again."""

    asker: str
    wanted: Literal["processing", "active"] = "processing"
    timer: asyncio.Task[None] | None = None


class Status:
    """The statuses of one agent's threads."""

    def __init__(self, api: SlackApi, clock: Clock, agent: str) -> None:
        self._api = api
        self._clock = clock
        self._tasks = Tasks(f"slack status of {agent}")
        self._shown: dict[SessionKey, _Shown] = {}
        self._sessions = True

    def begin(self, key: SessionKey, asker: str) -> None:
        """Show that the agent works in a thread, from now on until it ends."""
        if key in self._shown:
            self._want(self._shown[key], "processing")
            return
        shown = self._shown[key] = _Shown(asker if is_person(asker) else "")
        self._tasks.start(self._show(key, shown), name=str(key))

    def end(self, key: SessionKey) -> None:
        """Show that the agent no longer works."""
        if key in self._shown:
            self._want(self._shown[key], "active")

    async def close(self) -> None:
        """Stop updating; the statuses stay as shown."""
        await self._tasks.close()

    def _want(self, shown: _Shown, status: Literal["processing", "active"]) -> None:
        if shown.wanted != status:
            shown.wanted = status
            if shown.timer is not None:
                shown.timer.cancel()

    async def _show(self, key: SessionKey, shown: _Shown) -> None:
        """Update Slack with one call at a time: two at once may arrive in any order."""
        try:
            while not await self._settle(key, shown):
                pass
        finally:
            del self._shown[key]

    async def _settle(self, key: SessionKey, shown: _Shown) -> bool:
        """Set the wanted status, then sleep until it is due again; True if no more is to do."""
        status = shown.wanted
        wait = await self._set(key, status, shown.asker)
        if shown.wanted != status:
            return False
        if status == "active" and wait is None:
            return True
        pause = self._clock.sleep(AGAIN_SECONDS if wait is None else wait)
        shown.timer = self._tasks.start(pause, name=f"{key}, again")
        await asyncio.wait({shown.timer})
        return False

    async def _set(self, key: SessionKey, status: str, asker: str) -> float | None:
        """Set a status; returns the seconds until the next try if Slack delays it."""
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
        except PostDelayed as error:
            return error.retry_after or AGAIN_SECONDS
        except PostError as error:
            logger.debug("%s", error)
        return None
