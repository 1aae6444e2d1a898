"""Posts what an agent says into its Linear sessions, and shows that it is alive.

Everything in one session goes out in order: no heartbeat may follow the agent's last message.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.clock import Clock
from app.errors import PostDelayed, PostError, PostRejected, ServiceRefused
from app.model.inbound import Begun
from app.model.keys import SessionKey
from app.model.posts import PostSend, PostSent
from app.services.linear import events, render, wording
from app.services.linear.activities import Activities
from app.services.linear.api import LinearApi, LinearFailed, LinearRefused
from app.services.linear.files import Uploader
from app.services.linear.identity import Identification
from app.services.linear.issue_state import IssueState
from app.services.linear.presence import Conversation, Presence, Work
from app.services.linear.proactive import open_session
from app.services.linear.render import Activity, Change, Shown, activity_id
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 60.0
"""How often to check for silence."""


class Posting:
    """The posts of one agent."""

    def __init__(self, name: str, api: LinearApi, clock: Clock, uploads: Path) -> None:
        self._name = name
        self._api = api
        self._clock = clock
        self._activities = Activities(name, api)
        self._uploader = Uploader(api, uploads)
        self._issue_state = IssueState(name, api)
        self._presence = Presence()
        self._tasks = Tasks(f"posts of {name}")

    async def send(self, post: PostSend) -> PostSent:
        """Show what is new in a post.

        Raises:
            PostDelayed: not now.
            PostRejected: never.
        """
        session = post.target.external
        sent = PostSent(post.remote_id or activity_id(post.marker, render.FIRST), post.consumed)
        if session.startswith(events.UNREAD):
            return sent
        async with self._presence.at(session, self._clock.monotonic()).line:
            try:
                if post.content.kind == "turn":
                    await self._send_turn(post)
                else:
                    await self._send_other(post)
            except PostRejected:
                self._presence.leave(session, post.marker)
                raise
        final = post.op == "finish"
        return PostSent(sent.remote_id, len(post.content.text)) if final else sent

    async def accompany(self, identification: Identification, begun: Begun) -> str | None:
        """Open a session about work that begins elsewhere; raises what `open_session` does."""
        session = await open_session(self._api, self._activities, identification, begun)
        if session is not None:
            self._presence.accompany(session, self._clock.monotonic())
        return session

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the activity that a post begins with."""
        if target.external.startswith(events.UNREAD):
            return None
        name = activity_id(marker, render.FIRST)
        return PostSent(name) if await self._activities.exists(name) else None

    async def show_life(self) -> None:
        """Send a heartbeat wherever an agent works silently."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            for session in self._presence.silent(self._clock.monotonic()):
                try:
                    await self._show_life_in(session)
                except (PostError, ServiceRefused) as error:
                    logger.info("%s cannot send a heartbeat: %s", self._name, error)

    async def _show_life_in(self, session: str) -> None:
        if not self._presence.is_watched(session):
            return  # its turn ended during the heartbeat of another session
        async with self._presence.at(session, self._clock.monotonic()).line:
            # Another post that held the line may have ended the turn.
            if session in self._presence.silent(self._clock.monotonic()):
                words = {"type": "thought", "body": wording.STILL_WORKING}
                await self._act(session, uuid4().hex, Activity("life", words, ephemeral=True))

    async def close(self) -> None:
        """Stop all tasks."""
        await self._tasks.close()

    async def _send_turn(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        ended = post.op == "finish" or post.content.state in {"done", "failed", "stopped"}
        work = self._work(post, now)
        if post.content.files:
            made = await self._uploader.upload(post.content.files)
            post = replace(post, content=replace(post.content, files=made))
        if post.op in {"replace", "append"}:
            if self._presence.at(session, now).asks:
                return  # any activity after an ask would close it
            if now < work.due:
                raise PostDelayed("progress updates are throttled", retry_after=work.due - now)
        for step in render.steps(post.content, work.shown):
            await self._take_step(post, step.call)
            work.shown = step.shown
        work.note_shown(now)
        if ended:
            self._presence.leave(session, post.marker)
            self._uploader.forget(post.content.files)
        elif post.op == "create":
            conversation = self._presence.at(session, now)
            self._tasks.start(self._move_issue(post, conversation), name=str(post.target))
            await asyncio.sleep(0)  # so that it takes the line next, before any other post

    async def _move_issue(self, post: PostSend, conversation: Conversation) -> None:
        """Move the issue while the agent starts; not after the turn ended."""
        async with conversation.line:
            if post.marker in conversation.turns:
                await self._issue_state.begin(post)

    async def _take_step(self, post: PostSend, call: Activity | Change) -> None:
        """Make one call; only the first and the last activity of a turn may fail the post."""
        session = post.target.external
        try:
            match call:
                case Activity():
                    await self._act(session, post.marker, call)
                case Change():
                    if fields := await self._issue_state.drop_known_links(session, call.fields):
                        await self._api.call("update_session", id=session, input=fields)
                    await self._issue_state.take_over(post, call)
        except (LinearFailed, LinearRefused) as error:
            gone = isinstance(error, LinearRefused) and error.missing
            if gone or (isinstance(call, Activity) and call.name in {render.FIRST, render.LAST}):
                raise
            logger.warning("%s skipped an update in %s: %s", self._name, post.target, error)

    def _work(self, post: PostSend, now: float) -> Work:
        """Return what is known of a turn; if an earlier run began it, only its end is new."""
        conversation = self._presence.at(post.target.external, now)
        work = conversation.turns.get(post.marker)
        if work is None:
            shown = Shown()
            if post.op == "finish":
                shown = Shown(calls=frozenset(tool.call for tool in post.content.tools))
            work = conversation.turns[post.marker] = Work(now, shown)
        return work

    async def _send_other(self, post: PostSend) -> None:
        session, now = post.target.external, self._clock.monotonic()
        self._presence.part(session)
        busy = self._presence.is_busy(session)
        for step in render.steps(post.content, Shown(), busy=busy):
            assert isinstance(step.call, Activity), "only turns change the session"
            await self._act(session, post.marker, step.call)
        if post.content.kind == "ask" and post.content.state == "open":
            self._presence.at(session, now).asks.add(post.marker)
        else:
            self._presence.leave(session, post.marker)

    async def _act(self, session: str, marker: str, activity: Activity) -> None:
        await self._activities.create(session, marker, activity)
        self._presence.spoke(session, self._clock.monotonic())
