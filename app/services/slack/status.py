"""Shows that an agent is working, and marks the message that it answered once it is done.

Both are decoration: if Slack refuses or delays them, no answer waits for them. Slack keeps the
status of a session for an hour, so it is ended in any case, also after a restart.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.clock import Clock
from app.errors import PostDelayed, PostError
from app.model.keys import SessionKey
from app.model.posts import PostSend
from app.retry import Retries
from app.services.slack.api import TRANSIENT, SlackApi, SlackRefused
from app.services.slack.cards import FINAL
from app.services.slack.events import channel_and_thread, is_person
from app.services.slack.wording import IS_WORKING
from app.tasks import Tasks

logger = logging.getLogger(__name__)


EMOJI: Final = {"done": "white_check_mark", "failed": "x"}
"""The mark of each end; a person who stops an agent needs none."""
STEERED: Final = "eyes"
"""The mark of a message that went into a running turn."""
PAUSES: Final = (5.0, 60.0)
_MESSAGE: Final = re.compile(r"\d+\.\d+")


class Reactions:
    """The marks of one agent's app."""

    def __init__(self, api: SlackApi, clock: Clock, agent: str) -> None:
        self._api = api
        self._clock = clock
        self._tasks = Tasks(f"slack reactions of {agent}")
        self._seen: set[str] = set()

    def mark(self, post: PostSend) -> None:
        """Mark the messages that went into a turn, and all that it answers once it is over."""
        content = post.content
        marks = [(each, STEERED) for each in content.steered if each not in self._seen]
        self._seen.update(content.steered)
        if content.state in FINAL:
            self._seen.difference_update(content.steered)
        if (emoji := EMOJI.get(content.state)) is not None:
            marks += [(each, emoji) for each in (content.message_id, *content.steered)]
        for message, mark in marks:
            if _MESSAGE.fullmatch(message):
                self._tasks.start(self._add(post.target, message, mark), name=message)

    async def close(self) -> None:
        """Stop adding marks."""
        await self._tasks.close()

    async def _add(self, target: SessionKey, message: str, emoji: str) -> None:
        channel, _ = channel_and_thread(target.external)
        retries = Retries(self._clock, PAUSES)
        facts = {"channel": channel, "timestamp": message, "name": emoji}
        try:
            while True:
                try:
                    await self._api.call("reactions.add", yields=True, **facts)
                except TRANSIENT as error:
                    await retries.wait(error)
                else:
                    return
        except PostError as error:
            logger.debug("%s", error)


SESSION_SECONDS: Final = 1500.0
"""How often the status of a session is renewed: it ends after an hour."""
THREAD_SECONDS: Final = 60.0
"""How often the status of a thread without a session is renewed: it is gone after two minutes."""
RETRY_SECONDS: Final = 60.0
RETRIES: Final = 3
"""How often the end is sent again that Slack refuses for an unknown reason."""
TITLE_CHARACTERS: Final = 200
NO_SESSIONS: Final = {
    "access_denied",
    "feature_disabled",
    "missing_scope",
    "not_allowed_token_type",
    "not_an_agent",
    "unknown_method",
}
"""Errors that mean that this app has no agent sessions."""
NO_SESSION_HERE: Final = {
    "channel_not_found",
    "is_archived",
    "method_not_supported_for_channel_type",
    "not_authorized",
    "thread_not_found",
}
"""Errors that will be the same for this thread; any other may pass."""
NO_SUCH_PERSON: Final = {"user_not_found", "user_not_in_channel"}

State = Literal["processing", "suspended", "active"]


@dataclass(slots=True)
class _Shown:
    """The status one thread should show, and the timer until it is set again."""

    asker: str
    works: bool = True
    asks: set[str] = field(default_factory=set)
    """The questions that people have to answer."""
    waits: bool = False
    """Whether the turn itself waits for a person."""
    has_session: bool = True
    refusals: int = 0
    is_named: bool = False
    timer: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> State:
        if not self.works:
            return "active"
        return "suspended" if self.asks or self.waits else "processing"


class ThreadStatuses:
    """The statuses of one agent's threads."""

    def __init__(
        self, api: SlackApi, clock: Clock, agent: str, title: Callable[[SessionKey], str]
    ) -> None:
        self._api = api
        self._clock = clock
        self._title = title
        self._tasks = Tasks(f"slack status of {agent}")
        self._shown: dict[SessionKey, _Shown] = {}
        self._sessions = True

    def begin(self, key: SessionKey, asker: str, *, waits: bool = False) -> None:
        """Show that the agent works in a thread or waits there, from now on until it ends."""
        shown = self._shown.get(key)
        if shown is None:
            self._start(key, _Shown(asker if is_person(asker) else "", waits=waits))
            return
        before, shown.works, shown.waits = shown.wanted, True, waits
        self._wake(shown, before)

    def ask(self, key: SessionKey, ask: str, *, is_open: bool) -> None:
        """Show that a person has to answer, or no longer has to."""
        shown = self._shown.get(key)
        if shown is not None:
            before = shown.wanted
            (shown.asks.add if is_open else shown.asks.discard)(ask)
            self._wake(shown, before)

    def end(self, key: SessionKey) -> None:
        """Show that the agent no longer works, also if an earlier run of the bridge showed it."""
        shown = self._shown.get(key)
        if shown is None:
            self._start(key, _Shown("", works=False))
            return
        before, shown.works = shown.wanted, False
        shown.asks.clear()
        self._wake(shown, before)

    async def rename(self, key: SessionKey) -> None:
        """Give the session of a thread the title that it would get now.

        Raises:
            PostError: not now, or never.
        """
        title = self._title(key)[:TITLE_CHARACTERS]
        if title and self._sessions:
            try:
                await self._rename(key, title)
            except SlackRefused as error:
                logger.debug("%s", error)  # the thread has no session

    def tidy(self, keys: Iterable[SessionKey]) -> None:
        """End what an earlier run of the bridge may have shown in threads without work."""
        for key in keys:
            if key not in self._shown:
                self.end(key)

    async def close(self) -> None:
        """Stop updating; the statuses stay as shown."""
        await self._tasks.close()

    def _start(self, key: SessionKey, shown: _Shown) -> None:
        shown.has_session = self._sessions
        self._shown[key] = shown
        self._tasks.start(self._show(key, shown), name=str(key))

    def _wake(self, shown: _Shown, before: State) -> None:
        if shown.wanted != before and shown.timer is not None:
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
        wait = await self._set(key, status, shown)
        if shown.wanted != status:
            return False
        if status == "active" and wait is None:
            return True
        if wait is None:
            wait = SESSION_SECONDS if shown.has_session else THREAD_SECONDS
        shown.timer = self._tasks.start(self._clock.sleep(wait), name=f"{key}, again")
        await asyncio.wait({shown.timer})
        return False

    async def _set(self, key: SessionKey, status: State, shown: _Shown) -> float | None:
        """Set a status; returns the seconds until the next try if Slack delays it."""
        try:
            if not shown.has_session:
                await self._set_thread(key, status)
            # A stream works in a session of its own accord, so that is ended in any case.
            if self._sessions and (shown.has_session or status == "active"):
                await self._try_session(key, status, shown)
        except PostDelayed as error:
            return error.retry_after or RETRY_SECONDS
        except SlackRefused as error:
            logger.debug("%s", error)
        except PostError as error:
            logger.info("%s", error)
            return RETRY_SECONDS
        return None

    async def _try_session(self, key: SessionKey, status: State, shown: _Shown) -> None:
        """Set the status of the session, or else from now on that of the thread."""
        try:
            await self._set_session(key, status, shown)
        except SlackRefused as error:
            is_known = error.error in NO_SESSIONS | NO_SESSION_HERE
            if status == "active" and not is_known and shown.refusals < RETRIES:
                shown.refusals += 1
                raise PostDelayed(str(error), retry_after=RETRY_SECONDS) from error
            logger.info("%s; showing the status of the thread instead", error)
            self._sessions = error.error not in NO_SESSIONS
            if shown.has_session:
                shown.has_session = False
                await self._set_thread(key, status)

    async def _set_session(self, key: SessionKey, status: State, shown: _Shown) -> None:
        title = self._title(key)[:TITLE_CHARACTERS]
        answer = await self._call_session(key, status, shown, title=title or None)
        if title and not shown.is_named and answer.get("title") == "":
            # A stream that came first made the session, without a title.
            shown.is_named = True
            await self._rename(key, title)

    async def _rename(self, key: SessionKey, title: str) -> None:
        channel, thread = channel_and_thread(key.external)
        await self._api.call(
            "agents.sessions.rename",
            yields=True,
            channel_id=channel,
            thread_ts=thread,
            title=title,
        )

    async def _call_session(
        self, key: SessionKey, status: State, shown: _Shown, **more: Any
    ) -> dict[str, Any]:
        channel, thread = channel_and_thread(key.external)
        try:
            return await self._api.call(
                "agents.sessions.setStatus",
                yields=status != "active",
                channel_id=channel,
                thread_ts=thread,
                status=status,
                initiator_user_id=shown.asker or None,
                **more,
            )
        except SlackRefused as error:
            if error.error not in NO_SUCH_PERSON or not shown.asker:
                raise
            shown.asker = ""
        return await self._call_session(key, status, shown, **more)

    async def _set_thread(self, key: SessionKey, status: State) -> None:
        channel, thread = channel_and_thread(key.external)
        await self._api.call(
            "assistant.threads.setStatus",
            channel_id=channel,
            thread_ts=thread,
            status=IS_WORKING if status == "processing" else "",
        )
